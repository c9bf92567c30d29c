"""A collector that is killed, restarted, frozen, or has a slow store behind it: turns go on, and losses are counted."""

from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from statistics import median
from urllib.request import urlopen

import anyio
import pytest
from anyio import to_thread
from health_board import AGENTS, COLLECTORS, HealthBoard
from programs import Collector, free_port, run_collector, run_prometheus, wait_until
from relay import kept_spans

from recallscope.runtime.agent.host import Agent, RecallSettings
from recallscope.runtime.agent.send import SendSettings
from recallscope.runtime.agent.tools.registry import Toolbox
from recallscope.runtime.agent.turn_state import TurnRequest
from recallscope.runtime.events import (
    ModelCallStarted,
    PolicyName,
    RecallBegun,
    ToolStarted,
    TurnFinished,
    TurnOutcome,
    TurnStarted,
)
from recallscope.runtime.lab.scenarios import MAIN_MODEL, SMALL_MODEL, write_sample_notes
from recallscope.runtime.memory.memory import open_memory
from recallscope.runtime.memory.scopes import MemoryRoots
from recallscope.runtime.model.openai_compat import OpenAICompatModel
from recallscope.runtime.observe import Observers
from recallscope.runtime.recall.fence import EXPLANATION
from recallscope.runtime.recall.policy import Arm, PolicySplit
from recallscope.runtime.testing.process import start_process
from recallscope.runtime.testing.recorder import EventRecorder
from recallscope.runtime.testing.script import Script, Select, Step
from recallscope.telemetry import names
from recallscope.telemetry.sdk import Telemetry, TelemetrySettings, open_telemetry
from recallscope.telemetry.testing.receiver import Behaviour, OtlpReceiver

pytestmark = [pytest.mark.real, pytest.mark.anyio, pytest.mark.timeout(180)]

TURNS = 12
ANSWER_SECONDS = 0.3
PROMPT = "Which port has the staging database?"
SCRIPT = Script.of(
    Step(answer="It is the one that the notes tell.", chunks=10, chunk_delay=ANSWER_SECONDS / 10),
    memory_selection=Step(delay=0.02, select=Select()),
)
QUICK = {
    "OTELCOL_DECISION_WAIT": "2s",
    "OTELCOL_DECISION_WAIT_AFTER_ROOT": "200ms",
    "OTELCOL_BASELINE_PERCENT": "100",
    "OTELCOL_TRACES_TIMEOUT": "500ms",
    "OTELCOL_METRICS_ENDPOINT": "http://127.0.0.1:9/api/v1/write",
}
AS_USUAL = 1.5
"""A turn beside a broken collector takes at most this often the time of one beside a sound one."""


class Process:
    """An agent that runs turns and exports them, and what it says of that itself."""

    def __init__(self, agent: Agent, telemetry: Telemetry, recorder: EventRecorder) -> None:
        self._agent = agent
        self._telemetry = telemetry
        self._recorder = recorder

    async def turns(self, number: int = TURNS) -> list[float]:
        """Run turns one after the other and return how many seconds each took."""
        before = len(self._recorder.of(TurnFinished))
        for _ in range(number):
            session = self._agent.open_session()
            await session.prompt(TurnRequest(text=PROMPT))
            await session.close()
        begun = {turn.op: turn.at for turn in self._recorder.of(TurnStarted)}
        finished = self._recorder.of(TurnFinished)[before:]
        assert {turn.outcome for turn in finished} == {TurnOutcome.END_TURN}
        return [turn.at - begun[turn.op] for turn in finished]

    @property
    def ended(self) -> int:
        """How many spans it has ended, by the events that begin them."""
        kinds = (TurnStarted, RecallBegun, ModelCallStarted, ToolStarted)
        return sum(len(self._recorder.of(kind)) for kind in kinds)

    def told(self, metric: str) -> int:
        """Return the sum over the spans of one of its own metrics, as `/metrics` shows it."""
        with urlopen(self._telemetry.metrics_url or "", timeout=10) as response:  # noqa: S310 - this process
            lines = response.read().decode().splitlines()
        ours = (line for line in lines if line.startswith(f"{metric}{{") and f'{names.SIGNAL}="{names.TRACES}"' in line)
        return round(sum(float(line.rpartition(" ")[2]) for line in ours))

    @property
    def exported(self) -> int:
        """How many spans it says that it passed on."""
        return self.told(names.TELEMETRY_EXPORTED.prometheus)

    @property
    def lost(self) -> int:
        """How many spans it says that it lost."""
        return self.told(names.TELEMETRY_DROPPED.prometheus)

    async def settled(self) -> None:
        """Wait until every span that ended was passed on or given up."""
        await _until(lambda: self.exported + self.lost == self.ended, "every span is accounted for")


@pytest.fixture
def store() -> Generator[OtlpReceiver]:
    """Run a trace store that is away."""
    with OtlpReceiver(Behaviour.UNAVAILABLE) as receiver:
        yield receiver


@pytest.fixture
def collector(tmp_path: Path, store: OtlpReceiver) -> Generator[Collector]:
    """Run a collector with the shipped file in front of the store, that keeps every trace."""
    with _collector(tmp_path / "collector", store.grpc_endpoint) as running:
        yield running


@contextmanager
def _collector(folder: Path, store: str) -> Generator[Collector]:
    folder.mkdir()
    with run_collector(folder, **QUICK, OTELCOL_TRACES_ENDPOINT=store.removeprefix("http://")) as running:
        yield running


@contextmanager
def _board(folder: Path, agent: int, collector: Collector) -> Generator[HealthBoard]:
    """Run a Prometheus that scrapes the agent's port and the collector, and give the dashboard that asks it."""
    (folder / "prometheus").mkdir()
    targets = {AGENTS: f"127.0.0.1:{agent}", COLLECTORS: collector.metrics_target}
    with run_prometheus(folder / "prometheus", targets) as prometheus:
        yield HealthBoard(prometheus)


async def _scraped(board: HealthBoard, process: Process) -> None:
    """Wait until the Prometheus knows every span of the process as passed on or lost."""
    of_spans = f'job="{AGENTS}", {names.SIGNAL}="{names.TRACES}"'
    both = (names.TELEMETRY_EXPORTED.prometheus, names.TELEMETRY_DROPPED.prometheus)
    query = " + ".join(f"sum({name}{{{of_spans}}})" for name in both)
    await _until(lambda: board.prometheus.number(query) == process.ended, "every span is scraped")


def _of_spans(figures: dict[str, float]) -> float:
    """Return the sum of what a panel tells of spans."""
    return sum(value for legend, value in figures.items() if legend.startswith((names.TRACES, "spans")))


@asynccontextmanager
async def _process(endpoint: str, folder: Path, port: int = 0) -> AsyncGenerator[Process]:
    """Open an agent in this process whose telemetry goes to `endpoint`, and that is scraped at `port`."""
    write_sample_notes(folder / "notes")
    recorder = EventRecorder()
    settings = TelemetrySettings(version="0", front_end="test", serve_metrics=True, metrics_port=port, journal=False)
    roots = MemoryRoots(project=folder / "notes", base=folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
        patch.setenv("OTEL_BSP_SCHEDULE_DELAY", "200")
        with open_telemetry(settings) as telemetry:
            observers = Observers((*telemetry.observers, recorder))
            headers = telemetry.trace_headers
            async with (
                start_process(SCRIPT) as url,
                OpenAICompatModel(name=MAIN_MODEL, base_url=url, trace_headers=headers) as main,
                OpenAICompatModel(name=SMALL_MODEL, base_url=url, trace_headers=headers) as small,
                open_memory(
                    roots, observers=observers, catalog_path=folder / "catalog.sqlite3", read_only=True
                ) as memory,
            ):
                await memory.wait_synced()
                toolbox = Toolbox(())
                agent = Agent(
                    name="faults",
                    model=main,
                    selector_model=small,
                    memory=memory,
                    recall=RecallSettings(split=PolicySplit((Arm(PolicyName.TIERED, 1),)), ceiling=5.0),
                    observers=observers,
                    toolbox=toolbox,
                    settings=SendSettings(system=EXPLANATION, tools=toolbox.specs),
                )
                process = Process(agent, telemetry, recorder)
                await process.turns(2)  # connects, and imports what is imported on first use
                yield process


async def _until(condition: Callable[[], bool], what: str) -> None:
    await to_thread.run_sync(wait_until, condition, what)


async def test_a_killed_collector_delivers_what_it_had_queued(
    tmp_path: Path, collector: Collector, store: OtlpReceiver
) -> None:
    """What waited for a store that was away arrives after the restart; the panels tell what came in between as lost."""
    port = free_port()
    with _board(tmp_path, port, collector) as board:
        async with _process(collector.endpoint, tmp_path, port) as process:
            await _kill_and_restart(process, collector, store, board)


async def _kill_and_restart(process: Process, collector: Collector, store: OtlpReceiver, board: HealthBoard) -> None:
    usual = await process.turns()
    await process.settled()
    queued = process.exported
    await _until(lambda: len(kept_spans(collector.kept)) == queued, "the sampler has kept all of them")
    await _until(lambda: collector.own("otelcol_exporter_queue_size") == queued, "they wait in the queue")
    collector.kill()

    beside_a_dead_one = await process.turns()
    await process.settled()
    lost = process.lost
    assert (process.exported, lost) == (queued, process.ended - queued)
    assert lost > 0

    store.behaviour = Behaviour.ACCEPT
    collector.start()
    await _until(lambda: len(store.spans()) == queued, "the queue is delivered")
    await process.turns()
    await process.settled()
    await _until(lambda: len(store.spans()) == process.exported, "new spans are delivered")

    delivered = [span.span_id for span in store.spans()]
    assert process.lost == lost
    assert len(delivered) == len(set(delivered)) == process.exported == process.ended - lost
    await _scraped(board, process)
    missing = process.ended - len(delivered)
    assert _of_spans(board.shown("Lost, counted")) == missing
    assert board.shown("Lost")[names.TRACES] == pytest.approx(missing / process.ended)
    assert _of_spans(board.shown("Lost in the collector, counted")) == 0
    assert board.shown("Restarts") == {collector.metrics_target: 1}
    assert median(beside_a_dead_one) <= AS_USUAL * median(usual)


async def test_a_frozen_collector_costs_turns_nothing(
    tmp_path: Path, collector: Collector, store: OtlpReceiver
) -> None:
    """It takes connections and never answers: turns take what they took, and the panels tell every span as lost."""
    store.behaviour = Behaviour.ACCEPT
    port = free_port()
    with _board(tmp_path, port, collector) as board:
        async with _process(collector.endpoint, tmp_path, port) as process:
            await _freeze_and_replace(process, collector, store, board)


async def _freeze_and_replace(process: Process, collector: Collector, store: OtlpReceiver, board: HealthBoard) -> None:
    usual = await process.turns()
    await process.settled()
    passed_on = process.exported
    await _until(lambda: len(store.spans()) == passed_on, "the spans arrive")
    collector.freeze()

    beside_a_frozen_one = await process.turns()
    await process.settled()
    collector.kill()
    collector.start()
    await process.turns(2)
    await process.settled()
    await _until(lambda: len(store.spans()) == process.exported, "new spans arrive")

    assert process.lost > 0
    arrived = {span.span_id for span in store.spans()}
    assert len(arrived) == process.exported == process.ended - process.lost
    await _scraped(board, process)
    assert _of_spans(board.shown("Lost, counted")) == process.ended - len(arrived)
    assert _of_spans(board.shown("Lost in the collector, counted")) == 0
    assert median(beside_a_frozen_one) <= AS_USUAL * median(usual)


async def test_a_slow_store_costs_nothing_but_time(tmp_path: Path) -> None:
    """Behind the collector a second one freezes and goes on: no span is lost, at most some arrive twice."""
    with (
        OtlpReceiver() as end,
        _collector(tmp_path / "store", end.grpc_endpoint) as store,
        _collector(tmp_path / "collector", store.grpc_endpoint) as collector,
    ):
        async with _process(collector.endpoint, tmp_path) as process:
            usual = await process.turns()
            store.freeze()
            beside_a_slow_one = await process.turns()
            await process.settled()
            await _until(lambda: collector.own("otelcol_exporter_queue_size") > 0, "spans wait in the queue")
            store.thaw()
            await _until(
                lambda: len({span.span_id for span in kept_spans(store.kept)}) == process.ended, "everything arrives"
            )

            assert process.lost == 0
            assert median(beside_a_slow_one) <= AS_USUAL * median(usual)


async def test_a_stopped_collector_decides_over_what_it_has(tmp_path: Path, store: OtlpReceiver) -> None:
    """Asked to end (SIGTERM) long before its decisions are due, it makes them, and what it keeps is not lost."""
    store.behaviour = Behaviour.ACCEPT
    folder = tmp_path / "collector"
    folder.mkdir()
    patient = QUICK | {"OTELCOL_DECISION_WAIT": "600s", "OTELCOL_DECISION_WAIT_AFTER_ROOT": "600s"}
    endpoint = store.grpc_endpoint.removeprefix("http://")
    with run_collector(folder, **patient, OTELCOL_TRACES_ENDPOINT=endpoint) as collector:
        async with _process(collector.endpoint, tmp_path) as process:
            await process.turns()
            await process.settled()
            assert kept_spans(collector.kept) == []

            await to_thread.run_sync(collector.stop)

            assert len(kept_spans(collector.kept)) == process.exported == process.ended
            collector.start()
            await _until(lambda: len({span.span_id for span in store.spans()}) == process.ended, "all spans arrive")


async def test_leaving_beside_a_frozen_collector_takes_five_seconds_at_most(
    tmp_path: Path, collector: Collector
) -> None:
    """What still waits is given up, and the process ends."""
    async with _process(collector.endpoint, tmp_path) as process:
        collector.freeze()
        await process.turns(2)
        before = anyio.current_time()

    assert anyio.current_time() - before <= 5.0
