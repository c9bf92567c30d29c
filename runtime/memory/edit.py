"""The one write path to memory, for people, tools and jobs: notes are created, updated and deleted here alone.

A write stays below its scope's root, is whole or not at all, holds no credential, refuses to overwrite what it has not
seen, stands in the catalog when it returns, and brings the generated `MEMORY.md` up to date.
"""

import logging
import os
import re
import time
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from anyio import CapacityLimiter, Lock, to_thread

from recallscope.runtime.errors import MemoryWriteError, NoteError, StoreUnavailableError
from recallscope.runtime.events import MemoryWriteFinished, MemoryWriteStarted, OpId
from recallscope.runtime.memory.catalog import Catalog, Changes
from recallscope.runtime.memory.catalog_file import file_lock
from recallscope.runtime.memory.credentials import find_credentials
from recallscope.runtime.memory.note import MAX_NOTE_BYTES, Note, note_id, parse, render
from recallscope.runtime.memory.scopes import INDEX_NAME, Root, confined
from recallscope.runtime.memory.store import (
    INDEX_MARK,
    MAX_INDEX_LINES,
    memory_index,
    read_bytes,
    read_note,
    sync_folder,
    write_bytes,
)
from recallscope.runtime.observe import Observers, Operation
from recallscope.runtime.terms import NoteSource, NoteType, ScopeName

__all__ = ["Draft", "Editor"]

_T = TypeVar("_T")

_log = logging.getLogger(__name__)

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


class Editor:
    """Writes notes. `rename` is the last step of a write, an argument so that a test can stop before it."""

    def __init__(
        self,
        catalog: Catalog,
        roots: Sequence[Root],
        *,
        observers: Observers,
        clock: Callable[[], float] = time.time,
        read_only: bool = False,
        complete: Callable[[ScopeName], bool] = lambda _: True,
        written: Callable[[ScopeName, int | None], None] = lambda _scope, _notes: None,
        rename: Callable[[Path, Path], object] = os.replace,
    ) -> None:
        self._catalog = catalog
        self._roots = {root.scope: root for root in roots}
        self._observers = observers
        self._clock = clock
        self._read_only = read_only
        self._complete = complete
        self._written = written
        self._rename = rename
        self._lock = Lock()
        self._limiter = CapacityLimiter(1)

    async def create(
        self, scope: ScopeName, draft: Draft, *, relative: str | None = None, parent: OpId | None = None
    ) -> Note:
        """Write a new note and return it; `relative` is by default `<type>/<title as a file name>.md`.

        Raises:
            MemoryWriteError: the path is taken or leaves the scope, the text is too large or holds a credential, or the
                file system refused; nothing was changed.
        """
        root = self._root(scope, relative or draft.title)
        async with self._lock:
            where = relative
            if where is None:
                where = await self._in_thread(_free_name, root, draft)
            with self._operation("create", scope, where, parent):
                note = await self._in_thread(self._create, root, where, draft)
                await self._index(root)
        return note

    async def update(self, note: Note, draft: Draft, *, parent: OpId | None = None) -> Note:
        """Replace `note`, as the caller last read it, by `draft` and return the new version.

        Raises:
            MemoryWriteError: as `create`; also if the file is gone or was changed since `note` was read.
        """
        root = self._root(note.scope, note.relative)
        async with self._lock:
            with self._operation("update", note.scope, note.relative, parent):
                changed = await self._in_thread(self._update, root, note, draft)
                await self._index(root)
        return changed

    async def delete(self, note: Note, *, parent: OpId | None = None) -> None:
        """Delete the file of `note`, as the caller last read it.

        Raises:
            MemoryWriteError: the file is gone or was changed since `note` was read, or cannot be removed.
        """
        root = self._root(note.scope, note.relative)
        async with self._lock:
            with self._operation("delete", note.scope, note.relative, parent):
                await self._in_thread(self._delete, root, note)
                await self._index(root)

    def _operation(
        self, operation: str, scope: ScopeName, relative: str, parent: OpId | None
    ) -> AbstractContextManager[Operation[MemoryWriteFinished]]:
        started = MemoryWriteStarted(
            op=self._observers.new_op(),
            at=self._observers.now(),
            parent=parent,
            operation=operation,
            scope=scope,
            note=note_id(scope, relative),
        )
        return self._observers.operation(started)

    def _root(self, scope: ScopeName, what: str) -> Root:
        if self._read_only:
            raise MemoryWriteError(
                path=what, problem="this memory is open for reading only", remedy="open it without read_only"
            )
        root = self._roots.get(scope)
        if root is None:
            raise MemoryWriteError(
                path=what, problem=f"no memory of scope {scope} is configured", remedy="configure its folder"
            )
        return root

    def _create(self, root: Root, relative: str, draft: Draft) -> Note:
        path = confined(root.path, relative)
        now = self._clock()
        data = _rendered(_note(root, relative, draft, created=now, updated=now, extra=draft.extra or {}))
        with self._between_processes():
            if path.exists():
                raise MemoryWriteError(
                    path=relative,
                    problem="a file of this name exists",
                    remedy="update that note or choose another name",
                )
            return self._write(root, relative, path, data)

    def _update(self, root: Root, note: Note, draft: Draft) -> Note:
        path = confined(root.path, note.relative)
        with self._between_processes():
            current = _current(root, note)
            extra = current.extra if draft.extra is None else draft.extra
            changed = _note(root, note.relative, draft, created=current.created, updated=self._clock(), extra=extra)
            return self._write(root, note.relative, path, _rendered(changed))

    def _delete(self, root: Root, note: Note) -> None:
        path = confined(root.path, note.relative)
        with self._between_processes():
            _current(root, note)
            try:
                path.unlink()
                sync_folder(path.parent)
            except OSError as error:
                raise _refused(note.relative, error) from error
        self._catch_up(root, Changes(gone=[note.relative]))

    def _write(self, root: Root, relative: str, path: Path, data: bytes) -> Note:
        try:
            write_bytes(path, data, replace=self._rename)
            note, file = read_note(root, relative)
        except (OSError, NoteError) as error:
            raise _refused(relative, error) from error
        self._catch_up(root, Changes(notes=[(note, file)]))
        return note

    def _catch_up(self, root: Root, changes: Changes) -> None:
        """Bring the catalog up to a write; if it cannot be reached the note is written all the same."""
        try:
            self._catalog.apply(self._catalog.root_id(root.path), changes)
        except StoreUnavailableError as error:
            _log.warning("a note was written, and the catalog will learn of it at the next sync: %s", error)

    async def _index(self, root: Root) -> None:
        """Write `MEMORY.md` anew, unless the catalog does not know the whole root, or a person wrote that file."""
        notes = await self._in_thread(self._write_index, root, self._complete(root.scope))
        self._written(root.scope, notes)

    def _write_index(self, root: Root, complete: bool) -> int | None:
        try:
            number = self._catalog.root_id(root.path)
            total = self._catalog.count(number)
            if complete and _is_ours(root.path):
                newest = self._catalog.newest(number, root, MAX_INDEX_LINES)
                write_bytes(root.path / INDEX_NAME, memory_index(newest, total).encode(errors="replace"))
        except (OSError, NoteError, StoreUnavailableError) as error:
            _log.warning("%s of %s could not be written: %s", INDEX_NAME, root.path, error)
            return None
        return total

    def _between_processes(self) -> AbstractContextManager[None]:
        return file_lock(self._catalog.path.with_name("writes.lock"))

    async def _in_thread(self, work: Callable[..., _T], *arguments: object) -> _T:
        return await to_thread.run_sync(work, *arguments, limiter=self._limiter)


def _note(
    root: Root, relative: str, draft: Draft, *, created: float | None, updated: float, extra: Mapping[str, object]
) -> Note:
    return Note(
        id=note_id(root.scope, relative),
        version="",
        scope=root.scope,
        path=root.path / relative,
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


def _rendered(note: Note) -> bytes:
    """Return the bytes of `note`, made sure that they read back as a note, fit, and hold no credential."""
    if not note.title.strip():
        raise MemoryWriteError(
            path=note.relative, problem="a note needs a title", remedy="say in a few words what it is"
        )
    try:
        data = render(note)
        parse(data, scope=note.scope, root=Path(), relative=note.relative, modified=0.0)
    except UnicodeEncodeError:
        raise MemoryWriteError(
            path=note.relative, problem="the text holds half a surrogate pair", remedy="remove that character"
        ) from None
    except NoteError as error:
        raise MemoryWriteError(
            path=note.relative,
            problem=error.problem,
            remedy=f"a note has text, no NUL, and at most {MAX_NOTE_BYTES} bytes; split a longer one",
        ) from None
    findings = find_credentials(data.decode())
    if findings:
        where = ", ".join(f"line {finding.line} ({finding.rule})" for finding in findings)
        raise MemoryWriteError(
            path=note.relative,
            problem=f"the text looks like it holds a credential: {where}",
            remedy="keep secrets in a secret store and write where they are kept",
        )
    return data


def _current(root: Root, note: Note) -> Note:
    """Read the file of `note` and refuse to go on if it is not the version that the caller knows."""
    try:
        current, _ = read_note(root, note.relative)
    except FileNotFoundError:
        raise MemoryWriteError(
            path=note.relative, problem="the file is gone", remedy="create the note again if it is still true"
        ) from None
    except NoteError as error:
        raise MemoryWriteError(path=note.relative, problem=error.problem, remedy="repair the file by hand") from None
    if current.version != note.version:
        raise MemoryWriteError(
            path=note.relative, problem="the file was changed since it was read", remedy="read it again, then write"
        )
    return current


def _free_name(root: Root, draft: Draft) -> str:
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


def _is_ours(root: Path) -> bool:
    try:
        data, _ = read_bytes(root, INDEX_NAME)
    except FileNotFoundError:
        return True
    return data.decode(errors="replace").startswith(INDEX_MARK)


def _refused(relative: str, error: Exception) -> MemoryWriteError:
    problem = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return MemoryWriteError(
        path=relative, problem=f"it could not be written: {problem}", remedy="check the folder's permissions and space"
    )
