"""The verdict on a recorded turn, as a value: what held it, whether memory did, and what came of its recall.

It rests on what a turn's span attributes tell, so that a journal, a trace and a trace without events give the same.
"""

from dataclasses import dataclass
from enum import StrEnum, unique

from recallscope.runtime.events import EndedBy, Outcome, Reason, TurnPhase
from recallscope.telemetry.explain.advice import Advice, advice_on
from recallscope.telemetry.explain.partition import Part, partition
from recallscope.telemetry.read.recorded import ModelCall, RecordedTurn, ToolCall
from recallscope.telemetry.spans import WAIT_TOLERANCE_SECONDS

__all__ = ["Hold", "Memory", "Verdict", "judge"]


@unique
class Memory(StrEnum):
    """What came of a turn's recall.

    `WHOLE`: all that was chosen. `PARTLY`: the fast result only. `NONE`: nothing. `NO_RECALL`: none began. `UNKNOWN`:
    the record does not hold its end.
    """

    WHOLE = "whole"
    PARTLY = "partly"
    NONE = "none"
    NO_RECALL = "no_recall"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """How long sends were held for memory: in all, and as a share of the turn; what ended the first wait.

    `over`: seconds that the first wait passed its ceiling and the tolerance; 0 if it did not.
    """

    waited: float
    share: float
    ended_by: EndedBy | None
    ceiling: float
    over: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What is to be said of a turn. `biggest` is the largest of `parts`; `longest` the call or tool that made it."""

    parts: tuple[Part, ...]
    biggest: Part | None
    longest: ModelCall | ToolCall | None
    hold: Hold | None
    memory: Memory
    advice: Advice


def judge(turn: RecordedTurn) -> Verdict:
    """Return the verdict on `turn`."""
    parts = partition(turn)
    biggest = parts[0] if parts else None
    return Verdict(
        parts=parts,
        biggest=biggest,
        longest=_longest(turn, biggest),
        hold=_hold(turn),
        memory=_memory(turn),
        advice=advice_on(turn),
    )


def _longest(turn: RecordedTurn, biggest: Part | None) -> ModelCall | ToolCall | None:
    """Return the piece of work that took the most of the biggest part; None where a part has no pieces."""
    if biggest is None:
        return None
    pieces: tuple[ModelCall | ToolCall, ...] = ()
    if biggest.phase in {TurnPhase.MODEL, TurnPhase.BACKOFF}:
        pieces = turn.sent
    elif biggest.phase is TurnPhase.TOOL:
        pieces = turn.tools
    return max(pieces, key=lambda piece: _end(piece, turn) - piece.started, default=None)


def _end(piece: ModelCall | ToolCall, turn: RecordedTurn) -> float:
    return piece.ended if piece.ended is not None else turn.length


def _hold(turn: RecordedTurn) -> Hold | None:
    recall = turn.recall
    if recall is None:
        return None
    first = recall.first_wait
    over = 0.0
    if first is not None and first.waited > first.ceiling + WAIT_TOLERANCE_SECONDS:
        over = first.waited - first.ceiling
    return Hold(
        waited=recall.waited,
        share=recall.waited / turn.length if turn.length > 0 else 0.0,
        ended_by=first.ended_by if first is not None else None,
        ceiling=recall.ceiling,
        over=over,
    )


def _memory(turn: RecordedTurn) -> Memory:
    if turn.recall is None:
        return Memory.NO_RECALL
    closed = turn.recall.closed
    if closed is None:
        return Memory.UNKNOWN
    if closed.outcome is not Outcome.DELIVERED:
        return Memory.NONE
    return Memory.WHOLE if closed.reason is Reason.NONE else Memory.PARTLY
