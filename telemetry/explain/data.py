"""An explained turn as plain data, for `--json`; `schema` rises when a key changes its meaning."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, Final, cast

from recallscope.runtime.events import TurnPhase
from recallscope.telemetry.explain.sentences import sentences
from recallscope.telemetry.explain.verdict import Verdict, judge
from recallscope.telemetry.read.recorded import ModelCall, RecordedTurn, ToolCall

__all__ = ["SCHEMA", "explained", "summary"]

SCHEMA: Final = 1


def explained(turn: RecordedTurn) -> dict[str, Any]:
    """Return the turn with all that is recorded of it, its verdict and the sentences."""
    verdict = judge(turn)
    return {
        "schema": SCHEMA,
        "turn": _plain(turn),
        "verdict": _verdict(verdict),
        "sentences": _plain(sentences(turn, verdict)),
    }


def summary(turn: RecordedTurn) -> dict[str, Any]:
    """Return what a list of slow turns says of one."""
    verdict = judge(turn)
    closed = turn.recall.closed if turn.recall is not None else None
    call = max(turn.sent, key=lambda call: _took(call, turn), default=None)
    tool = max(turn.tools, key=lambda tool: _took(tool, turn), default=None)
    return {
        "turn": turn.turn,
        "trace_id": turn.trace_id,
        "started": turn.wall,
        "seconds": turn.length,
        "ended": turn.seconds is not None,
        "outcome": _plain(turn.outcome),
        "policy": _plain(turn.policy),
        "scenario": _plain(closed.scenario) if closed is not None else None,
        "delivered": _plain(closed.delivered) if closed is not None else None,
        "waited_seconds": verdict.hold.waited if verdict.hold is not None else None,
        "phases": {part.phase.value: part.seconds for part in verdict.parts},
        "longest_send": {"send": call.send, "model": call.model, "seconds": _took(call, turn)} if call else None,
        "longest_tool": {"tool": tool.tool, "seconds": _took(tool, turn)} if tool else None,
        "held_by": sentences(turn, verdict).held,
    }


def _verdict(verdict: Verdict) -> dict[str, Any]:
    advice = verdict.advice
    return {
        "biggest": verdict.biggest.phase.value if verdict.biggest is not None else None,
        "parts": [_plain(part) for part in verdict.parts],
        "hold": _plain(verdict.hold),
        "memory": verdict.memory.value,
        "settings": {one.key: one.value for one in advice.settings},
        "settings_why": advice.why,
    }


def _took(piece: ModelCall | ToolCall, turn: RecordedTurn) -> float:
    return (piece.ended if piece.ended is not None else turn.length) - piece.started


def _plain(value: object) -> Any:
    """Return a value of the record as JSON has it."""
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple):
        return [_plain(item) for item in cast("tuple[object, ...]", value)]
    if isinstance(value, dict):  # the only mapping of a record
        return {phase.value: seconds for phase, seconds in cast("Mapping[TurnPhase, float]", value).items()}
    return value
