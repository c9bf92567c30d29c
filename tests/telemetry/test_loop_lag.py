"""Loop lag: a blocked loop is seen, wherever in the interval it falls."""

import time
from collections.abc import Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from recallscope.telemetry import names
from recallscope.telemetry.histograms import Histograms
from recallscope.telemetry.loop_lag import INTERVAL_SECONDS, LoopLag


class Lag:
    """A measured loop, and the longest lag that was recorded."""

    def __init__(self) -> None:
        self.histogram = Histograms(InstrumentationScope("test"), Resource({})).make(names.LOOP_LAG)
        self.ticks: list[float] = []
        self.enough = anyio.Event()
        self.lag = LoopLag(self.histogram, hooks=(self._tick,))

    def _tick(self, now: float) -> None:
        self.ticks.append(now)
        if len(self.ticks) >= 4:
            self.enough.set()

    def longest(self) -> float:
        """Return the longest lag recorded so far, in seconds."""
        (series,) = self.histogram.series()
        return series.most


async def _measure(work: Callable[[], Any]) -> Lag:
    measured = Lag()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(measured.lag.run)
        await anyio.sleep(INTERVAL_SECONDS * 0.3)
        work()
        await measured.enough.wait()
        tasks.cancel_scope.cancel()
    return measured


@pytest.mark.anyio
async def test_a_block_in_the_middle_of_an_interval_is_seen() -> None:
    """A loop that is blocked while no timer is due has lagged all the same."""
    measured = await _measure(lambda: time.sleep(0.03))

    assert measured.longest() >= 0.03


@pytest.mark.anyio
async def test_a_block_over_the_end_of_an_interval_is_seen() -> None:
    """A timer that comes late is a lag."""
    measured = await _measure(lambda: time.sleep(0.2))

    assert measured.longest() >= 0.1


@pytest.mark.anyio
async def test_hooks_are_called_once_per_interval() -> None:
    """Whoever has something to do now and then gets the time of the engine's clock."""
    before = time.monotonic()
    measured = await _measure(lambda: None)

    assert measured.ticks == sorted(measured.ticks)
    assert all(tick >= before for tick in measured.ticks)


@pytest.mark.anyio
async def test_the_loop_is_left_as_it_was() -> None:
    """After the measurement the selector is not watched any more."""
    loop: Any = anyio.lowlevel.current_token().native_token
    selector = loop._selector
    before = selector.select
    await _measure(lambda: None)

    assert selector.select == before


@pytest.mark.anyio
async def test_without_a_histogram_only_the_hooks_run() -> None:
    """A process without metrics marks slow turns all the same."""
    ticks: list[float] = []
    async with anyio.create_task_group() as tasks:

        def tick(now: float) -> None:
            ticks.append(now)
            tasks.cancel_scope.cancel()

        tasks.start_soon(LoopLag(None, hooks=(tick,)).run)

    assert len(ticks) == 1
