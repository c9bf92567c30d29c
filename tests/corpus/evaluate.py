"""Asks a real memory every query of the corpus, by the code path of a turn, and counts what came back."""

import math
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio
from labelled import Corpus, Query, Slice, write_notes

from recallscope.runtime.memory.memory import open_memory
from recallscope.runtime.memory.scopes import MemoryRoots
from recallscope.runtime.memory.search import Dropped, Found, Hit
from recallscope.runtime.observe import Observers

__all__ = ["Answer", "Figures", "Run", "figures", "random_figures", "run_corpus", "runs_of"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What the search said to one query: paths of notes, best first.

    `scores`: those of the best current notes, above the threshold or below. `threshold`: the query's.
    """

    query: Query
    fast: tuple[str, ...]
    lexical: tuple[str, ...]
    scores: tuple[tuple[str, float], ...]
    threshold: float

    @property
    def is_hit(self) -> bool:
        """Say whether a note that answers is in the fast result."""
        return any(path in self.query.relevant for path in self.fast)

    @property
    def is_false(self) -> bool:
        """Say whether something was delivered that must not be: anything at all for a negative query."""
        if self.query.slice is Slice.NEGATIVE:
            return bool(self.fast)
        return any(path in self.query.forbidden for path in self.fast)


@dataclass(frozen=True, slots=True)
class Run:
    """The answers to all queries over one memory of `notes` notes."""

    notes: int
    answers: tuple[Answer, ...]


@dataclass(frozen=True, slots=True)
class Figures:
    """Shares over some queries; None where no query can tell.

    `hit_1`, `hit_2`: a relevant note first in, or anywhere in, the fast result, of the queries that have one.
    `recall_5`: the share of relevant notes (of at most five) among the lexical five. `false`: of all queries, those
    for which something wrong was delivered. `precision`: of all notes in fast results, those that answer.
    """

    queries: int
    hit_1: float | None
    hit_2: float | None
    recall_5: float | None
    false: float | None
    precision: float | None


async def run_corpus(corpus: Corpus, *, phrasings: bool) -> Run:
    """Write the notes into a folder, open a memory over it, and ask every query."""
    with tempfile.TemporaryDirectory() as folder:
        root = (Path(folder) / "notes").resolve()
        await anyio.to_thread.run_sync(lambda: write_notes(corpus.notes, root, phrasings=phrasings))
        catalog = Path(folder) / "catalog.sqlite3"
        async with open_memory(MemoryRoots(project=root), observers=Observers(), catalog_path=catalog) as memory:
            await memory.wait_synced()
            if memory.skipped:
                raise ValueError(f"not every note of the corpus can be read: {memory.skipped}")
            answers = [
                _answer(query, await memory.search(query.text, exclude=frozenset(), recent_tools=query.tools))
                for query in corpus.queries
            ]
            return Run(memory.notes, tuple(answers))


def runs_of(corpus: Corpus) -> tuple[Run, Run]:
    """Return the answers without and with the stored phrasings."""

    async def both() -> tuple[Run, Run]:
        return await run_corpus(corpus, phrasings=False), await run_corpus(corpus, phrasings=True)

    return anyio.run(both)


def figures(answers: Sequence[Answer]) -> Figures:
    """Count `answers`."""
    answerable = [answer for answer in answers if answer.query.relevant]
    delivered = sum(len(answer.fast) for answer in answers)
    right = sum(path in answer.query.relevant for answer in answers for path in answer.fast)
    return Figures(
        queries=len(answers),
        hit_1=_mean(answer.fast[:1] != () and answer.fast[0] in answer.query.relevant for answer in answerable),
        hit_2=_mean(answer.is_hit for answer in answerable),
        recall_5=_mean(
            sum(path in answer.query.relevant for path in answer.lexical) / min(5, len(answer.query.relevant))
            for answer in answerable
        ),
        false=_mean(answer.is_false for answer in answers if answer.query.forbidden or not answer.query.relevant),
        precision=right / delivered if delivered else None,
    )


def random_figures(answers: Sequence[Answer], notes: int) -> Figures:
    """Return what a ranking at random, which delivers two of `notes` notes each time, is expected to reach, exactly."""
    answerable = [answer.query for answer in answers if answer.query.relevant]
    judged = [answer.query for answer in answers if answer.query.forbidden or not answer.query.relevant]

    def among(wanted: int, places: int) -> float:
        return 1 - math.comb(notes - wanted, places) / math.comb(notes, places)

    return Figures(
        queries=len(answers),
        hit_1=_mean(among(len(query.relevant), 1) for query in answerable),
        hit_2=_mean(among(len(query.relevant), 2) for query in answerable),
        recall_5=_mean(5 / notes * len(query.relevant) / min(5, len(query.relevant)) for query in answerable),
        false=_mean(1.0 if query.slice is Slice.NEGATIVE else among(len(query.forbidden), 2) for query in judged),
        precision=_mean(len(answer.query.relevant) / notes for answer in answers),
    )


def _answer(query: Query, found: Found) -> Answer:
    never = {Dropped.EXCLUDED, Dropped.NOISE, Dropped.SUPERSEDED}
    beside = (left.hit for left in found.left_out if left.why not in never)
    seen = {hit.note.relative: hit.score for hit in (*found.lexical, *beside)}
    return Answer(query, _paths(found.fast), _paths(found.lexical), tuple(seen.items()), found.threshold)


def _paths(hits: Iterable[Hit]) -> tuple[str, ...]:
    return tuple(hit.note.relative for hit in hits)


def _mean(values: Iterable[float]) -> float | None:
    listed = list(values)
    return sum(listed) / len(listed) if listed else None
