"""`recallscope model-server` serves a script on loopback until it is told to stop."""

import json
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """Give a script with one answer."""
    file = tmp_path / "script.yaml"
    file.write_text("purposes:\n  main:\n    - answer: Hello\n", encoding="utf-8")
    return file


def test_it_says_where_it_is_answers_and_ends_on_ctrl_c(script: Path) -> None:
    """The base URL is the one line on stdout, requests are answered there, and Ctrl-C ends it with 130."""
    with subprocess.Popen(
        [sys.executable, "-m", "recallscope.runtime.cli", "model-server", "--script", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Hi"}]}).encode()
            request = urllib.request.Request(f"{url}/chat/completions", data=body)  # noqa: S310 - loopback
            with urllib.request.urlopen(request, timeout=30) as response:  # noqa: S310 - loopback
                answer = json.load(response)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=30)
        finally:
            process.kill()

    assert url.startswith("http://127.0.0.1:")
    assert answer["choices"][0]["message"]["content"] == "Hello"
    assert (process.returncode, out, err.strip()) == (130, "", "")


def test_a_taken_port_is_a_failure_in_one_line(run: Run, script: Path) -> None:
    """A port that somebody else has is exit code 1 and a line that names it."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run("model-server", "--script", str(script), "--port", str(port))

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"recallscope: cannot listen on 127.0.0.1:{port}: ")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("content", "told"), [(None, "cannot be read"), ("purposes: 3\n", "purposes"), ("purposes: [\n", "script.yaml")]
)
def test_a_wrong_script_is_wrong_use(run: Run, script: Path, content: str | None, told: str) -> None:
    """A script that is missing or wrong is exit code 2 and names the place."""
    if content is None:
        script.unlink()
    else:
        script.write_text(content, encoding="utf-8")

    done = run("model-server", "--script", str(script))

    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert done.stderr.startswith("recallscope: ")
    assert told in done.stderr
