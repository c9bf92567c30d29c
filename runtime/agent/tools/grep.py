"""The tool that searches the text files of the workspace.

The search runs in a process of its own (`grep_worker`). A regular expression can take for ever on forty characters,
and Python holds its interpreter lock while it matches: in a thread such a pattern would stop every turn of this
process and could not be interrupted. A process can be killed, at the time limit and when the turn is cancelled.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from recallscope.runtime.agent.tools.workspace import Workspace
from recallscope.runtime.errors import ToolError
from recallscope.runtime.model.seam import ToolSpec

__all__ = ["SPEC", "grep"]

MATCHES = 200
SECONDS = 10.0
PATTERN_LENGTH = 1000
MESSAGE_LIMIT = 64 * 1024

SPEC = ToolSpec(
    "grep",
    "Search the text files of the workspace, line by line, with a Python regular expression. Gives path:line: text. "
    "Version control, virtual environments, node_modules and binary files are left out.",
    {
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "description": "Python regular expression"},
            "path": {"type": "string", "description": "file or folder to search; the workspace by default"},
            "include": {"type": "string", "description": "only files of this pattern, like **/*.py or *.{md,txt}"},
            "ignore_case": {"type": "boolean"},
            "max_matches": {"type": "integer", "minimum": 1, "maximum": MATCHES},
        },
        "required": ["pattern"],
    },
)

# The child gets no environment (and so no keys) and no site; only the places where this process finds modules.
START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from recallscope.runtime.agent.tools.grep_worker import main; main()"
)


@dataclass(slots=True)
class _Found:
    lines: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])
    finished: bool = False

    def take(self, message: Mapping[str, Any]) -> None:
        match message:
            case {"match": str(line)}:
                self.lines.append(line)
            case {"problem": str(problem)}:
                raise ToolError(problem)
            case {"finished": list()}:
                self.notes += message["finished"]
                self.finished = True
            case _:
                raise ToolError("the search gave an unreadable answer; try again")


async def grep(workspace: Workspace, arguments: Mapping[str, Any], *, seconds: float = SECONDS) -> str:
    """Return the matching lines and what was left out; after `seconds` the search is stopped and what is there given.

    Raises:
        ToolError: pattern or path is wrong, or the search could not run.
    """
    if len(arguments["pattern"]) > PATTERN_LENGTH:
        raise ToolError(f"the pattern has more than {PATTERN_LENGTH} characters; search for a shorter one")
    order = {"root": str(workspace.root), "max_matches": MATCHES, "seconds": seconds, **arguments}
    found = _Found()
    process = await _started()
    try:
        with anyio.move_on_after(seconds) as scope:
            async with aclosing(_messages(process, order)) as messages:
                async for message in messages:
                    found.take(message)
    finally:
        with anyio.CancelScope(shield=True):
            if not found.finished and process.returncode is None:
                _kill(process)
            await process.aclose()
    if scope.cancelled_caught:
        found.notes.append(f"stopped after {seconds:g} seconds: search in a smaller folder or with a simpler pattern")
    elif not found.finished:
        raise ToolError("the search ended before it was done; try a smaller folder or a simpler pattern")
    return "\n".join([*found.lines, *(f"[{note}]" for note in found.notes)]) or "[no line matches]"


async def _started() -> Process:
    with anyio.CancelScope(shield=True):  # some milliseconds; half a process could not be waited for
        return await anyio.open_process(
            [sys.executable, "-I", "-S", "-c", START, json.dumps([path for path in sys.path if path])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},
            # A Ctrl-C in the terminal is the turn's to answer: it kills the search.
            start_new_session=True,
        )
    raise AssertionError("a shielded scope is never cancelled")


def _kill(process: Process) -> None:
    """End the search; `Process.kill` would take the exit status of a child that has just died from its watcher."""
    with suppress(ProcessLookupError):  # it has ended by itself
        os.kill(process.pid, signal.SIGKILL)


async def _messages(process: Process, order: Mapping[str, Any]) -> AsyncGenerator[Mapping[str, Any], None]:
    if process.stdin is None or process.stdout is None:
        return
    received = BufferedByteReceiveStream(process.stdout)
    with suppress(anyio.BrokenResourceError):  # it died: the caller sees that it did not finish
        await process.stdin.send(json.dumps(order).encode())
        await process.stdin.aclose()
    while True:
        try:
            line = await received.receive_until(b"\n", MESSAGE_LIMIT)
        except anyio.IncompleteRead:
            return
        yield json.loads(line)
