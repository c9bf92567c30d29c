"""A real Jaeger takes the spans of turns over OTLP and hands them out again: `explain` says what the journal says."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from programs import ROOT, free_port, wait_until
from scripted_turns import TURNS, turns_to_explain

from recallscope.telemetry.explain.sentences import Sentences, sentences
from recallscope.telemetry.explain.verdict import judge
from recallscope.telemetry.read.address import Address
from recallscope.telemetry.read.backends import JaegerTurns, backend_at
from recallscope.telemetry.read.fetch import fetch
from recallscope.telemetry.read.journal_turns import JournalTurns
from recallscope.telemetry.read.recorded import RecordedTurn
from recallscope.telemetry.read.span_json import spans_in
from recallscope.telemetry.read.span_turns import turns_of
from recallscope.telemetry.sdk import TelemetrySettings, open_telemetry

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]

JAEGER = ROOT / "build" / "jaeger" / "all-in-one"
"""What `make jaeger` builds."""


@dataclass(frozen=True, slots=True)
class Jaeger:
    """A Jaeger that is asked at `url` and takes OTLP over HTTP at `otlp`."""

    url: str
    otlp: str


def _answers(url: str) -> bool:
    try:
        with urlopen(f"{url}/api/services", timeout=5) as response:  # noqa: S310 - loopback
            return isinstance(json.load(response), dict)
    except (URLError, OSError):
        return False


@pytest.fixture(scope="module")
def jaeger(tmp_path_factory: pytest.TempPathFactory) -> Generator[Jaeger]:
    """Run a Jaeger that keeps its traces in memory, on free ports of loopback."""
    query, otlp = free_port(), free_port()
    nowhere = (
        "admin.http",
        "collector.grpc-server",
        "collector.http-server",
        "collector.otlp.grpc",
        "query.grpc-server",
    )
    arguments = [
        str(JAEGER),
        f"--query.http-server.host-port=127.0.0.1:{query}",
        f"--collector.otlp.http.host-port=127.0.0.1:{otlp}",
        *(f"--{name}.host-port=127.0.0.1:0" for name in nowhere),
    ]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    with (tmp_path_factory.mktemp("jaeger") / "log").open("wb") as log:
        process = subprocess.Popen(
            arguments, stdout=log, stderr=log, env=environ | {"OTEL_TRACES_SAMPLER": "always_off"}
        )
        try:
            url = f"http://127.0.0.1:{query}"
            wait_until(lambda: _answers(url), "an answer of Jaeger")
            yield Jaeger(url, f"http://127.0.0.1:{otlp}")
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(20)


@pytest.fixture(scope="module")
def told(jaeger: Jaeger, tmp_path_factory: pytest.TempPathFactory) -> dict[str, RecordedTurn]:
    """State turns of every scenario to telemetry that exports to Jaeger, and return them as the journal tells them."""
    folder = tmp_path_factory.mktemp("journal")
    environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": jaeger.otlp, "OTEL_METRICS_EXPORTER": "none"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environ.items():
            patch.setenv(name, value)
        settings = TelemetrySettings(version="0", front_end="test", journal_directory=folder)
        with open_telemetry(settings) as telemetry:
            for event in turns_to_explain():
                for observer in telemetry.observers:
                    observer(event)
    source = JournalTurns([folder])
    return {name: source.find(name) for name in TURNS}


def _said(turn: RecordedTurn) -> Sentences:
    return sentences(turn, judge(turn))


@pytest.fixture(scope="module")
def stored(jaeger: Jaeger, told: dict[str, RecordedTurn]) -> JaegerTurns:
    """Wait until Jaeger has all turns, and return it as the source that its address is known for."""
    source = backend_at(jaeger.url)
    assert isinstance(source, JaegerTurns)
    wait_until(lambda: {turn.turn for turn in source.turns() if turn.whole} == set(told), "the turns in Jaeger")
    return source


@pytest.mark.parametrize("name", TURNS)
def test_jaeger_gives_the_journals_verdict(stored: JaegerTurns, told: dict[str, RecordedTurn], name: str) -> None:
    """Found by its id or its trace id, the turn is explained as the journal explains it."""
    journal = told[name]

    assert journal.trace_id is not None
    assert _said(stored.find(name)) == _said(stored.find(journal.trace_id)) == _said(journal)


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize("name", TURNS)
def test_jaegers_otlp_gives_the_journals_verdict(jaeger: Jaeger, told: dict[str, RecordedTurn], name: str) -> None:
    """So it is from the OTLP JSON of its third API."""
    journal = told[name]
    (turn,) = turns_of(spans_in(fetch(Address(jaeger.url), f"/api/v3/traces/{journal.trace_id}")))

    assert _said(turn) == _said(journal)


def test_jaeger_gives_the_slowest_turns(stored: JaegerTurns, told: dict[str, RecordedTurn]) -> None:
    """In order, and `last` is the one that ended last."""
    slowest = sorted(told.values(), key=lambda turn: turn.length, reverse=True)[:2]

    assert [turn.turn for turn in stored.slowest(top=2)] == [turn.turn for turn in slowest]
    assert stored.find("last").turn == "s.3"


@pytest.mark.usefixtures("stored")
def test_the_command_finds_out_what_it_asks(jaeger: Jaeger) -> None:
    """`recallscope explain` takes the bare address."""
    command = [sys.executable, "-m", "recallscope.runtime.cli", "explain", "s.1", "--from", jaeger.url]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60, cwd=Path.home())

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Turn s.1 · 3.00 s · end_turn · policy tiered")
