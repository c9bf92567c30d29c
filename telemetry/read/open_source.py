"""Opens the source of recorded turns that a person names: a folder, a file, or an address."""

import stat
from pathlib import Path
from typing import Final

from recallscope.telemetry import names
from recallscope.telemetry.journal import FILE_PATTERN
from recallscope.telemetry.read.backends import backend_at
from recallscope.telemetry.read.figures import ReadError
from recallscope.telemetry.read.file_kind import FileKind, kind_of
from recallscope.telemetry.read.journal_turns import JournalTurns
from recallscope.telemetry.read.sources import TurnSource
from recallscope.telemetry.read.span_files import SpanFiles, with_backups

__all__ = ["open_source"]


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
    try:
        path = Path(place).expanduser()
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise ReadError(f"{place} is not there; {_WHAT}") from None
    except (OSError, RuntimeError, ValueError) as error:  # too long, forbidden, no such user, a NUL in it
        raise ReadError(f"{place} cannot be read: {getattr(error, 'strerror', None) or error}; {_WHAT}") from error
    if stat.S_ISDIR(mode):
        return _folder(path)
    if not stat.S_ISREG(mode):
        raise ReadError(f"{path} is neither a file nor a folder; save what it gives as a file and name that")
    return JournalTurns([path]) if _is_journal(path) else SpanFiles(_with_spans(path))


_WHAT: Final = "name a journal's folder, a file of spans, or an address, which begins with http://"


def _folder(path: Path) -> TurnSource:
    try:
        if next(path.glob(FILE_PATTERN), None) is not None:
            return JournalTurns([path])
        files = sorted(file for file in path.iterdir() if file.suffix in {".json", ".jsonl"} and file.is_file())
    except OSError as error:
        raise ReadError(f"{path} cannot be read: {error.strerror}; {_WHAT}") from error
    spans = [file for file in files if kind_of(file) is FileKind.SPANS]
    if spans:
        return SpanFiles(spans)
    found = f"none of its {len(files)} files *.json and *.jsonl is one" if files else "nothing there is named so"
    raise ReadError(
        f"{path} holds neither a journal ({FILE_PATTERN}) nor files of spans (*.json, *.jsonl): {found}; {_WHAT}"
    )


def _is_journal(path: Path) -> bool:
    """Tell whether the name or the content is that of a journal: one that was just begun is empty."""
    return kind_of(path) is FileKind.JOURNAL or (path.match(FILE_PATTERN) and path.stat().st_size == 0)


def _with_spans(path: Path) -> list[Path]:
    """Return `path` and what the collector moved aside of it; at least one of them must hold spans.

    Raises:
        ReadError: it is another kind of file; the sentence says which, and what to give instead.
    """
    files = with_backups(path)
    kind = kind_of(path)
    if kind is not FileKind.SPANS and not (kind is FileKind.EMPTY and len(files) > 1):
        raise ReadError(f"{path} is neither a journal nor a file of spans: {kind.value}; {_WHAT}")
    return files
