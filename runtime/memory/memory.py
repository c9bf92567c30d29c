"""Memory as the rest of the engine sees it: opened once, searched by recalls, kept in step with the files behind it.

The catalog answers, the files are the truth. The keeper, a background task, brings the catalog up to them at start,
then at intervals, when the file system says that a note changed, and when a note about to be delivered is found stale.
"""

import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio import CapacityLimiter, to_thread

from recallscope.runtime.errors import StoreUnavailableError
from recallscope.runtime.events import OpId
from recallscope.runtime.memory.catalog import Catalog
from recallscope.runtime.memory.edit import Editor
from recallscope.runtime.memory.keeper import Keeper
from recallscope.runtime.memory.lookup import Lookup, is_current, load_notes
from recallscope.runtime.memory.noise import aliases
from recallscope.runtime.memory.note import Note
from recallscope.runtime.memory.scopes import MemoryRoots, Root, Skipped
from recallscope.runtime.memory.scopes import catalog_path as default_catalog_path
from recallscope.runtime.memory.search import Found
from recallscope.runtime.memory.sync import FolderUnavailableError
from recallscope.runtime.messages import NoteVersion
from recallscope.runtime.observe import Observers
from recallscope.runtime.terms import ScopeName

if TYPE_CHECKING:
    from recallscope.runtime.memory.vectors import Vectors

__all__ = ["Memory", "MemoryStatistics", "ScopeStatistics", "open_memory"]

SEARCHES_AT_ONCE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeStatistics:
    """How one scope stands: `synced` if a sync has succeeded in this process, `problem` is why the last one failed."""

    scope: ScopeName
    root: Path
    notes: int
    skipped: int
    synced: bool
    problem: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryStatistics:
    """How memory stands: its catalog's file, whether it is a temporary one, and its scopes."""

    catalog: Path
    temporary: bool
    scopes: tuple[ScopeStatistics, ...]


class Memory:
    """Searches, checks and edits the notes of one engine's scopes; satisfies `Searchable`. Made by `open_memory`."""

    def __init__(
        self,
        roots: MemoryRoots,
        catalog: Catalog,
        *,
        observers: Observers,
        read_only: bool = False,
        clock: Callable[[], float] = time.time,
        limiter: CapacityLimiter | None = None,
        vectors: "Vectors | None" = None,
    ) -> None:
        self._catalog = catalog
        self.vectors = vectors
        if vectors is not None:
            vectors.attach(catalog, self._numbered)
        self._keeper = Keeper(roots.roots, catalog, observers=observers, caught_up=self._caught_up)
        self._scopes = self._keeper.scopes
        self._limiter = limiter or CapacityLimiter(SEARCHES_AT_ONCE)
        self.edit = Editor(
            catalog,
            roots.roots,
            observers=observers,
            clock=clock,
            read_only=read_only,
            complete=self._is_complete,
            written=self._written,
        )

    @property
    def notes(self) -> int:
        """How many notes can be found; known without waiting."""
        return sum(scope.notes for scope in self._scopes)

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        """Return what the last sync could not read as notes, in all scopes, with the reasons."""
        return tuple(skip for scope in self._scopes for skip in scope.skipped)

    def skipped_in(self, scope: ScopeName) -> tuple[Skipped, ...]:
        """Return what `skipped` holds of one scope."""
        return tuple(skip for state in self._scopes if state.root.scope == scope for skip in state.skipped)

    async def search(
        self,
        query: str,
        *,
        exclude: frozenset[NoteVersion],
        recent_tools: Sequence[str],
        within: float | None = None,
        op: OpId | None = None,
    ) -> Found:
        """Search for `query`, leaving out the versions in `exclude` and usage notes about `recent_tools`.

        After `within` seconds (None: no limit), the wait for a free thread included, the query is interrupted and what
        it has is returned, marked `partial`. Cancelling interrupts the query in its thread. Before the first sync has
        ended this answers from what the catalog holds by then. `op` is the recall that a question for the query's
        vector belongs to.

        Raises:
            StoreUnavailableError: memory could not be read; unavailable is not empty.
        """
        until = None if within is None else time.monotonic() + within
        lookup = Lookup(
            catalog=self._catalog,
            roots=self._readable(),
            query=query,
            exclude=exclude,
            tools=aliases(recent_tools),
        )
        if not lookup.roots:
            return Found()

        async def words() -> Found:
            return await to_thread.run_sync(_run, lookup, until, limiter=self._limiter, abandon_on_cancel=True)

        try:
            if self.vectors is None or not self.vectors.ready or not query.strip():
                return await words()
            from recallscope.runtime.memory.semantic import search_with_vectors  # noqa: PLC0415 - it imports numpy

            return await search_with_vectors(
                words, self.vectors, lookup, within=within, limiter=self._limiter, parent=op
            )
        except StoreUnavailableError as error:
            self._unreadable(error)
            raise
        finally:
            lookup.stop()

    async def load(self, notes: Sequence[Note]) -> tuple[Note, ...]:
        """Return `notes` with their bodies, in order, without those that are gone from the catalog.

        Raises:
            StoreUnavailableError: memory could not be read.
        """
        try:
            return await to_thread.run_sync(self._load, notes, limiter=self._limiter)
        except StoreUnavailableError as error:
            self._unreadable(error)
            raise

    async def stale(self, notes: Sequence[Note]) -> frozenset[NoteVersion]:
        """Return those of `notes` whose file is gone or changed (one `stat` each, in a thread), and re-index them.

        What cannot be checked counts as stale: a note is delivered only when it is known to be current.
        """
        found = await to_thread.run_sync(self._find_stale, notes, limiter=self._limiter)
        for scope in self._scopes:
            relatives = frozenset(note.relative for note in found if note.scope == scope.root.scope)
            if relatives:
                self._keeper.request_files(scope.root, relatives)
        return frozenset(note.note_version for note in found)

    async def wait_synced(self) -> None:
        """Wait until the first sync of every scope has ended, well or badly (`statistics` tells)."""
        await self._keeper.first.wait()

    def request_sync(self) -> None:
        """Ask for a sync soon, without waiting for it."""
        self._keeper.request_scan()

    async def sync(self) -> None:
        """Bring the catalog up to the files now; what fails is logged and stands in `statistics`."""
        await self._keeper.sync()

    def statistics(self) -> MemoryStatistics:
        """Say how memory stands."""
        return MemoryStatistics(
            catalog=self._catalog.path,
            temporary=self._catalog.temporary,
            scopes=tuple(
                ScopeStatistics(
                    scope=scope.root.scope,
                    root=scope.root.path,
                    notes=scope.notes,
                    skipped=len(scope.skipped),
                    synced=scope.synced,
                    problem=str(scope.problem) if scope.problem else None,
                )
                for scope in self._scopes
            ),
        )

    async def start(self, *, rebuilt: bool) -> None:
        """Learn what the catalog holds already, so that the first recall finds it."""
        await self._keeper.start(rebuilt=rebuilt)

    async def keep_in_step(self, *, watch: bool = False) -> None:
        """Sync now, at intervals, when asked, and with `watch` when the system tells of a change; until cancelled."""
        await self._keeper.keep_in_step(watch=watch)

    def stop(self) -> None:
        """Make a sync under way end after the file that it is at."""
        self._keeper.stop()

    def _readable(self) -> dict[int, Root]:
        """Return the roots that can be searched, by number; where none can, say why.

        A catalog that could not be written may still be read: what it holds of changed notes is never delivered.
        """
        usable = {
            scope.number: scope.root
            for scope in self._scopes
            if scope.number is not None and not isinstance(scope.problem, FolderUnavailableError)
        }
        problem = next((scope.problem for scope in self._scopes if scope.problem is not None), None)
        if not usable and problem is not None:
            raise StoreUnavailableError(str(problem)) from problem
        return usable

    def _numbered(self) -> Mapping[int, Root]:
        return {scope.number: scope.root for scope in self._scopes if scope.number is not None}

    def _unreadable(self, error: StoreUnavailableError) -> None:
        self._catalog.doubt(error.__cause__)
        self.request_sync()

    def _load(self, notes: Sequence[Note]) -> tuple[Note, ...]:
        numbered = self._numbered()
        with self._catalog.readers.borrow() as reader:
            reader.verify((number, root.path) for number, root in numbered.items())
            return load_notes(reader, numbered, notes)

    def _find_stale(self, notes: Sequence[Note]) -> tuple[Note, ...]:
        numbered = self._numbered()
        numbers = {root.scope: number for number, root in numbered.items()}
        try:
            with self._catalog.readers.borrow() as reader:
                reader.verify((number, root.path) for number, root in numbered.items())
                return tuple(note for note in notes if not is_current(reader, numbers.get(note.scope), note))
        except StoreUnavailableError:
            return tuple(notes)

    def _is_complete(self, scope: ScopeName) -> bool:
        return any(state.complete for state in self._scopes if state.root.scope == scope)

    def _written(self, scope: ScopeName, notes: int | None) -> None:
        for state in self._scopes:
            if state.root.scope == scope and notes is not None:
                state.notes = notes
        if notes is None:
            self.request_sync()
        self._caught_up()

    def _caught_up(self) -> None:
        if self.vectors is not None:
            self.vectors.request()


def _run(lookup: Lookup, until: float | None) -> Found:
    if until is not None:  # the wait for a free thread counts
        lookup.deadline = max(until - time.monotonic(), 0.0)
    return lookup.run()


@asynccontextmanager
async def open_memory(
    roots: MemoryRoots,
    *,
    observers: Observers,
    catalog_path: Path | None = None,
    read_only: bool = False,
    clock: Callable[[], float] = time.time,
    limiter: CapacityLimiter | None = None,
    watch: bool = False,
    vectors: "Vectors | None" = None,
) -> AsyncGenerator[Memory, None]:
    """Open memory and keep it in step with its files for the length of the block.

    `catalog_path` is by default in the local cache directory (`scopes.catalog_path`); where that cannot be used, the
    catalog is a temporary file and a warning says so. `read_only` refuses every write to notes. `clock` gives seconds
    since 1970 for the times in notes. `limiter` holds how many searches run at once. `watch`: notices of
    the file system make edits of others recallable within a second; without it they wait for the next scan.
    `vectors`: a second source of the search, whose vectors are made in the background.
    """
    catalog = Catalog(catalog_path or default_catalog_path(roots))
    with closing(catalog):
        rebuilt = False
        with suppress(StoreUnavailableError):  # said by `start`, and tried again by every sync
            rebuilt = await to_thread.run_sync(catalog.open_or_bypass)
        memory = Memory(
            roots,
            catalog,
            observers=observers,
            read_only=read_only,
            clock=clock,
            limiter=limiter,
            vectors=vectors,
        )
        await memory.start(rebuilt=rebuilt)
        failure: BaseException | None = None
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(partial(memory.keep_in_step, watch=watch), name="memory sync")
                if vectors is not None:
                    tasks.start_soon(vectors.keep_filled, name="memory vectors")
                try:
                    yield memory
                except BaseException as error:
                    failure = error
                    raise
                finally:
                    memory.stop()
                    tasks.cancel_scope.cancel()
        except BaseExceptionGroup as group:
            if failure is None or group.exceptions != (failure,):
                raise
            raise failure from failure.__cause__  # the caller's own error, not a group made of it
