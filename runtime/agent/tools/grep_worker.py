"""The process behind the tool grep: one order on stdin, one JSON line per match on stdout, and a last line.

Messages: `{"match": "path:line: text"}`, `{"problem": "…"}` (nothing follows), `{"finished": ["note", …]}`.
"""

import io
import json
import re
import resource
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from recallscope.runtime.agent.tools.patterns import compile_pattern
from recallscope.runtime.agent.tools.workspace import FileText, Workspace, read_text
from recallscope.runtime.errors import ToolError

__all__ = ["main"]

FILE_LIMIT = 8 * 1024 * 1024
LINE_LENGTH = 10_000
SHOWN_LENGTH = 300


def main() -> None:
    """Carry out the order on stdin."""
    order = json.loads(sys.stdin.buffer.read())
    # Should the parent die without killing it, a search still ends.
    seconds = int(order["seconds"]) + 2
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    try:
        for message in _search(order):
            _say(message)
    except ToolError as error:
        _say({"problem": str(error)})
    except OSError as error:
        _say({"problem": error.strerror or type(error).__name__})


def _say(message: Mapping[str, Any]) -> None:
    sys.stdout.buffer.write(json.dumps(message).encode() + b"\n")
    sys.stdout.buffer.flush()


def _search(order: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    expression = _expression(order["pattern"], ignore_case=order.get("ignore_case", False))
    workspace = Workspace(Path(order["root"]))
    matches, skipped, cut_files = 0, 0, 0
    for path in _files(workspace, order):
        file = _text(path)
        if file is None:
            skipped += 1
            continue
        cut_files += file.cut
        name = workspace.relative(path)
        for number, line in enumerate(io.StringIO(file.text, newline="\n"), 1):
            found = expression.search(line.rstrip("\r\n"), 0, LINE_LENGTH)
            if found is None:
                continue
            if matches == order["max_matches"]:
                yield {"finished": [f"cut: there are more than {matches} matching lines; narrow the search down"]}
                return
            matches += 1
            yield {"match": f"{name}:{number}: {_around(line, found.start())}"}
    notes = [f"{skipped} files left out: binary, not readable or no files"] if skipped else []
    if cut_files:
        notes.append(f"{cut_files} files have more than {FILE_LIMIT} bytes; only their first part was searched")
    yield {"finished": notes}


def _expression(pattern: str, *, ignore_case: bool) -> re.Pattern[str]:
    try:
        return re.compile(pattern, re.IGNORECASE if ignore_case else 0)
    except (re.error, OverflowError, RecursionError) as error:
        raise ToolError(f"{pattern!r} is no regular expression: {error}; escape what is meant literally") from None


def _files(workspace: Workspace, order: Mapping[str, Any]) -> Iterator[Path]:
    start = workspace.resolve(order.get("path", "."))
    wanted: Callable[[str], bool] = compile_pattern(order["include"]) if "include" in order else lambda _: True
    if not start.is_dir():
        yield start
        return
    for path in workspace.walk(start, lambda: False):
        # A pattern without a slash means the name, wherever the file is: that is what a search asks.
        name = path.relative_to(start).as_posix() if "/" in order.get("include", "") else path.name
        if wanted(name):
            yield path


def _text(path: Path) -> FileText | None:
    try:
        return read_text(path, path.name, limit=FILE_LIMIT)
    except (ToolError, OSError):
        return None


def _around(line: str, start: int) -> str:
    """Return the line, or of a long one the part around the match."""
    line = line.rstrip("\r\n")
    if len(line) <= SHOWN_LENGTH:
        return line
    begin = max(0, start - SHOWN_LENGTH // 3)
    return f"…{line[begin : begin + SHOWN_LENGTH]}…"
