"""Starts the real outside programs of these tests, Prometheus and the collector, each on free ports of loopback.

Every program runs as long as its `with` block, writes into the folder that it is given, and leaves its log there.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

__all__ = [
    "COLLECTOR_FILE",
    "FLEET_FILE",
    "OTELCOL",
    "ROOT",
    "Collector",
    "Prometheus",
    "Sample",
    "free_port",
    "run_collector",
    "run_prometheus",
    "validate",
    "wait_until",
]

ROOT = Path(__file__).parents[2]
OTELCOL = ROOT / "build" / "otelcol" / "otelcol"
"""What `make otelcol` builds."""

COLLECTOR_FILE = ROOT / "otel-collector.yaml"
FLEET_FILE = ROOT / "otel-collector-fleet.yaml"
PATIENCE_SECONDS = 30.0

Sample = tuple[dict[str, str], float]
"""The labels and the value of one series at one moment."""


def wait_until(condition: Callable[[], bool], what: str, *, seconds: float = PATIENCE_SECONDS) -> None:
    """Wait, at most `seconds`, for a program that tells nobody when it is done; `what` is what is waited for."""
    pause, deadline = threading.Event(), time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        pause.wait(0.05)


def free_port() -> int:
    """Find a port of loopback where nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True, slots=True)
class Prometheus:
    """A Prometheus at `url`."""

    url: str

    @property
    def write_url(self) -> str:
        """Where it takes remote writes."""
        return f"{self.url}/api/v1/write"

    def get(self, path: str, **parameters: str) -> Any:
        """Return the data that its API answers below `/api/v1/`."""
        with urlopen(f"{self.url}/api/v1/{path}?{urlencode(parameters)}", timeout=10) as response:  # noqa: S310 - loopback
            return json.load(response)["data"]

    def ask(self, query: str, *, at: float | None = None) -> list[Sample]:
        """Return what an instant query gives now, or at a moment in seconds since 1970."""
        moment = {} if at is None else {"time": f"{at:.3f}"}
        result = self.get("query", query=query, **moment)["result"]
        return [(series["metric"], float(series["value"][1])) for series in result]

    def number(self, query: str, *, at: float | None = None) -> float:
        """Return the sum of what an instant query gives; -1 while the Prometheus does not answer."""
        try:
            return sum(value for _, value in self.ask(query, at=at))
        except (URLError, ConnectionError):
            return -1.0

    def names(self, job: str) -> set[str]:
        """Return the names of all metrics that it holds of a job."""
        return set(self.get("label/__name__/values", **{"match[]": f'{{job="{job}"}}'}))

    def exemplars(self, query: str, *, start: float, end: float) -> list[tuple[dict[str, str], float]]:
        """Return the labels and values of the exemplars of a query's series."""
        found = self.get("query_exemplars", query=query, start=f"{start:.3f}", end=f"{end:.3f}")
        return [(one["labels"], float(one["value"])) for series in found for one in series["exemplars"]]


@contextmanager
def run_prometheus(
    folder: Path, targets: Mapping[str, str | Sequence[str]], *, interval: str = "500ms", rules: Sequence[Path] = ()
) -> Generator[Prometheus]:
    """Run a Prometheus that scrapes `targets` (job to host:port, one or several); takes remote writes and exemplars."""
    program = shutil.which("prometheus")
    assert program is not None, "no prometheus on the path: apt-get install --no-install-recommends prometheus"
    jobs = [
        {
            "job_name": job,
            "scrape_interval": interval,
            "scrape_timeout": interval,
            "static_configs": [{"targets": [target] if isinstance(target, str) else list(target)}],
        }
        for job, target in targets.items()
    ]
    config = folder / "prometheus.yml"
    config.write_text(
        json.dumps({"scrape_configs": jobs, "rule_files": [str(rule) for rule in rules]}), encoding="utf-8"
    )
    prometheus = Prometheus(f"http://127.0.0.1:{free_port()}")
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            [
                program,
                f"--config.file={config}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address={prometheus.url.removeprefix('http://')}",
                "--web.enable-remote-write-receiver",
                "--enable-feature=exemplar-storage",
            ],
            stdout=log,
            stderr=log,
        )
        try:
            wait_until(lambda: _answers(f"{prometheus.url}/-/ready"), "the Prometheus is ready")
            yield prometheus
        finally:
            process.terminate()
            process.wait(timeout=20)


@dataclass(slots=True)
class Collector:
    """A collector with one or more configuration files; its ports and folders stay the same when it is restarted.

    Attributes:
        kept: the file of the traces that it kept.
    """

    folder: Path
    configs: Sequence[Path]
    environ: Mapping[str, str] = field(default_factory=dict[str, str])
    grpc_port: int = field(default_factory=free_port)
    http_port: int = field(default_factory=free_port)
    health_port: int = field(default_factory=free_port)
    metrics_port: int = field(default_factory=free_port)
    _process: "subprocess.Popen[bytes] | None" = None
    _log: IO[bytes] | None = None

    @property
    def endpoint(self) -> str:
        """The value of `OTEL_EXPORTER_OTLP_ENDPOINT` for HTTP."""
        return f"http://127.0.0.1:{self.http_port}"

    @property
    def grpc_endpoint(self) -> str:
        """The value of `OTEL_EXPORTER_OTLP_ENDPOINT` for gRPC."""
        return f"http://127.0.0.1:{self.grpc_port}"

    @property
    def metrics_target(self) -> str:
        """Where its own metrics are scraped."""
        return f"127.0.0.1:{self.metrics_port}"

    @property
    def kept(self) -> Path:
        """The file of the traces that it kept."""
        return self.folder / "kept.jsonl"

    @property
    def log(self) -> str:
        """What it has logged so far."""
        return (self.folder / "otelcol.log").read_text(encoding="utf-8", errors="replace")

    def start(self) -> None:
        """Start it and wait until it is healthy."""
        assert OTELCOL.exists(), f"no collector at {OTELCOL}: build it with `make otelcol`"
        self._log = (self.folder / "otelcol.log").open("ab")
        self._process = subprocess.Popen(
            [OTELCOL, *_arguments(self.configs)],
            env=_environ(
                {
                    "OTELCOL_GRPC_ADDRESS": f"127.0.0.1:{self.grpc_port}",
                    "OTELCOL_HTTP_ADDRESS": f"127.0.0.1:{self.http_port}",
                    "OTELCOL_HEALTH_ADDRESS": f"127.0.0.1:{self.health_port}",
                    "OTELCOL_METRICS_PORT": str(self.metrics_port),
                    "OTELCOL_QUEUE_DIR": str(self.folder / "queue"),
                    "OTELCOL_KEPT_FILE": str(self.kept),
                    **self.environ,
                }
            ),
            stdout=self._log,
            stderr=self._log,
        )
        wait_until(self._is_up, "the collector is healthy")

    def kill(self) -> None:
        """Kill it as a crash does (SIGKILL)."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Ask it to end (SIGTERM), and wait for that."""
        self._end(signal.SIGTERM)

    def freeze(self) -> None:
        """Let it take connections and never answer (SIGSTOP), until it is killed or thawed."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on (SIGCONT)."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def own(self, name: str, where: str = "") -> float:
        """Return the sum of one of its own metrics over the label sets that hold `where`; 0 if it does not tell it."""
        with urlopen(f"http://{self.metrics_target}/metrics", timeout=10) as response:
            lines = response.read().decode().splitlines()
        ours = (line for line in lines if line.split("{")[0].split(" ")[0] == name and where in line)
        return sum(float(line.rpartition(" ")[2]) for line in ours)

    def _is_up(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, f"the collector ended at once:\n{self.log[-3000:]}"
        return _answers(f"http://127.0.0.1:{self.health_port}/")

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(timeout=30)
            self._process = None
        if self._log is not None:
            self._log.close()
            self._log = None


@contextmanager
def run_collector(folder: Path, *configs: Path, **environ: str) -> Generator[Collector]:
    """Run a collector with `configs` (the shipped file if none is named) and variables for them."""
    port = int(environ.get("OTELCOL_METRICS_PORT", free_port()))
    collector = Collector(folder, configs or (COLLECTOR_FILE,), environ, metrics_port=port)
    try:
        collector.start()
        yield collector
    finally:
        collector.kill()


def validate(*configs: Path, **environ: str) -> "subprocess.CompletedProcess[str]":
    """Let the collector check `configs` without starting anything."""
    return subprocess.run(
        [OTELCOL, "validate", *_arguments(configs)],
        check=False,
        env=_environ(environ),
        capture_output=True,
        text=True,
        timeout=60,
    )


def _arguments(configs: Sequence[Path]) -> list[str]:
    return [f"--config={config}" for config in configs]


def _environ(more: Mapping[str, str]) -> dict[str, str]:
    """Return a clean environment: what the person who runs the tests has set must not reach the program."""
    return {name: value for name, value in os.environ.items() if name in {"PATH", "HOME", "TMPDIR"}} | dict(more)


def _answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=2) as response:  # noqa: S310 - loopback
            return bool(response.status == 200)
    except OSError:
        return False
