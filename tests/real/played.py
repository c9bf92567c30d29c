"""Traffic to look at: an agent under load, the shipped collector, and a Prometheus that has seen both."""

import os
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from programs import Prometheus, free_port, run_collector, run_prometheus, wait_until

from recallscope.dashboards.reading import everything
from recallscope.telemetry.queries.health import processes
from recallscope.telemetry.testing.receiver import OtlpReceiver

__all__ = ["COLLECTOR_JOB", "JOB", "JOBS", "KINDS", "PUSHED_JOB", "STEP_SECONDS", "Played", "play"]

JOB = "recallscope"
PUSHED_JOB = "recallscope/recallscope"
JOBS = (JOB, PUSHED_JOB)
"""The same turns as they are scraped and as the collector writes them."""

COLLECTOR_JOB = "otelcol"
STEP_SECONDS = 20
"""The windows of graphs, and the steps of those that count per step."""

KINDS = (
    "ordinary:60,settled_before_send:10,slow_with_tools:10,timed_out:10,slow_without_tools:10,superseded:10,"
    "interrupted:10,not_sent:8,unavailable:8,nothing_found:8,exact_title:6,selector_failed:6,failed:6"
)
"""Every kind of turn but the one that takes 11 s."""


@dataclass(frozen=True, slots=True)
class Played:
    """A Prometheus that has seen traffic between two moments, in seconds since 1970; it scrapes every 2 s."""

    prometheus: Prometheus
    start: float
    end: float

    @property
    def values(self) -> dict[str, str]:
        """The values of the dashboards' variables: all that was played, as it was scraped."""
        return self.values_of(JOB)

    def values_of(self, job: str) -> dict[str, str]:
        """The same for one of `JOBS`."""
        return everything(job, step=f"{STEP_SECONDS}s", window="10m", collector=COLLECTOR_JOB)


@contextmanager
def play(folder: Path, turns: int, *, kinds: str = KINDS) -> Generator[Played]:
    """Play `turns` turns of `kinds` under three policies, and give the Prometheus while it runs."""
    port, own, start = free_port(), free_port(), time.time()
    for name in ("prometheus", "collector", "home"):
        (folder / name).mkdir()
    targets = {JOB: f"127.0.0.1:{port}", COLLECTOR_JOB: f"127.0.0.1:{own}"}
    with (
        OtlpReceiver() as store,
        run_prometheus(folder / "prometheus", targets, interval="2s") as prometheus,
        run_collector(
            folder / "collector",
            OTELCOL_METRICS_PORT=str(own),
            OTELCOL_METRICS_ENDPOINT=prometheus.write_url,
            OTELCOL_TRACES_ENDPOINT=store.grpc_endpoint.removeprefix("http://"),
            OTELCOL_DECISION_WAIT_AFTER_ROOT="1s",
        ) as collector,
        _load(folder / "home", port, collector.endpoint, kinds) as load,
    ):
        wait_until(lambda: prometheus.number(processes(f'job="{JOB}"')) >= 1, "the load is scraped")

        def enough() -> bool:
            assert load.poll() is None, (folder / "home" / "load.log").read_text(encoding="utf-8")
            counts = (f'sum(recallscope_turn_duration_seconds_count{{job="{job}"}})' for job in JOBS)
            return all(prometheus.number(count) >= turns for count in counts)

        wait_until(enough, f"{turns} turns have ended", seconds=150)
        kept = f'sum(rate(otelcol_exporter_sent_spans_total{{job="{COLLECTOR_JOB}"}}[20s]))'
        wait_until(lambda: prometheus.number(kept) > 0, "the collector has passed spans on", seconds=60)
        yield Played(prometheus, start, time.time())


@contextmanager
def _load(home: Path, port: int, endpoint: str, kinds: str) -> Generator["subprocess.Popen[bytes]"]:
    environ = {name: value for name, value in os.environ.items() if name in {"PATH", "LANG", "TMPDIR"}}
    environ |= {"HOME": str(home), "OTEL_EXPORTER_PROMETHEUS_PORT": str(port), "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}
    environ["OTEL_METRIC_EXPORT_INTERVAL"] = "2000"  # as often as it is scraped
    command = [sys.executable, "-m", "recallscope.runtime.cli", "load", "--rate", "8", "--seed", "1"]
    split = "tiered:40,prefetch:30,deadline:30"
    with (home / "load.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--policy", split, "--scenarios", kinds], env=environ, cwd=home, stdout=log, stderr=log
        )
        try:
            yield process
        finally:
            process.terminate()
            process.wait(timeout=30)
