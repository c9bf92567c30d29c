"""Counts recorded turns as the meter counts them while they happen (`telemetry/metrics.py`).

So a report over a journal has the same figures as one over a Prometheus that scraped the same processes. What a turn's
record does not hold is not counted: the loop lag, what telemetry lost, calls that belong to no turn.
"""

from typing import Final

from recallscope.runtime.events import Point, RecallPhase, TurnPhase
from recallscope.telemetry import names
from recallscope.telemetry.read.counts import Counts, Tally
from recallscope.telemetry.read.recorded import ModelCall, RecordedRecall, RecordedTurn
from recallscope.telemetry.spans import WAIT_TOLERANCE_SECONDS

__all__ = ["TurnTally"]

_NOT_WORK: Final = frozenset({TurnPhase.QUEUE, TurnPhase.PERMISSION})


class TurnTally:
    """Counts turns, one at a time; what had not ended when it was recorded counts as little as for the meter."""

    def __init__(self) -> None:
        self._tally = Tally()

    def add(self, turn: RecordedTurn) -> None:
        """Count one more turn."""
        _count_turn(self._tally, turn)
        if turn.recall is not None:
            _count_recall(self._tally, turn.recall)
        for call in turn.calls:
            _count_call(self._tally, call)
        for tool in turn.tools:
            if tool.ended is not None:
                labels = (tool.tool, tool.status.value)
                self._tally.observe(names.EXECUTE_TOOL_DURATION, _between(tool.started, tool.ended), *labels)

    def counts(self) -> Counts:
        """Return what was counted so far."""
        return self._tally.counts()


def _count_turn(tally: Tally, turn: RecordedTurn) -> None:
    policy = turn.policy.value if turn.policy is not None else ""
    if turn.first_token is not None:
        tally.observe(names.TURN_TIME_TO_FIRST_TOKEN, turn.first_token, policy)
    if turn.seconds is None or turn.outcome is None:
        return
    phases = turn.phases or {}
    for phase, seconds in phases.items():
        tally.observe(names.TURN_PHASE_DURATION, seconds, phase.value)
    waiting = sum(seconds for phase, seconds in phases.items() if phase in _NOT_WORK)
    tally.observe(names.TURN_DURATION, turn.seconds - waiting, policy, turn.outcome.value)


def _count_recall(tally: Tally, recall: RecordedRecall) -> None:
    policy = recall.policy.value
    tally.add(names.RECALL_STARTED, policy)
    tally.ceiling(recall.policy, recall.ceiling)
    for wait in recall.waits:
        tally.observe(names.RECALL_WAIT_DURATION, wait.waited, policy, wait.point.value)
        if wait.point is Point.INITIAL and wait.waited > wait.ceiling + WAIT_TOLERANCE_SECONDS:
            tally.add(names.RECALL_WAIT_OVERRUNS, policy)
    for delivery in recall.deliveries:
        tally.add(names.RECALL_DELIVERIES, policy, delivery.phase.value, delivery.point.value)
    for rollback in recall.rollbacks:
        tally.add(names.RECALL_ROLLED_BACK, policy, rollback.cause.value)
    for skip in recall.skips:
        tally.add(names.RECALL_SKIPPED_DELIVERIES, policy, skip.point.value, skip.reason.value)
    closed = recall.closed
    if closed is None:
        return
    tally.add(names.RECALL_OUTCOMES, policy, closed.outcome.value, closed.reason.value)
    for phase, seconds in ((RecallPhase.FAST, closed.fast_seconds), (RecallPhase.REFINED, closed.settled_seconds)):
        if seconds is not None:
            tally.observe(names.RECALL_DURATION, seconds, policy, phase.value)
    scenario = closed.scenario.value
    tally.add(names.RECALL_TURNS, policy, scenario, closed.delivered.value, closed.reason.value)
    tally.observe(names.RECALL_TURN_WAIT_DURATION, closed.waited, policy, scenario)


def _count_call(tally: Tally, call: ModelCall) -> None:
    if call.ended is None:
        return
    labels = (call.model, call.purpose.value)
    tally.observe(names.INFERENCE_DURATION, _between(call.started, call.ended), *labels, call.status.value)
    if call.first_chunk is not None:
        tally.observe(names.INFERENCE_FIRST_CHUNK, _between(call.started, call.first_chunk), *labels)
    used = (
        (names.INFERENCE_INPUT_TOKENS, call.input_tokens),
        (names.INFERENCE_OUTPUT_TOKENS, call.output_tokens),
    )
    for metric, tokens in used:
        if tokens is not None:
            tally.add(metric, *labels, amount=float(max(tokens, 0)))


def _between(started: float, ended: float) -> float:
    """Return the seconds between two moments, to the microsecond that records have: bounds of buckets are exact."""
    return round(ended - started, 6)
