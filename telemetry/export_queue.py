"""A bounded queue between whoever produces telemetry and a slow exporter: it counts every item that it loses.

The SDK's batch processors do this too, but cannot say what they dropped without a cost per span, and their shutdown
waits 30 seconds for a collector that is down. This one closes within the time that it is given.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor

from recallscope.telemetry import names
from recallscope.telemetry.flow import Flow

__all__ = ["ExportQueue", "SpanQueueProcessor"]

_log = logging.getLogger(__name__)

T = TypeVar("T")


class ExportQueue(Generic[T]):
    """Passes items on in batches, from a daemon thread.

    Args:
        export: passes a batch on and says whether it arrived; may block, must not raise.
        signal: what the items are, for statistics and log lines.
        capacity: how many items may wait; a further one is dropped and counted.
        batch: how many items go at once.
        delay: seconds that items may wait for others.
    """

    def __init__(
        self, export: Callable[[Sequence[T]], bool], *, signal: str, capacity: int, batch: int, delay: float
    ) -> None:
        self._export = export
        self._signal = signal
        self.capacity = capacity
        self._batch = min(batch, capacity)
        self._delay = delay
        self._items: deque[T] = deque()
        self._wake = threading.Event()
        self._closing = False
        self._abandoned = False
        self._failing = False
        self._in_flight = 0
        self._full = 0
        self._late = 0
        self._exported = 0
        self._failed = 0
        self._given_up = 0
        self._thread = threading.Thread(target=self._run, name=f"recallscope-{signal}", daemon=True)
        self._thread.start()

    def put(self, item: T) -> None:
        """Queue `item`, or count it as lost; never blocks."""
        if self._closing:
            self._late += 1
        elif len(self._items) >= self.capacity:
            self._full += 1
        else:
            self._items.append(item)
            if len(self._items) >= self._batch and not self._wake.is_set():
                self._wake.set()

    def __len__(self) -> int:
        return len(self._items)

    def flow(self) -> Flow:
        """Say what became of the items so far."""
        lost = (
            (names.LOST_QUEUE_FULL, self._full),
            (names.LOST_EXPORT_FAILED, self._failed),
            (names.LOST_SHUTDOWN, self._late + self._given_up),
        )
        return Flow(self._signal, self._exported, lost)

    def start_closing(self) -> None:
        """Take no more items and pass on what waits; `finish_closing` ends that."""
        self._closing = True
        self._wake.set()

    def finish_closing(self, timeout: float) -> None:
        """Wait at most `timeout` seconds for what waits to be passed on; the rest is counted as lost."""
        self._thread.join(max(timeout, 0.0))
        self._abandoned = True
        if self._thread.is_alive():
            self._given_up += self._in_flight
        self._given_up += len(self._items)
        self._items.clear()

    def _run(self) -> None:
        while not self._closing:
            self._wake.wait(self._delay)
            self._wake.clear()
            self._drain()
        self._drain()

    def _drain(self) -> None:
        while self._items and not self._abandoned:
            batch = [self._items.popleft() for _ in range(min(self._batch, len(self._items)))]
            self._in_flight = len(batch)
            arrived = self._export(batch)
            if self._abandoned:
                return  # finish_closing has counted this batch
            self._in_flight = 0
            if arrived:
                self._exported += len(batch)
            else:
                self._failed += len(batch)
            self._tell(arrived=arrived)
            if self._closing and not arrived:
                return  # the collector is not there: do not spend the rest of the time on each batch

    def _tell(self, *, arrived: bool) -> None:
        """Log the first failure and the first success after it: one line per change."""
        if arrived and self._failing:
            _log.warning("%s are exported again; %d were lost meanwhile", self._signal, self._failed)
        elif not arrived and not self._failing and not self._closing:
            _log.warning("%s cannot be exported; what is lost is counted, turns go on", self._signal)
        self._failing = not arrived


class SpanQueueProcessor(SpanProcessor):
    """Puts sampled spans that end into a queue."""

    def __init__(self, queue: ExportQueue[ReadableSpan]) -> None:
        self._queue = queue

    def on_end(self, span: ReadableSpan) -> None:
        """Queue `span`."""
        context = span.get_span_context()
        if context is not None and context.trace_flags.sampled:
            self._queue.put(span)
