"""The events of a journal, for tests of what is written: all of a folder's lines that a reader would take."""

from pathlib import Path
from typing import Any

from recallscope.telemetry.read.journal_lines import event_on

__all__ = ["journal_events"]


def journal_events(directory: Path) -> list[dict[str, Any]]:
    """Return the events in the files of `directory`, file by file in the order of their names."""
    files = sorted(directory.iterdir())
    found = (event_on(line) for file in files for line in file.read_bytes().splitlines(keepends=True))
    return [event for event in found if event is not None]
