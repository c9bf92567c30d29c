"""The doctor's look at `/metrics` whose port is taken, and at the journal's folder."""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from recallscope.runtime.cli.doctor.finding import State
from recallscope.runtime.cli.doctor.outward import check_exports, check_journal, check_metrics
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


@pytest.mark.parametrize(
    ("host", "told"),
    [("nowhere.invalid", "no address is known by that name"), ("192.0.2.1", "this machine has it not")],
)
def test_a_host_that_is_not_this_machines_is_told(tmp_path: Path, host: str, told: str) -> None:
    """Another port would not help, so the host is what to set."""
    finding = check_metrics(_settings(tmp_path, metrics_host=host), {})

    assert (finding.state, finding.text) == (
        State.WARNING,
        (
            f"/metrics cannot be served at telemetry.metrics_host {host} ({told}); set it to an address of this "
            "machine, such as 127.0.0.1"
        ),
    )


def test_the_journals_folder_need_not_be_there_yet(tmp_path: Path) -> None:
    """The nearest folder that is there is tried, and nothing is left in it."""
    finding = check_journal(_settings(tmp_path, journal_dir=str(tmp_path / "a" / "b")))

    assert finding.state is not State.FAILED  # a small disk is a warning
    assert list(tmp_path.iterdir()) == []


def test_a_journals_folder_that_cannot_be_made_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder that was meant, not the one that is there, and what names it."""
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/nope")
    by_variable = check_journal(load(environ={"XDG_STATE_HOME": "/proc/nope"}, cwd=tmp_path, home=tmp_path))
    by_key = check_journal(_settings(tmp_path, journal_dir=f"/dev/null/{'x' * 300}"))

    assert (by_variable.state, by_variable.text) == (
        State.FAILED,
        (
            "/proc/nope/recallscope/journal cannot be written to (nothing can be made in /proc); XDG_STATE_HOME names "
            "it: set that, or telemetry.journal_dir, to a folder of yours"
        ),
    )
    assert by_key.state is State.FAILED
    assert by_key.text.endswith("); set telemetry.journal_dir to a folder of yours")


@pytest.mark.parametrize(
    ("environ", "told"),
    [
        ({"ENDPOINT": "garbage"}, "garbage: that is no address such as http://localhost:4318; correct OTEL_EXPORTER_"),
        ({"ENDPOINT": "http://"}, "http://: that is no address such as http://localhost:4318; correct OTEL_EXPORTER_"),
        ({"ENDPOINT": "http://a:b"}, "http://a:b: that is no address such as"),
        ({"ENDPOINT": "unix:///x", "PROTOCOL": "grpc"}, "unix:///x: that is no address such as http://localhost:4317"),
        (
            {"TRACES_ENDPOINT": "here"},
            "here: that is no address such as http://localhost:4318; correct OTEL_EXPORTER_OTLP_TR",
        ),
    ],
)
def test_an_endpoint_that_is_no_address_is_told_before_a_library_says_it(environ: dict[str, str], told: str) -> None:
    """Which variable, what it is, and how an address looks."""
    found = list(check_exports({f"OTEL_EXPORTER_OTLP_{name}": value for name, value in environ.items()}))

    assert found[0].state is State.FAILED
    assert found[0].text.startswith(told)


def test_what_is_wrong_with_a_variable_is_a_finding_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    """Not a line of a log for each signal."""
    environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": "nowhere", "OTEL_EXPORTER_OTLP_PROTOCOL": "bogus"}

    found = list(check_exports(environ))

    assert [finding.text for finding in found if finding.state is State.WARNING] == [
        "OTEL_EXPORTER_OTLP_PROTOCOL=bogus is not known here: use grpc or http/protobuf (used now)"
    ]
    assert caplog.messages == []


def test_headers_that_are_none_are_told_and_not_shown(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """They may be a secret; nothing of it stands in a finding or a log."""
    environ = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1",
        "OTEL_EXPORTER_OTLP_HEADERS": "hidden",
        "OTEL_EXPORTER_OTLP_TIMEOUT": "0.1",
        "OTEL_METRICS_EXPORTER": "none",
    }
    for name, value in environ.items():
        monkeypatch.setenv(name, value)

    found = list(check_exports(environ))

    assert found[0].state is State.WARNING
    assert found[0].text.startswith("OTEL_EXPORTER_OTLP_HEADERS, or that of a signal, is no list such as name=value")
    assert "hidden" not in caplog.text + "".join(finding.text for finding in found)


def test_a_journal_that_is_off_is_not_checked(tmp_path: Path) -> None:
    """Not applicable."""
    assert check_journal(_settings(tmp_path, journal="false")).state is State.NOT_APPLICABLE
