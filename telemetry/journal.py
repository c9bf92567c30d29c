"""The journal: one JSON line per event, in a file of this process. It needs no collector and is never sampled.

Files are `journal-<start>-<pid>-<n>.jsonl`; one is closed at 64 MiB, and the oldest of all processes are removed
once there are more than 512 MiB or 1,000 of them. Lines hold ids of notes, never titles or text.
"""

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final

from recallscope.runtime.events import Event, OpId
from recallscope.telemetry import names
from recallscope.telemetry.anchor import Anchor
from recallscope.telemetry.encode import Encoder
from recallscope.telemetry.flow import Flow

__all__ = ["FILE_PATTERN", "Journal"]

_log = logging.getLogger(__name__)

FILE_PATTERN: Final = "journal-*.jsonl"
FILE_BYTES: Final = 64 * 1024 * 1024
TOTAL_BYTES: Final = 8 * FILE_BYTES
MAX_FILES: Final = 1_000
CAPACITY: Final = 20_000
LINGER_SECONDS: Final = 0.25
"""Longer than most turns of a busy process are apart: a wake-up for each would be a tenth of what telemetry costs."""


class Journal:
    """An observer that writes events to disk from a thread; the caller only appends to a queue.

    Args:
        directory: where the files stand; made when the first event comes.
        anchor: ties event times to the wall until a `ProcessStarted` event states its own.
        trace_id: tells the trace of a turn's operation; asked from the journal's thread.
        capacity: how many events may wait; a further one is dropped and counted.
        file_bytes: at which size a file is closed and the next one begun.
        total_bytes: how much all files together may hold; the oldest are removed.
        max_files: how many files there may be.
        write: writes a block to a file and says how much of it was taken; for tests.
    """

    name = "journal"

    def __init__(
        self,
        directory: Path,
        *,
        anchor: Anchor | None = None,
        trace_id: Callable[[OpId], str | None] = lambda _: None,
        capacity: int = CAPACITY,
        file_bytes: int = FILE_BYTES,
        total_bytes: int = TOTAL_BYTES,
        max_files: int = MAX_FILES,
        write: Callable[[BinaryIO, bytes], int] = lambda file, block: file.write(block),
    ) -> None:
        self._directory = directory
        self._encoder = Encoder(anchor or Anchor.now(), trace_id=trace_id)
        self._capacity = capacity
        self._file_bytes = file_bytes
        self._total_bytes = total_bytes
        self._max_files = max_files
        self._write = write
        self._stem = f"journal-{time.time_ns() // 1_000_000}-{os.getpid()}"
        self._files = 0
        self._file: BinaryIO | None = None
        self._path: Path | None = None
        self._size = 0
        self._events: deque[Event] = deque()
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._full = 0
        self._late = 0
        self._written = 0
        self._failed = 0
        self._failing = False
        self._torn = False
        self._thread = threading.Thread(target=self._run, name="recallscope-journal", daemon=True)
        self._thread.start()

    def __call__(self, event: Event, /) -> None:
        """Take one event; when the queue is full it is dropped and counted."""
        if self._closing.is_set():
            self._late += 1
        elif len(self._events) >= self._capacity:
            self._full += 1
        else:
            self._events.append(event)
            if not self._wake.is_set():
                self._wake.set()

    @property
    def path(self) -> Path | None:
        """The file that is written to now; None before the first event."""
        return self._path

    def flow(self) -> Flow:
        """Say what became of the events."""
        lost = (
            (names.LOST_QUEUE_FULL, self._full),
            (names.LOST_WRITE_FAILED, self._failed),
            (names.LOST_SHUTDOWN, self._late),
        )
        return Flow(names.JOURNAL, self._written, lost)

    def close(self, timeout: float = 1.0) -> None:
        """Write what waits, for at most `timeout` seconds; what is left then is counted as lost."""
        self._closing.set()
        self._wake.set()
        self._thread.join(timeout)
        self._late += len(self._events)
        self._events.clear()

    def _run(self) -> None:
        while not self._closing.is_set():
            self._wake.wait()
            self._closing.wait(LINGER_SECONDS)  # one block for what comes together
            self._wake.clear()
            self._drain()
        self._drain()
        if self._file is not None:
            self._file.close()

    def _drain(self) -> None:
        """Write what waits, in blocks that fit the file."""
        block: list[bytes] = []
        size = 0
        while self._events:
            line = self._encoder(self._events.popleft()) + b"\n"
            if block and self._size + size + len(line) > self._file_bytes:
                self._put(block, size)
                block, size = [], 0
            block.append(line)
            size += len(line)
        if block:
            self._put(block, size)

    def _put(self, block: list[bytes], size: int) -> None:
        try:
            if self._file is None or self._size + size > self._file_bytes:
                self._next_file()
            if self._file is not None:
                self._write_all(self._file, b"".join(block))
        except OSError as error:
            self._failed += len(block)
            if not self._failing:
                self._failing = True
                _log.warning("the journal in %s cannot be written (%s): losses are counted", self._directory, error)
        else:
            self._failing = False
            self._written += len(block)
            self._size += size

    def _write_all(self, file: BinaryIO, block: bytes) -> None:
        """Write `block` whole; after a failure in the middle of a line the next block begins with a line end."""
        if self._torn:
            block = b"\n" + block
        self._torn = True
        while block:
            block = block[self._write(file, block) :]
        self._torn = False

    def _next_file(self) -> None:
        """Begin the next file of this process, and remove the oldest files of all processes that are too many."""
        if self._file is not None:
            self._file.close()
            self._file = None
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._files += 1
        self._path = self._directory / f"{self._stem}-{self._files:04d}.jsonl"
        self._remove_oldest()
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._file = os.fdopen(descriptor, "ab", buffering=0)
        self._size = 0

    def _remove_oldest(self) -> None:
        """Make room for one more file; another process may remove files at the same time."""
        known: list[tuple[float, int, Path]] = []
        for path in self._directory.glob(FILE_PATTERN):
            try:
                found = path.stat()
            except FileNotFoundError:
                continue
            known.append((found.st_mtime, found.st_size, path))
        known.sort()
        total = sum(size for _, size, _ in known) + self._file_bytes
        while known and (total > self._total_bytes or len(known) >= self._max_files):
            _, size, path = known.pop(0)
            total -= size
            path.unlink(missing_ok=True)
