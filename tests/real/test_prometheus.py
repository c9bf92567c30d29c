"""A real Prometheus scrapes `/metrics`, takes every query, and gives the figures of the table."""

import json
import math
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from dataclasses import replace

import anyio
import pytest
from programs import Prometheus, run_prometheus, wait_until

from recallscope.runtime.events import (
    Cause,
    Delivered,
    Event,
    OpId,
    Outcome,
    Phase,
    PolicyName,
    Reason,
    RecallClosed,
    Scenario,
    Strategy,
)
from recallscope.telemetry import names, queries
from recallscope.telemetry.read.figures import Figures, Row, TurnKind, collect_waits
from recallscope.telemetry.read.prometheus import read_prometheus
from recallscope.telemetry.read.prometheus_api import PrometheusApi
from recallscope.telemetry.sdk import Telemetry, TelemetrySettings, open_telemetry
from recallscope.telemetry.testing.golden import golden_process

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]

SELECTOR = queries.job("agents")
EVERYTHING = queries.job("everything")
WINDOW = "1h"
TURNS = 40
WAITS = (0.0004, 0.002, 0.004, 0.05, 0.1, 0.104)
ROWS = (
    TurnKind(Row(PolicyName.TIERED, Scenario.TIMED_OUT), Delivered.BOTH, Reason.NONE),
    TurnKind(Row(PolicyName.TIERED, Scenario.SUPERSEDED), Delivered.INITIAL, Reason.NEW_QUERY),
    TurnKind(Row(PolicyName.PREFETCH, Scenario.TIMED_OUT), Delivered.TOOL_RESULT, Reason.NONE),
)


def _closed(number: int, kind: TurnKind, waited: float) -> RecallClosed:
    return RecallClosed(
        op=OpId(f"recall{number}"),
        at=time.monotonic(),
        policy=kind.row.policy,
        outcome=Outcome.DELIVERED,
        reason=kind.reason,
        close_reason=Reason.NO_SAFE_DELIVERY_POINT,
        cause=Cause.TURN_END,
        phases=Phase.REFINED,
        strategy=Strategy.MODEL,
        points=(),
        ceiling=0.1,
        fast_seconds=0.002,
        settled_seconds=1.2,
        delivered_seconds=2.0,
        ready_seconds=0.0,
        waited=waited,
        notes_selected=1,
        notes_delivered=1,
        skips=0,
        rollbacks=0,
        partial=False,
        scenario=kind.row.scenario,
        delivered=kind.delivered,
    )


def _play(observers: tuple[Callable[[Event], None], ...], turns: int) -> None:
    for number in range(turns):
        for kind in ROWS:
            wait = 0.0003 if kind.row.policy is PolicyName.PREFETCH else WAITS[number % len(WAITS)]
            for observer in observers:
                observer(_closed(number, kind, wait))


def _target(telemetry: Telemetry) -> str:
    assert telemetry.metrics_url is not None
    return telemetry.metrics_url.removeprefix("http://").removesuffix("/metrics")


def _count(prometheus: Prometheus) -> float:
    return prometheus.number(f"sum(recallscope_recall_turns_total{{{SELECTOR}}})")


def _play_everything(telemetry: Telemetry) -> None:
    """Play every kind of event, and let telemetry measure an event loop for some of its intervals."""
    for event in golden_process():
        for observer in telemetry.observers:
            observer(event)
    anyio.run(_watch_a_loop, telemetry)


async def _watch_a_loop(telemetry: Telemetry) -> None:
    with anyio.move_on_after(0.35):
        await telemetry.run()


def _told(prometheus: Prometheus) -> dict[str, float]:
    """Return what the process with every kind of event has told of itself, by what must grow between two scrapes."""
    series = (names.LOOP_LAG, "_count"), (names.TURN_DURATION, "_count"), (names.TELEMETRY_EXPORTED, "")
    return {
        metric.name: prometheus.number(f"sum({metric.prometheus}{suffix}{{{EVERYTHING}}})") for metric, suffix in series
    }


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Generator[Prometheus]:
    """Give a Prometheus that has seen `TURNS` turns in each of `ROWS`, and a process with every kind of event."""
    settings = TelemetrySettings(
        version="0",
        front_end="test",
        policies=(PolicyName.TIERED, PolicyName.PREFETCH),
        serve_metrics=True,
        metrics_port=0,
        journal=False,
        environ={},
    )
    journal = tmp_path_factory.mktemp("journal")
    with (
        open_telemetry(settings) as telemetry,
        open_telemetry(replace(settings, journal=True, journal_directory=journal)) as everything,
    ):
        targets = {"agents": _target(telemetry), "everything": _target(everything)}
        _play(telemetry.observers, 1)  # histograms are born with their first turn, and `increase` does not see births
        folder = tmp_path_factory.mktemp("prometheus")
        with run_prometheus(folder, targets) as running:
            _play_everything(everything)
            wait_until(lambda: min(_told(running).values()) > 0, "every kind of event is scraped")
            before = _told(running)
            _play_everything(everything)
            wait_until(
                lambda: all(told > before[name] for name, told in _told(running).items()), "it is scraped once more"
            )
            wait_until(lambda: _count(running) == len(ROWS), "the first turns are scraped")
            _play(telemetry.observers, TURNS)
            wait_until(lambda: _count(running) == len(ROWS) * (1 + TURNS), "all turns are scraped")
            yield running


@pytest.fixture(scope="module")
def figures(prometheus: Prometheus) -> Figures:
    """Give the figures that the command reads."""
    return read_prometheus(PrometheusApi.at(prometheus.url), selector=SELECTOR, seconds=3_600).counts.figures


def test_turns_are_counted_by_row(figures: Figures) -> None:
    """What was played is what is read, turn for turn, and so are the waits; other rows count nothing."""
    assert {kind: turns for kind, turns in figures.turns.items() if turns} == dict.fromkeys(ROWS, 1 + TURNS)
    assert {row: waits.count for row, waits in figures.waits.items()} == {kind.row: 1 + TURNS for kind in ROWS}


@pytest.mark.parametrize("quantile", [0.05, 0.5, 0.95, 0.99, 1.0])
def test_quantiles_are_those_of_histogram_quantile(prometheus: Prometheus, quantile: float) -> None:
    """From the same buckets the program and the Prometheus interpolate the same quantile."""
    at = time.time()  # the same moment for both: between two moments the extrapolation of `increase` moves
    told = prometheus.ask(queries.table_wait_quantile(quantile, SELECTOR, WINDOW), at=at)
    buckets = collect_waits(prometheus.ask(queries.table_wait_buckets(SELECTOR, WINDOW), at=at))

    expected = {(labels["policy"], labels["scenario"]): pytest.approx(value, rel=1e-9) for labels, value in told}
    assert {(row.policy, row.scenario): waits.quantile(quantile) for row, waits in buckets.items()} == expected
    assert len(expected) == len(ROWS)


@pytest.mark.parametrize(
    "query",
    [
        queries.table_turns(EVERYTHING, WINDOW),
        queries.table_wait_buckets(EVERYTHING, WINDOW),
        queries.table_wait_quantile(0.95, EVERYTHING, WINDOW),
        queries.table_wait_max(EVERYTHING, WINDOW),
        queries.hold(EVERYTHING, WINDOW),
        queries.delivery(EVERYTHING, WINDOW),
        queries.slow_turns(EVERYTHING, WINDOW),
        queries.loop_lag_max(EVERYTHING, WINDOW),
        queries.telemetry_loss(EVERYTHING, WINDOW),
    ],
)
def test_every_query_is_answered(prometheus: Prometheus, query: str) -> None:
    """No query is refused, and each has a figure of a process in which everything has happened."""
    answer = prometheus.ask(query)

    assert [value for _, value in answer if not math.isnan(value)] != []


def test_the_delivery_level_counts_what_was_delivered(prometheus: Prometheus) -> None:
    """All played turns got memory."""
    assert {labels["policy"]: value for labels, value in prometheus.ask(queries.delivery(SELECTOR, WINDOW))} == {
        "tiered": pytest.approx(1.0),
        "prefetch": pytest.approx(1.0),
    }


def test_the_command_draws_the_table_from_there(prometheus: Prometheus) -> None:
    """`--from-prometheus` judges what the policies promise, and leaves alone what was not there."""
    command = [sys.executable, "-m", "recallscope.runtime.cli", "compare", "--from-prometheus", prometheus.url]

    done = subprocess.run(
        [*command, "--job", "agents", "--json"], check=False, capture_output=True, text=True, timeout=60
    )
    elsewhere = subprocess.run([*command, "--job", "others"], check=False, capture_output=True, text=True, timeout=60)

    data = json.loads(done.stdout)
    measured = {(cell["scenario"], cell["policy"]): cell for cell in data["cells"] if cell["turns"]}
    assert (done.returncode, done.stderr, data["verdict"]) == (0, "", "as_stated")
    assert measured.keys() == {(kind.row.scenario, kind.row.policy) for kind in ROWS}
    assert measured["timed_out", "tiered"]["wait_seconds"]["max"] == 0.105
    assert elsewhere.returncode == 0
    assert "Nothing was measured." in elsewhere.stdout
    assert "check --job and --since" in elsewhere.stderr
