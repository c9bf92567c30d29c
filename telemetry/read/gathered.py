"""Goes once through recorded turns and keeps what a report needs: counts, the slowest turns, and how much there was."""

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count

from recallscope.telemetry.read.counts import Counts
from recallscope.telemetry.read.recorded import Record, RecordedTurn
from recallscope.telemetry.read.turn_counts import TurnTally

__all__ = ["Gathered", "gather"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """What was found: `turns` in all, of which `unended` have no recorded end and `torn` no recorded begin.

    `first` and `last`: when the first one began and the last one was over, in seconds since 1970; None without any.
    `slowest`: the longest ones, the longest first. `kept`: the latest ones, in no order. `sampled`: they come from
    traces, of which some may be missing.
    """

    counts: Counts
    turns: int
    unended: int
    torn: int
    sessions: int
    first: float | None
    last: float | None
    slowest: tuple[RecordedTurn, ...]
    kept: tuple[RecordedTurn, ...]
    sampled: bool


def gather(turns: Iterable[RecordedTurn], *, top: int, keep: int = 0) -> Gathered:
    """Count `turns` and keep the `top` longest and the `keep` latest of them; no more than those are held at once."""
    tally = TurnTally()
    longest, latest = _Best(top), _Best(keep)
    number = unended = torn = 0
    sessions: set[str] = set()
    first: float | None = None
    last: float | None = None
    sampled = False
    for turn in turns:
        tally.add(turn)
        over = turn.wall + turn.length
        longest.offer((turn.length, turn.wall), turn)
        latest.offer((over, turn.length), turn)
        number += 1
        unended += turn.seconds is None
        torn += not turn.whole and turn.seconds is not None
        sessions.add(turn.session)
        first = turn.wall if first is None else min(first, turn.wall)
        last = over if last is None else max(last, over)
        sampled = sampled or turn.record is Record.SPANS
    return Gathered(
        counts=tally.counts(),
        turns=number,
        unended=unended,
        torn=torn,
        sessions=len(sessions),
        first=first,
        last=last,
        slowest=tuple(longest.best()),
        kept=tuple(latest.best()),
        sampled=sampled,
    )


class _Best:
    """Keeps the few turns of the highest rank; equal ranks in the order in which they came."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._heap: list[tuple[tuple[float, float], int, RecordedTurn]] = []
        self._order: Iterator[int] = count(0, -1)

    def offer(self, rank: tuple[float, float], turn: RecordedTurn) -> None:
        """Keep `turn` if it is among the best so far."""
        entry = (rank, next(self._order), turn)
        if len(self._heap) < self._number:
            heapq.heappush(self._heap, entry)
        elif self._heap and entry[:2] > self._heap[0][:2]:
            heapq.heapreplace(self._heap, entry)

    def best(self) -> Iterator[RecordedTurn]:
        """Yield them, the highest rank first."""
        for _, _, turn in sorted(self._heap, key=lambda entry: entry[:2], reverse=True):
            yield turn
