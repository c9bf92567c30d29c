"""What a note is: one fact in one Markdown file with YAML front matter."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from recallscope.runtime.messages import NoteVersion
from recallscope.runtime.terms import NoteSource, NoteType, ScopeName

__all__ = ["Note"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One version of one note.

    `id` is `<scope>:<path below the scope's root>`, stable across edits; `version` is a hash of the file's bytes.
    `updated` (seconds since 1970) is the front matter's, else the file's time.
    """

    id: str
    version: str
    scope: ScopeName
    path: Path
    relative: str
    title: str
    description: str
    type: NoteType
    keywords: tuple[str, ...] = ()
    usage_scenarios: tuple[str, ...] = ()
    body: str
    pinned: bool = False
    created: float | None = None
    updated: float
    superseded_by: str | None = None
    source: NoteSource | None = None
    evidence: str | None = None
    extra: Mapping[str, object] = field(default_factory=dict[str, object])

    @property
    def note_version(self) -> NoteVersion:
        """Return the pair that stands for this version in a conversation."""
        return NoteVersion(self.id, self.version)
