"""What a note is: one fact in one Markdown file with YAML front matter; how it is read and written.

A file without front matter is a note too: its title is the first heading or the file's name, its type the folder's.
"""

import hashlib
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import TypeVar

from recallscope.runtime.errors import NoteError
from recallscope.runtime.memory.frontmatter import Block, FrontMatterError, dump, load, split
from recallscope.runtime.messages import NoteVersion
from recallscope.runtime.terms import NoteSource, NoteType, ScopeName

__all__ = ["MAX_NOTE_BYTES", "PINNED_FOLDER", "Note", "iso", "note_id", "parse", "render", "version_of"]

MAX_NOTE_BYTES = 1_048_576
"""A larger file is no note: it is skipped when read and refused when written."""

LONGEST_HEADING = 200
"""A heading that serves as the title is cut after this many characters."""

NO_ENTRY = "_No entries yet._"
"""What Qwen Code writes into a topic that has nothing to tell."""

PINNED_FOLDER = "pinned"
"""Notes below this top folder are pinned."""

_KNOWN = frozenset(
    {"name", "title", "description", "type", "keywords", "usage_scenarios", "pinned"}
    | {"created", "updated", "superseded_by", "source", "evidence"}
)
_HEADING = re.compile(r"^#{1,6}[ \t]+(?=#*[^\s#])(.*)", re.MULTILINE)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_MILLISECONDS_FROM = 1e11  # seconds since 1970 reach this in the year 5138
_CALENDAR_ENDS = 253_370_764_800.0  # the first second of the year 9999
_EnumT = TypeVar("_EnumT", bound=StrEnum)


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One version of one note.

    `id` is `<scope>:<path below the scope's root>`, stable across edits; `root` is the folder of its scope; `version`
    is a hash of the file's bytes. `updated` (seconds since 1970) is the front matter's, else the file's time. `extra`
    holds the fields that this program does not know, and known ones with a value it cannot read: a rewrite gives them
    back.
    """

    id: str
    version: str
    scope: ScopeName
    root: Path
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
    def path(self) -> Path:
        """Return where its file is: made when asked, since a search makes notes by the dozen and looks at few files."""
        return self.root / self.relative

    @property
    def note_version(self) -> NoteVersion:
        """Return the pair that stands for this version in a conversation."""
        return NoteVersion(self.id, self.version)


def note_id(scope: ScopeName, relative: str) -> str:
    """Return the id of the note at `relative` (forward slashes) below the root of `scope`."""
    return f"{scope}:{relative}"


def version_of(data: bytes) -> str:
    """Return the version that a file with these bytes is."""
    return hashlib.blake2b(data, digest_size=12).hexdigest()


def parse(data: bytes, *, scope: ScopeName, root: Path, relative: str, modified: float) -> Note:
    """Read the bytes of the file at `root / relative` as a note; `modified` is its time in seconds since 1970.

    A byte order mark and CRLF are accepted. An unknown `type` falls back to the folder's name, else to `project`.

    Raises:
        NoteError: empty, too large, binary, not UTF-8, unreadable front matter, or nothing in it that tells anything.
    """
    text = _decode(data, relative)
    try:
        block, rest = split(text)
        fields = load(block, known=_KNOWN) if block is not None else Block()
    except FrontMatterError as error:
        raise NoteError(path=relative, problem=str(error)) from None
    body = rest.strip("\n")
    reader = _Reader(fields)
    title = reader.line("name") or reader.line("title")
    description = reader.line("description") or ""
    if not (title or description or body.strip()):
        raise NoteError(path=relative, problem="it holds neither a name nor a description nor a body")
    if not description and body.strip() == NO_ENTRY:
        raise NoteError(path=relative, problem="it holds no entry yet")
    folders = PurePosixPath(relative).parts[:-1]
    note_type = reader.member("type", NoteType) or _nested_type(fields) or _folder_type(folders)
    updated = reader.moment("updated")
    return Note(
        id=note_id(scope, relative),
        version=version_of(data),
        scope=scope,
        root=root,
        relative=relative,
        title=title or _heading(body) or _from_file_name(relative),
        description=description,
        type=note_type,
        keywords=reader.words("keywords"),
        usage_scenarios=reader.words("usage_scenarios"),
        body=body,
        pinned=reader.flag("pinned") or folders[:1] == (PINNED_FOLDER,),
        created=reader.moment("created"),
        updated=(_within_calendar(modified) or 0.0) if updated is None else updated,
        superseded_by=reader.line("superseded_by") or None,
        source=reader.member("source", NoteSource),
        evidence=reader.line("evidence") or None,
        extra=reader.extra(),
    )


def render(note: Note) -> bytes:
    """Return the bytes of the file that holds `note`; reading them gives the same note.

    Raises:
        UnicodeEncodeError: a text holds half a surrogate pair.
    """
    fields: dict[str, object] = {"name": note.title, "description": note.description, "type": str(note.type)}
    if note.keywords:
        fields["keywords"] = list(note.keywords)
    if note.usage_scenarios:
        fields["usage_scenarios"] = list(note.usage_scenarios)
    if note.pinned:
        fields["pinned"] = True
    if note.created is not None:
        fields["created"] = iso(note.created)
    fields["updated"] = iso(note.updated)
    for name, value in (("superseded_by", note.superseded_by), ("source", note.source), ("evidence", note.evidence)):
        if value is not None:
            fields[name] = str(value)
    for name, extra in note.extra.items():
        fields.setdefault(name, extra)
    body = note.body.replace("\r\n", "\n").replace("\r", "\n").strip("\n")
    return f"{dump(fields)}\n{body}\n".encode() if body else dump(fields).encode()


class _Reader:
    """Takes the known fields out of a block; what is not taken, or cannot be read, is `extra`."""

    def __init__(self, block: Block) -> None:
        self._block = block
        self._taken: set[str] = set()

    def line(self, name: str) -> str | None:
        return self._read(name, lambda value: _one_line(value) if isinstance(value, str) else None)

    def words(self, name: str) -> tuple[str, ...]:
        def read(value: str | tuple[str, ...]) -> tuple[str, ...]:
            parts = value.split(",") if isinstance(value, str) else value
            cleaned = (_one_line(part) for part in parts)
            return tuple(dict.fromkeys(part for part in cleaned if part))

        return self._read(name, read) or ()

    def flag(self, name: str) -> bool:
        truths = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False}
        return self._read(name, lambda value: truths.get(value.lower()) if isinstance(value, str) else None) or False

    def moment(self, name: str) -> float | None:
        return self._read(name, lambda value: _moment(value) if isinstance(value, str) else None)

    def member(self, name: str, enum: type[_EnumT]) -> _EnumT | None:
        known = {str(member): member for member in enum}
        return self._read(name, lambda value: known.get(value.strip().lower()) if isinstance(value, str) else None)

    def extra(self) -> dict[str, object]:
        return {name: value for name, value in self._block.typed.items() if name not in self._taken}

    def _read(self, name: str, read: "Callable[[str | tuple[str, ...]], _ValueT | None]") -> "_ValueT | None":
        value = self._block.text.get(name)
        result = None if value is None else read(value)
        if result is not None:
            self._taken.add(name)
        return result


_ValueT = TypeVar("_ValueT")


def _decode(data: bytes, relative: str) -> str:
    if len(data) > MAX_NOTE_BYTES:
        raise NoteError(path=relative, problem=f"it has {len(data)} bytes, at most {MAX_NOTE_BYTES} are read")
    if b"\0" in data:
        raise NoteError(path=relative, problem="it is binary: it holds a NUL byte")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise NoteError(path=relative, problem=f"it is not UTF-8 (byte {error.start})") from None
    if not text.strip():
        raise NoteError(path=relative, problem="it is empty")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _one_line(text: str) -> str:
    """Return `text` on one line, without control characters (a title must not move the cursor of a terminal)."""
    return " ".join(_CONTROL.sub(" ", text).split())


def _nested_type(block: Block) -> NoteType | None:
    """Return the type that Claude Code writes below `metadata`, if it is there."""
    metadata = block.typed.get("metadata")
    if not isinstance(metadata, dict):
        return None
    known: dict[object, NoteType] = {str(member): member for member in NoteType}
    value: object = metadata.get("type")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - YAML
    return known.get(value) if isinstance(value, str) else None


def _folder_type(folders: tuple[str, ...]) -> NoteType:
    names = {str(member): member for member in NoteType}
    return names.get(folders[-1].lower(), NoteType.PROJECT) if folders else NoteType.PROJECT


def _heading(body: str) -> str | None:
    match = _HEADING.search(body)
    if match is None:
        return None
    line = _one_line(match[1][: 4 * LONGEST_HEADING]).rstrip(" #")
    return line if len(line) <= LONGEST_HEADING else line[: LONGEST_HEADING - 1].rstrip() + "…"


def _from_file_name(relative: str) -> str:
    stem = PurePosixPath(relative).stem
    return _one_line(re.sub(r"[-_\s]+", " ", stem)) or stem


def _moment(text: str) -> float | None:
    """Read an ISO date or time (UTC where it names no zone) or a number of seconds or milliseconds since 1970."""
    try:
        number = float(text)
    except ValueError:
        try:
            moment = datetime.fromisoformat(text.strip())
        except ValueError:
            return None
        return _within_calendar((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
    if not math.isfinite(number):
        return None
    return _within_calendar(number / 1000 if number > _MILLISECONDS_FROM else number)


def _within_calendar(seconds: float) -> float | None:
    """Return `seconds` where every zone can write them as a date from 1970 to 9998, else None."""
    return seconds if 0 <= seconds < _CALENDAR_ENDS else None


def iso(seconds: float) -> str:
    """Return a time in seconds since 1970 as notes state it."""
    return datetime.fromtimestamp(seconds, tz=UTC).isoformat().replace("+00:00", "Z")
