"""A memory for tests: notes in a list, answers after a stated time, files that change when the test says so."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import anyio.lowlevel

from recallscope.runtime.errors import StoreUnavailableError
from recallscope.runtime.events import OpId
from recallscope.runtime.memory.note import Note
from recallscope.runtime.memory.search import Found, Hit
from recallscope.runtime.messages import NoteVersion
from recallscope.runtime.terms import NoteType, ScopeName

__all__ = ["FakeMemory", "SearchCall", "make_note"]


def make_note(name: str, *, body: str = "", version: str = "1", updated: float = 0.0) -> Note:
    """Make a project note named `name`; its body says its name unless stated otherwise."""
    return Note(
        id=f"project:{name}.md",
        version=version,
        scope=ScopeName.PROJECT,
        root=Path(),
        relative=f"{name}.md",
        title=name,
        description=f"about {name}",
        type=NoteType.PROJECT,
        body=body or f"The fact about {name}.",
        updated=updated,
    )


@dataclass(frozen=True, slots=True)
class SearchCall:
    """One search as it was asked."""

    query: str
    exclude: frozenset[NoteVersion]
    recent_tools: tuple[str, ...]
    within: float | None


@dataclass(slots=True, kw_only=True)
class FakeMemory:
    """Finds `fast` and `candidates` after `delay` seconds, less what is excluded; `unavailable` fails instead.

    `changed` are the versions whose files are gone or changed; checking takes `check_delay` seconds.
    """

    fast: Sequence[Note] = ()
    candidates: Sequence[Note] = ()
    delay: float = 0.0
    check_delay: float = 0.0
    unavailable: bool = False
    partial: bool = False
    changed: set[NoteVersion] = field(default_factory=set[NoteVersion])
    calls: list[SearchCall] = field(default_factory=list[SearchCall])

    @property
    def notes(self) -> int:
        """How many notes can be found."""
        return len({note.id for note in (*self.fast, *self.candidates)})

    async def search(
        self,
        query: str,
        *,
        exclude: frozenset[NoteVersion],
        recent_tools: Sequence[str],
        within: float | None = None,
        op: OpId | None = None,
    ) -> Found:
        """Answer after the delay, whatever `within` says: like a disk that does not answer."""
        self.calls.append(SearchCall(query, exclude, tuple(recent_tools), within))
        await anyio.sleep(self.delay)
        if self.unavailable:
            raise StoreUnavailableError("this memory is switched off")
        open_fast = [note for note in self.fast if note.note_version not in exclude]
        hits = tuple(Hit(note, 1.0 - place / 100) for place, note in enumerate(open_fast))
        candidates = tuple(note for note in self.candidates if note.note_version not in exclude)
        return Found(fast=hits[:2], lexical=hits[:5], candidates=candidates, partial=self.partial)

    async def load(self, notes: Sequence[Note]) -> tuple[Note, ...]:
        """Return the notes as they are."""
        await anyio.lowlevel.checkpoint()
        return tuple(notes)

    async def stale(self, notes: Sequence[Note]) -> frozenset[NoteVersion]:
        """Return those that the test has changed."""
        await anyio.sleep(self.check_delay)
        return frozenset(note.note_version for note in notes) & self.changed
