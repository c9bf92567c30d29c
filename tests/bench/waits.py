"""How long a turn is held for memory, what a recall's events cost, and what a broken collector does to turns."""

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
from events import renamed
from loops import Turn, ours, script, write_notes
from rows import Row
from turns import collector, telemetry_settings

from recallscope.runtime.events import Event, Point, PolicyName, RecallWaited
from recallscope.runtime.recall.policy import DEFAULT_CEILING
from recallscope.runtime.testing.process import start_process
from recallscope.runtime.testing.recorder import EventRecorder
from recallscope.telemetry.sdk import TelemetrySettings, open_telemetry
from recallscope.telemetry.testing.golden import golden_turn, tool_free_turn

__all__ = ["measure_collectors", "measure_events", "measure_waits"]

NOTES = 10_000
WAIT_TURNS = 100
WAIT_TARGET = 0.005
EVENT_TURNS = 400
COLLECTOR_TURNS = 25
COLLECTOR_ROUNDS = 3
UNROUTED = "http://127.0.0.1:9"
"""Nothing listens on the discard port."""


async def measure_waits() -> list[Row]:
    """Turns whose words match, over 10,000 notes: the wait at the first send beside 5 ms and beside the ceiling."""
    recorder = EventRecorder()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_notes(folder / "notes", NOTES)
        async with (
            start_process(script()) as url,
            ours(url, folder / "notes", telemetry=None, messages=0, also=(recorder,)) as turns,
        ):
            for _ in range(WAIT_TURNS):
                await turns[0]()
    waits = sorted(event.waited for event in recorder.of(RecallWaited) if event.point is Point.INITIAL)
    median, longest = statistics.median(waits), waits[-1]
    worst = longest / DEFAULT_CEILING
    detail = f"p50 {median * 1000:.1f} ms, longest {longest * 1000:.1f} ms of {len(waits)} waits at {NOTES} notes"
    return [
        Row(what="wait for memory, p50 / 5 ms", ratio=median / WAIT_TARGET, detail=detail, at_most=1.0),
        Row(what="wait for memory, longest / the ceiling", ratio=worst, detail=detail, at_most=1.05),
    ]


async def measure_events() -> list[Row]:
    """What telemetry takes from the caller's thread for one turn, beside its targets."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        async with collector() as endpoint:
            with open_telemetry(telemetry_settings(Path(name), endpoint)) as telemetry:
                seconds = _caller_seconds(telemetry.observers, golden_turn)
                without = _caller_seconds(telemetry.observers, _turn_without_recall)
            what = "one recall's events on the caller's thread / all events of its turn"
            detail = f"{(seconds - without) * 1e6:.0f} of {seconds * 1e6:.0f} µs"
            rows.append(Row(what=what, ratio=(seconds - without) / seconds, detail=detail))
            what = "telemetry on the caller's thread, a turn with one tool, two readers and journal / 0.8 ms"
            rows.append(Row(what=what, ratio=seconds / 0.0008, detail=f"{seconds * 1e6:.0f} µs", at_most=1.0))
    settings = TelemetrySettings(
        version="bench",
        front_end="bench",
        policies=(PolicyName.TIERED,),
        serve_metrics=True,
        metrics_host="127.0.0.1",
        metrics_port=0,
        journal=False,
        environ={},
    )
    with open_telemetry(settings) as telemetry:
        seconds = _caller_seconds(telemetry.observers, tool_free_turn)
    what = "telemetry on the caller's thread, a turn without tools, one reader / 0.5 ms"
    rows.append(Row(what=what, ratio=seconds / 0.0005, detail=f"{seconds * 1e6:.0f} µs", at_most=1.0))
    return rows


def _turn_without_recall() -> Sequence[Event]:
    return [event for event in golden_turn() if not type(event).__name__.startswith("Recall")]


def _caller_seconds(observers: Sequence[Callable[[Event], None]], make: Callable[[], Sequence[Event]]) -> float:
    """Return the median CPU seconds of this thread for the events of one turn."""
    taken: list[float] = []
    for number in range(EVENT_TURNS):
        events = renamed(make(), f"{make.__name__}-{number}")
        started = time.thread_time()
        for event in events:
            for observer in observers:
                observer(event)
        taken.append(time.thread_time() - started)
    return statistics.median(taken[EVENT_TURNS // 4 :])


async def measure_collectors() -> list[Row]:
    """Turns with a collector that is down, hangs or refuses, beside turns with one that takes everything."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_notes(folder / "notes", 20)
        async with (
            start_process(script()) as url,
            collector("ACCEPT") as accepting,
            collector("HANG") as hanging,
            collector("UNAVAILABLE") as refusing,
        ):
            taken: dict[str, list[float]] = {}
            for _ in range(COLLECTOR_ROUNDS):
                for kind, endpoint in (
                    ("accepting", accepting),
                    ("down", UNROUTED),
                    ("hanging", hanging),
                    ("answering 503", refusing),
                ):
                    taken.setdefault(kind, []).extend(await _turns_with(url, folder, endpoint))
    medians = {kind: statistics.median(seconds) for kind, seconds in taken.items()}
    return [
        Row(
            what=f"a turn with the collector {kind} / accepting",
            ratio=medians[kind] / medians["accepting"],
            detail=f"{medians[kind] * 1000:.1f} ms against {medians['accepting'] * 1000:.1f} ms",
            at_most=1.1,
        )
        for kind in ("down", "hanging", "answering 503")
    ]


async def _turns_with(url: str, folder: Path, endpoint: str) -> list[float]:
    async with AsyncExitStack() as stack:
        telemetry = stack.enter_context(open_telemetry(telemetry_settings(folder, endpoint)))
        tasks = await stack.enter_async_context(anyio.create_task_group())
        tasks.start_soon(telemetry.run)
        turns = await stack.enter_async_context(ours(url, folder / "notes", telemetry=telemetry, messages=0))
        for _ in range(3):
            await turns[0]()
        seconds = [await _seconds_of(turns[0]) for _ in range(COLLECTOR_TURNS)]
        tasks.cancel_scope.cancel()
    return seconds


async def _seconds_of(turn: Turn) -> float:
    started = time.perf_counter()
    await turn()
    return time.perf_counter() - started
