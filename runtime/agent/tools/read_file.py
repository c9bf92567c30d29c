"""The tool that reads a text file of the workspace."""

import io
from collections.abc import Mapping
from itertools import islice
from typing import Any

from recallscope.runtime.agent.tools.workspace import FileText, Workspace, shown
from recallscope.runtime.errors import ToolError
from recallscope.runtime.model.seam import ToolSpec

__all__ = ["SPEC", "read_file"]

LINES = 2000
LINE_LENGTH = 2000
CHARACTERS = 45_000
LINE_END = "\r\n"

SPEC = ToolSpec(
    "read_file",
    "Read a text file of the workspace. Gives its lines with their numbers. A long file is read in pieces: "
    "offset is the number of the first line, limit the number of lines.",
    {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "path of the file, relative to the workspace"},
            "offset": {"type": "integer", "minimum": 1, "description": "first line, counted from 1"},
            "limit": {"type": "integer", "minimum": 1, "maximum": LINES, "description": f"lines, {LINES} by default"},
        },
        "required": ["path"],
    },
)


def read_file(workspace: Workspace, arguments: Mapping[str, Any]) -> str:
    """Return numbered lines and, in brackets, what was left out and where to go on; blocks.

    Raises:
        ToolError: the file cannot be read as text, or it has no such line.
    """
    path, offset = arguments["path"], arguments.get("offset", 1)
    file = workspace.read(path)
    if not file.text:
        return "[the file is empty]"
    total = file.text.count("\n") + (not file.text.endswith("\n"))
    if offset > total:
        raise ToolError(f"{shown(path)!r} has {total} lines; there is no line {offset}")
    # One after the other: a list of all lines of a file at the limit would take hundreds of megabytes.
    lines = islice(io.StringIO(file.text, newline="\n"), offset - 1, offset - 1 + arguments.get("limit", LINES))
    numbered: list[str] = []
    characters = 0
    for number, line in enumerate(lines, offset):
        entry = f"{number}\t{_shortened(line.rstrip(LINE_END))}"
        characters += len(entry) + 1
        if numbered and characters > CHARACTERS:
            break
        numbered.append(entry)
    return "\n".join(numbered + _notes(file, offset + len(numbered), total))


def _shortened(line: str) -> str:
    if len(line) <= LINE_LENGTH:
        return line
    return f"{line[:LINE_LENGTH]} [cut: {len(line) - LINE_LENGTH} more characters in this line]"


def _notes(file: FileText, following: int, total: int) -> list[str]:
    notes: list[str] = []
    if following <= total:
        notes.append(f"[lines {following} to {total} are not shown; go on with offset {following}]")
    if file.cut:
        notes.append(
            f"[the file has {file.size} bytes; these lines come from its first part, search the rest with grep]"
        )
    if file.encoding != "UTF-8":
        notes.append(f"[the file is not UTF-8; it was read as {file.encoding}]")
    return notes
