"""The doctor's look at `/metrics` whose port is taken, and at the journal's folder."""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from recallscope.runtime.cli.doctor.finding import State
from recallscope.runtime.cli.doctor.outward import check_journal, check_metrics
from recallscope.runtime.config import Flag, Settings, load

OURS = """\
# TYPE target info
target_info{process_pid="42",recallscope_front_end="serve",service_name="recallscope"} 1
# TYPE recallscope_telemetry_observer_failures counter
recallscope_telemetry_observer_failures_total{observer="journal"} 12
recallscope_telemetry_observer_failures_total{observer="spans"} 0
# EOF
"""
OTHERS = "# TYPE up gauge\nup 1\n# EOF\n"


@contextmanager
def _served(body: str) -> Generator[int]:
    """Serve `body` on a port of loopback, whatever is asked."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class calls it so
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def _settings(tmp_path: Path, **values: str) -> Settings:
    flags = {f"telemetry.{key}": Flag("--set", value) for key, value in values.items()}
    return load(environ={}, cwd=tmp_path, home=tmp_path, flags=flags)


@pytest.mark.parametrize(
    ("body", "state", "words"),
    [
        (
            OURS,
            State.WARNING,
            "in `recallscope serve` (process 42) observers failed on events and lost them (journal 12)",
        ),
        (OURS.replace("} 12", "} 0"), State.OK, "`recallscope serve` (process 42) serves it at 127.0.0.1:"),
        (OTHERS, State.WARNING, "is taken by another program that serves metrics; set telemetry.metrics_port"),
        ("hello", State.WARNING, "and no /metrics answers there; set telemetry.metrics_port"),
    ],
)
def test_who_has_the_port_is_told(tmp_path: Path, body: str, state: State, words: str) -> None:
    """One of ours, whose observers are looked at; another program with metrics; anything else."""
    with _served(body) as port:
        finding = check_metrics(_settings(tmp_path, metrics_port=str(port)), {})

    assert finding.state is state
    assert words in finding.text


def test_a_free_port_is_served_and_scraped(tmp_path: Path) -> None:
    """For a moment, and by a process that exports nothing."""
    finding = check_metrics(_settings(tmp_path, metrics_port="0"), {})

    assert finding.state is State.OK
    assert "can be served and scraped" in finding.text


@pytest.mark.parametrize(
    ("values", "environ", "words"),
    [
        ({"metrics": "off"}, {}, "telemetry.metrics is off"),
        ({}, {"OTEL_SDK_DISABLED": "true"}, "OTEL_SDK_DISABLED switches it off"),
    ],
)
def test_metrics_that_are_off_are_not_checked(
    tmp_path: Path, values: dict[str, str], environ: dict[str, str], words: str
) -> None:
    """Not applicable, and why."""
    finding = check_metrics(_settings(tmp_path, **values), environ)

    assert (finding.state, finding.text) == (State.NOT_APPLICABLE, words)


def test_the_journals_folder_need_not_be_there_yet(tmp_path: Path) -> None:
    """The nearest folder that is there is tried, and nothing is left in it."""
    finding = check_journal(_settings(tmp_path, journal_dir=str(tmp_path / "a" / "b")))

    assert finding.state is not State.FAILED  # a small disk is a warning
    assert list(tmp_path.iterdir()) == []


def test_a_journal_that_is_off_is_not_checked(tmp_path: Path) -> None:
    """Not applicable."""
    assert check_journal(_settings(tmp_path, journal="false")).state is State.NOT_APPLICABLE
