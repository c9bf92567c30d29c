"""The optional source for queries that share no word with their note: vectors of an embedding model.

The notes' vectors stand in the catalog and are made in the background, after a sync, at a bounded rate, never on a
turn. Of a query one vector is asked for, beside the search for its words; if it comes too late it is not used. What
goes to the model's server is the text of the notes and of the queries.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import anyio
from anyio import CapacityLimiter, to_thread

from recallscope.runtime.errors import ModelError, StoreUnavailableError
from recallscope.runtime.events import Cause, OpId, Purpose
from recallscope.runtime.memory.catalog import Catalog
from recallscope.runtime.memory.note import Note
from recallscope.runtime.memory.scopes import Root
from recallscope.runtime.memory.vector_index import Near, VectorIndex
from recallscope.runtime.memory.vector_rows import (
    delete_vectors,
    notes_numbered,
    numbers_in_force,
    read_vectors,
    write_vectors,
)
from recallscope.runtime.model.ask import call_started
from recallscope.runtime.model.embeddings import Embedded, EmbeddingModel
from recallscope.runtime.observe import Observers

__all__ = ["DEFAULT_THRESHOLD", "Likeness", "VectorStatistics", "Vectors", "embedded_text"]

_log = logging.getLogger(__name__)

_T = TypeVar("_T")

DEFAULT_THRESHOLD = 0.5
"""The least likeness (cosine) of a note that is delivered for its vector; `docs/word-gap.md` says how to choose one."""

OUTSTANDING = 3.5
"""Deviations above the mean of all notes that such a note has, too: some models find every pair of texts alike."""

ENOUGH_TO_COMPARE = 50
"""Notes from which on mean and deviation tell anything."""

RELATED = 0.9
"""A second note is delivered with the first one if it has this share of its likeness."""

HEAD_START_SECONDS = 0.01
"""How long the words may take before the vector is asked for; where they answer sooner and found nothing, at once."""

NEAREST = 40
TEXTS_AT_ONCE = 64
NOTE_CHARACTERS = 4_000
QUERY_CHARACTERS = 2_000
FILL_SECONDS = 60.0
PAUSE_SECONDS = 0.1
"""Between two requests for notes' vectors: at most some 600 notes a second are asked about."""

LOAD_AT_ONCE = 1_000
FIRST_RETRY_SECONDS = 5.0
LONGEST_RETRY_SECONDS = 300.0
IDLE_SECONDS = 30.0
"""How long a change of the notes that nobody told of may go unseen."""

_TOO_MUCH = frozenset({400, 413, 422})


@dataclass(frozen=True, slots=True)
class Likeness:
    """The notes nearest to a query, by number, best first, and those of them that may be delivered.

    The numbers are those of the catalog's `generation`, and mean nothing in another one.
    """

    generation: int
    near: tuple[Near, ...]
    strong: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorStatistics:
    """How the vectors stand: of how many notes there is one, how many still lack it, and why the last fill stopped."""

    model: str
    threshold: float
    notes: int
    lacking: int
    problem: str | None


class Vectors:
    """The vectors of one model over the notes of one memory, which calls `attach` before anything else."""

    def __init__(
        self,
        model: EmbeddingModel,
        observers: Observers,
        *,
        threshold: float = DEFAULT_THRESHOLD,
        head_start: float = HEAD_START_SECONDS,
        pause: float = PAUSE_SECONDS,
    ) -> None:
        self.threshold = threshold
        self.head_start = head_start
        self._model = model
        self._name = model.endpoint.model
        self._observers = observers
        self._pause = pause
        self._index = VectorIndex()
        self._generation: int = 0
        self._catalog: Catalog | None = None
        self._roots: Callable[[], Mapping[int, Root]] = dict
        self._limiter = CapacityLimiter(1)
        self._wanted = anyio.Event()
        self._filled = anyio.Event()
        self._lacking = 0
        self._refused: set[int] = set()
        self._problem: str | None = None
        self._told: set[str] = set()

    def attach(self, catalog: Catalog, roots: Callable[[], Mapping[int, Root]]) -> None:
        """Work with the notes of `roots` in `catalog`."""
        self._catalog = catalog
        self._roots = roots

    @property
    def ready(self) -> bool:
        """Whether there is any vector to compare a query with."""
        return len(self._index) > 0

    def statistics(self) -> VectorStatistics:
        """Say how the vectors stand."""
        return VectorStatistics(
            model=self._name,
            threshold=self.threshold,
            notes=len(self._index),
            lacking=self._lacking,
            problem=self._problem,
        )

    # The query

    async def ask(
        self, query: str, *, parent: OpId | None, cause: Callable[[], Cause | None]
    ) -> Sequence[float] | None:
        """Return the vector of `query`, None if the model fails; cancelling closes the connection.

        `cause` says why the call is cancelled, if it is.
        """
        texts = [" ".join(query.split())[:QUERY_CHARACTERS]]
        try:
            embedded = await self._embed(texts, parent=parent, timeout=None, cause=cause)
        except ModelError as error:
            self._tell(f"the vector of a query: {error}")
            return None
        return embedded.vectors[0]

    def nearest(self, vector: Sequence[float]) -> Likeness:
        """Compare `vector` with those of all notes; runs in a thread."""
        generation = self._generation
        found = self._index.nearest(vector, NEAREST)
        least = self.threshold
        if len(self._index) >= ENOUGH_TO_COMPARE:
            least = max(least, found.mean + OUTSTANDING * found.deviation)
        if found.near:
            least = max(least, RELATED * found.near[0].likeness)
        strong = frozenset(near.number for near in found.near if near.likeness >= least)
        return Likeness(generation, found.near, strong)

    # The notes

    def request(self) -> None:
        """Ask for the vectors of notes that changed, without waiting for them."""
        if self._filled.is_set():
            self._filled = anyio.Event()
        self._wanted.set()

    async def wait_filled(self) -> None:
        """Wait until every note has its vector, or the model failed (`statistics` tells)."""
        await self._filled.wait()

    async def keep_filled(self) -> None:
        """Make the vectors that are lacking, now and whenever notes change, until cancelled."""
        failures = 0
        while True:
            self._wanted = anyio.Event()
            try:
                await self._fill()
            except (ModelError, StoreUnavailableError) as error:
                failures += 1
                self._problem = str(error)
                self._tell(f"the vectors of the notes: {error}")
                wait = min(FIRST_RETRY_SECONDS * 2 ** (failures - 1), LONGEST_RETRY_SECONDS)
                after = error.retry_after if isinstance(error, ModelError) else None
                self._filled.set()
                await anyio.sleep(max(wait, after or 0.0))
                continue
            failures, self._problem = 0, None
            self._told.clear()
            self._filled.set()
            with anyio.move_on_after(IDLE_SECONDS):
                await self._wanted.wait()

    async def _fill(self) -> None:
        lacking = await self._in_thread(self._load)
        since_load = 0
        while lacking:
            self._filled = anyio.Event() if self._filled.is_set() else self._filled
            batch, lacking = lacking[:TEXTS_AT_ONCE], lacking[TEXTS_AT_ONCE:]
            await self._make(await self._in_thread(partial(self._read, batch)))
            self._lacking = len(lacking)
            since_load += len(batch)
            if since_load >= LOAD_AT_ONCE or not lacking:
                since_load = 0
                lacking = [number for number in await self._in_thread(self._load) if number not in self._refused]
            if lacking:
                await anyio.sleep(self._pause)

    async def _make(self, notes: Sequence[tuple[int, Note]]) -> None:
        """Ask for the vectors of `notes` and keep them; where the server finds them too much, ask for half of them."""
        if not notes:
            return
        texts = [embedded_text(note) for _, note in notes]
        try:
            embedded = await self._embed(texts, parent=None, timeout=FILL_SECONDS, cause=lambda: Cause.PROCESS_SHUTDOWN)
        except ModelError as error:
            if error.status_code not in _TOO_MUCH:
                raise
            if len(notes) > 1:
                half = len(notes) // 2
                await self._make(notes[:half])
                await self._make(notes[half:])
                return
            number, note = notes[0]
            self._tell(f"the vector of {note.relative}: {error}")
            self._refused.add(number)
            if not len(self._index) and len(self._refused) >= TEXTS_AT_ONCE:
                raise  # nothing works at all: it is not the notes
            return
        numbered = [(number, vector) for (number, _), vector in zip(notes, embedded.vectors, strict=True)]
        await self._in_thread(partial(self._write, numbered))

    async def _embed(
        self,
        texts: Sequence[str],
        *,
        parent: OpId | None,
        timeout: float | None,  # noqa: ASYNC109 - passed on, where it is an error of its own
        cause: Callable[[], Cause | None],
    ) -> Embedded:
        started = call_started(self._observers, self._model.endpoint, Purpose.EMBEDDING, parent=parent)
        with self._observers.operation(started, cause=cause) as operation:
            operation.note(attempts=1)
            embedded = await self._model.embed(texts, op=started.op, timeout=timeout)
            operation.note(input_tokens=embedded.tokens, response_model=embedded.model)
            return embedded

    # In a thread

    def _load(self) -> list[int]:
        """Bring the matrix up to the catalog, and return the numbers of the notes that lack a vector."""
        roots = self._roots()
        if not roots:
            return []
        with self._open_catalog.readers.borrow() as reader:
            reader.verify((number, root.path) for number, root in roots.items())
            if reader.generation != self._generation:
                self._index = VectorIndex()
                self._refused.clear()
                self._generation = reader.generation
            there, lacking = numbers_in_force(reader, self._name, roots)
            known = self._index.numbers
            gone, new = known.difference(there), [number for number in there if number not in known]
            if gone and not new:
                self._index.change(drop=gone)
            for at in range(0, len(new), LOAD_AT_ONCE * 8):
                rows = read_vectors(reader, self._name, new[at : at + LOAD_AT_ONCE * 8])
                self._index.change(drop=gone, add=rows)
                gone = frozenset[int]()
        self._refused.intersection_update(lacking)
        self._lacking = len(lacking)
        return [number for number in lacking if number not in self._refused]

    def _read(self, numbers: Sequence[int]) -> list[tuple[int, Note]]:
        with self._open_catalog.readers.borrow() as reader:
            if reader.generation != self._generation:
                return []  # another catalog took its place: the next load begins anew
            return notes_numbered(reader, numbers, self._roots())

    def _write(self, vectors: Sequence[tuple[int, Sequence[float]]]) -> None:
        dimension = len(vectors[0][1])
        with self._open_catalog.writing() as writer:
            if writer.execute("PRAGMA application_id").fetchone()[0] != self._generation:
                return
            if self._index.dimension not in {0, dimension} and delete_vectors(writer, self._name, dimension=dimension):
                _log.warning("the vectors of %s have %d numbers now and are made anew", self._name, dimension)
                self._index = VectorIndex()
            write_vectors(writer, self._name, vectors)

    @property
    def _open_catalog(self) -> Catalog:
        if self._catalog is None:
            raise AssertionError("vectors are attached to a catalog before they are used")
        return self._catalog

    async def _in_thread(self, work: Callable[[], _T]) -> _T:
        return await to_thread.run_sync(work, limiter=self._limiter)

    def _tell(self, what: str) -> None:
        """Say once what is wrong, until the model works again: a server that is down would fill the log."""
        if what not in self._told:
            self._told.add(what)
            _log.warning("%s", what)


def embedded_text(note: Note) -> str:
    """Return what of `note` becomes its vector: what heads it first, then its body, cut where models stop reading."""
    head = (note.title, note.description, ", ".join(note.keywords), *note.usage_scenarios)
    return "\n".join((*(text for text in head if text), note.body.strip()))[:NOTE_CHARACTERS]
