"""Tells which journal lines belong to one turn, in a stream of the lines of one process."""

from collections.abc import Iterable, Iterator
from typing import Final

from recallscope.telemetry.read.lenient import text
from recallscope.telemetry.read.turn_lines import Line

__all__ = ["MAX_OPEN", "TurnGrouper"]

MAX_OPEN: Final = 10_000
"""How many turns of one process may be under way at once; the oldest is given up then."""

MAX_LINES: Final = 20_000
"""How many lines of one turn are kept; a turn has about ten for each of its sends."""

KNOWN_ENDED: Final = 1_000
"""Of how many ended turns it is remembered that what still comes of them is late."""

_OF_THE_TURN: Final = frozenset({"TurnStarted", "TurnFirstToken", "TurnFinished", "PostTurnFailed"})


class TurnGrouper:
    """Collects the lines of one process's turns, fed in their order."""

    def __init__(self) -> None:
        self._open: dict[str, list[Line]] = {}
        self._above: dict[str, str] = {}
        self._ended: dict[str, None] = {}

    def feed(self, lines: Iterable[Line]) -> Iterator[list[Line]]:
        """Take `lines` and yield those of each turn that ended with one of them, or had to be given up."""
        for line in lines:
            turn = self._turn_of(line)
            if turn is None or turn in self._ended:
                continue
            kept = self._open.setdefault(turn, [])
            if len(kept) < MAX_LINES or line.get("event") == "TurnFinished":
                kept.append(line)
            if line.get("event") == "TurnFinished":
                yield self._end(turn)
            elif len(self._open) > MAX_OPEN:
                yield self._end(next(iter(self._open)))

    def rest(self) -> Iterator[list[Line]]:
        """Yield the lines of each turn whose end was not seen."""
        while self._open:
            yield self._end(next(iter(self._open)))

    def _turn_of(self, line: Line) -> str | None:
        """Name the operation of the turn that a line belongs to; None if it belongs to no turn."""
        op, parent, event = text(line.get("op")), text(line.get("parent")), text(line.get("event"))
        if op is None:
            return None
        if event in _OF_THE_TURN:
            return op
        known = self._above.get(op)
        if known is not None or parent is None:
            return known
        turn = self._above.get(parent, parent)
        if turn not in self._ended and len(self._open.get(turn, ())) < MAX_LINES:
            self._above[op] = turn
        return turn

    def _end(self, turn: str) -> list[Line]:
        lines = self._open.pop(turn)
        for line in lines:
            self._above.pop(line["op"], None)
        self._ended[turn] = None
        if len(self._ended) > KNOWN_ENDED:
            del self._ended[next(iter(self._ended))]
        return lines
