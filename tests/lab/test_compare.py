"""The comparison as a person runs it: a process of its own, real turns, figures from its own `/metrics`."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from recallscope.runtime.lab.compare import Plan
from recallscope.runtime.terms import PolicyName, Scenario

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def _environ(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RECALLSCOPE_", "OTEL_", "XDG_"))}
    return kept | {"HOME": str(home), "TMPDIR": str(home)}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Give a function that runs `recallscope compare` in an empty folder that is also its home."""

    def go(*arguments: str, environ: Mapping[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "recallscope.runtime.cli", "compare", *arguments],
            check=False,
            cwd=tmp_path,
            env=_environ(tmp_path) | dict(environ or {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=170,
        )

    return go


@pytest.mark.timeout(180)  # it plays for 20 s, and again where the machine held the loop up
def test_every_cell_is_as_stated(run: Run, tmp_path: Path) -> None:
    """Two turns in each cell: all verdicts are as stated, JSON alone on stdout, progress on stderr, nothing left."""
    done = run("--json", "--turns", "2")

    data = json.loads(done.stdout)
    cells = {f"{cell['scenario']} {cell['policy']}": cell for cell in data["cells"]}
    assert {name: cell["verdict"] for name, cell in cells.items()} == dict.fromkeys(cells, "as_stated"), done.stderr
    assert (done.returncode, data["verdict"], len(cells)) == (0, "as_stated", 15)
    assert done.stderr.splitlines()[:6] == [f"playing: {turns} of 30 turns" for turns in (0, 6, 12, 18, 24, 30)]
    assert list(tmp_path.rglob("*")) == []


def test_one_cell_as_a_table(run: Run) -> None:
    """`--policy` and `--scenario` choose what is played; the table on stdout ends with the verdict."""
    done = run("--policy", "tiered", "--scenario", "slow_without_tools", "--turns", "1")

    lines = done.stdout.splitlines()
    assert (done.returncode, lines[0], lines[-1]) == (
        0,
        "1 turn against the scripted model server",
        "The one cell is as stated.",
    )
    assert "deadline" not in done.stdout
    assert "✔ initial 1/1" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--turns", "0"), "0 is not in the range 1<=x<=1000"),
        (("--policy", "off"), "'off' is not one of 'deadline', 'prefetch', 'tiered'"),
        (("--scenario", "nothing_found"), "'nothing_found' is not one of"),
        (("--job", "agents"), "add --from-prometheus URL"),
        (("--since", "24h"), "add --from-prometheus URL"),
        (("--window", "1h"), "No such option '--window'"),
        (("--from-prometheus", "http://127.0.0.1:1", "--turns", "3"), "with --from-prometheus nothing is"),
        (("--from-prometheus", "http://127.0.0.1:1", "--since", "yesterday"), "it must be a time such as"),
        (("more",), "unexpected extra argument"),
    ],
)
def test_wrong_use_is_told_and_has_its_own_exit_code(run: Run, arguments: tuple[str, ...], problem: str) -> None:
    """Exit code 2, what was wrong and what is allowed; stdout stays empty."""
    done = run(*arguments)

    assert (done.returncode, done.stdout) == (2, "")
    assert problem in done.stderr


def test_without_metrics_there_is_no_table(run: Run) -> None:
    """A switched-off SDK and a port that is taken are an error that says what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for environ in ({"OTEL_SDK_DISABLED": "true"}, {"OTEL_EXPORTER_PROMETHEUS_PORT": port}):
            done = run("--turns", "1", environ=environ)

            assert (done.returncode, done.stdout) == (1, "")
            assert "recallscope: this process serves no /metrics" in done.stderr
            assert "unset OTEL_SDK_DISABLED, and set OTEL_EXPORTER_PROMETHEUS_PORT to a free port" in done.stderr


def test_a_prometheus_that_does_not_answer_is_told(run: Run) -> None:
    """The address, the reason and what to check."""
    done = run("--from-prometheus", "http://127.0.0.1:1")

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("recallscope: no answer from http://127.0.0.1:1/api/v1/query: ")
    assert done.stderr.endswith("; check that the Prometheus runs there\n")


@contextmanager
def _started(home: Path, *arguments: str) -> Generator["subprocess.Popen[str]"]:
    """Run `recallscope compare` in a session of its own, so that a signal can reach all of its processes."""
    process = subprocess.Popen(
        [sys.executable, "-m", "recallscope.runtime.cli", "compare", *arguments],
        cwd=home,
        env=_environ(home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def test_ctrl_c_ends_it_cleanly() -> None:
    """Exit code 130, no traceback, no table, no temporary files, and no process is left behind."""
    with tempfile.TemporaryDirectory() as name, _started(Path(name)) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "playing: 0 of 75 turns\n"

        os.killpg(process.pid, signal.SIGINT)
        stdout, stderr = process.communicate(timeout=30)

        assert (process.returncode, stdout, stderr.strip()) == (130, "", "")
        assert list(Path(name).iterdir()) == []
        with pytest.raises(ProcessLookupError):
            os.killpg(process.pid, 0)


def test_a_plan_knows_its_size() -> None:
    """Turns per cell times cells."""
    assert Plan().total == 75
    assert Plan(turns=2, policies=(PolicyName.TIERED,), scenarios=(Scenario.TIMED_OUT, Scenario.SUPERSEDED)).total == 4
