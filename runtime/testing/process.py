"""The scripted model server in a process of its own, so that it shares neither loop nor interpreter with the client."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from recallscope.runtime.testing.script import Script
from recallscope.runtime.testing.script_parser import load_script

__all__ = ["start_process"]

START_SECONDS = 20.0
STOP_SECONDS = 3.0
MAX_LINE_BYTES = 10_000


@asynccontextmanager
async def start_process(script: Script | Path) -> AsyncGenerator[str]:
    """Run a server for `script` in a process of its own and yield its base URL; the process ends with the block.

    It also ends when this process dies; Ctrl-C in a terminal is not for it. Its errors go to this process's stderr; it
    gets no `OTEL_*` variables and no API keys.

    Raises:
        ScriptError: the script is wrong; nothing was started.
        OSError: the process could not be started, or ended before it listened.
    """
    if isinstance(script, Path):
        script = load_script(script)
    with tempfile.TemporaryDirectory(prefix="recallscope-") as folder:
        file = _write(script, Path(folder))
        command = [sys.executable, "-P", "-m", "recallscope.runtime.testing.model_server"]
        async with await anyio.open_process(
            [*command, "--script", str(file), "--port", "0", "--with-parent"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None,
            env={name: value for name, value in os.environ.items() if not _is_private(name)},
            start_new_session=True,
        ) as process:
            try:
                yield await _url(process)
            finally:
                await _stop(process)


async def _url(process: Process) -> str:
    if process.stdout is None:  # pragma: no cover - it was asked for
        raise OSError("the model server process has no output")
    try:
        with anyio.fail_after(START_SECONDS):
            line = await BufferedByteReceiveStream(process.stdout).receive_until(b"\n", MAX_LINE_BYTES)
        return str(json.loads(line)["url"])
    except (anyio.IncompleteRead, anyio.DelimiterNotFound, ValueError, KeyError, TimeoutError) as error:
        problem = (
            "did not say in time that it listens" if isinstance(error, TimeoutError) else "ended before it listened"
        )
        raise OSError(f"the model server process {problem}; its errors are on stderr") from error


async def _stop(process: Process) -> None:
    with anyio.CancelScope(shield=True):
        if process.returncode is None:
            process.terminate()
        with anyio.move_on_after(STOP_SECONDS):
            await process.wait()
        if process.returncode is None:
            process.kill()
            await process.wait()


def _write(script: Script, folder: Path) -> Path:
    file = folder / "script.json"
    file.write_text(script.as_json(), encoding="utf-8")
    return file


def _is_private(name: str) -> bool:
    return name.startswith("OTEL_") or name.upper().endswith("_API_KEY")
