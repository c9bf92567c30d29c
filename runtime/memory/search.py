"""The deterministic search: what a recall gets from memory before any model is asked."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum, unique
from typing import Protocol

from recallscope.runtime.events import OpId
from recallscope.runtime.memory.note import Note
from recallscope.runtime.memory.rank import Field
from recallscope.runtime.messages import NoteVersion

__all__ = ["Dropped", "Found", "Hit", "LeftOut", "Part", "Searchable", "Source"]


@unique
class Source(StrEnum):
    """What found a note: the words of the query, or its vector."""

    WORDS = "words"
    VECTORS = "vectors"


@unique
class Dropped(StrEnum):
    """Why the search did not put a note that it looked at into the fast result; the first that applies is stated.

    `EXCLUDED`: this version stands in the conversation already. `NOISE`: it only tells how a tool just used is called.
    `SUPERSEDED`: another note took its place. `THRESHOLD`: its score is too low. `UNRELATED`: too far behind the first.
    `PLACE`: good enough, but better ones filled the places.
    """

    EXCLUDED = "excluded"
    NOISE = "noise"
    SUPERSEDED = "superseded"
    THRESHOLD = "threshold"
    UNRELATED = "unrelated"
    PLACE = "place"


@dataclass(frozen=True, slots=True)
class Part:
    """What one word of a query (for vectors: its likeness) gave to a note's score, and in which field it stood."""

    source: Source
    value: float
    word: str = ""
    field: Field | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """A note that a search found, its score (higher is better, no unit), and what the score is made of."""

    note: Note
    score: float
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A note that the search looked at and did not put into the fast result, and why."""

    hit: Hit
    why: Dropped


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The answer of one search.

    `fast`: at most 2 notes above the threshold, best first. `lexical`: at most 5 notes above the threshold, best first
    (the fallback when no model selects). `candidates`: at most 200 notes for the selector, lexical matches interleaved
    with recent ones; their bodies may be empty. `left_out`: the best at most 10 of those looked at and not in `fast`,
    best first; their bodies may be empty. `threshold`: the least score of a note in `fast`. `sources`: those that
    answered in time. `partial`: interrupted. `asked`: the telling words of the query, everyday ones left out.
    """

    fast: tuple[Hit, ...] = ()
    lexical: tuple[Hit, ...] = ()
    candidates: tuple[Note, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    threshold: float = 0.0
    sources: tuple[Source, ...] = (Source.WORDS,)
    partial: bool = False
    asked: frozenset[str] = frozenset()


class Searchable(Protocol):
    """What recall needs of memory; `memory/search` answers from the catalog, `testing` ships a fake."""

    @property
    def notes(self) -> int:
        """How many notes can be found; known without waiting."""
        ...

    async def search(
        self,
        query: str,
        *,
        exclude: frozenset[NoteVersion],
        recent_tools: Sequence[str],
        within: float | None = None,
        op: OpId | None = None,
    ) -> Found:
        """Search for `query`, leaving out the versions in `exclude`.

        After `within` seconds (None: no limit), the wait for a free thread included, it returns what it has, `partial`.
        `op` is the recall that searches: what a source asks of a model belongs to it.

        Raises:
            StoreUnavailableError: memory could not be read; unavailable is not empty.
        """
        ...

    async def load(self, notes: Sequence[Note]) -> tuple[Note, ...]:
        """Return `notes` with their bodies, in order, without those that are gone from the catalog."""
        ...

    async def stale(self, notes: Sequence[Note]) -> frozenset[NoteVersion]:
        """Return those of `notes` whose file is gone or changed (one `stat` each, in a thread), and re-index them."""
        ...
