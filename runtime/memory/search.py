"""The deterministic search: what a recall gets from memory before any model is asked."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from recallscope.runtime.memory.note import Note
from recallscope.runtime.messages import NoteVersion

__all__ = ["Found", "Hit", "Searchable"]


@dataclass(frozen=True, slots=True)
class Hit:
    """A note that matched the words of a query, and its score (higher is better, no unit)."""

    note: Note
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The answer of one search.

    `fast`: at most 2 notes above the threshold, best first. `lexical`: at most 5 notes above the threshold, best first
    (the fallback when no model selects). `candidates`: at most 200 notes for the selector, lexical matches interleaved
    with recent ones; their bodies may be empty. `runners_up`: matches below the threshold. `partial`: interrupted.
    """

    fast: tuple[Hit, ...] = ()
    lexical: tuple[Hit, ...] = ()
    candidates: tuple[Note, ...] = ()
    runners_up: tuple[Hit, ...] = ()
    partial: bool = False


class Searchable(Protocol):
    """What recall needs of memory; `memory/search` answers from the catalog, `testing` ships a fake."""

    @property
    def notes(self) -> int:
        """How many notes can be found; known without waiting."""
        ...

    async def search(self, query: str, *, exclude: frozenset[NoteVersion], recent_tools: Sequence[str]) -> Found:
        """Search for `query`, leaving out the versions in `exclude`.

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
