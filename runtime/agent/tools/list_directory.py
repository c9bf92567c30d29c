"""The tool that lists a folder of the workspace."""

import os
from collections.abc import Mapping
from itertools import islice
from typing import Any

from recallscope.runtime.agent.tools.workspace import Workspace, shown
from recallscope.runtime.errors import ToolError
from recallscope.runtime.model.seam import ToolSpec

__all__ = ["SPEC", "list_directory"]

ENTRIES = 500
LOOKED_AT = 20_000

SPEC = ToolSpec(
    "list_directory",
    "List a folder of the workspace: folders first (with a slash), then files with their size in bytes.",
    {
        "type": "object",
        "properties": {"path": {"type": "string", "description": "path of the folder; the workspace by default"}},
    },
)


def list_directory(workspace: Workspace, arguments: Mapping[str, Any]) -> str:
    """Return one line per entry, sorted by name, and what was left out; blocks.

    Raises:
        ToolError: there is no such folder.
    """
    path = arguments.get("path", ".")
    real = workspace.resolve(path)
    if not real.is_dir():
        raise ToolError(f"{shown(path)!r} is no folder; read a file with read_file")
    with os.scandir(real) as entries:
        looked_at = list(islice(entries, LOOKED_AT + 1))
    more = len(looked_at) > LOOKED_AT
    ordered = sorted(looked_at[:LOOKED_AT], key=lambda entry: (not entry.is_dir(follow_symlinks=False), entry.name))
    lines = [_line(entry) for entry in ordered[:ENTRIES]]
    if len(ordered) > ENTRIES:
        count = f"more than {LOOKED_AT}" if more else str(len(ordered))
        lines.append(f"[cut: {ENTRIES} of {count} entries; narrow it down with glob]")
    return "\n".join(lines) or "[the folder is empty]"


def _line(entry: os.DirEntry[str]) -> str:
    name = shown(entry.name)
    if entry.is_symlink():
        return f"{name}  (link)"
    if entry.is_dir(follow_symlinks=False):
        return f"{name}/"
    try:
        facts = entry.stat(follow_symlinks=False)
    except OSError:  # it went away meanwhile
        return name
    return f"{name}  {facts.st_size}" if entry.is_file(follow_symlinks=False) else f"{name}  (special)"
