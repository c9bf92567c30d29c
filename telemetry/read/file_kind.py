"""Tells what a file is, from its content: a journal, spans, or something else that a person named by mistake."""

from enum import Enum, unique
from pathlib import Path
from typing import Any, BinaryIO, Final

import orjson

from recallscope.telemetry.read.figures import ReadError
from recallscope.telemetry.read.lenient import entries, mapping

__all__ = ["FileKind", "kind_of"]

MAX_BYTES: Final = 64 * 1024 * 1024
"""Of a line, and of a document that is one."""

LOOKED_AT: Final = 1_000
"""How many lines are looked at."""

_PACKED: Final = (b"\x1f\x8b", b"PK\x03\x04", b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ")
"""How gzip, zip, zstd, bzip2 and xz begin."""

_SPANS: Final = frozenset({"resourceSpans", "batches", "spans", "trace", "data", "result"})
_OTHERS: Final = frozenset({"resourceMetrics", "resourceLogs"})


@unique
class FileKind(Enum):
    """What a file is; the value says it in words, behind "it is neither a journal nor spans:"."""

    JOURNAL = "a journal"
    SPANS = "spans"
    EMPTY = "it is empty"
    PACKED = "it is compressed; unpack it first"
    METRICS_OR_LOGS = "it holds the metrics or logs of a collector, and no spans"
    OTHER_JSON = "it is JSON of another kind"
    TEXT = "it is text, and no line of it is a JSON object"
    BYTES = "it is no text"


def kind_of(path: Path) -> FileKind:
    """Look at the begin of the file `path`; a line that is torn or broken says nothing.

    Raises:
        ReadError: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return _kind(file)
    except OSError as error:
        raise ReadError(f"{path} cannot be read: {error.strerror}") from error


def _kind(file: BinaryIO) -> FileKind:
    first = file.read(4096)
    if not first.strip():
        return FileKind.EMPTY
    if first.startswith(_PACKED):
        return FileKind.PACKED
    file.seek(0)
    seen: FileKind | None = None
    for _ in range(LOOKED_AT):
        line = file.readline(MAX_BYTES)
        if not line:
            break
        found = _of_document(line)
        if found in {FileKind.JOURNAL, FileKind.SPANS}:
            return found
        seen = seen or found
    file.seek(0)
    whole = _of_document(file.read(MAX_BYTES))  # a document of many lines, as a saved answer may be
    if whole is not None:
        return whole
    if seen is not None:
        return seen
    return FileKind.BYTES if b"\0" in first else FileKind.TEXT


def _of_document(text: bytes) -> FileKind | None:
    """Return what a document of JSON is; None if it is none, or no object."""
    try:
        document: object = orjson.loads(text)
    except ValueError:
        return None
    objects: list[Any] = [document, *entries(document)[:1]]
    for each in objects:
        found = mapping(each)
        if "event" in found and "v" in found:
            return FileKind.JOURNAL
        if found.keys() & _SPANS:
            return FileKind.SPANS
        if found.keys() & _OTHERS:
            return FileKind.METRICS_OR_LOGS
    return FileKind.OTHER_JSON if any(mapping(each) for each in objects) else None
