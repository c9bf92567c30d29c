"""Reads turns from a journal: of any size, from its newest end, without holding more than the turns under way.

A process's files, in their order, are one stream of lines; the streams of several processes stand side by side. Lines
that are torn, foreign or of a newer version are left out, a file that goes away meanwhile counts as empty.
"""

import mmap
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import nlargest
from itertools import accumulate, chain
from pathlib import Path
from typing import BinaryIO, Final

from recallscope.telemetry.journal import FILE_PATTERN
from recallscope.telemetry.read.figures import ReadError
from recallscope.telemetry.read.journal_lines import BrokenLines, event_on, written_as
from recallscope.telemetry.read.lenient import mapping, number
from recallscope.telemetry.read.recorded import RecordedTurn
from recallscope.telemetry.read.sources import LAST, ambiguous, not_found, slowest_of
from recallscope.telemetry.read.turn_groups import MAX_OPEN, TurnGrouper
from recallscope.telemetry.read.turn_lines import Line, turn_of

__all__ = ["JournalTurns"]

MARGIN_SECONDS: Final = 3_600.0
"""How long before the earliest end of interest the reading begins; of a longer turn the begin is not read."""

MAX_LINE_BYTES: Final = 1024 * 1024
"""A longer line is none of a journal."""

TAIL_BYTES: Final = 256 * 1024
TAIL_GROWTH: Final = 8
SETTLED_BYTES: Final = 64 * 1024
"""Where a search by time is near enough: what is left is read."""

_FILE_NAME: Final = re.compile(r"journal-(\d+)-(\d+)-(\d+)\.jsonl")
_TRACE_TEXT: Final = re.compile(r"[0-9a-f]{4,32}")


class JournalTurns:
    """The turns in `paths`: journal files, and folders of them."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = tuple(paths)
        self._broken = BrokenLines()

    @property
    def where(self) -> str:
        """What is read, for people."""
        return f"the journal in {', '.join(map(str, self._paths))}"

    @property
    def broken(self) -> int:
        """How many broken lines stood in what was read so far; a torn last line is none."""
        return self._broken.count

    def turns(self, *, since: float | None = None) -> Iterator[RecordedTurn]:
        """Yield the turns that ended, or were last seen, at `since` or later.

        Raises:
            ReadError: a folder or file cannot be read.
        """
        for stream in self._streams():
            if since is None or stream.written >= since:
                begin = 0 if since is None else stream.position_of(since - MARGIN_SECONDS)
                for turn in _turns(stream, begin):
                    if since is None or turn.wall + turn.length >= since:
                        yield turn

    def slowest(self, *, top: int, since: float | None = None) -> list[RecordedTurn]:
        """Return the `top` turns that took the longest, the slowest first.

        Raises:
            ReadError: a folder or file cannot be read.
        """
        spans = (
            span
            for stream in self._streams()
            if since is None or stream.written >= since
            for span in _spans(stream, 0 if since is None else stream.position_of(since - MARGIN_SECONDS))
            if since is None or span.ended >= since
        )
        turns = (_turn_in(span) for span in nlargest(top, spans, key=lambda span: (span.seconds, span.ended)))
        return slowest_of((turn for turn in turns if turn is not None), top)

    def find(self, name: str) -> RecordedTurn:
        """Return the turn with this id, trace id, or begin of either; `last`: the one that ended last.

        Raises:
            ReadError: there is none, there are several, or a folder or file cannot be read.
        """
        if name == LAST:
            return self._last()
        streams = self._streams()
        found = _Places.of(streams, "turn", name)
        if not found.names and _TRACE_TEXT.fullmatch(name.lower()):
            found = _Places.of(streams, "turn", *_of_trace(streams, name), whole=True)
        if not found.names:
            raise not_found(name, self.where)
        names = {name} & found.names or found.names
        if len(names) > 1:
            raise ambiguous(name, names)
        turn = found.turn(names.pop())
        if turn is None:
            raise not_found(name, self.where)
        return turn

    def _last(self) -> RecordedTurn:
        best: RecordedTurn | None = None
        for stream in sorted(self._streams(), key=lambda stream: stream.written, reverse=True):
            if best is not None and _rank(best)[0] and stream.written < best.wall + best.length:
                break
            turn = _last_of(stream)
            if turn is not None and (best is None or _rank(turn) > _rank(best)):
                best = turn
        if best is None:
            raise not_found(LAST, self.where)
        return best

    def _streams(self) -> list["_Stream"]:
        """Return the streams of all processes, by the start of the process."""
        by_process: dict[tuple[str, ...], list[tuple[int, Path]]] = {}
        for path in self._files():
            named = _FILE_NAME.fullmatch(path.name)
            process = (str(path.parent), named[1], named[2]) if named is not None else (str(path),)
            by_process.setdefault(process, []).append((int(named[3]) if named is not None else 0, path))
        return [
            _Stream.of([path for _, path in sorted(files)], self._broken) for _, files in sorted(by_process.items())
        ]

    def _files(self) -> Iterator[Path]:
        for path in self._paths:
            try:
                yield from sorted(path.glob(FILE_PATTERN)) if path.is_dir() else (path,)
            except OSError as error:
                raise ReadError(f"{path} cannot be read: {error.strerror}") from error


def _of_trace(streams: Sequence["_Stream"], name: str) -> frozenset[str]:
    """Return the turns that say of their trace, or of what called them, that its id is or begins with `name`."""
    traces = _Places.of(streams, "trace", name.lower())
    if len(traces.names) > 1:
        raise ambiguous(name, traces.names)
    return traces.turns or _Places.of(streams, "traceparent", f"00-{name.lower()}").turns


def _rank(turn: RecordedTurn) -> tuple[bool, float]:
    """Order turns by their end; one without an end comes before all others."""
    return turn.seconds is not None, turn.wall + turn.length


def _turns(stream: "_Stream", begin: int) -> Iterator[RecordedTurn]:
    """Yield the turns of a stream from the position `begin` on."""
    grouper = TurnGrouper()
    for lines in grouper.feed(stream.lines(begin)):
        turn = turn_of(lines)
        if turn is not None:
            yield turn
    for lines in grouper.rest():
        turn = turn_of(lines)
        if turn is not None:
            yield turn


@dataclass(frozen=True, slots=True)
class _TurnSpan:
    """Where a turn stands in its stream, when it ended (or the stream did), and how long it took until then."""

    stream: "_Stream"
    begin: int
    op: str
    ended: float
    seconds: float


def _spans(stream: "_Stream", begin: int) -> Iterator[_TurnSpan]:
    """Yield where the turns of a stream stand, from the position `begin` on: only their first and last lines are read.

    A turn whose first line stands before `begin` is looked for from there.
    """
    started: dict[str, tuple[int, float]] = {}
    line = b""
    for position, line in stream.raw(begin):
        if not (b'"TurnStarted"' in line or b'"TurnFinished"' in line):
            continue
        event = event_on(line)
        op = event.get("op") if event is not None else None
        if event is None or not isinstance(op, str):
            continue
        wall = float(event["wall"])
        if event["event"] == "TurnStarted":
            started[op] = (position, wall)
            if len(started) > MAX_OPEN:
                del started[next(iter(started))]
        elif event["event"] == "TurnFinished":
            took = sum(number(seconds) or 0.0 for seconds in mapping(event.get("phases")).values())
            since, first = started.pop(op, (begin, wall - took))
            yield _TurnSpan(stream, since, op, wall, wall - first)
    last = next((event["wall"] for event in (event_on(line),) if event is not None), 0.0)
    for op, (position, first) in started.items():
        yield _TurnSpan(stream, position, op, max(last, first), max(0.0, last - first))


def _turn_in(span: _TurnSpan) -> RecordedTurn | None:
    """Read the turn that stands at `span`."""
    grouper = TurnGrouper()
    for lines in chain(grouper.feed(span.stream.lines(span.begin)), grouper.rest()):
        if any(line.get("op") == span.op for line in lines):
            return turn_of(lines)
    return None


def _last_of(stream: "_Stream") -> RecordedTurn | None:
    """Return the turn of a stream that ended last, read from the stream's end as far as it takes."""
    size = TAIL_BYTES
    while True:
        begin = max(0, stream.size - size)
        best = max(_turns(stream, begin), key=_rank, default=None)
        if begin == 0 or (best is not None and best.whole):
            return best
        size *= TAIL_GROWTH


@dataclass(frozen=True, slots=True)
class _Stream:
    """The files of one process, one behind the other; `ends` are the positions at which they end."""

    files: tuple[Path, ...]
    ends: tuple[int, ...]
    written: float
    broken: BrokenLines

    @classmethod
    def of(cls, files: Sequence[Path], broken: BrokenLines) -> "_Stream":
        """Look at `files`, in their order; broken lines are counted in `broken`.

        Raises:
            ReadError: one cannot be looked at.
        """
        sizes: list[int] = []
        written = 0.0
        for file in files:
            try:
                found = file.stat()
            except FileNotFoundError:
                sizes.append(0)
                continue
            except OSError as error:
                raise ReadError(f"{file} cannot be read: {error.strerror}") from error
            sizes.append(found.st_size)
            written = max(written, found.st_mtime)
        return cls(tuple(files), tuple(accumulate(sizes)), written, broken)

    @property
    def size(self) -> int:
        """How many bytes there are."""
        return self.ends[-1]

    def start_of(self, index: int) -> int:
        """Return the position at which the file number `index` begins."""
        return self.ends[index - 1] if index else 0

    def raw(self, begin: int = 0) -> Iterator[tuple[int, bytes]]:
        """Yield position and text of each line, from the first whole one at or behind `begin` on."""
        for index in range(bisect_right(self.ends, begin), len(self.files)):
            offset = max(0, begin - self.start_of(index))
            file = _open(self.files[index])
            if file is None:
                continue
            with file:
                _to_line(file, offset)
                position = self.start_of(index) + file.tell()
                for line in iter(partial(file.readline, MAX_LINE_BYTES), b""):
                    self.broken.look(self.files[0], position, line)
                    yield position, line
                    position += len(line)

    def lines(self, begin: int = 0) -> Iterator[Line]:
        """Yield the events from the first whole line at or behind `begin` on."""
        for position, line in self.raw(begin):
            event = event_on(line)
            if event is not None:
                yield event
            else:
                self.broken.judge(self.files[0], position, line)

    def position_of(self, wall: float) -> int:
        """Return a position before which nothing of `wall` (seconds since 1970) or later stands."""
        low, high = 0, self.size
        while high - low > SETTLED_BYTES:
            middle = (low + high) // 2
            event = next(self.lines(middle), None)
            if event is not None and event["wall"] < wall:
                low = middle
            else:
                high = middle
        return low


def _open(path: Path) -> BinaryIO | None:
    try:
        return path.open("rb")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ReadError(f"{path} cannot be read: {error.strerror}") from error


def _to_line(file: BinaryIO, offset: int) -> None:
    """Go to the first line that begins at or behind `offset`."""
    if offset:
        file.seek(offset - 1)
        file.readline()


@dataclass(frozen=True, slots=True)
class _Places:
    """Where names were found: the streams, each with the position of the first line that has the name."""

    places: dict[str, list[tuple[_Stream, int]]]
    turns: frozenset[str]

    @classmethod
    def of(cls, streams: Sequence[_Stream], key: str, *wanted: str, whole: bool = False) -> "_Places":
        """Look for the values of `key` that are (`whole`) or begin with one of `wanted`, in all of `streams`."""
        places: dict[str, list[tuple[_Stream, int]]] = {}
        turns: set[str] = set()
        if wanted:
            texts = b"|".join(re.escape(written) for text in wanted for written in written_as(text))
            rest = b"" if whole else rb'[^"]*'
            pattern = re.compile(b'"%b":"(?:%b)%b"' % (key.encode(), texts, rest))
            for stream in streams:
                for position, line in _matches(stream, pattern):
                    event = event_on(line)
                    name = event.get(key) if event is not None else None
                    if event is None or not isinstance(name, str):
                        continue
                    at = places.setdefault(name, [])
                    if not at or at[-1][0] is not stream:
                        at.append((stream, position))
                    if isinstance(event.get("turn"), str):
                        turns.add(event["turn"])
        return cls(places, frozenset(turns))

    @property
    def names(self) -> set[str]:
        """The values that were found."""
        return set(self.places)

    def turn(self, name: str) -> RecordedTurn | None:
        """Return the turn of this name; of several, as when a session was opened again, the one that ended last."""
        found = [
            turn
            for stream, begin in self.places[name]
            for turn in _turns_until(stream, begin, name)
            if turn.turn == name
        ]
        return max(found, key=_rank, default=None)


def _turns_until(stream: _Stream, begin: int, name: str) -> Iterator[RecordedTurn]:
    """Yield the turns of a stream from `begin` on, no further than the end of the turn `name`."""
    for turn in _turns(stream, begin):
        yield turn
        if turn.turn == name:
            return


def _matches(stream: _Stream, pattern: re.Pattern[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield the position and the text of each line of `stream` in which `pattern` is found."""
    for index, path in enumerate(stream.files):
        file = _open(path)
        if file is None:
            continue
        with file:
            try:
                view = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            except ValueError:  # an empty file
                continue
            with view:
                position = 0
                while (match := pattern.search(view, position)) is not None:
                    begin = view.rfind(b"\n", 0, match.start()) + 1
                    end = view.find(b"\n", match.end())
                    position = len(view) if end < 0 else end + 1
                    yield stream.start_of(index) + begin, view[begin:position]
