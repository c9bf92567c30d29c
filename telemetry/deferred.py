"""Lets an observer work in a thread of its own: the engine's thread only appends to a queue."""

import threading
from collections import deque
from collections.abc import Callable
from typing import Final

from recallscope.runtime.events import Event
from recallscope.telemetry import names
from recallscope.telemetry.flow import Flow

__all__ = ["DeferredObserver"]

CAPACITY: Final = 50_000
LINGER_SECONDS: Final = 0.25


class DeferredObserver:
    """Passes events on to `observer`, in order, at most `linger` seconds later, from a daemon thread.

    An event that `observer` fails on ends the thread; the next event starts it anew and fails in the place of the one
    that was lost, so that whoever counts an observer's failures sees it.

    Args:
        observer: takes the events.
        name: the observer's name.
        capacity: how many events may wait; a further one is dropped and counted.
        linger: seconds that events may wait for others.
    """

    def __init__(
        self,
        observer: Callable[[Event], None],
        *,
        name: str,
        capacity: int = CAPACITY,
        linger: float = LINGER_SECONDS,
    ) -> None:
        self.name = name
        self._observer = observer
        self._capacity = capacity
        self._linger = linger
        self._events: deque[Event] = deque()
        self._wake = threading.Event()
        self._hurry = threading.Event()
        self._drained = threading.Condition()
        self._closing = False
        self._taken = 0
        self._full = 0
        self._handled = 0
        self._thread = self._start()

    def __call__(self, event: Event, /) -> None:
        """Queue one event; when the queue is full it is dropped and counted.

        Raises:
            RuntimeError: the observer failed on an earlier event, which is lost; this one is queued all the same.
        """
        if len(self._events) >= self._capacity or self._closing:
            self._full += 1
        else:
            self._taken += 1
            self._events.append(event)
        if not self._wake.is_set():
            self._wake.set()
        if self._revived():
            raise RuntimeError(f"observer {self.name} failed on an earlier event, which is lost")

    def flow(self) -> Flow:
        """Say what became of the events."""
        return Flow(names.EVENTS, self._handled, ((names.LOST_QUEUE_FULL, self._full),))

    def settle(self, timeout: float = 1.0) -> bool:
        """Wait until all events so far are handled; False if that took longer than `timeout` seconds."""
        target = self._taken
        self._revived()
        self._hurry.set()
        self._wake.set()
        with self._drained:
            return self._drained.wait_for(lambda: self._handled >= target, timeout)

    def close(self, timeout: float = 1.0) -> None:
        """Handle what waits, for at most `timeout` seconds, and take no more."""
        self._closing = True
        self._hurry.set()
        self._wake.set()
        self._thread.join(timeout)

    def _revived(self) -> bool:
        """Start the thread again if it has died of an event, and say so; that event counts as handled."""
        if self._thread.is_alive() or self._closing:
            return False
        self._handled += 1
        self._thread = self._start()
        return True

    def _start(self) -> threading.Thread:
        thread = threading.Thread(target=self._run, name=f"recallscope-{self.name}", daemon=True)
        thread.start()
        return thread

    def _run(self) -> None:
        while not self._closing:
            self._wake.wait()
            self._hurry.wait(self._linger)
            self._hurry.clear()
            self._wake.clear()
            self._drain()
        self._drain()

    def _drain(self) -> None:
        while self._events:
            self._observer(self._events.popleft())
            self._handled += 1
        with self._drained:
            self._drained.notify_all()
