"""The tool that finds files of the workspace by name."""

from collections.abc import Callable, Mapping
from typing import Any

from recallscope.runtime.agent.tools.patterns import compile_pattern
from recallscope.runtime.agent.tools.workspace import Workspace, shown
from recallscope.runtime.errors import ToolError
from recallscope.runtime.model.seam import ToolSpec

__all__ = ["SPEC", "glob"]

FILES = 500

SPEC = ToolSpec(
    "glob",
    "Find files of the workspace by a pattern: * and ? within a name, ** across folders, {a,b} for choices. "
    "*.py finds files in the folder itself, **/*.py in all folders below. Version control, virtual environments and "
    "node_modules are left out.",
    {
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "description": "like src/**/*.py"},
            "path": {"type": "string", "description": "folder to begin in; the workspace by default"},
        },
        "required": ["pattern"],
    },
)


def glob(workspace: Workspace, arguments: Mapping[str, Any], stop: Callable[[], bool]) -> str:
    """Return the matching files, sorted, one a line, and what was left out; blocks until done or `stop` says so.

    Raises:
        ToolError: the pattern or the folder is wrong.
    """
    path = arguments.get("path", ".")
    matches = compile_pattern(arguments["pattern"])
    start = workspace.resolve(path)
    if not start.is_dir():
        raise ToolError(f"{shown(path)!r} is no folder")
    stopped = False

    def stop_and_tell() -> bool:
        nonlocal stopped
        stopped = stopped or stop()
        return stopped

    found = sorted(
        workspace.relative(file)
        for file in workspace.walk(start, stop_and_tell)
        if matches(file.relative_to(start).as_posix())
    )
    lines = found[:FILES]
    if len(found) > FILES:
        lines.append(f"[cut: {FILES} of {len(found)} files; make the pattern narrower]")
    if stopped:
        lines.append("[stopped at the time limit: there may be more; begin in a smaller folder]")
    return "\n".join(lines) or "[no file matches]"
