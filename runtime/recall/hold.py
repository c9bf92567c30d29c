"""How long a send is held for memory: every rule of it as a pure function, without a clock or a task.

The recaller asks these while a turn runs, `recallscope whatif` asks them of recorded moments, so both hold alike.
"""

from recallscope.runtime.recall.handle import RecallHandle, Settled
from recallscope.runtime.recall.policy import Policy
from recallscope.runtime.terms import Cause, EndedBy, Point

__all__ = [
    "CHECK_SECONDS",
    "ended_at_once",
    "ended_by",
    "gives_up",
    "limit_of",
    "may_take",
    "refines_behind",
    "time_to_check",
]

CHECK_SECONDS = 0.004
"""What the check of the notes' files may take once the ceiling is reached, and where nothing is waited for."""


def may_take(policy: Policy, handle: RecallHandle, point: Point) -> bool:
    """Tell whether a send at `point` may take memory at all; where it may not, it is not held and nothing is told."""
    return handle.cause is None and point in policy.points


def limit_of(policy: Policy, point: Point, *, retry: bool) -> float:
    """Return how many seconds a send at `point` may be held: the ceiling, at the first attempt of the first send."""
    return policy.ceiling if point is Point.INITIAL and not retry else 0.0


def ended_at_once(handle: RecallHandle, limit: float) -> EndedBy | None:
    """Say why there is nothing to wait for when a send asks; None where it waits."""
    if handle.settled is not None:
        return EndedBy.ALREADY_SETTLED
    return EndedBy.NOTHING_TO_WAIT_FOR if limit <= 0 else None


def ended_by(handle: RecallHandle) -> EndedBy:
    """Say what ends a wait now; `CEILING` means that nothing has come and only the limit can."""
    match handle:
        case RecallHandle(cause=Cause()):
            return EndedBy.CANCELLED
        case RecallHandle(settled=Settled()):
            return EndedBy.REFINED
        case RecallHandle(fast=(_, *_)):
            return EndedBy.FAST
        case _:
            return EndedBy.CEILING


def time_to_check(until: float, *, now: float) -> float:
    """Return the seconds that the check of the files may take when the hold may last `until`."""
    return max(until - now, CHECK_SECONDS)


def refines_behind(handle: RecallHandle, *, held: bool) -> bool:
    """Tell whether the selector's request is built behind the send: one is `held` and has what it waits for."""
    return held and ended_by(handle) is not EndedBy.CEILING


def gives_up(policy: Policy, handle: RecallHandle) -> bool:
    """Tell whether a recall is given up once its send has asked: the policy delivers nowhere else."""
    return policy.closes_after_initial and handle.settled is None
