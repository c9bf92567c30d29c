"""What a note shall say before it is a file: the draft, the bytes it becomes, and what may not be written."""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from recallscope.runtime.errors import MemoryWriteError, NoteError
from recallscope.runtime.memory.credentials import find_credentials
from recallscope.runtime.memory.note import MAX_NOTE_BYTES, Note, iso, note_id, parse, render
from recallscope.runtime.memory.scopes import Root
from recallscope.runtime.terms import NoteSource, NoteType, ScopeName

__all__ = ["Draft", "check_title", "draft_note", "free_name", "redated", "rendered", "vet"]

_UPDATED = re.compile(rb"^updated[ \t]*:[^\r\n]*", re.MULTILINE)
_LONGEST_TITLE = 200
"""Characters of a title; a longer one that a file has already may stay."""

_SLUG_BYTES = 80
_MOST_NAMESAKES = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What a note shall say; `extra` None keeps the unknown fields that the file has."""

    title: str
    body: str
    description: str = ""
    type: NoteType = NoteType.PROJECT
    keywords: tuple[str, ...] = ()
    usage_scenarios: tuple[str, ...] = ()
    pinned: bool = False
    superseded_by: str | None = None
    source: NoteSource | None = None
    evidence: str | None = None
    extra: Mapping[str, object] | None = None

    @classmethod
    def of(cls, note: Note) -> "Draft":
        """Return the draft that says what `note` says, to be changed with `dataclasses.replace`."""
        return cls(
            title=note.title,
            body=note.body,
            description=note.description,
            type=note.type,
            keywords=note.keywords,
            usage_scenarios=note.usage_scenarios,
            pinned=note.pinned,
            superseded_by=note.superseded_by,
            source=note.source,
            evidence=note.evidence,
        )


def draft_note(
    root: Root, relative: str, draft: Draft, *, created: float | None, updated: float, extra: Mapping[str, object]
) -> Note:
    """Return the note that `draft` makes of the file at `relative`; its version is not known yet."""
    return Note(
        id=note_id(root.scope, relative),
        version="",
        scope=root.scope,
        root=root.path,
        relative=relative,
        title=draft.title,
        description=draft.description,
        type=draft.type,
        keywords=draft.keywords,
        usage_scenarios=draft.usage_scenarios,
        body=draft.body,
        pinned=draft.pinned,
        created=created,
        updated=updated,
        superseded_by=draft.superseded_by,
        source=draft.source,
        evidence=draft.evidence,
        extra=extra,
    )


def rendered(note: Note) -> bytes:
    """Return the bytes of `note`, made sure that they read back as a note, fit, and hold no credential.

    Raises:
        MemoryWriteError: they do not.
    """
    if not note.title.strip():
        raise MemoryWriteError(
            path=note.relative, problem="a note needs a title", remedy="say in a few words what it is"
        )
    try:
        data = render(note)
    except UnicodeEncodeError:
        raise MemoryWriteError(
            path=note.relative, problem="the text holds half a surrogate pair", remedy="remove that character"
        ) from None
    vet(data, note.scope, note.relative)
    return data


def check_title(relative: str, title: str, *, before: str = "") -> None:
    """Make sure that `title` is short enough for lists and answers, or is the one `before`.

    Raises:
        MemoryWriteError: it is neither.
    """
    if len(title) > _LONGEST_TITLE and title != before:
        raise MemoryWriteError(
            path=relative,
            problem=f"the title has {len(title)} characters, at most {_LONGEST_TITLE} are taken",
            remedy="shorten it, and put the rest into the text",
        )


def vet(data: bytes, scope: ScopeName, relative: str) -> None:
    """Make sure that `data` may stand in a file of memory: it reads as a note, fits, and holds no credential.

    Raises:
        MemoryWriteError: it may not; the message names rule and line of a credential, never its value.
    """
    try:
        parse(data, scope=scope, root=Path(), relative=relative, modified=0.0)
    except NoteError as error:
        raise MemoryWriteError(
            path=relative,
            problem=error.problem,
            remedy=f"a note has text, no NUL, and at most {MAX_NOTE_BYTES} bytes; split a longer one",
        ) from None
    findings = find_credentials(data.decode())
    if findings:
        where = ", ".join(f"line {finding.line} ({finding.rule})" for finding in findings)
        raise MemoryWriteError(
            path=relative,
            problem=f"the text looks like it holds a credential: {where}",
            remedy="keep secrets in a secret store and write where they are kept",
        )


def redated(data: bytes, note: Note, now: float) -> bytes:
    """Return `data`, the text that replaces `note`, with `updated` set to `now` where it says what `note` says.

    Nothing else of the text changes; where that cannot be had, nothing does.

    Raises:
        MemoryWriteError: it says another title, which is too long.
    """
    old = parse(data, scope=note.scope, root=Path(), relative=note.relative, modified=-1.0)
    check_title(note.relative, old.title, before=note.title)
    line = f"updated: '{iso(now)}'".encode()
    dated = _UPDATED.sub(lambda _: line, data, count=1)
    if old.updated != note.updated or dated == data:
        return data
    try:
        new = parse(dated, scope=note.scope, root=Path(), relative=note.relative, modified=-1.0)
    except NoteError:  # the value ran on over several lines
        return data
    return dated if replace(new, version=old.version, updated=old.updated) == old else data


def free_name(root: Root, draft: Draft) -> str:
    """Return a path for a new note: its type's folder, its title as a file name, a number if that is taken."""
    text = unicodedata.normalize("NFKC", draft.title).casefold()
    slug = re.sub(r"[^\w]+|_+", "-", text).strip("-").encode(errors="ignore")[:_SLUG_BYTES].decode(errors="ignore")
    slug = slug.strip("-") or "note"
    names = (f"{draft.type}/{slug}{f'-{number}' if number > 1 else ''}.md" for number in range(1, _MOST_NAMESAKES))
    free = next((name for name in names if not (root.path / name).exists()), None)
    if free is None:
        raise MemoryWriteError(
            path=f"{draft.type}/{slug}.md", problem="too many notes of this name", remedy="choose another title"
        )
    return free
