"""The report in a real browser, opened from a file: it reads well there, and nothing leaves the machine."""

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from browser import dom, picture
from programs import Prometheus, run_prometheus, wait_until

from recallscope.runtime.events import Event, PolicyName
from recallscope.telemetry import names, queries
from recallscope.telemetry.read.counts import COUNTED, Counts
from recallscope.telemetry.read.gathered import gather
from recallscope.telemetry.read.journal_turns import JournalTurns
from recallscope.telemetry.read.prometheus import read_prometheus
from recallscope.telemetry.read.prometheus_api import PrometheusApi
from recallscope.telemetry.sdk import TelemetrySettings, open_telemetry
from recallscope.telemetry.testing.golden import golden_turn, tool_free_turn, unlucky_turn

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]

NOT_OF_TURNS = frozenset({names.LOOP_LAG, names.TELEMETRY_DROPPED, names.TELEMETRY_EXPORTED})
TURNS = 12


@dataclass(frozen=True, slots=True)
class Run:
    """One run: what its journal holds, and the Prometheus that scraped it."""

    journal: Path
    prometheus: Prometheus


def _events(begin: float) -> list[Event]:
    """Return the turns of a process that ended just now; of one of them the model has a name that would load things."""
    turns: list[Event] = []
    for number in range(TURNS):
        policy = (PolicyName.TIERED, PolicyName.PREFETCH, PolicyName.DEADLINE)[number % 3]
        turns += golden_turn(number=number, at=begin + number, session=f"s{number}", policy=policy)
    return [*turns, *unlucky_turn(number=50, at=begin + 20), *tool_free_turn(number=51, at=begin + 30)]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Generator[Run]:
    """Give a run that is over: in its journal, and in a Prometheus."""
    folder = tmp_path_factory.mktemp("run")
    settings = TelemetrySettings(
        version="0",
        front_end="test",
        policies=(PolicyName.TIERED, PolicyName.PREFETCH, PolicyName.DEADLINE),
        serve_metrics=True,
        metrics_port=0,
        journal=True,
        journal_directory=folder / "journal",
        environ={},
    )
    with open_telemetry(settings) as telemetry:
        assert telemetry.metrics_url is not None
        target = telemetry.metrics_url.removeprefix("http://").removesuffix("/metrics")
        with run_prometheus(folder, {"agents": target}) as prometheus:
            for event in _events(time.monotonic() - 60):
                for observer in telemetry.observers:
                    observer(event)
            told = f"sum({names.RECALL_TURNS.prometheus}{{{queries.job('agents')}}})"
            wait_until(lambda: prometheus.number(told) == TURNS + 2, "all turns are scraped")
            journal = JournalTurns([folder / "journal"])
            wait_until(lambda: sum(turn.whole for turn in journal.turns()) == TURNS + 2, "all turns are written")
            yield Run(folder / "journal", prometheus)


def _report(folder: Path, *arguments: str) -> Path:
    """Write the report of the last hour into `folder`, as a person does, and return its file."""
    out = folder / "report.html"
    clean = {name: value for name, value in os.environ.items() if name in {"PATH", "LANG"}}
    command = [sys.executable, "-m", "recallscope.runtime.cli", "report", "--since", "1h", "--out", str(out)]
    done = subprocess.run(
        [*command, *arguments],
        check=False,
        env=clean | {"HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return out


def _data(page: str, name: str) -> list[str]:
    return re.findall(rf'data-{name}="([^"]*)"', page)


def _numbers(counts: Counts) -> dict[str, object]:
    """Return what a report is computed from, by metric; only that of turns."""
    return {
        each.metric.name: counts.histogram(each.metric, *each.labels)
        if each.metric.buckets
        else counts.by(each.metric, *each.labels)
        for each in COUNTED
        if each.metric not in NOT_OF_TURNS
    }


def test_a_journal_and_a_prometheus_tell_the_same_of_one_run(run: Run) -> None:
    """All numbers of the report: the journal's turns, counted, are what the Prometheus has, turn for turn."""
    api = PrometheusApi.at(run.prometheus.url)
    reading = read_prometheus(api, selector=queries.job("agents"), seconds=3_600)
    gathered = gather(JournalTurns([run.journal]).turns(), top=3)

    assert _numbers(gathered.counts) == _numbers(reading.counts)
    assert gathered.counts.ceilings == reading.counts.ceilings


def test_the_page_in_a_browser_has_the_figures(run: Run, tmp_path: Path) -> None:
    """Both sources draw the same table; the figures of a Prometheus stand beside the turns of the journal."""
    arguments = ("--from", str(run.journal), "--top", "4")
    (tmp_path / "both").mkdir()
    from_journal = dom(_report(tmp_path, *arguments))
    from_both = dom(_report(tmp_path / "both", *arguments, "--from-prometheus", run.prometheus.url, "--job", "agents"))

    for page in (from_journal, from_both):
        assert _data(page, "section") == [
            *("levels", "comparison", "durations", "waits", "recall", "phases", "turns", "calls", "whatif")
        ]
        assert len(_data(page, "turn")) == 4
    assert [_data(page, "figures") for page in (from_journal, from_both)] == [["journal"], ["prometheus"]]
    table = [_cells(page) for page in (from_journal, from_both)]
    assert table[0] == table[1]
    assert sum(float(turns) for _, _, turns in table[0]) == TURNS + 2


def _cells(page: str) -> list[tuple[str, str, str]]:
    """Return the cells of the comparison, those that stand apart included: policy, scenario, turns."""
    return re.findall(r'data-policy="(\w+)" data-scenario="(\w+)"(?: data-verdict="\w+")? data-turns="([\d.]+)"', page)


@dataclass(slots=True)
class _Proxy:
    """A proxy that lets nothing through and notes what was asked for."""

    port: int = 0
    asked: list[str] = field(default_factory=list[str])


@contextmanager
def _proxy() -> Generator[_Proxy]:
    proxy = _Proxy()

    class Handler(BaseHTTPRequestHandler):
        def _note(self) -> None:
            proxy.asked.append(self.path)
            self.send_error(403)

        do_GET = do_POST = do_CONNECT = _note  # noqa: N815 - the names in the base class

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the base class
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        proxy.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield proxy
        finally:
            server.shutdown()
            thread.join()


def _opened(page: Path) -> Sequence[str]:
    """Return what a browser asks a proxy for when it opens `page`, of hosts that no browser knows by itself."""
    with _proxy() as proxy:
        dom(page, f"--proxy-server=http://127.0.0.1:{proxy.port}", "--proxy-bypass-list=<-loopback>")
        return [asked for asked in proxy.asked if ".invalid" in asked]


def test_no_request_leaves_the_page(run: Run, tmp_path: Path) -> None:
    """Names that would load something are shown as text; the same names in an ordinary page are asked for."""
    nasty = '<img src="http://a.invalid/x.png"><style>@import "http://b.invalid/y.css";</style>'
    hostile = tmp_path / "journal"
    hostile.mkdir()
    for file in run.journal.iterdir():
        text = file.read_text(encoding="utf-8").replace('"big"', _json(f"big {nasty}"))
        (hostile / file.name).write_text(text, encoding="utf-8")
    control = tmp_path / "control.html"
    control.write_text(f"<!DOCTYPE html><body>{nasty}</body>", encoding="utf-8")

    page = _report(tmp_path, "--from", str(hostile))

    assert "a.invalid" in page.read_text(encoding="utf-8")
    assert _opened(page) == []
    assert len(_opened(control)) >= 1


def _json(text: str) -> str:
    return '"' + text.replace('"', '\\"') + '"'


def test_the_page_is_drawn_in_both_colour_schemes_and_in_a_narrow_window(run: Run, tmp_path: Path) -> None:
    """The pictures differ, and are not empty; `build/report` keeps them for a look."""
    page = _report(tmp_path, "--from", str(run.journal))
    kept = Path(__file__).parents[2] / "build" / "report"
    kept.mkdir(parents=True, exist_ok=True)
    dark = "--blink-settings=preferredColorScheme=0"
    for name, width, more in (("light", 1280, ()), ("dark", 1280, (dark,)), ("narrow", 500, ())):
        picture(page, kept / f"{name}.png", *more, width=width, height=3_000)

    pictures = [(kept / f"{name}.png").read_bytes() for name in ("light", "dark", "narrow")]
    assert len(set(pictures)) == 3
    assert min(len(data) for data in pictures) > 50_000
