"""Telemetry and the turn: the first turn of a process, exemplars, and collectors that do not work."""

import json
import re
import sys
import urllib.request
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import pytest

from recallscope.runtime.agent.host import Agent
from recallscope.runtime.agent.turn_state import TurnRequest
from recallscope.runtime.observe import Observers
from recallscope.runtime.testing.model_server import serve
from recallscope.runtime.testing.script import Script, Select, Step
from recallscope.telemetry.sdk import TelemetrySettings, open_telemetry
from recallscope.telemetry.testing.receiver import Behaviour, OtlpReceiver

if TYPE_CHECKING:
    from conftest import Done, Place

pytestmark = pytest.mark.anyio

OpenAgent = Callable[..., AbstractAsyncContextManager[Agent]]

WORDLESS = "Thanks, never mind."
"""A prompt whose words are in no note."""

CEILING = 0.1
TOLERANCE = 0.005
EXIT_SECONDS = 5.0

SLOW_SELECTION = Step(delay=1.6, select=Select(contains=("Release branches",)))
ANSWER = Step(answer="You are welcome.")

IMPORT_WATCH = """
import atexit, json, sys, time

class Watch:
    seen = []
    def find_spec(self, name, path=None, target=None):
        self.seen.append((time.monotonic(), name))
        return None

sys.meta_path.insert(0, Watch())
atexit.register(lambda: open(sys.argv[1], "w").write(json.dumps(Watch.seen)))

from recallscope.runtime.cli.main import main
sys.exit(main(sys.argv[2:]))
"""


def only(events: list[dict[str, Any]], kind: str, **fields: str) -> dict[str, Any]:
    """Return the one event of a kind with these fields."""
    (event,) = (
        event for event in events if event["event"] == kind and all(event[name] == fields[name] for name in fields)
    )
    return event


async def test_the_first_turn_of_a_process_keeps_the_ceiling(place: "Place") -> None:
    """No word matches and the selector needs 1.6 s: the first send is held for the ceiling and what the loop lagged."""
    with OtlpReceiver() as receiver:
        async with serve(Script.of(ANSWER, memory_selection=SLOW_SELECTION)) as server:
            environ = place.environ(server.url) | receiver.environ()
            del environ["RECALLSCOPE_RECALL_CEILING_SECONDS"]
            done = await place.run("run", "--json", WORDLESS, environ=environ)
        (lag,) = receiver.metrics()["recallscope.loop.lag"].histogram.data_points

    waited = only(done.events, "RecallWaited", point="initial")
    assert (waited["ended_by"], waited["ceiling"]) == ("ceiling", CEILING)
    assert CEILING <= waited["waited"] <= CEILING + TOLERANCE + lag.max


async def test_nothing_is_imported_within_the_first_turn(place: "Place", tmp_path: Path) -> None:
    """What a turn needs is loaded before it is admitted, so that no import stands in a wait."""
    seen = tmp_path / "imports.json"
    async with serve(Script.of(ANSWER, memory_selection=SLOW_SELECTION)) as server:
        with anyio.fail_after(45):
            process = await anyio.run_process(
                [sys.executable, "-c", IMPORT_WATCH, str(seen), "run", "--json", WORDLESS],
                cwd=place.work,
                env=place.environ(server.url),
            )

    events = [json.loads(line) for line in process.stdout.decode().splitlines()]
    start, end = only(events, "TurnStarted")["at"], only(events, "TurnFinished")["at"]
    assert [name for at, name in json.loads(seen.read_text()) if start <= at <= end] == []


async def test_an_exemplar_of_metrics_is_the_trace_of_a_turn(
    place: "Place", tmp_path: Path, open_agent: OpenAgent
) -> None:
    """What OpenMetrics shows as `trace_id` beside a bucket is the trace that the collector got for that turn."""
    with OtlpReceiver() as receiver, pytest.MonkeyPatch.context() as patch:
        for name, value in receiver.environ().items():
            patch.setenv(name, value)
        settings = TelemetrySettings(
            version="0", front_end="e2e", journal=False, serve_metrics=True, metrics_host="127.0.0.1", metrics_port=0
        )
        with open_telemetry(settings) as telemetry:
            observers = Observers(telemetry.observers)
            headers = telemetry.trace_headers
            selection = Step(select=Select(contains=("Release branches",)))
            async with (
                serve(Script.of(ANSWER, memory_selection=selection)) as server,
                open_agent(server.url, place.notes, tmp_path, observers, trace_headers=headers) as agent,
            ):
                await agent.open_session().prompt(TurnRequest(text="What is the release branch called?"))
                text = await anyio.to_thread.run_sync(_scrape, telemetry.metrics_url or "")
        roots = {span.trace_id for span in receiver.spans() if span.name == "invoke_agent e2e"}

    found = re.findall(r"^(recallscope_recall_turn_wait_duration\w*)\{[^}]*\} \S+ # \{([^}]*)\}", text, re.MULTILINE)
    assert [name for name, _ in found] == ["recallscope_recall_turn_wait_duration_seconds_bucket"]
    assert {exemplar.partition('trace_id="')[2][:32] for _, exemplar in found} == roots
    assert set(re.findall(r'trace_id="(\w+)"', text)) == roots


def _scrape(url: str) -> str:
    request = urllib.request.Request(url, headers={"Accept": "application/openmetrics-text; version=1.0.0"})  # noqa: S310 - loopback
    with urllib.request.urlopen(request, timeout=10) as response:  # noqa: S310 - loopback
        return response.read().decode()


async def test_a_collector_that_does_not_work_costs_a_turn_nothing_and_the_exit_five_seconds_at_most(
    place: "Place", free_port: int
) -> None:
    """Refused, hanging or answering 503: the turn is the same, and one line says what was lost."""
    with ExitStack() as stack:
        hanging = stack.enter_context(OtlpReceiver(Behaviour.HANG))
        unavailable = stack.enter_context(OtlpReceiver(Behaviour.UNAVAILABLE))
        refused = f"http://127.0.0.1:{free_port}"
        collectors = {
            "refused": {"OTEL_EXPORTER_OTLP_ENDPOINT": refused},
            "refused, gRPC": {"OTEL_EXPORTER_OTLP_ENDPOINT": refused, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            "hanging": hanging.environ(),
            "hanging, gRPC": hanging.environ("grpc"),
            "503": unavailable.environ(),
        }
        done = await _run_all(place, collectors)

    for name, (run, ended) in done.items():
        turn = only(run.events, "TurnFinished")
        lines = [json.loads(line) for line in run.err.splitlines() if line.startswith("{")]
        assert (name, run.code, turn["outcome"]) == (name, 0, "end_turn")
        assert (name, ended - turn["at"] <= EXIT_SECONDS) == (name, True)
        assert [line["message"][:19] for line in lines] == ["telemetry was lost:"]
        assert re.search(r"traces [1-9]", lines[0]["message"])
        assert re.search(r"metrics [1-9]", lines[0]["message"])


async def _run_all(place: "Place", collectors: dict[str, dict[str, str]]) -> "dict[str, tuple[Done, float]]":
    """Run a turn with each collector, two at a time; return how it ended, and when by the clock that events carry."""
    done: dict[str, tuple[Done, float]] = {}
    two = anyio.CapacityLimiter(2)
    script = Script.of(ANSWER, memory_selection=Step(select=Select()))

    async def run(name: str, environ: dict[str, str]) -> None:
        async with two, place.start("run", "--json", WORDLESS, environ=environ) as running:
            ended = await running.done()
            done[name] = (ended, running.ended)

    async with serve(script) as server, anyio.create_task_group() as tasks:
        for name, environ in collectors.items():
            tasks.start_soon(run, name, place.environ(server.url) | environ)
    return done
