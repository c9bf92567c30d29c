"""Reads turns from files of spans: what the collector's file exporter wrote, or an answer of Tempo or Jaeger, saved.

The exporter writes one OTLP object per line and moves a full file aside under its name and a time; those are read too.
The spans of a trace may stand in several lines, so traces are held until the end, the oldest no longer when there are
too many.
"""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import orjson

from recallscope.telemetry.read.figures import ReadError
from recallscope.telemetry.read.journal_lines import BrokenLines
from recallscope.telemetry.read.recorded import RecordedTurn
from recallscope.telemetry.read.sources import LAST, ambiguous, not_found, slowest_of
from recallscope.telemetry.read.span_json import Span, spans_in
from recallscope.telemetry.read.span_turns import turns_of

__all__ = ["SpanFiles", "with_backups"]

MAX_LINE_BYTES: Final = 64 * 1024 * 1024
MAX_SPANS: Final = 200_000
"""How many spans are held while it is not known whether their traces are whole."""

_TRACE_TEXT: Final = re.compile(r"[0-9a-f]{4,32}")


def with_backups(file: Path) -> list[Path]:
    """Return `file` and what the exporter has moved aside of it (`kept-<time>.jsonl`), oldest first."""
    moved = re.compile(re.escape(file.stem) + r"-\d{4}-\d\d-\d\dT[\d.-]+" + re.escape(file.suffix))
    try:
        return [*sorted(path for path in file.parent.iterdir() if moved.fullmatch(path.name)), file]
    except OSError as error:
        raise ReadError(f"{file} cannot be read: {error.strerror}") from error


class SpanFiles:
    """The turns whose spans stand in `files`."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = tuple(files)
        self._broken = BrokenLines()

    @property
    def where(self) -> str:
        """What is read, for people."""
        return f"the spans in {', '.join(map(str, self._files))}"

    @property
    def broken(self) -> int:
        """How many broken lines stood in what was read so far; a torn last line is none."""
        return self._broken.count

    def turns(self, *, since: float | None = None) -> Iterator[RecordedTurn]:
        """Yield the turns that ended, or were last seen, at `since` or later.

        Raises:
            ReadError: a file cannot be read.
        """
        for turn in self._all():
            if since is None or turn.wall + turn.length >= since:
                yield turn

    def slowest(self, *, top: int, since: float | None = None) -> list[RecordedTurn]:
        """Return the `top` turns that took the longest, the slowest first.

        Raises:
            ReadError: a file cannot be read.
        """
        return slowest_of(self.turns(since=since), top)

    def find(self, name: str) -> RecordedTurn:
        """Return the turn with this id, trace id, or begin of either; `last`: the one that ended last.

        Raises:
            ReadError: there is none, there are several, or a file cannot be read.
        """
        if name == LAST:
            last = max(self._all(), key=lambda turn: turn.wall + turn.length, default=None)
            if last is None:
                raise not_found(name, self.where)
            return last
        found: dict[str, RecordedTurn] = {}
        for turn in self._of_traces(self._traces(name)):
            before = found.get(turn.turn)
            if _has(turn, name) and (before is None or turn.wall > before.wall):
                found[turn.turn] = turn
        if not found:
            raise not_found(name, self.where)
        if name in found:
            return found[name]
        if len(found) > 1:
            raise ambiguous(name, found)
        return next(iter(found.values()))

    def _all(self) -> Iterator[RecordedTurn]:
        held: dict[str, list[Span]] = {}
        number = 0
        for document in self._documents():
            for span in spans_in(document):
                held.setdefault(span.trace_id, []).append(span)
                number += 1
            while number > MAX_SPANS and len(held) > 1:
                spans = held.pop(next(iter(held)))
                number -= len(spans)
                yield from turns_of(spans)
        for spans in held.values():
            yield from turns_of(spans)

    def _traces(self, name: str) -> set[str]:
        """Return the ids of the traces that `name` may mean: its own, or that of the turn that is named so."""
        needle = orjson.dumps(name)[1:-1]
        traces: set[str] = set()
        for document in self._documents(needle, needle.lower()):
            for span in spans_in(document):
                if span.trace_id.startswith(name.lower()) or any(
                    isinstance(value, str) and value.startswith(name) for value in span.attributes.values()
                ):
                    traces.add(span.trace_id)
        return traces

    def _of_traces(self, traces: set[str]) -> Iterator[RecordedTurn]:
        spans = [span for document in self._documents() for span in spans_in(document) if span.trace_id in traces]
        yield from turns_of(spans)

    def _documents(self, *needles: bytes) -> Iterator[object]:
        """Yield the documents of all files; of files with one on each line those whose line holds one of `needles`."""
        for path in self._files:
            try:
                with path.open("rb") as file:
                    lines = iter(partial(file.readline, MAX_LINE_BYTES), b"")
                    first = next(lines, b"")
                    try:
                        document: object = orjson.loads(first)
                    except ValueError:
                        yield from _whole(first + file.read(MAX_LINE_BYTES))
                        continue
                    yield document
                    position = len(first)
                    for line in lines:
                        self._broken.look(path, position, line)
                        position += len(line)
                        if not needles or any(needle in line for needle in needles):
                            yield from _whole(line)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise ReadError(f"{path} cannot be read: {error.strerror}") from error


def _whole(line: bytes) -> Iterator[object]:
    """Yield the document in `line`; none if it is torn, or none at all."""
    try:
        yield orjson.loads(line)
    except ValueError:
        return


def _has(turn: RecordedTurn, name: str) -> bool:
    trace = turn.trace_id is not None and _TRACE_TEXT.fullmatch(name.lower()) is not None
    return turn.turn.startswith(name) or (trace and str(turn.trace_id).startswith(name.lower()))
