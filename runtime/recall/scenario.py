"""Which row of the comparison table a turn belongs to: decided by facts of the recall, not of the delivery.

DESIGN section 8; the first match wins, and the rules are the same for every policy.
"""

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


def scenario_of(facts: TurnFacts) -> Scenario:
    """Return the scenario of a turn."""
    pending = facts.settled_at is None
    by_itself = not pending and not facts.cut_by_policy
    if pending and facts.cause.reason is Reason.NEW_QUERY:
        return Scenario.SUPERSEDED
    if pending and facts.cause.reason in _INTERRUPTIONS:
        return Scenario.INTERRUPTED
    if not facts.accepted:
        return Scenario.NOT_SENT
    if by_itself and facts.error is not None and not facts.selected:
        return Scenario.UNAVAILABLE
    if by_itself and not facts.selected and not facts.found:
        return Scenario.NOTHING_FOUND
    if facts.settled_at is not None and facts.first_send_at is not None and facts.settled_at <= facts.first_send_at:
        return Scenario.SETTLED_BEFORE_SEND
    if facts.last_tool_send_at is None:
        return Scenario.SLOW_WITHOUT_TOOLS
    in_time = (
        facts.settled_at is not None
        and not facts.cut_by_policy
        and facts.settled_at - facts.begun_at <= LATE_AFTER
        and facts.settled_at <= facts.last_tool_send_at
    )
    return Scenario.SLOW_WITH_TOOLS if in_time else Scenario.TIMED_OUT


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
