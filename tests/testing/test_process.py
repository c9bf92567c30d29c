"""The scripted model server in a process of its own."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from recallscope.runtime.errors import ScriptError
from recallscope.runtime.testing.process import start_process
from recallscope.runtime.testing.script import Script, Step

MODULE = "recallscope.runtime.testing.model_server"


def fetch(url: str, data: object = None) -> Any:
    """Return the JSON that stands at `url`."""
    request = urllib.request.Request(url, data=None if data is None else json.dumps(data).encode())  # noqa: S310 - loopback
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - loopback
        return json.load(answer)


@pytest.mark.anyio
async def test_a_process_plays_a_script_and_ends_with_its_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """It answers as the script says, hands out its records, and nothing listens there after the block."""
    monkeypatch.setenv("OTEL_SERVICE_NAME", "other")
    async with start_process(Script.of(Step(answer="Hello!"))) as url:
        question = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
        answer = await anyio.to_thread.run_sync(fetch, f"{url}/chat/completions", question)
        records = await anyio.to_thread.run_sync(fetch, f"{url.removesuffix('/v1')}/_/requests")
    assert answer["choices"][0]["message"]["content"] == "Hello!"
    assert [(record["body"], record["purpose"]) for record in records["requests"]] == [(question, "main")]
    with pytest.raises(OSError, match="refused"):
        await anyio.to_thread.run_sync(fetch, f"{url}/models")


@pytest.mark.anyio
async def test_a_wrong_script_starts_nothing(tmp_path: Path) -> None:
    """A script with a mistake is refused in this process, before another one begins."""
    file = tmp_path / "script.yaml"
    file.write_text("purposes: {main: []}")
    with pytest.raises(ScriptError, match=r"^script\.yaml: purposes\.main: is empty"):
        async with start_process(file):
            pass


@pytest.mark.anyio
async def test_a_process_that_dies_is_no_hindrance() -> None:
    """A server that somebody else ended leaves nothing to do at the end of the block."""
    with anyio.fail_after(30):
        async with start_process(Script.of(Step(answer="x"))) as url:
            record = await anyio.to_thread.run_sync(fetch, f"{url.removesuffix('/v1')}/_/healthz")
            os.kill(record["pid"], signal.SIGKILL)


def test_the_module_says_what_is_wrong(tmp_path: Path) -> None:
    """Run by itself, a wrong script is one line on stderr and exit code 2."""
    file = tmp_path / "script.yaml"
    file.write_text("{}")
    done = subprocess.run(
        [sys.executable, "-m", MODULE, "--script", str(file)], check=False, capture_output=True, text=True, timeout=30
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "script.yaml: has no answers; it needs `purposes` or `scenarios`\n"


def test_the_server_ends_when_its_parent_is_gone(tmp_path: Path) -> None:
    """With `--with-parent` the end of stdin ends the process, so that a killed test leaves nothing behind."""
    file = tmp_path / "script.yaml"
    file.write_text("purposes: {main: [{answer: hi}]}")
    with subprocess.Popen(
        [sys.executable, "-m", MODULE, "--script", str(file), "--with-parent"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        assert ready["url"].startswith("http://127.0.0.1:")
        process.stdin.close()
        assert process.wait(timeout=30) == 0
