"""Live traffic in a real Prometheus: processes come, go and start anew, and every turn is counted once."""

import json
import math
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from programs import Prometheus, run_prometheus, wait_until

from recallscope.runtime.events import Delivered, PolicyName, Reason, Scenario
from recallscope.telemetry import names, queries
from recallscope.telemetry.read.ceilings import Ceilings
from recallscope.telemetry.read.counts import TABLE
from recallscope.telemetry.read.figures import Row, TurnKind
from recallscope.telemetry.read.prometheus import Reading, read_prometheus
from recallscope.telemetry.read.prometheus_api import PrometheusApi

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]

SELECTOR = queries.job("agents")
KIND = TurnKind(Row(PolicyName.TIERED, Scenario.TIMED_OUT), Delivered.BOTH, Reason.NONE)
OTHER = TurnKind(Row(PolicyName.TIERED, Scenario.SUPERSEDED), Delivered.INITIAL, Reason.NEW_QUERY)
HOUR = 3_600
LONG_AGO = 10 * 24 * HOUR


@dataclass(slots=True)
class Process:
    """What a process of the job says of itself when it is scraped; `turns` is None while it is not there."""

    started: float
    turns: Mapping[TurnKind, int] | None
    ceiling: float = 0.1
    port: int = 0
    scrapes: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def become(self, turns: Mapping[TurnKind, int] | None, *, started: float | None = None) -> None:
        """Say something else from now on."""
        with self.lock:
            self.turns, self.started = turns, self.started if started is None else started
            self.scrapes = 0

    def text(self) -> str | None:
        """Return what a scrape gets."""
        with self.lock:
            self.scrapes += 1
            if self.turns is None:
                return None
            lines = [
                f"{names.PROCESS_START.prometheus} {self.started}",
                f'{names.RECALL_CEILING_IN_FORCE.prometheus}{{policy="tiered"}} {self.ceiling}',
            ]
            for kind, number in self.turns.items():
                row = f'policy="{kind.row.policy}",scenario="{kind.row.scenario}"'
                rest = f'delivered="{kind.delivered}",reason="{kind.reason}"'
                lines.append(f"{names.RECALL_TURNS.prometheus}{{{row},{rest}}} {number}")
                for bound, count in (("0.001", 0), ("0.105", number), ("+Inf", number)):
                    lines.append(f'{names.RECALL_TURN_WAIT_DURATION.prometheus}_bucket{{{row},le="{bound}"}} {count}')
        return "\n".join([*lines, ""])


@contextmanager
def _served(process: Process) -> Generator[Process]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            text = process.text()
            self.send_response(200 if text is not None else 503)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write((text or "").encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the base class
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        process.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield process
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def _traffic(folder: Path, *processes: Process) -> Generator[Prometheus]:
    """Run a Prometheus that scrapes `processes` as one job, five times a second."""
    with ExitStack() as stack:
        targets = [f"127.0.0.1:{stack.enter_context(_served(process)).port}" for process in processes]
        yield stack.enter_context(run_prometheus(folder, {"agents": targets}, interval="200ms"))


def _scraped(*processes: Process) -> None:
    """Wait until each process was scraped as it is now, and until that is stored."""
    wait_until(lambda: all(process.scrapes >= 4 for process in processes), "all processes are scraped")


def _read(prometheus: Prometheus, *, seconds: int = HOUR, at: float | None = None) -> Reading:
    api = PrometheusApi.at(prometheus.url)
    return read_prometheus(api, selector=SELECTOR, seconds=seconds, wanted=TABLE, at=at)


def _turns(reading: Reading) -> dict[TurnKind, float]:
    return {kind: turns for kind, turns in reading.counts.figures.turns.items() if turns}


def test_several_processes_are_added_up_and_those_that_go_are_kept(tmp_path: Path) -> None:
    """Two processes of a job that began within the span: all their turns count, one that is gone included."""
    one, two = Process(time.time(), {KIND: 5}, ceiling=0.05), Process(time.time(), {KIND: 7, OTHER: 2}, ceiling=0.2)
    with _traffic(tmp_path, one, two) as prometheus:
        _scraped(one, two)
        two.become(None)
        one.become({KIND: 6})
        _scraped(one, two)
        reading = _read(prometheus)

    assert _turns(reading) == {KIND: 13, OTHER: 2}
    assert {row: waits.count for row, waits in reading.counts.figures.waits.items()} == {KIND.row: 13, OTHER.row: 2}
    assert reading.counts.ceilings == {PolicyName.TIERED: Ceilings(0.05, 0.2)}
    assert reading.short


def test_a_process_that_is_older_than_the_history_counts_from_what_is_known(tmp_path: Path) -> None:
    """Of a process that ran for days before the Prometheus came only the difference counts, and new series whole."""
    process = Process(time.time() - LONG_AGO, {KIND: 1_000})
    with _traffic(tmp_path, process) as prometheus:
        _scraped(process)
        process.become({KIND: 1_003, OTHER: 4})
        _scraped(process)
        reading = _read(prometheus)

    assert _turns(reading) == {KIND: 3, OTHER: 4}


def test_a_counter_that_starts_anew_counts_both_lives(tmp_path: Path) -> None:
    """A process that is restarted at its address: the turns of both lives count, as near as `increase` comes."""
    process = Process(time.time(), {KIND: 5})
    with _traffic(tmp_path, process) as prometheus:
        _scraped(process)
        process.become({KIND: 40})
        _scraped(process)
        process.become({KIND: 2, OTHER: 3}, started=time.time())
        _scraped(process)
        process.become({KIND: 12, OTHER: 3})
        _scraped(process)
        turns = _turns(_read(prometheus))

    assert turns.keys() == {KIND, OTHER}
    assert turns[OTHER] == 3
    assert 49 <= turns[KIND] <= 62, "40 and 12, less the first value, and what `increase` adds over a few scrapes"


def test_what_was_counted_before_the_span_is_not_counted(tmp_path: Path) -> None:
    """The span begins in the middle: what a process said then is taken off, whole turns on both sides."""
    process = Process(time.time() - LONG_AGO, {KIND: 100})
    with _traffic(tmp_path, process) as prometheus:
        _scraped(process)
        middle = time.time()
        process.become({KIND: 108, OTHER: 2})
        _scraped(process)
        seconds = math.ceil(time.time() - middle)  # a span is whole seconds; by its end all of these scrapes are stored
        wait_until(lambda: time.time() > middle + seconds, "the span is over")
        reading = _read(prometheus, seconds=seconds, at=middle + seconds)

    assert _turns(reading) == {KIND: 8, OTHER: 2}
    assert (reading.short, reading.silent) == (False, False)


def test_the_command_says_what_it_must(tmp_path: Path) -> None:
    """How far the figures reach, which ceilings there were, how many turns stand apart and why; JSON has the same."""
    apart = [
        TurnKind(Row(PolicyName.TIERED, Scenario.INTERRUPTED), Delivered.NONE, reason)
        for reason in (Reason.ABORT, Reason.SHUTDOWN)
    ]
    one = Process(time.time(), {KIND: 5, apart[0]: 2}, ceiling=0.05)
    two = Process(time.time(), {KIND: 7, apart[1]: 1}, ceiling=0.2)
    with _traffic(tmp_path, one, two) as prometheus:
        _scraped(one, two)
        command = [sys.executable, "-m", "recallscope.runtime.cli", "compare", "--from-prometheus", prometheus.url]
        done, data = (
            subprocess.run(
                [*command, "--job", "agents", "--since", "24h", "--policy", "tiered", *more],
                check=False,
                capture_output=True,
                text=True,
                timeout=60,
            )
            for more in ([], ["--json"])
        )

    told = " ".join(done.stdout.split())
    assert (done.returncode, data.returncode) == (0, 0), done.stderr + done.stdout
    assert "Of the 1 d asked for, job agents is known for" in told
    assert "tiered ran with ceilings from 50 ms to 200 ms: its cells are judged by the highest" in told
    assert "3 of 15 turns: 3 interrupted (closed before it was done)" in told
    assert "3: abort 2, shutdown 1" in told
    assert "waits ≤ 200 ms" in told
    parsed = json.loads(data.stdout)
    assert (parsed["ceiling_seconds"], parsed["traffic"]["ceilings_seconds"]) == (0.2, {"tiered": [0.05, 0.2]})
    assert parsed["apart"][0] == {
        "policy": "tiered",
        "scenario": "interrupted",
        "turns": 3,
        "reasons": {"abort": 2, "shutdown": 1},
    }


def test_a_process_that_lived_for_a_moment_is_known(tmp_path: Path) -> None:
    """A span of weeks, and a process that was there for seconds: it counts, and it is said how far that reaches."""
    process = Process(time.time(), {KIND: 5})
    with _traffic(tmp_path, process) as prometheus:
        _scraped(process)
        process.become(None)
        _scraped(process)
        reading = _read(prometheus, seconds=14 * 24 * HOUR)

    assert _turns(reading) == {KIND: 5}
    assert reading.first is not None
    assert reading.last is not None
    assert reading.at - reading.first < 120
    assert reading.short
