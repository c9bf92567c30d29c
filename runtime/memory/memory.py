"""Memory as the rest of the engine sees it: opened once, searched by recalls, kept in step with the files behind it.

The catalog answers, the files are the truth. A background task brings the catalog up to the files at start, then at
intervals that grow with the time a scan takes, and at once when somebody asks (`request_sync`: our own writes, a note
found stale, later the file system's own notices).
"""

import logging
import sqlite3
import tempfile
import threading
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio
from anyio import CapacityLimiter, to_thread

from recallscope.runtime.errors import StoreUnavailableError
from recallscope.runtime.events import CatalogSynced
from recallscope.runtime.memory.catalog import Catalog
from recallscope.runtime.memory.edit import Editor
from recallscope.runtime.memory.lookup import Lookup, is_current, load_notes
from recallscope.runtime.memory.noise import aliases
from recallscope.runtime.memory.note import Note
from recallscope.runtime.memory.scopes import MemoryRoots, Root, Skipped
from recallscope.runtime.memory.scopes import catalog_path as default_catalog_path
from recallscope.runtime.memory.search import Found
from recallscope.runtime.memory.sync import Synced, sync_files, sync_root
from recallscope.runtime.messages import NoteVersion
from recallscope.runtime.observe import Observers
from recallscope.runtime.terms import ScopeName

__all__ = ["Memory", "MemoryStatistics", "ScopeStatistics", "open_memory"]

_log = logging.getLogger(__name__)

_T = TypeVar("_T")

SEARCHES_AT_ONCE = 4
SHORTEST_INTERVAL = 2.0
LONGEST_INTERVAL = 300.0
SCAN_SHARE = 50.0
"""A rescan that took one second is repeated after this many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeStatistics:
    """How one scope stands: `synced` if a sync has succeeded in this process, `problem` is why the last one failed."""

    scope: ScopeName
    root: Path
    notes: int
    skipped: int
    synced: bool
    problem: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryStatistics:
    """How memory stands: its catalog's file, whether it is a temporary one, and its scopes."""

    catalog: Path
    temporary: bool
    scopes: tuple[ScopeStatistics, ...]


@dataclass(slots=True)
class _Scope:
    root: Root
    number: int | None = None
    notes: int = 0
    skipped: tuple[Skipped, ...] = ()
    synced: bool = False
    complete: bool = False
    problem: StoreUnavailableError | None = None


class Memory:
    """Searches, checks and edits the notes of one engine's scopes; satisfies `Searchable`. Made by `open_memory`."""

    def __init__(
        self,
        roots: MemoryRoots,
        catalog: Catalog,
        *,
        observers: Observers,
        read_only: bool = False,
        clock: Callable[[], float] = time.time,
        limiter: CapacityLimiter | None = None,
        temporary: bool = False,
    ) -> None:
        self._catalog = catalog
        self._scopes = [_Scope(root) for root in roots.roots]
        self._observers = observers
        self._limiter = limiter or CapacityLimiter(SEARCHES_AT_ONCE)
        self._sync_limiter = CapacityLimiter(1)
        self._temporary = temporary
        self._first = anyio.Event()
        self._wake = anyio.Event()
        self._syncing = anyio.Lock()
        self._stale: dict[ScopeName, set[str]] = {}
        self._stopping = threading.Event()
        self._rebuilt = False
        self._sync_wanted = False
        self.edit = Editor(
            catalog,
            roots.roots,
            observers=observers,
            clock=clock,
            read_only=read_only,
            complete=self._is_complete,
            written=self._written,
        )

    @property
    def notes(self) -> int:
        """How many notes can be found; known without waiting."""
        return sum(scope.notes for scope in self._scopes)

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        """Return what the last sync could not read as notes, in all scopes, with the reasons."""
        return tuple(skip for scope in self._scopes for skip in scope.skipped)

    async def search(
        self, query: str, *, exclude: frozenset[NoteVersion], recent_tools: Sequence[str], within: float | None = None
    ) -> Found:
        """Search for `query`, leaving out the versions in `exclude` and usage notes about `recent_tools`.

        After `within` seconds (None: no limit), the wait for a free thread included, the query is interrupted and what
        it has is returned, marked `partial`. Cancelling interrupts the query in its thread. Before the first sync has
        ended this answers from what the catalog holds by then.

        Raises:
            StoreUnavailableError: memory could not be read; unavailable is not empty.
        """
        until = None if within is None else time.monotonic() + within
        lookup = Lookup(
            catalog=self._catalog,
            roots=self._readable(),
            query=query,
            exclude=exclude,
            tools=aliases(recent_tools),
        )
        if not lookup.roots:
            return Found()
        try:
            return await to_thread.run_sync(_run, lookup, until, limiter=self._limiter, abandon_on_cancel=True)
        except StoreUnavailableError as error:
            self._unreadable(error)
            raise
        finally:
            lookup.stop()

    async def load(self, notes: Sequence[Note]) -> tuple[Note, ...]:
        """Return `notes` with their bodies, in order, without those that are gone from the catalog.

        Raises:
            StoreUnavailableError: memory could not be read.
        """
        try:
            return await to_thread.run_sync(self._load, notes, limiter=self._limiter)
        except StoreUnavailableError as error:
            self._unreadable(error)
            raise

    async def stale(self, notes: Sequence[Note]) -> frozenset[NoteVersion]:
        """Return those of `notes` whose file is gone or changed (one `stat` each, in a thread), and re-index them.

        What cannot be checked counts as stale: a note is delivered only when it is known to be current.
        """
        found = await to_thread.run_sync(self._find_stale, notes, limiter=self._limiter)
        for note in found:
            self._stale.setdefault(note.scope, set()).add(note.relative)
        if found:
            self._wake.set()
        return frozenset(note.note_version for note in found)

    async def wait_synced(self) -> None:
        """Wait until the first sync of every scope has ended, well or badly (`statistics` tells)."""
        await self._first.wait()

    def request_sync(self) -> None:
        """Ask for a sync soon, without waiting for it."""
        self._sync_wanted = True
        self._wake.set()

    async def sync(self) -> None:
        """Bring the catalog up to the files now; what fails is logged and stands in `statistics`."""
        async with self._syncing:
            try:
                self._rebuilt |= await self._in_thread(self._catalog.open)
            except StoreUnavailableError as error:
                for scope in self._scopes:
                    self._failed(scope, error)
            else:
                for scope in self._scopes:
                    await self._sync_scope(scope, rebuilt=self._rebuilt)
                self._rebuilt = False
            self._first.set()

    def statistics(self) -> MemoryStatistics:
        """Say how memory stands."""
        return MemoryStatistics(
            catalog=self._catalog.path,
            temporary=self._temporary,
            scopes=tuple(
                ScopeStatistics(
                    scope=scope.root.scope,
                    root=scope.root.path,
                    notes=scope.notes,
                    skipped=len(scope.skipped),
                    synced=scope.synced,
                    problem=str(scope.problem) if scope.problem else None,
                )
                for scope in self._scopes
            ),
        )

    async def start(self, *, rebuilt: bool) -> None:
        """Learn what the catalog holds already, so that the first recall finds it."""
        self._rebuilt = rebuilt
        for scope in self._scopes:
            try:
                scope.number, scope.notes, scope.skipped = await self._in_thread(self._known, scope.root)
            except StoreUnavailableError as error:
                self._failed(scope, error)

    async def keep_in_step(self) -> None:
        """Sync now, at intervals and when asked, until cancelled."""
        while True:
            started = anyio.current_time()
            await self.sync()
            now = anyio.current_time()
            next_scan = now + min(max(SHORTEST_INTERVAL, SCAN_SHARE * (now - started)), LONGEST_INTERVAL)
            while not self._sync_wanted and anyio.current_time() < next_scan:
                with anyio.move_on_at(next_scan):
                    await self._wake.wait()
                self._wake = anyio.Event()
                await self._reindex_stale()
            self._sync_wanted = False

    def stop(self) -> None:
        """Make a sync under way end after the file that it is at."""
        self._stopping.set()

    async def _sync_scope(self, scope: _Scope, *, rebuilt: bool) -> None:
        started = self._observers.now()
        try:
            synced = await self._in_thread(partial(sync_root, self._catalog, scope.root, stopped=self._stopping.is_set))
            scope.number = await self._in_thread(self._catalog.root_id, scope.root.path)
        except StoreUnavailableError as error:
            self._failed(scope, error)
            return
        self._take(scope, synced)
        self._observers.emit(
            CatalogSynced(
                op=self._observers.new_op(),
                at=self._observers.now(),
                scope=scope.root.scope,
                notes=synced.notes,
                changed=synced.changed,
                skipped=len(synced.skipped),
                seconds=self._observers.now() - started,
                rebuilt=rebuilt,
            )
        )

    def _take(self, scope: _Scope, synced: Synced) -> None:
        scope.notes = synced.notes
        scope.skipped = synced.skipped
        scope.synced = True
        scope.complete = synced.complete
        scope.problem = None

    def _failed(self, scope: _Scope, error: StoreUnavailableError) -> None:
        if scope.problem is None or str(scope.problem) != str(error):
            _log.warning("memory of scope %s: %s", scope.root.scope, error)
        scope.problem = error
        scope.complete = False

    async def _reindex_stale(self) -> None:
        stale, self._stale = self._stale, {}
        async with self._syncing:
            for scope in self._scopes:
                relatives = stale.get(scope.root.scope)
                if not relatives:
                    continue
                try:
                    scope.notes = await self._in_thread(sync_files, self._catalog, scope.root, sorted(relatives))
                except StoreUnavailableError as error:
                    self._failed(scope, error)

    def _readable(self) -> dict[int, Root]:
        """Return the roots that can be searched, by number; where none can, say why."""
        usable = [scope for scope in self._scopes if scope.problem is None]
        problem = next((scope.problem for scope in self._scopes if scope.problem is not None), None)
        if not usable and problem is not None:
            raise StoreUnavailableError(str(problem)) from problem
        return {scope.number: scope.root for scope in usable if scope.number is not None}

    def _numbered(self) -> Mapping[int, Root]:
        return {scope.number: scope.root for scope in self._scopes if scope.number is not None}

    def _unreadable(self, error: StoreUnavailableError) -> None:
        if isinstance(error.__cause__, sqlite3.Error):
            self._catalog.doubt(error.__cause__)
        self.request_sync()

    def _load(self, notes: Sequence[Note]) -> tuple[Note, ...]:
        with self._catalog.readers.borrow() as reader:
            return load_notes(reader, self._numbered(), notes)

    def _find_stale(self, notes: Sequence[Note]) -> tuple[Note, ...]:
        numbers = {root.scope: number for number, root in self._numbered().items()}
        try:
            with self._catalog.readers.borrow() as reader:
                return tuple(note for note in notes if not is_current(reader, numbers.get(note.scope), note))
        except StoreUnavailableError:
            return tuple(notes)

    def _known(self, root: Root) -> tuple[int, int, tuple[Skipped, ...]]:
        number = self._catalog.root_id(root.path)
        return number, self._catalog.count(number), self._catalog.skipped(number)

    def _is_complete(self, scope: ScopeName) -> bool:
        return any(state.complete for state in self._scopes if state.root.scope == scope)

    def _written(self, scope: ScopeName, notes: int | None) -> None:
        for state in self._scopes:
            if state.root.scope == scope and notes is not None:
                state.notes = notes
        if notes is None:
            self.request_sync()

    async def _in_thread(self, work: Callable[..., _T], *arguments: object) -> _T:
        return await to_thread.run_sync(work, *arguments, limiter=self._sync_limiter)


def _run(lookup: Lookup, until: float | None) -> Found:
    if until is not None:  # the wait for a free thread counts
        lookup.deadline = max(until - time.monotonic(), 0.0)
    return lookup.run()


@asynccontextmanager
async def open_memory(
    roots: MemoryRoots,
    *,
    observers: Observers,
    catalog_path: Path | None = None,
    read_only: bool = False,
    clock: Callable[[], float] = time.time,
    limiter: CapacityLimiter | None = None,
) -> AsyncGenerator[Memory, None]:
    """Open memory and keep it in step with its files for the length of the block.

    `catalog_path` is by default in the local cache directory (`scopes.catalog_path`); where that cannot be used, the
    catalog is a temporary file and a warning says so. `read_only` refuses every write to notes. `clock` gives seconds
    since 1970 for the times in notes. `limiter` holds how many searches run at once.
    """
    with ExitStack() as stack:
        catalog = Catalog(catalog_path or default_catalog_path(roots))
        temporary = False
        try:
            rebuilt = await to_thread.run_sync(catalog.open)
        except StoreUnavailableError as error:
            _log.warning("%s; a temporary catalog is used", error)
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="recallscope-"))
            catalog, temporary = Catalog(Path(folder) / "catalog.sqlite3"), True
            rebuilt = await to_thread.run_sync(catalog.open)
        stack.callback(catalog.close)
        memory = Memory(
            roots,
            catalog,
            observers=observers,
            read_only=read_only,
            clock=clock,
            limiter=limiter,
            temporary=temporary,
        )
        await memory.start(rebuilt=rebuilt)
        failure: BaseException | None = None
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(memory.keep_in_step, name="memory sync")
                try:
                    yield memory
                except BaseException as error:
                    failure = error
                    raise
                finally:
                    memory.stop()
                    tasks.cancel_scope.cancel()
        except BaseExceptionGroup as group:
            if failure is None or group.exceptions != (failure,):
                raise
            raise failure from failure.__cause__  # the caller's own error, not a group made of it
