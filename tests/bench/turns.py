"""What a turn costs: our engine with and without telemetry beside the usual loop over `AsyncOpenAI`.

Process CPU a turn (50 chunks), with a short history and with 440 messages, and turns a second of 50 sessions at once.
The model server and the collector run in processes of their own. The sides take turns within one run, and only their
ratios are compared with the targets.
"""

import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path

import anyio
from events import renamed
from loops import Turn, ours, script, usual, write_notes
from rows import Row

from recallscope.runtime.events import PolicyName
from recallscope.runtime.testing.process import start_process
from recallscope.telemetry.sdk import Telemetry, TelemetrySettings, open_telemetry
from recallscope.telemetry.testing.golden import golden_turn

__all__ = ["collector", "measure_turns", "telemetry_settings"]

NOTES = 20
ROUNDS = 7
TURNS = {0: 20, 440: 10}
STATED = 100
"""Turns of telemetry alone: at 20 a second, one export takes as many."""
SESSIONS = 50
TURNS_A_SESSION = 6
THROUGHPUT_ROUNDS = 5


Side = Callable[[int, int], AbstractAsyncContextManager[Sequence[Turn]]]
"""Opens one side for a history of so many messages and so many sessions."""

USUAL, OFF, ON = "usual loop", "ours, telemetry off", "ours, telemetry on"
TELEMETRY = "telemetry alone"

TELEMETRY_SHARE = 2 / 18
"""docs/performance.md: 2 ms a turn, on the machine where the usual loop takes 18 ms."""

FLUSHED = 1.2
"""Seconds in which everything that a turn gave to telemetry's threads is done: spans wait a second for others."""


async def measure_turns() -> list[Row]:
    """Measure all of it; takes about two minutes."""
    rows: list[Row] = []
    async with _sides() as sides:
        for messages, bound in ((0, 0.65), (440, 0.2)):
            cpu = await _cpu_a_turn(sides, messages)
            detail = ", ".join(f"{name} {seconds * 1000:.2f} ms" for name, seconds in cpu.items())
            what = f"CPU a turn, {messages} messages of history: telemetry on / usual loop"
            rows.append(Row(what=what, ratio=cpu[ON] / cpu[USUAL], detail=detail, at_most=bound))
            what = f"CPU a turn, {messages} messages of history: telemetry on / off"
            rows.append(Row(what=what, ratio=cpu[ON] / cpu[OFF], detail=f"{(cpu[ON] - cpu[OFF]) * 1000:.2f} ms more"))
            if messages == 0:
                what = "CPU of telemetry alone, whole process, a turn with one tool / usual loop"
                detail = f"{cpu[TELEMETRY] * 1000:.2f} ms; the target is 2 ms where the usual loop takes 18"
                rows.append(Row(what=what, ratio=cpu[TELEMETRY] / cpu[USUAL], detail=detail, at_most=TELEMETRY_SHARE))
        rate = await _turns_a_second(sides)
        detail = ", ".join(f"{name} {number:.0f}/s" for name, number in rate.items())
        what = f"turns a second, {SESSIONS} sessions at once: telemetry on / usual loop"
        rows.append(Row(what=what, ratio=rate[ON] / rate[USUAL], detail=detail, at_least=1.3))
    return rows


@asynccontextmanager
async def _sides() -> AsyncGenerator[dict[str, Side]]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_notes(folder / "notes", NOTES)
        async with start_process(script()) as url, collector() as endpoint:
            with open_telemetry(telemetry_settings(folder, endpoint)) as telemetry:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(telemetry.run)
                    yield _sides_of(url, folder / "notes", telemetry)
                    tasks.cancel_scope.cancel()


@asynccontextmanager
async def _stated(telemetry: Telemetry) -> AsyncGenerator[Sequence[Turn]]:
    """Give a turn that consists of its events alone: one with a tool."""
    # Made before anything is measured: stating events is the engine's work, not telemetry's.
    turns = iter([renamed(golden_turn(), f"bench-{number}") for number in range(STATED * (ROUNDS + 1))])

    async def turn() -> None:
        for event in next(turns):
            for observer in telemetry.observers:
                observer(event)
        await anyio.sleep(0.01)

    yield [turn]


def _sides_of(url: str, notes: Path, telemetry: Telemetry) -> dict[str, Side]:
    return {
        USUAL: lambda messages, sessions: usual(url, messages=messages, sessions=sessions),
        OFF: lambda messages, sessions: ours(url, notes, telemetry=None, messages=messages, sessions=sessions),
        ON: lambda messages, sessions: ours(url, notes, telemetry=telemetry, messages=messages, sessions=sessions),
        TELEMETRY: lambda _messages, _sessions: _stated(telemetry),
    }


def telemetry_settings(folder: Path, endpoint: str) -> TelemetrySettings:
    """Everything on: spans and metrics over OTLP, `/metrics` (a second reader), and the journal."""
    # The exporters read the process's variables, as OpenTelemetry prescribes.
    os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = endpoint
    return TelemetrySettings(
        version="bench",
        front_end="bench",
        policies=(PolicyName.TIERED,),
        serve_metrics=True,
        metrics_host="127.0.0.1",
        metrics_port=0,
        journal=True,
        journal_directory=folder / "journal",
    )


@asynccontextmanager
async def collector(behaviour: str = "ACCEPT") -> AsyncGenerator[str]:
    """Run the OTLP receiver in a process of its own and give its HTTP endpoint."""
    code = (
        "import sys\n"
        "from recallscope.telemetry.testing.receiver import Behaviour, OtlpReceiver\n"
        f"with OtlpReceiver(Behaviour.{behaviour}) as receiver:\n"
        "    print(receiver.http_endpoint, flush=True)\n"
        "    sys.stdin.read()\n"
    )
    async with await anyio.open_process([sys.executable, "-c", code], stderr=None) as process:
        if process.stdout is None or process.stdin is None:
            raise AssertionError("the collector's process was opened with pipes")
        yield (await process.stdout.receive()).decode().strip()
        await process.stdin.aclose()


async def _cpu_a_turn(sides: dict[str, Side], messages: int) -> dict[str, float]:
    taken: dict[str, list[float]] = {name: [] for name in sides}
    async with AsyncExitStack() as stack:
        turns = {name: (await stack.enter_async_context(side(messages, 1)))[0] for name, side in sides.items()}
        for turn in turns.values():
            for _ in range(3):
                await turn()
        for _ in range(ROUNDS):
            for name, turn in turns.items():
                taken[name].append(await _cpu_of(turn, STATED if name == TELEMETRY else TURNS[messages]))
    return {name: statistics.median(seconds) for name, seconds in taken.items()}


async def _cpu_of(turn: Turn, number: int) -> float:
    before = _cpu()
    for _ in range(number):
        await turn()
    # Exporter, journal and metric threads are part of what telemetry costs: let them finish what these turns made.
    await anyio.sleep(FLUSHED)
    return (_cpu() - before) / number


def _cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


async def _turns_a_second(sides: dict[str, Side]) -> dict[str, float]:
    taken: dict[str, list[float]] = {}
    async with AsyncExitStack() as stack:
        rivals = {name: side for name, side in sides.items() if name != TELEMETRY}
        turns = {name: await stack.enter_async_context(side(0, SESSIONS)) for name, side in rivals.items()}
        for some in turns.values():
            await _all(some, 1)
        for _ in range(THROUGHPUT_ROUNDS):
            for name, some in turns.items():
                started = time.perf_counter()
                await _all(some, TURNS_A_SESSION)
                taken.setdefault(name, []).append(SESSIONS * TURNS_A_SESSION / (time.perf_counter() - started))
    return {name: statistics.median(rates) for name, rates in taken.items()}


async def _all(turns: Sequence[Turn], number: int) -> None:
    async def repeat(turn: Turn) -> None:
        for _ in range(number):
            await turn()

    async with anyio.create_task_group() as tasks:
        for turn in turns:
            tasks.start_soon(repeat, turn)
