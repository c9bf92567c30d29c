"""Notices of the file system: which notes changed, so that exactly those are read again.

Every folder of a root is watched by itself, not the tree as a whole: a recursive watch would follow symbolic links out
of it. Beside them stands the folder that holds the root, or the nearest that exists, so that a root that is made,
removed or renamed later is noticed. What comes in a burst, and what concerns folders, asks for a scan.
"""

import logging
import os
import stat
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

import anyio
from anyio import CapacityLimiter, to_thread

from recallscope.runtime.memory.scopes import MAX_DEPTH, Root, is_note_path

__all__ = ["Changed", "FolderWatch", "Watcher", "watch_folders"]

_log = logging.getLogger(__name__)

_T = TypeVar("_T")

_GROUPED_MS = 300
"""Changes that follow each other are told together, at the latest after this many milliseconds."""

_STEP_MS = 50
"""How often the waiting thread looks whether something has come, or whether it shall stop."""

_LOOK_AGAIN_MS = 5_000
"""A folder above a root that was moved away is told by nobody: look at this interval."""

_BURST = 200
"""Changed notes in one batch above which a scan of the root is cheaper and surer."""

_MOST_FOLDERS = 2_000
"""Of the 8,192 watches that an old system gives to all programs of a person together."""

_ATTEMPTS = 5
_MODIFIED = 2


class Watcher(Protocol):
    """What a notice comes from: the native part of `watchfiles`, which documents it for direct use."""

    def watch(
        self, debounce_ms: int, step_ms: int, timeout_ms: int, stop_event: threading.Event
    ) -> Collection[tuple[int, str]] | str:
        """Wait for changes, as pairs of a kind and a path; a word says why there are none."""
        ...


def watch_folders(folders: Sequence[str]) -> AbstractContextManager[Watcher]:
    """Start watching `folders`, each without those below it; leaving the block stops it.

    Raises:
        OSError: a folder is not there or not readable, or the system's limit of watches is reached.
        RuntimeError: the system gives no notices at all.
    """
    from watchfiles._rust_notify import RustNotify  # noqa: PLC0415 - 50 ms that only those who watch should pay

    return RustNotify(list(folders), False, False, 0, False, False)


@dataclass(frozen=True, slots=True)
class Changed:
    """What a batch of notices came to: notes by root, and whether folders changed or there is too much to name."""

    files: Mapping[Root, frozenset[str]] = field(default_factory=dict[Root, frozenset[str]])
    folders: bool = False
    burst: bool = False


@dataclass(slots=True)
class _Plan:
    """The folders to watch, and what stood at the paths that lead to the roots."""

    folders: frozenset[str]
    ways: Mapping[str, int | None]


class FolderWatch:
    """Watches the folders of `roots`; tells `changed` which notes of a root changed, and `scan` that all may have.

    `start` begins the watching, an argument so that a test can have a system that refuses.
    """

    def __init__(
        self,
        roots: Sequence[Root],
        *,
        changed: Callable[[Root, frozenset[str]], None],
        scan: Callable[[], None],
        start: Callable[[Sequence[str]], AbstractContextManager[Watcher]] = watch_folders,
    ) -> None:
        self._roots = roots
        self._changed = changed
        self._scan = scan
        self._start = start
        self._limiter = CapacityLimiter(1)
        self.begun = anyio.Event()
        """Set once changes are noticed, or it is certain that they are not."""

    async def run(self) -> None:
        """Watch until cancelled, or until the system refuses: then one line says that only scans find changes."""
        attempts = 0
        try:
            while True:
                plan = await self._in_thread(self._look)
                if len(plan.folders) > _MOST_FOLDERS:
                    _log.warning(
                        "memory has %s folders, more than %s: changes are found by scans only",
                        len(plan.folders),
                        _MOST_FOLDERS,
                    )
                    return
                try:
                    watcher = await self._in_thread(partial(self._start, sorted(plan.folders)))
                except FileNotFoundError:  # a folder went while it was looked at
                    attempts += 1
                    if attempts == _ATTEMPTS:
                        raise
                    await anyio.sleep(0.05 * attempts)
                    continue
                attempts = 0
                with watcher as notices:
                    if self.begun.is_set():
                        self._scan()  # what happened between the two watches
                    self.begun.set()
                    await self._follow(notices, plan)
        except (OSError, RuntimeError) as error:
            _log.warning("the memory folders cannot be watched, changes are found by scans only: %s", error)
        finally:
            self.begun.set()

    async def _follow(self, watcher: Watcher, plan: _Plan) -> None:
        """Tell of changes until other folders are to be watched."""
        while True:
            batch = await self._next(watcher)
            if isinstance(batch, str):
                if await self._in_thread(self._ways) != plan.ways:
                    return
                continue
            sorted_out = await self._in_thread(partial(self.sort_out, batch, plan.folders))
            if sorted_out.folders:
                return
            if sorted_out.burst:
                self._scan()
                continue
            for root, relatives in sorted_out.files.items():
                self._changed(root, relatives)

    async def _next(self, watcher: Watcher) -> Collection[tuple[int, str]] | str:
        """Wait for the next batch in a thread, which ends soon after a cancellation and is waited for."""
        stop = threading.Event()

        async def stop_on_cancel() -> None:
            try:
                await anyio.sleep_forever()
            finally:
                stop.set()

        batch: Collection[tuple[int, str]] | str | Exception = "stop"
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stop_on_cancel)
            try:
                batch = await self._in_thread(partial(watcher.watch, _GROUPED_MS, _STEP_MS, _LOOK_AGAIN_MS, stop))
            except (OSError, RuntimeError) as error:  # raised below: here it would become a group
                batch = error
            tasks.cancel_scope.cancel()
        if isinstance(batch, Exception):
            raise batch
        return batch

    def sort_out(self, batch: Iterable[tuple[int, str]], folders: Collection[str]) -> Changed:
        """Say what `batch` means while `folders` are watched. Runs in a thread."""
        files: dict[Root, set[str]] = {}
        folder = False
        for kind, path in batch:
            for root in self._roots:
                top = str(root.path)
                if not path.startswith(f"{top}/"):
                    folder |= kind != _MODIFIED and (path == top or top.startswith(f"{path}/"))
                    continue
                relative = path[len(top) + 1 :]
                if any(part.startswith(".") for part in relative.split("/")):
                    continue
                if path in folders or _is_folder(path):
                    folder |= kind != _MODIFIED or path not in folders
                elif is_note_path(relative):
                    files.setdefault(root, set()).add(relative)
        return Changed(
            files={root: frozenset(relatives) for root, relatives in files.items()},
            folders=folder,
            burst=sum(map(len, files.values())) > _BURST,
        )

    def _look(self) -> _Plan:
        ways = self._ways()
        folders = {path for path, inode in ways.items() if inode is not None}
        for root in self._roots:
            folders.update(_folders(root.path))
        return _Plan(frozenset(folders), ways)

    def _ways(self) -> dict[str, int | None]:
        """Return the roots and the nearest folder above each that exists, with their inodes; None where none is."""
        ways: dict[str, int | None] = {}
        for root in self._roots:
            ways[str(root.path)] = _inode(root.path)
            above = next((path for path in root.path.parents if _inode(path) is not None), None)
            if above is not None:
                ways[str(above)] = _inode(above)
        return ways

    async def _in_thread(self, work: Callable[[], _T]) -> _T:
        return await to_thread.run_sync(work, limiter=self._limiter)


def _folders(root: Path) -> set[str]:
    """Return `root` and the folders below it that a scan enters: no links, no hidden ones, not deeper than it goes."""
    found: set[str] = set()
    pending = [(str(root), 0)]
    while pending and len(found) <= _MOST_FOLDERS:
        folder, depth = pending.pop()
        try:
            with os.scandir(folder) as entries:
                below = [
                    entry.path
                    for entry in entries
                    if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False)
                ]
        except OSError:
            continue
        found.add(folder)
        if depth < MAX_DEPTH:
            pending.extend((path, depth + 1) for path in below)
    return found


def _is_folder(path: str) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def _inode(path: Path) -> int | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino if stat.S_ISDIR(status.st_mode) else None
