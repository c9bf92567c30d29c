"""The lines of a journal: the event on each, and a count of those that are broken, which readers leave out."""

import json
from pathlib import Path
from typing import Any, Final, cast

import orjson

from recallscope.telemetry.encode import VERSION
from recallscope.telemetry.read.lenient import number

__all__ = ["BrokenLines", "event_on", "written_as"]

MOST: Final = 100_000
"""So many broken lines are told apart; further ones are not counted."""


def event_on(line: bytes) -> dict[str, Any] | None:
    """Return the event on a whole line of this version; None for any other line."""
    if not line.endswith(b"\n"):
        return None
    parsed = _parsed(line)
    if not isinstance(parsed, dict):
        return None
    event = cast("dict[str, Any]", parsed)
    known = event.get("v") == VERSION and isinstance(event.get("event"), str)
    return event if known and number(event.get("wall")) is not None else None


def written_as(text: str) -> set[bytes]:
    """Return how `text` may stand between its quotes: a line with half a surrogate pair anywhere in it is all ASCII."""
    ascii_only = json.dumps(text)[1:-1].encode()
    try:
        return {orjson.dumps(text)[1:-1], ascii_only}
    except orjson.JSONEncodeError:
        return {ascii_only}


class BrokenLines:
    """Counts the lines that are no JSON object, each once however often it is read.

    A line without its end, as the last one while it is written, an empty one and an object of another version or kind
    are none of them.
    """

    def __init__(self) -> None:
        self._places: set[tuple[Path, int]] = set()

    @property
    def count(self) -> int:
        """How many there were in what was read so far."""
        return len(self._places)

    def look(self, file: Path, position: int, line: bytes) -> None:
        """Look at a line that stands at `position` of `file`, or of the files that begin with it."""
        if (line.startswith(b"{") and line.endswith(b"}\n")) or not line.endswith(b"\n"):
            return
        self.judge(file, position, line)

    def judge(self, file: Path, position: int, line: bytes) -> None:
        """As `look`, for a line that gave no event: what merely looks like an object is read to its end."""
        if line.endswith(b"\n") and line.strip() and len(self._places) < MOST and not _is_object(line):
            self._places.add((file, position))


def _is_object(line: bytes) -> bool:
    return isinstance(_parsed(line), dict)


def _parsed(line: bytes) -> object:
    """Return the JSON value on `line`, None if there is none.

    Half a surrogate pair, as of a name that is no UTF-8, is written as the standard library writes it, and read by it.
    """
    try:
        return orjson.loads(line)
    except ValueError:
        if b"\\ud" not in line:
            return None
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
