"""Opens the source of recorded turns that a person names: a folder, a file, or an address."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import orjson

from recallscope.telemetry import names
from recallscope.telemetry.journal import FILE_PATTERN
from recallscope.telemetry.read.backends import backend_at
from recallscope.telemetry.read.figures import ReadError
from recallscope.telemetry.read.journal_turns import JournalTurns
from recallscope.telemetry.read.lenient import mapping
from recallscope.telemetry.read.sources import TurnSource
from recallscope.telemetry.read.span_files import SpanFiles, with_backups

__all__ = ["open_source"]

MAX_FIRST_LINE: Final = 64 * 1024 * 1024


def open_source(place: str | None, *, journal: Path, service: str = names.SCOPE) -> TurnSource:
    """Return the source at `place`: a journal's folder or file, a file or folder of spans, a Tempo, a Jaeger.

    Without a place it is the folder `journal`. `service` is the service's name in a Jaeger.

    Raises:
        ReadError: there is nothing, or it is none of these.
    """
    if place is None:
        return JournalTurns([journal])
    if "://" in place:
        return backend_at(place, service=service)
    path = Path(place).expanduser()
    if path.is_dir():
        return _folder(path)
    if not path.exists():
        raise ReadError(f"{path} is not there; name a journal's folder, a file of spans, or an address")
    return JournalTurns([path]) if _is_journal(path) else SpanFiles(with_backups(path))


def _folder(path: Path) -> TurnSource:
    if next(path.glob(FILE_PATTERN), None) is not None:
        return JournalTurns([path])
    files = sorted(file for file in path.iterdir() if file.suffix in {".json", ".jsonl"} and file.is_file())
    if not files:
        raise ReadError(f"{path} holds neither a journal ({FILE_PATTERN}) nor files of spans (*.json, *.jsonl)")
    return SpanFiles(files)


def _is_journal(path: Path) -> bool:
    """Tell whether the first line that is JSON is that of a journal."""
    return any("event" in line and "v" in line for line in _first_object(path))


def _first_object(path: Path) -> Iterator[dict[str, object]]:
    try:
        with path.open("rb") as file:
            while line := file.readline(MAX_FIRST_LINE):
                try:
                    found = mapping(orjson.loads(line))
                except ValueError:
                    continue
                if found:
                    yield dict(found)
                    return
    except OSError as error:
        raise ReadError(f"{path} cannot be read: {error.strerror}") from error
