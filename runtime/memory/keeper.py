"""Keeps the catalog in step with the files behind it: by scans, by notices of the file system, and when asked.

A scan compares every file with its row, at start and then at intervals that grow with the time it takes. A notice names
files: exactly those are read again, also while a scan is under way.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import anyio
from anyio import CapacityLimiter, to_thread

from recallscope.runtime.errors import StoreUnavailableError
from recallscope.runtime.events import CatalogSynced
from recallscope.runtime.memory.catalog import Catalog
from recallscope.runtime.memory.scopes import Root, Skipped
from recallscope.runtime.memory.sync import sync_files, sync_root
from recallscope.runtime.memory.watch import FolderWatch
from recallscope.runtime.observe import Observers

__all__ = ["Keeper", "ScopeState"]

_log = logging.getLogger(__name__)

_T = TypeVar("_T")

SHORTEST_INTERVAL = 2.0
LONGEST_INTERVAL = 300.0
SCAN_SHARE = 50.0
"""A scan that took one second is repeated after this many."""

ASKED_SHARE = 4.0
"""The same for a scan that somebody asks for: many who ask at once share one."""


@dataclass(slots=True)
class ScopeState:
    """How the catalog stands to one root; `number` is the root's in the catalog, None while that is unknown."""

    root: Root
    number: int | None = None
    notes: int = 0
    skipped: tuple[Skipped, ...] = ()
    synced: bool = False
    complete: bool = False
    problem: StoreUnavailableError | None = None


class Keeper:
    """Keeps `catalog` in step with `roots`; `scopes` is what is known of each; `caught_up` follows each step."""

    def __init__(
        self,
        roots: Sequence[Root],
        catalog: Catalog,
        *,
        observers: Observers,
        caught_up: Callable[[], None] = lambda: None,
    ) -> None:
        self.scopes = tuple(ScopeState(root) for root in roots)
        self.first = anyio.Event()
        self._catalog = catalog
        self._observers = observers
        self._caught_up = caught_up
        self._scan_limiter = CapacityLimiter(1)
        self._files_limiter = CapacityLimiter(1)
        self._syncing = anyio.Lock()
        self._scan_wanted = anyio.Event()
        self._files_wanted = anyio.Event()
        self._files: dict[Root, set[str]] = {}
        self._read_during_scan: dict[Root, set[str]] = {}
        self._stopping = threading.Event()
        self._rebuilt = False

    async def start(self, *, rebuilt: bool) -> None:
        """Learn what the catalog holds already, so that the first recall finds it."""
        self._rebuilt = rebuilt
        for scope in self.scopes:
            try:
                number = await self._learn(scope)
                scope.skipped = await self._in_thread(partial(self._catalog.skipped, number))
            except StoreUnavailableError as error:
                self._failed(scope, error)

    async def keep_in_step(self, *, watch: bool) -> None:
        """Scan now, at intervals and when asked, and read what notices name, until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._read_named_files, name="memory files")
            if watch:
                watching = FolderWatch(
                    [scope.root for scope in self.scopes], changed=self.request_files, scan=self.request_scan
                )
                tasks.start_soon(watching.run, name="memory watch")
                await watching.begun.wait()  # a change after the scan must not go unnoticed
            while True:
                await self._scan_and_wait()

    def request_scan(self) -> None:
        """Ask for a scan soon, without waiting for it."""
        self._scan_wanted.set()

    def request_files(self, root: Root, relatives: frozenset[str]) -> None:
        """Ask that these files of `root` be read again, without waiting for it."""
        self._files.setdefault(root, set()).update(relatives)
        self._files_wanted.set()

    def stop(self) -> None:
        """Make a scan under way end after the file that it is at."""
        self._stopping.set()

    async def sync(self) -> None:
        """Bring the catalog up to the files now; what fails is logged and stands in `scopes`."""
        async with self._syncing:
            self._read_during_scan = {}
            await self._sync_scopes()
            if self._catalog.doubtful:  # it broke under the scan: now it is made anew
                await self._sync_scopes()
            self.first.set()
            self._caught_up()
            # The scan may have put what it had read before in the place of what was read meanwhile.
            for root, relatives in self._read_during_scan.items():
                self.request_files(root, frozenset(relatives))

    async def _scan_and_wait(self) -> None:
        started = anyio.current_time()
        self._scan_wanted = anyio.Event()
        await self.sync()
        ended = anyio.current_time()
        took = ended - started
        with anyio.move_on_at(ended + min(max(SHORTEST_INTERVAL, SCAN_SHARE * took), LONGEST_INTERVAL)):
            await self._scan_wanted.wait()
            await anyio.sleep_until(ended + ASKED_SHARE * took)

    async def _sync_scopes(self) -> None:
        try:
            self._rebuilt |= await self._in_thread(self._catalog.open_or_bypass)
        except StoreUnavailableError as error:
            for scope in self.scopes:
                self._failed(scope, error)
            return
        for scope in self.scopes:
            await self._sync_scope(scope)
        self._rebuilt = False

    async def _sync_scope(self, scope: ScopeState) -> None:
        started = self._observers.now()
        try:
            await self._learn(scope)
            scan = partial(sync_root, self._catalog, scope.root, stopped=self._stopping.is_set)
            synced = await self._in_thread(scan)
        except StoreUnavailableError as error:
            self._catalog.doubt(error.__cause__)
            self._failed(scope, error)
            return
        scope.notes, scope.skipped, scope.complete = synced.notes, synced.skipped, synced.complete
        scope.synced, scope.problem = True, None
        self._observers.emit(
            CatalogSynced(
                op=self._observers.new_op(),
                at=self._observers.now(),
                scope=scope.root.scope,
                notes=synced.notes,
                changed=synced.changed,
                skipped=len(synced.skipped),
                seconds=self._observers.now() - started,
                rebuilt=self._rebuilt,
            )
        )

    async def _read_named_files(self) -> None:
        while True:
            await self._files_wanted.wait()
            self._files_wanted = anyio.Event()
            named, self._files = self._files, {}
            for scope in self.scopes:
                relatives = named.get(scope.root)
                if relatives:
                    await self._read_files(scope, relatives)

    async def _read_files(self, scope: ScopeState, relatives: set[str]) -> None:
        read = partial(sync_files, self._catalog, scope.root, sorted(relatives))
        try:
            scope.notes = await to_thread.run_sync(read, limiter=self._files_limiter)
            self._caught_up()
        except StoreUnavailableError as error:
            self._catalog.doubt(error.__cause__)
            self.request_scan()
            return
        if self._syncing.locked():
            self._read_during_scan.setdefault(scope.root, set()).update(relatives)

    async def _learn(self, scope: ScopeState) -> int:
        """Ask the catalog that is open now for the root's number there, and for how many notes it holds."""
        number = scope.number = await self._in_thread(partial(self._catalog.root_id, scope.root.path))
        scope.notes = await self._in_thread(partial(self._catalog.count, number))
        return number

    def _failed(self, scope: ScopeState, error: StoreUnavailableError) -> None:
        if scope.problem is None or str(scope.problem) != str(error):
            _log.warning("memory of scope %s: %s", scope.root.scope, error)
        scope.problem = error
        scope.complete = False

    async def _in_thread(self, work: Callable[[], _T]) -> _T:
        return await to_thread.run_sync(work, limiter=self._scan_limiter)
