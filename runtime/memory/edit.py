"""The one write path to memory, for people, tools and jobs: notes are created, updated and deleted here alone.

A write stays below its scope's root, is whole or not at all, holds no credential, refuses to overwrite what it has not
seen, stands in the catalog when it returns, and brings the generated `MEMORY.md` up to date.
"""

import logging
import os
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from anyio import CapacityLimiter, Lock, current_time, sleep, to_thread

from recallscope.runtime.errors import MemoryWriteError, NoteError, StoreUnavailableError
from recallscope.runtime.events import MemoryWriteFinished, MemoryWriteStarted, OpId
from recallscope.runtime.memory import refusals
from recallscope.runtime.memory.catalog import Catalog, Changes
from recallscope.runtime.memory.catalog_file import WRITER_PATIENCE, file_lock
from recallscope.runtime.memory.draft import Draft, check_title, draft_note, free_name, redated, rendered, vet
from recallscope.runtime.memory.note import PINNED_FOLDER, Note, note_id, version_of
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
from recallscope.runtime.terms import ScopeName

__all__ = ["Draft", "Editor"]

_T = TypeVar("_T")

_log = logging.getLogger(__name__)

_PAUSE = 0.02
"""Seconds between two looks at the lock that another process holds."""


class Editor:
    """Writes notes; a write waits `patience` seconds for those of other processes, then it is refused.

    `rename` is the last step of a write, an argument so that a test can stop before it.
    """

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
        patience: float = WRITER_PATIENCE,
    ) -> None:
        self._catalog = catalog
        self._roots = {root.scope: root for root in roots}
        self._observers = observers
        self._clock = clock
        self._read_only = read_only
        self._complete = complete
        self._written = written
        self._rename = rename
        self._patience = patience
        self._lock = Lock()
        self._limiter = CapacityLimiter(1)

    async def create(
        self, scope: ScopeName, draft: Draft, *, relative: str | None = None, parent: OpId | None = None
    ) -> Note:
        """Write a new note and return it; `relative` is by default `<type>/<title as a file name>.md`.

        Raises:
            MemoryWriteError: the path is taken or leaves the scope, the text is too large or holds a credential,
                another process does not let go of the memory, or the file system refused; nothing was changed.
        """
        root = self._root(scope, relative or draft.title)
        async with self._lock, AsyncExitStack() as held:
            where = await self._in_thread(free_name, root, draft) if relative is None else relative
            try:
                await held.enter_async_context(self._between_processes(relative or draft.title))
            except BaseException:
                with self._operation("create", scope, where, parent):  # it came to nothing, and that is stated
                    raise
            if relative is None:  # another process may have taken the name meanwhile; from now on it stays free
                where = await self._in_thread(free_name, root, draft)
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
                async with self._between_processes(note.relative):
                    changed = await self._in_thread(self._update, root, note, draft)
                    await self._index(root)
        return changed

    async def pin(self, note: Note, *, pinned: bool, parent: OpId | None = None) -> Note:
        """Pin `note`, as the caller last read it, or take the pin away; how old it is does not change.

        Raises:
            MemoryWriteError: as `update`; also if it is to be unpinned and lies in the folder that pins.
        """
        if not pinned and note.relative.startswith(f"{PINNED_FOLDER}/"):
            raise MemoryWriteError(
                path=note.relative,
                problem=f"every note below {PINNED_FOLDER}/ is pinned",
                remedy="move the file to another folder",
            )
        root = self._root(note.scope, note.relative)
        async with self._lock:
            with self._operation("update", note.scope, note.relative, parent):
                draft = replace(Draft.of(note), pinned=pinned)
                async with self._between_processes(note.relative):
                    changed = await self._in_thread(partial(self._update, root, note, draft, aged=True))
                    await self._index(root)
        return changed

    async def annotate(
        self, note: Note, *, usage_scenarios: Sequence[str], keywords: Sequence[str], parent: OpId | None = None
    ) -> Note:
        """Write by which words `note`, as the caller last read it, can be found; how old it is does not change.

        Raises:
            MemoryWriteError: as `update`.
        """
        root = self._root(note.scope, note.relative)
        draft = replace(Draft.of(note), usage_scenarios=tuple(usage_scenarios), keywords=tuple(keywords))
        async with self._lock:
            with self._operation("update", note.scope, note.relative, parent):
                async with self._between_processes(note.relative):
                    return await self._in_thread(partial(self._update, root, note, draft, aged=True))

    async def restore(
        self,
        scope: ScopeName,
        relative: str,
        data: bytes,
        *,
        replaces: str | None = None,
        modified: float | None = None,
        index: bool = True,
        parent: OpId | None = None,
    ) -> Note:
        """Write the bytes of a note as they are, to a file that is not there or holds the version `replaces`.

        `modified` becomes the file's time, in seconds since 1970. Whoever restores many notes passes `index=False` and
        calls `write_index` at the end.

        Raises:
            MemoryWriteError: as `create` and `update`; also if `data` is no readable note.
        """
        root = self._root(scope, relative)
        async with self._lock:
            with self._operation("update" if replaces else "create", scope, relative, parent):
                work = partial(self._restore, root, relative, data, replaces=replaces, modified=modified, tidy=index)
                await self._in_thread(vet, data, scope, relative)
                async with self._between_processes(relative):
                    note = await self._in_thread(work)
                    if index:
                        await self._index(root)
        return note

    async def rewrite(self, note: Note, data: bytes, *, parent: OpId | None = None) -> Note:
        """Replace `note`, as the caller last read it, by what a person made of its file, kept byte for byte.

        One line may differ: `updated`, where the person left it as it was.

        Raises:
            MemoryWriteError: as `update`; also if `data` is no readable note.
        """
        vet(data, note.scope, note.relative)
        dated = redated(data, note, self._clock())
        return await self.restore(note.scope, note.relative, dated, replaces=note.version, parent=parent)

    async def write_index(self, scope: ScopeName) -> None:
        """Write `MEMORY.md` of `scope` anew, unless a person wrote it or the catalog does not know the whole scope.

        Raises:
            MemoryWriteError: this memory is read-only, or has no such scope.
        """
        root = self._root(scope, INDEX_NAME)
        async with self._lock:
            await self._index(root)

    async def delete(self, note: Note, *, parent: OpId | None = None) -> None:
        """Delete the file of `note`, as the caller last read it.

        Raises:
            MemoryWriteError: the file is gone or was changed since `note` was read, or cannot be removed.
        """
        root = self._root(note.scope, note.relative)
        async with self._lock:
            with self._operation("delete", note.scope, note.relative, parent):
                async with self._between_processes(note.relative):
                    await self._in_thread(self._delete, root, note)
                    await self._index(root, new=False)

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
        check_title(relative, draft.title)
        now = self._clock()
        data = rendered(draft_note(root, relative, draft, created=now, updated=now, extra=draft.extra or {}))
        if path.exists():
            raise refusals.taken(relative)
        return self._write(root, relative, path, data)

    def _update(self, root: Root, note: Note, draft: Draft, *, aged: bool = False) -> Note:
        """Write `draft` over `note`; `aged` keeps the time of its last change."""
        path = confined(root.path, note.relative)
        current = _current(root, note)
        check_title(note.relative, draft.title, before=current.title)
        extra = current.extra if draft.extra is None else draft.extra
        updated = current.updated if aged else self._clock()
        changed = draft_note(root, note.relative, draft, created=current.created, updated=updated, extra=extra)
        return self._write(root, note.relative, path, rendered(changed))

    def _restore(
        self, root: Root, relative: str, data: bytes, *, replaces: str | None, modified: float | None, tidy: bool
    ) -> Note:
        path = confined(root.path, relative)
        if replaces is not None:
            _expect(root, relative, replaces)
        elif path.exists():
            raise refusals.taken(relative)
        return self._write(root, relative, path, data, modified=modified, tidy=tidy)

    def _delete(self, root: Root, note: Note) -> None:
        path = confined(root.path, note.relative)
        _current(root, note)
        try:
            path.unlink()
            sync_folder(path.parent)
        except OSError as error:
            raise refusals.refused(note.relative, error) from error
        self._catch_up(root, Changes(gone=[note.relative]))

    def _write(
        self, root: Root, relative: str, path: Path, data: bytes, *, modified: float | None = None, tidy: bool = True
    ) -> Note:
        try:
            write_bytes(path, data, replace=self._rename, tidy=tidy)
            if modified is not None:
                os.utime(path, (modified, modified))
            note, file = read_note(root, relative)
        except (OSError, NoteError) as error:
            raise refusals.refused(relative, error) from error
        self._catch_up(root, Changes(notes=[(note, file)]))
        return note

    def _catch_up(self, root: Root, changes: Changes) -> None:
        """Bring the catalog up to a write; if it cannot be reached the note is written all the same."""
        try:
            self._catalog.apply(self._catalog.root_id(root.path), changes)
        except StoreUnavailableError as error:
            _log.warning("a note was written, and the catalog will learn of it at the next sync: %s", error)

    async def _index(self, root: Root, *, new: bool = True) -> None:
        """Write `MEMORY.md` anew, unless the catalog does not know the whole root, or a person wrote that file.

        Where there is none, one is made if `new`.
        """
        notes = await self._in_thread(self._write_index, root, self._complete(root.scope), new)
        self._written(root.scope, notes)

    def _write_index(self, root: Root, complete: bool, new: bool) -> int | None:
        try:
            number = self._catalog.root_id(root.path)
            total = self._catalog.count(number)
            if complete and (new or (root.path / INDEX_NAME).exists()) and _is_ours(root.path):
                newest = self._catalog.newest(number, root, MAX_INDEX_LINES)
                write_bytes(root.path / INDEX_NAME, memory_index(newest, total).encode(errors="replace"))
        except (OSError, NoteError, StoreUnavailableError) as error:
            _log.warning("%s of %s could not be written: %s", INDEX_NAME, root.path, error)
            return None
        return total

    @asynccontextmanager
    async def _between_processes(self, relative: str) -> AsyncGenerator[None]:
        """Keep other processes from writing for the length of the block; a wait that is cancelled writes nothing."""
        path = self._catalog.path.with_name("writes.lock")
        until = current_time() + self._patience
        with ExitStack() as held:
            while not await self._in_thread(_locked, held, path):
                if current_time() >= until:
                    raise MemoryWriteError(
                        path=relative,
                        problem=f"another process has been writing to this memory for {self._patience:g} s ({path})",
                        remedy="try again, or end that process if it hangs; nothing was written",
                    )
                await sleep(_PAUSE)
            yield

    async def _in_thread(self, work: Callable[..., _T], *arguments: object) -> _T:
        return await to_thread.run_sync(work, *arguments, limiter=self._limiter)


def _locked(held: ExitStack, path: Path) -> bool:
    """Say whether the lock at `path` could be had at once; `held` then lets go of it."""
    try:
        held.enter_context(file_lock(path, patience=0.0))
    except TimeoutError:
        return False
    except OSError as error:
        raise refusals.refused(str(path), error) from error
    return True


def _current(root: Root, note: Note) -> Note:
    """Read the file of `note` and refuse to go on if it is not the version that the caller knows."""
    try:
        current, _ = read_note(root, note.relative)
    except (FileNotFoundError, NoteError) as error:
        raise refusals.unusable(note.relative, error) from None
    if current.version != note.version:
        raise refusals.changed(note.relative)
    return current


def _expect(root: Root, relative: str, version: str) -> None:
    """Refuse to go on if the file, readable as a note or not, is not the version that the caller knows."""
    try:
        data, _ = read_bytes(root.path, relative)
    except (FileNotFoundError, NoteError) as error:
        raise refusals.unusable(relative, error) from None
    if version_of(data) != version:
        raise refusals.changed(relative)


def _is_ours(root: Path) -> bool:
    try:
        data, _ = read_bytes(root, INDEX_NAME)
    except FileNotFoundError:
        return True
    return data.decode(errors="replace").startswith(INDEX_MARK)
