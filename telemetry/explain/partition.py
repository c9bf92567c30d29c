"""Where the wall time of a turn went: parts that add up to the whole."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from recallscope.runtime.events import TurnPhase
from recallscope.telemetry.read.recorded import RecordedTurn

__all__ = ["Part", "partition"]

NOTHING: Final = 1e-6
"""What sums of floats may differ by; the engine's phases leave nothing out."""


@dataclass(frozen=True, slots=True)
class Part:
    """One phase of a turn: its seconds, and its share (0 to 1) of the whole."""

    phase: TurnPhase
    seconds: float
    share: float


def partition(turn: RecordedTurn) -> tuple[Part, ...]:
    """Return the parts of a turn, the largest first; their seconds add up to its length, their shares to 1.

    The sum is exact within a microsecond. The engine measures the parts; of a turn whose end is not recorded they are
    told by its calls, tools and waits.
    """
    seconds = dict(turn.phases) if turn.phases is not None else _derived(turn)
    told = sum(seconds.values())
    if turn.length - told > NOTHING:
        seconds[TurnPhase.OTHER] = seconds.get(TurnPhase.OTHER, 0.0) + turn.length - told
    total = sum(seconds.values())
    parts = [Part(phase, took, took / total) for phase, took in seconds.items() if took > 0]
    return tuple(sorted(parts, key=lambda part: part.seconds, reverse=True))


def _derived(turn: RecordedTurn) -> dict[TurnPhase, float]:
    """Return the seconds of the phases that intervals tell; where two overlap, the one that is named first counts."""
    intervals = list(_intervals(turn))
    moments = sorted({0.0, turn.length, *(_within(at, turn) for _, begin, end in intervals for at in (begin, end))})
    seconds: dict[TurnPhase, float] = {}
    for begin, end in pairwise(moments):
        middle = (begin + end) / 2
        phase = next((phase for phase, since, until in intervals if since <= middle < until), TurnPhase.OTHER)
        seconds[phase] = seconds.get(phase, 0.0) + end - begin
    return seconds


def _intervals(turn: RecordedTurn) -> Iterator[tuple[TurnPhase, float, float]]:
    for wait in turn.recall.waits if turn.recall is not None else ():
        yield TurnPhase.RECALL_WAIT, wait.asked_at, wait.ended_at
    for call in turn.sent:
        for failed in call.failed:
            yield TurnPhase.BACKOFF, failed.at, failed.at + (failed.retry_in or 0.0)
        yield TurnPhase.MODEL, call.started, call.ended if call.ended is not None else turn.length
    for tool in turn.tools:
        yield TurnPhase.TOOL, tool.started, tool.ended if tool.ended is not None else turn.length


def _within(at: float, turn: RecordedTurn) -> float:
    return min(max(at, 0.0), turn.length)
