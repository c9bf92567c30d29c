"""Every panel of the dashboards shows something once traffic has run: its queries are asked of a real Prometheus."""

import os
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from programs import Prometheus, free_port, run_prometheus, wait_until

from recallscope.dashboards.reading import PanelRead, Query, everything, filled, read_all
from recallscope.telemetry.queries.health import processes

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]

JOB = "recallscope"
TURNS = 160
KINDS = (
    "ordinary:60,settled_before_send:10,slow_with_tools:10,timed_out:10,slow_without_tools:10,superseded:10,"
    "interrupted:10,not_sent:8,unavailable:8,nothing_found:8,exact_title:6,selector_failed:6,failed:6"
)
VALUES = everything(JOB, step="20s", window="10m")

PANELS = [panel for dashboard in read_all() for panel in dashboard.panels]
ASKED = [(panel, query) for panel in PANELS for query in panel.queries if query.language == "prometheus"]

EMPTY: Mapping[str, str] = {
    "model-and-tools / Input from the provider's cache": "the scripted model tells nothing of a cache",
    "model-and-tools / Tool calls that did not end well": "no scripted tool fails or is stopped while it runs",
}
"""Panels that this traffic leaves empty, and why; a panel that turns out to have figures must go from here."""


@dataclass(frozen=True, slots=True)
class Played:
    """A Prometheus that has seen traffic between two moments, in seconds since 1970."""

    prometheus: Prometheus
    start: float
    end: float


@contextmanager
def _load(folder: Path, port: int) -> Generator["subprocess.Popen[bytes]"]:
    clean = {name: value for name, value in os.environ.items() if name in {"PATH", "LANG", "TMPDIR"}}
    environ = clean | {"HOME": str(folder), "OTEL_EXPORTER_PROMETHEUS_PORT": str(port)}
    split = "tiered:40,prefetch:30,deadline:30"
    command = [sys.executable, "-m", "recallscope.runtime.cli", "load", "--rate", "8", "--seed", "1"]
    with (folder / "load.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--policy", split, "--scenarios", KINDS], env=environ, cwd=folder, stdout=log, stderr=log
        )
        try:
            yield process
        finally:
            process.terminate()
            process.wait(timeout=30)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Generator[Played]:
    """Play traffic of every kind that takes no longer than some seconds, until it has been scraped."""
    folder, port = tmp_path_factory.mktemp("dashboards"), free_port()
    start = time.time()
    with _load(folder, port) as load, run_prometheus(folder, {JOB: f"127.0.0.1:{port}"}, interval="2s") as prometheus:
        selector = f'job="{JOB}"'
        wait_until(lambda: prometheus.number(processes(selector)) >= 1, "the load is scraped")
        turns = f"sum(recallscope_turn_duration_seconds_count{{{selector}}})"

        def enough() -> bool:
            assert load.poll() is None, (folder / "load.log").read_text(encoding="utf-8")
            return prometheus.number(turns) >= TURNS

        wait_until(enough, f"{TURNS} turns have ended", seconds=120)
        yield Played(prometheus, start, time.time())


def _has_data(played: Played, text: str, *, instant: bool) -> bool:
    """Say whether a query gives a number anywhere."""
    if instant:
        return any(value == value for _, value in played.prometheus.ask(text, at=played.end))  # noqa: PLR0124 - no NaN
    found = played.prometheus.get(
        "query_range", query=text, start=f"{played.start:.3f}", end=f"{played.end:.3f}", step="1"
    )
    return any(value != "NaN" for series in found["result"] for _, value in series["values"])


@pytest.mark.parametrize(("panel", "query"), ASKED, ids=[f"{panel.name} {query.ref}" for panel, query in ASKED])
def test_a_query_of_a_panel_gives_data(played: Played, panel: PanelRead, query: Query) -> None:
    """Each query has figures, but those of what did not happen, which are listed with the reason."""
    found = _has_data(played, filled(query.text, VALUES), instant=query.instant)

    assert found is (f"{panel.dashboard} / {panel.title}" not in EMPTY), query.text
