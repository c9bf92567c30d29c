"""Which row of the comparison table a turn belongs to: decided by facts of the recall, not of the delivery.

docs/comparison.md; the first match wins, and the rules are the same for every policy.
"""

from collections.abc import Callable
from dataclasses import dataclass

from recallscope.runtime.terms import Cause, Delivered, Point, Reason, Scenario

__all__ = ["TurnFacts", "delivered_at", "scenario_of"]

LATE_AFTER = 1.0
"""Seconds after begin from which a result counts as timed out: the selector limit of the reference system."""

_INTERRUPTIONS = frozenset({Reason.ABORT, Reason.RESET, Reason.SHUTDOWN})


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFacts:
    """What is known of a turn's recall when its handle is closed; times in seconds of one clock.

    `first_send_at`: when memory was asked for the first send (t0). `last_tool_send_at`: when memory was asked for the
    last send that began with tool results. `accepted`: at least one send was accepted by the model.
    """

    begun_at: float
    settled_at: float | None
    error: Reason | None
    cut_by_policy: bool
    selected: bool
    found: bool
    cause: Cause
    first_send_at: float | None
    last_tool_send_at: float | None
    accepted: bool

    @property
    def pending(self) -> bool:
        """The recall had not settled when it was closed."""
        return self.settled_at is None

    @property
    def settled_itself(self) -> bool:
        """The recall settled, and not because the policy's own limit cut the selector."""
        return self.settled_at is not None and not self.cut_by_policy


def scenario_of(facts: TurnFacts) -> Scenario:
    """Return the scenario of a turn: the first rule that holds."""
    return next(scenario for scenario, holds in _RULES if holds(facts))


def _settled_before_send(facts: TurnFacts) -> bool:
    if facts.settled_at is None or facts.cut_by_policy or facts.first_send_at is None:
        return False  # what the policy cut off would have come later: rules 7 and 8 say how it stands
    return facts.settled_at <= facts.first_send_at


def _timed_out(facts: TurnFacts) -> bool:
    if facts.settled_at is None or facts.cut_by_policy or facts.last_tool_send_at is None:
        return True
    return facts.settled_at - facts.begun_at > LATE_AFTER or facts.settled_at > facts.last_tool_send_at


_RULES: tuple[tuple[Scenario, Callable[[TurnFacts], bool]], ...] = (
    (Scenario.SUPERSEDED, lambda facts: facts.pending and facts.cause.reason is Reason.NEW_QUERY),
    (Scenario.INTERRUPTED, lambda facts: facts.pending and facts.cause.reason in _INTERRUPTIONS),
    (Scenario.NOT_SENT, lambda facts: not facts.accepted),
    (Scenario.UNAVAILABLE, lambda facts: facts.settled_itself and facts.error is not None and not facts.selected),
    (Scenario.NOTHING_FOUND, lambda facts: facts.settled_itself and not facts.selected and not facts.found),
    (Scenario.SETTLED_BEFORE_SEND, _settled_before_send),
    (Scenario.SLOW_WITHOUT_TOOLS, lambda facts: facts.last_tool_send_at is None),
    (Scenario.TIMED_OUT, _timed_out),
    (Scenario.SLOW_WITH_TOOLS, lambda _: True),
)


def delivered_at(points: tuple[Point, ...]) -> Delivered:
    """Return the table's word for the points at which a turn received memory."""
    match Point.INITIAL in points, Point.TOOL_RESULT in points:
        case True, True:
            return Delivered.BOTH
        case True, False:
            return Delivered.INITIAL
        case False, True:
            return Delivered.TOOL_RESULT
        case _:
            return Delivered.NONE
