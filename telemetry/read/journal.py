"""Reads journals: lines as dictionaries, oldest first; torn and foreign lines are left out."""

import heapq
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

from recallscope.telemetry.encode import VERSION
from recallscope.telemetry.journal import FILE_PATTERN

__all__ = ["journal_files", "read_journal"]


def journal_files(directory: Path) -> list[Path]:
    """Return the journal's files in `directory`, by name: processes by their start, each in its own order."""
    return sorted(directory.glob(FILE_PATTERN))


def read_journal(paths: Iterable[Path]) -> Iterator[dict[str, Any]]:
    """Yield the events in `paths` (files, or a journal's directory) ordered by wall time.

    A last line that is still being written, a line that is no JSON object, and one of a newer version are left out;
    a file that has been removed meanwhile counts as empty. Keys that a caller does not know are there for it to ignore.
    """
    files = [file for path in paths for file in (journal_files(path) if path.is_dir() else (path,))]
    return heapq.merge(*(_events(file) for file in files), key=_wall)


def _events(path: Path) -> Iterator[dict[str, Any]]:
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    with file:
        for line in file:
            event = _event(line)
            if event is not None:
                yield event


def _event(line: bytes) -> dict[str, Any] | None:
    if not line.endswith(b"\n"):
        return None
    try:
        parsed: object = json.loads(line)
    except ValueError:
        return None
    if not isinstance(parsed, dict):
        return None
    event = cast("dict[str, Any]", parsed)
    known = event.get("v") == VERSION and isinstance(event.get("event"), str)
    return event if known and isinstance(event.get("wall"), int | float) else None


def _wall(event: dict[str, Any]) -> float:
    return float(event["wall"])
