"""How long the event loop held ready work up.

A timer alone sees a blocked loop only if it happens to be due meanwhile. So the loop's selector is watched too: the
time between two calls of `select` is the time that the loop spent in callbacks, and nothing that was ready then
could run. Per interval one number is recorded: the worst that ready work can have met, be it a late timer or up to
`RUN` busy rounds in a row (a timer, a cancellation and a wake-up each take a round).
"""

import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import anyio
import anyio.lowlevel

from recallscope.telemetry.histograms import Histogram
from recallscope.telemetry.span_table import NO_SPAN

__all__ = ["LoopLag"]

INTERVAL_SECONDS: Final = 0.1
RUN: Final = 3

SHORT_SECONDS: Final = 0.0005
"""A busy round that is shorter begins no run: it is below half of the lowest bucket of the histogram."""


class LoopLag:
    """Measures one event loop.

    Args:
        histogram: where the lag goes (`recallscope.loop.lag`); None: only the hooks are called.
        hooks: called once per interval with the time.
        now: seconds of a monotonic clock, the one that events carry.
    """

    def __init__(
        self,
        histogram: Histogram | None,
        *,
        hooks: Sequence[Callable[[float], None]] = (),
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._histogram = histogram
        self._hooks = hooks
        self._now = now

    async def run(self) -> None:
        """Measure the running loop until cancelled."""
        watch = _SelectorWatch()
        with watch.installed(_selector_of_running_loop() if self._histogram is not None else None):
            while True:
                due = self._now() + INTERVAL_SECONDS
                await anyio.sleep(INTERVAL_SECONDS)
                now = self._now()
                if self._histogram is not None:
                    self._histogram.record(max(now - due, watch.take()), (), NO_SPAN)
                for hook in self._hooks:
                    hook(now)


class _SelectorWatch:
    """Measures the busy rounds of a loop between two calls of its selector."""

    def __init__(self) -> None:
        self._worst = 0.0
        self._rounds: deque[float] = deque(maxlen=RUN)

    def take(self) -> float:
        """Return the longest run of busy rounds since the last call."""
        worst, self._worst = self._worst, 0.0
        return worst

    @contextmanager
    def installed(self, selector: Any) -> Generator[None]:
        """Watch `selector` inside the block; None: watch nothing."""
        if selector is None:
            yield
            return
        select, clock, rounds = selector.select, time.perf_counter, self._rounds
        returned = clock()

        def watched(timeout: float | None = None) -> Any:
            nonlocal returned
            called = clock()
            busy = called - returned
            if busy > SHORT_SECONDS or rounds:  # this runs in every round of the loop: what is short costs nothing
                rounds.append(busy)
                self._worst = max(self._worst, sum(rounds))
                if timeout is None or timeout > 0:
                    rounds.clear()  # nothing is ready: whatever comes next starts afresh
            ready = select(timeout)
            returned = clock()
            if timeout and not ready:
                self._worst = max(self._worst, returned - called - timeout)
            return ready

        selector.select = watched
        try:
            yield
        finally:
            selector.select = select


def _selector_of_running_loop() -> Any:
    """Return the selector of asyncio's loop; None for a loop that has none, or another back end."""
    token = anyio.lowlevel.current_token().native_token
    return getattr(token, "_selector", None)
