"""Asks the small model, once per note, in which other words one might look for it, and writes them into the note.

A search that compares words finds a note only by words that stand in it. The phrasings stand in the note's front matter
(`usage_scenarios`, `keywords`), so people see and edit them, and no turn ever waits for a model. A note that has
phrasings is done: a run that was stopped goes on where it ended.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum, unique

import anyio

from recallscope.runtime.errors import MemoryWriteError, ModelError
from recallscope.runtime.events import ModelAttemptFailed, Purpose
from recallscope.runtime.jobs.phrasings import (
    INSTRUCTION,
    SCHEMA,
    Phrasings,
    UnusableAnswerError,
    question,
    read_answer,
)
from recallscope.runtime.memory.edit import Editor
from recallscope.runtime.memory.note import Note
from recallscope.runtime.messages import TextPart, UserMessage
from recallscope.runtime.model.ask import call_started, facts_of
from recallscope.runtime.model.seam import Model, ModelRequest
from recallscope.runtime.observe import Observers
from recallscope.runtime.terms import Cause

__all__ = ["AT_ONCE", "Enriched", "Enricher", "Fate", "lacking"]

AT_ONCE = 4
"""How many notes the model is asked about at the same time."""

ATTEMPTS = 3
FIRST_BACKOFF_SECONDS = 1.0
LONGEST_BACKOFF_SECONDS = 30.0
ANSWER_SECONDS = 120.0

FAILURES_TO_STOP = 5
"""So many calls in a row that failed mean that the model cannot be used now: the other notes are not asked about."""

MOST_KEYWORDS = 24
MOST_CHARACTERS = 1_900
"""Keywords of a note in all, and their characters with the phrasings'; what is more, the ranking takes for text.

(`rank.field_texts`; a note could be found for anything otherwise.) A person's stay, the model's are left out.
"""


@unique
class Fate(StrEnum):
    """What became of one note.

    `WRITTEN`: it has phrasings now. `SKIPPED`: it was changed meanwhile, or may not be written. `REFUSED`: the answer
    may not be written. `FAILED`: the model did not answer. `UNASKED`: the model had failed too often before.
    """

    WRITTEN = "written"
    SKIPPED = "skipped"
    REFUSED = "refused"
    FAILED = "failed"
    UNASKED = "unasked"


@dataclass(frozen=True, slots=True)
class Enriched:
    """What became of `note`; `why` says it for every fate but `WRITTEN`."""

    note: Note
    fate: Fate
    why: str = ""
    phrasings: Phrasings | None = None


def lacking(notes: Iterable[Note], *, everything: bool = False) -> list[Note]:
    """Return the notes to ask about, the newest first: those in force without phrasings, or with `everything` all."""
    wanted = [note for note in notes if note.superseded_by is None and (everything or not note.usage_scenarios)]
    return sorted(wanted, key=lambda note: (-note.updated, note.id))


class Enricher:
    """Enriches notes through `editor`, asking `model` about at most `at_once` of them at the same time."""

    def __init__(self, model: Model, editor: Editor, observers: Observers, *, at_once: int = AT_ONCE) -> None:
        self._model = model
        self._editor = editor
        self._observers = observers
        self._places = anyio.Semaphore(at_once)
        self._failures = 0

    async def enrich(self, notes: Sequence[Note], *, told: Callable[[Enriched], None]) -> None:
        """Ask about each of `notes` and write what may be taken; `told` hears of each note once, when it is known.

        Cancelling stops the calls under way; what is written is whole and stays.
        """
        async with anyio.create_task_group() as tasks:
            for note in notes:
                await self._places.acquire()
                tasks.start_soon(self._take, note, told)

    async def _take(self, note: Note, told: Callable[[Enriched], None]) -> None:
        try:
            told(await self._enrich(note))
        finally:
            self._places.release()

    async def _enrich(self, note: Note) -> Enriched:
        if self._failures >= FAILURES_TO_STOP:
            return Enriched(note, Fate.UNASKED, f"the model failed {FAILURES_TO_STOP} times in a row")
        try:
            text = await self._ask(note)
        except ModelError as error:
            self._failures += 1
            return Enriched(note, Fate.FAILED, str(error))
        self._failures = 0
        try:
            answer = read_answer(text, note)
            answer = _with_room(note, answer)
            await self._editor.annotate(
                note, usage_scenarios=answer.phrasings, keywords=(*note.keywords, *answer.keywords)
            )
        except UnusableAnswerError as error:
            return Enriched(note, Fate.REFUSED, str(error))
        except MemoryWriteError as error:
            return Enriched(note, Fate.SKIPPED, error.problem)
        return Enriched(note, Fate.WRITTEN, phrasings=answer)

    async def _ask(self, note: Note) -> str:
        started = call_started(self._observers, self._model.endpoint, Purpose.ENRICH, parent=None)
        request = ModelRequest(
            op=started.op,
            system=INSTRUCTION,
            messages=(UserMessage((TextPart(question(note)),)),),
            response_schema=SCHEMA,
            timeout=ANSWER_SECONDS,
        )
        with self._observers.operation(started, cause=lambda: Cause.USER_CANCEL) as operation:
            attempt = 1
            while True:
                operation.note(attempts=attempt)
                try:
                    answer = await self._model.complete(request)
                except ModelError as error:
                    retry_in = _retry_in(error, attempt)
                    self._observers.emit(
                        ModelAttemptFailed(
                            op=started.op,
                            at=self._observers.now(),
                            attempt=attempt,
                            error_type=error.error_type,
                            status_code=error.status_code,
                            retry_in=retry_in,
                        )
                    )
                    if retry_in is None:
                        raise
                    await anyio.sleep(retry_in)
                    attempt += 1
                else:
                    operation.note(**facts_of(answer))
                    return answer.text


def _retry_in(error: ModelError, attempt: int) -> float | None:
    if not error.retryable or attempt >= ATTEMPTS:
        return None
    backoff = FIRST_BACKOFF_SECONDS * 2 ** (attempt - 1) if error.retry_after is None else error.retry_after
    return min(backoff, LONGEST_BACKOFF_SECONDS)


def _with_room(note: Note, answer: Phrasings) -> Phrasings:
    """Return of `answer` what `note` has room for beside its own keywords: first phrasings, then keywords."""
    left = MOST_CHARACTERS - sum(len(word) + 1 for word in note.keywords)
    phrasings: list[str] = []
    for phrasing in answer.phrasings:
        if len(phrasing) + 1 <= left:
            phrasings.append(phrasing)
            left -= len(phrasing) + 1
    known = {word.casefold() for word in note.keywords}
    keywords: list[str] = []
    for word in answer.keywords:
        if word.casefold() not in known and len(word) + 1 <= left and len(known) < MOST_KEYWORDS:
            keywords.append(word)
            known.add(word.casefold())
            left -= len(word) + 1
    if not phrasings:
        raise UnusableAnswerError("the note has so many keywords of its own that no phrasing has room beside them")
    return Phrasings(tuple(phrasings), tuple(keywords))
