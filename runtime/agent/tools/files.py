"""The tools that come with the agent: they read the workspace and change nothing."""

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from recallscope.runtime.agent.tools import glob, grep, list_directory, read_file
from recallscope.runtime.agent.tools.registry import Tool, function_tool
from recallscope.runtime.agent.tools.workspace import Workspace
from recallscope.runtime.model.seam import ToolSpec
from recallscope.runtime.observe import Clock

__all__ = ["workspace_tools"]

THREADS = 8
SEARCHES = 2
GLOB_SECONDS = 10.0

_Work = Callable[[Mapping[str, Any], Callable[[], bool]], str]


def workspace_tools(
    root: Path, *, clock: Clock = time.monotonic, grep_seconds: float = grep.SECONDS
) -> tuple[Tool, ...]:
    """Make read_file, list_directory, glob and grep for the folder `root`; they share a few threads of their own.

    A cancelled call returns at once; its thread ends at the next file.
    """
    workspace = Workspace(root)
    threads, searches = anyio.CapacityLimiter(THREADS), anyio.CapacityLimiter(SEARCHES)

    def in_thread(spec: ToolSpec, work: _Work) -> Tool:
        async def run(arguments: Mapping[str, Any]) -> str:
            cancelled, end = threading.Event(), clock() + GLOB_SECONDS

            def stop() -> bool:
                return cancelled.is_set() or clock() > end

            try:
                return await anyio.to_thread.run_sync(work, arguments, stop, abandon_on_cancel=True, limiter=threads)
            finally:
                cancelled.set()

        return function_tool(spec.name, spec.description, spec.parameters, run, read_only=True)

    async def search(arguments: Mapping[str, Any]) -> str:
        async with searches:
            return await grep.grep(workspace, arguments, seconds=grep_seconds)

    return (
        in_thread(read_file.SPEC, lambda arguments, _stop: read_file.read_file(workspace, arguments)),
        in_thread(list_directory.SPEC, lambda arguments, _stop: list_directory.list_directory(workspace, arguments)),
        in_thread(glob.SPEC, lambda arguments, stop: glob.glob(workspace, arguments, stop)),
        function_tool(grep.SPEC.name, grep.SPEC.description, grep.SPEC.parameters, search, read_only=True),
    )
