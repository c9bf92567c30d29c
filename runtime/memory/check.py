"""What is wrong with a memory folder, told so that a person can put it right; from the files, not from the catalog."""

import hashlib
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum, unique
from pathlib import PurePosixPath

from recallscope.runtime.errors import NoteError, StoreUnavailableError
from recallscope.runtime.memory.credentials import find_credentials
from recallscope.runtime.memory.note import Note, parse
from recallscope.runtime.memory.scopes import INDEX_NAME, Root, list_notes
from recallscope.runtime.memory.store import INDEX_MARK, MAX_INDEX_LINES, memory_index, read_bytes
from recallscope.runtime.terms import ScopeName

__all__ = ["Problem", "ProblemKind", "check_root"]

_FIELDS = (
    *("name", "description", "type", "keywords", "usage_scenarios", "pinned"),
    *("created", "updated", "superseded_by", "source", "evidence"),
)
"""What the front matter of a note may say; a value of these that stands in `Note.extra` could not be read."""


@unique
class ProblemKind(StrEnum):
    """The kinds of problems, in the order in which they are told."""

    SKIPPED = "skipped"
    CREDENTIAL = "credential"
    FIELD = "field"
    DUPLICATE = "duplicate"
    SUPERSEDED_BY = "superseded_by"
    NAME = "name"
    INDEX = "index"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One problem: its kind, the path below the root, what is wrong and what to do, and the line where one is meant."""

    kind: ProblemKind
    path: str
    text: str
    line: int | None = None


def check_root(root: Root, *, stopped: Callable[[], bool] = lambda: False) -> tuple[Problem, ...]:
    """Read every file of `root` and return what is wrong, by kind and path. Runs in a thread.

    Raises:
        StoreUnavailableError: the root cannot be listed.
    """
    try:
        listing = list_notes(root.path)
    except OSError as error:
        raise StoreUnavailableError(f"the memory folder {root.path} cannot be listed: {error.strerror}") from error
    problems = [Problem(kind=ProblemKind.SKIPPED, path=skip.path, text=skip.why) for skip in listing.skipped]
    notes: list[Note] = []
    bodies: dict[bytes, list[str]] = defaultdict(list)
    for relative in sorted(listing.files):
        if stopped():
            break
        try:
            data, file = read_bytes(root.path, relative)
            problems.extend(_credentials(relative, data))
            note = parse(data, scope=root.scope, root=root.path, relative=relative, modified=file.mtime_ns / 1e9)
        except FileNotFoundError:
            continue
        except NoteError as error:
            problems.append(Problem(kind=ProblemKind.SKIPPED, path=relative, text=error.problem))
            continue
        problems.extend(_fields(note))
        if note.body.strip():
            bodies[hashlib.blake2b(" ".join(note.body.split()).encode()).digest()].append(relative)
        notes.append(note)
    problems.extend(_duplicates(bodies))
    problems.extend(_superseded(root, notes))
    problems.extend(_names(listing.files))
    problems.extend(_index(root, notes))
    order = list(ProblemKind)
    return tuple(sorted(problems, key=lambda problem: (order.index(problem.kind), problem.path, problem.line or 0)))


def _credentials(relative: str, data: bytes) -> Iterator[Problem]:
    for finding in find_credentials(data.decode(errors="replace")):
        text = f"it looks like a credential ({finding.rule}); keep it in a secret store and change it, it was in a file"
        yield Problem(kind=ProblemKind.CREDENTIAL, path=relative, text=text, line=finding.line)


def _fields(note: Note) -> Iterator[Problem]:
    for name in _FIELDS:
        if name in note.extra:
            text = f"the field {name} has a value that cannot be read, so it counts for nothing; see docs/memory.md"
            yield Problem(kind=ProblemKind.FIELD, path=note.relative, text=text)


def _duplicates(bodies: Mapping[bytes, Sequence[str]]) -> Iterator[Problem]:
    for first, *others in bodies.values():
        for other in others:
            text = f"it says the same as {first}; remove one of them"
            yield Problem(kind=ProblemKind.DUPLICATE, path=other, text=text)


def _superseded(root: Root, notes: Sequence[Note]) -> Iterator[Problem]:
    others = {name.value for name in ScopeName if name != root.scope}  # an id there is not looked up
    spellings = _spellings(notes)
    ways: dict[str, str] = {}
    for note in notes:
        target = note.superseded_by
        if target is None or "://" in target or target.partition(":")[0] in others:
            continue
        meant = _meant(target, spellings)
        if not meant:
            text = f"superseded_by names {target!r}, which is no note here; it is never recalled"
            yield Problem(kind=ProblemKind.SUPERSEDED_BY, path=note.relative, text=text)
        elif meant == {note.relative}:
            text = "superseded_by names the note itself; it is never recalled"
            yield Problem(kind=ProblemKind.SUPERSEDED_BY, path=note.relative, text=text)
        elif len(meant) == 1:
            ways[note.relative] = next(iter(meant))
    for circle in _circles(ways):
        way = " -> ".join((*circle, circle[0]))
        text = f"superseded_by leads in a circle, so none of these is ever recalled: {way}; empty it in the right one"
        yield Problem(kind=ProblemKind.SUPERSEDED_BY, path=circle[0], text=text)


def _spellings(notes: Sequence[Note]) -> tuple[dict[str, set[str]], ...]:
    """Return the paths that each spelling means: ids and paths first, then names of files, then titles."""
    found: tuple[dict[str, set[str]], ...] = (defaultdict(set), defaultdict(set), defaultdict(set))
    for note in notes:
        path = PurePosixPath(note.relative)
        ways = ((note.id, note.relative, str(path.with_suffix(""))), (path.name, path.stem), (note.title,))
        for spelled, names in zip(found, ways, strict=True):
            for name in names:
                spelled[name.casefold()].add(note.relative)
    return found


def _meant(target: str, spellings: Sequence[Mapping[str, set[str]]]) -> set[str]:
    """Return the paths of the notes that `target` means by the most exact of the ways."""
    name = target.removeprefix("./").casefold()
    return next((spelled[name] for spelled in spellings if name in spelled), set[str]())


def _circles(ways: Mapping[str, str]) -> Iterator[list[str]]:
    """Yield each circle of `ways` once, beginning with its first path."""
    done: set[str] = set()
    for start in sorted(ways):
        walked: list[str] = []
        path: str | None = start
        while path is not None and path not in done:
            done.add(path)
            walked.append(path)
            path = ways.get(path)
        if path in walked:
            circle = walked[walked.index(path) :]
            first = circle.index(min(circle))
            yield circle[first:] + circle[:first]


def _names(files: Mapping[str, object]) -> Iterator[Problem]:
    alike: dict[str, str] = {}
    for relative in sorted(files):
        folded = unicodedata.normalize("NFC", relative).casefold()
        other = alike.setdefault(folded, relative)
        if other != relative:
            text = f"on a file system that does not tell cases apart it is the same file as {other}; rename one of them"
            yield Problem(kind=ProblemKind.NAME, path=relative, text=text)


def _index(root: Root, notes: Sequence[Note]) -> Iterator[Problem]:
    try:
        data, _ = read_bytes(root.path, INDEX_NAME)
    except FileNotFoundError:
        return
    except NoteError as error:
        yield Problem(kind=ProblemKind.INDEX, path=INDEX_NAME, text=error.problem)
        return
    text = data.decode(errors="replace")
    newest = sorted(notes, key=lambda note: (-note.updated, note.relative))[:MAX_INDEX_LINES]
    if not text.startswith(INDEX_MARK):
        why = "it was written by a person or another program, so it is left as it is; move it away for one of ours"
        yield Problem(kind=ProblemKind.INDEX, path=INDEX_NAME, text=why)
    elif text != memory_index(newest, len(notes)).encode(errors="replace").decode():
        why = "it is out of date; `recallscope memory index` writes it anew"
        yield Problem(kind=ProblemKind.INDEX, path=INDEX_NAME, text=why)
