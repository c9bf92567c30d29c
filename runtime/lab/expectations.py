"""What must be seen in each cell of the comparison table, as data, and the program that judges it.

`scripted` is the table of docs/comparison.md: it holds for the scripted scenarios, where every time is known. Live
traffic has its own times and prompts, so `live` holds only what a policy promises whatever the traffic is.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum, unique

from recallscope.runtime.terms import Delivered, PolicyName, Reason, Scenario
from recallscope.telemetry.names import BUCKETS_R

__all__ = [
    "POLICIES",
    "TOLERANCE",
    "Expectation",
    "Expectations",
    "Measured",
    "Verdict",
    "WaitLimits",
    "judge",
    "live",
    "misplaced",
    "scripted",
]

POLICIES = (PolicyName.DEADLINE, PolicyName.PREFETCH, PolicyName.TIERED)
"""The columns of the table: the policies that recall."""

TOLERANCE = 0.005
"""Seconds that a bounded wait may take beyond its bound: the scheduling of a busy process."""

DEADLINE_CEILING = 2.5
"""Where the traffic does not tell it: what `deadline` has."""

DEADLINE_TOLERANCE = 0.1
"""Seconds that `deadline` may take beyond its own limit, which cuts a slow store."""

_ROUNDING = 1e-9


@unique
class Verdict(StrEnum):
    """What the program says about a cell."""

    AS_STATED = "as_stated"
    DIFFERS = "differs"
    NOT_MEASURED = "not_measured"


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitLimits:
    """Bounds of a wait in seconds: the 95th percentile is at most `p95`, the median at least `least`.

    With `held` the longest wait, too, may pass `p95` by no more than the loop lag of the same reading. Waits are known
    by their buckets alone, so a limit within a bucket is judged by the bucket's upper bound: nothing is held against a
    policy that may not be so.
    """

    p95: float
    least: float | None = None
    held: bool = False

    def __str__(self) -> str:
        if self.least is not None:
            return f"wait {self.least:g} to {self.p95:g} s"
        return f"wait p95 ≤ {_milliseconds(self.p95)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What must be seen in one cell: every turn one of `delivered` and one of `reasons`, and waits within `wait`."""

    delivered: frozenset[Delivered]
    reasons: frozenset[Reason]
    wait: WaitLimits | None = None

    def __str__(self) -> str:
        everywhere = self.delivered == frozenset(Delivered)
        parts = ["anywhere" if everywhere else " or ".join(value for value in Delivered if value in self.delivered)]
        if self.reasons not in {frozenset(Reason), frozenset({Reason.NONE})}:
            parts.append(" or ".join(value for value in Reason if value in self.reasons))
        if self.wait is not None:
            parts.append(str(self.wait))
        return "; ".join(parts)


Expectations = Mapping[tuple[Scenario, PolicyName], Expectation]
"""By row and column of the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What was measured in one cell: turns by kind, and the waits in seconds (None: no wait was measured)."""

    delivered: Mapping[Delivered, float]
    reasons: Mapping[Reason, float]
    p50: float | None
    p95: float | None
    highest: float | None

    @property
    def turns(self) -> float:
        """How many turns were counted."""
        return sum(self.delivered.values())


def scripted(ceiling: float) -> Expectations:
    """Return what must be seen when the scripted scenarios are played; `ceiling` (seconds) is that of `tiered`."""
    at_once = WaitLimits(p95=TOLERANCE)
    about_a_second = WaitLimits(p95=1.1, least=0.85)
    at_ceiling = WaitLimits(p95=ceiling + TOLERANCE, held=True)
    initial, tool_result, both, none = Delivered.INITIAL, Delivered.TOOL_RESULT, Delivered.BOTH, Delivered.NONE
    deadline, prefetch, tiered = POLICIES
    return {
        (Scenario.SETTLED_BEFORE_SEND, deadline): _seen(initial, wait=at_once),
        (Scenario.SETTLED_BEFORE_SEND, prefetch): _seen(initial, wait=at_once),
        (Scenario.SETTLED_BEFORE_SEND, tiered): _seen(initial, wait=WaitLimits(p95=TOLERANCE, held=True)),
        (Scenario.SLOW_WITH_TOOLS, deadline): _seen(initial, wait=about_a_second),
        (Scenario.SLOW_WITH_TOOLS, prefetch): _seen(tool_result, wait=at_once),
        (Scenario.SLOW_WITH_TOOLS, tiered): _seen(both, wait=at_ceiling),
        (Scenario.TIMED_OUT, deadline): _seen(none, Reason.SELECTOR_TIMEOUT, wait=about_a_second),
        (Scenario.TIMED_OUT, prefetch): _seen(tool_result, wait=at_once),
        (Scenario.TIMED_OUT, tiered): _seen(both, wait=at_ceiling),
        (Scenario.SLOW_WITHOUT_TOOLS, deadline): _seen(none, Reason.SELECTOR_TIMEOUT, wait=about_a_second),
        (Scenario.SLOW_WITHOUT_TOOLS, prefetch): _seen(none, Reason.NO_SAFE_DELIVERY_POINT),
        (Scenario.SLOW_WITHOUT_TOOLS, tiered): _seen(initial, Reason.NO_SAFE_DELIVERY_POINT, wait=at_ceiling),
        (Scenario.SUPERSEDED, deadline): _seen(none, Reason.NEW_QUERY),
        (Scenario.SUPERSEDED, prefetch): _seen(none, Reason.NEW_QUERY),
        (Scenario.SUPERSEDED, tiered): _seen(initial, Reason.NEW_QUERY, wait=at_ceiling),
    }


def live(ceilings: Mapping[PolicyName, float]) -> Expectations:
    """Return what each policy promises for any traffic: where it never delivers, and how long it holds a turn.

    `ceilings` (seconds) are those that the traffic had, the highest of each policy; `tiered` must be among them.
    """
    anywhere, any_reason = frozenset(Delivered), frozenset(Reason)
    at_initial = frozenset({Delivered.INITIAL, Delivered.NONE})
    promised = {
        PolicyName.DEADLINE: Expectation(
            delivered=at_initial,
            reasons=any_reason,
            wait=WaitLimits(p95=ceilings.get(PolicyName.DEADLINE, DEADLINE_CEILING) + DEADLINE_TOLERANCE),
        ),
        PolicyName.PREFETCH: Expectation(delivered=anywhere, reasons=any_reason, wait=WaitLimits(p95=TOLERANCE)),
        PolicyName.TIERED: Expectation(
            delivered=anywhere,
            reasons=any_reason,
            wait=WaitLimits(p95=ceilings[PolicyName.TIERED] + TOLERANCE, held=True),
        ),
    }
    return {(scenario, policy): promised[policy] for scenario, policy in scripted(ceilings[PolicyName.TIERED])}


def judge(measured: Measured, expected: Expectation, *, loop_lag: float | None) -> tuple[Verdict, tuple[str, ...]]:
    """Compare one cell with what must be seen there; the sentences say what differs, or why nothing is known.

    `loop_lag` is the upper bound (seconds) of the highest bucket of `recallscope.loop.lag` in the same reading; None
    where that was not measured: then the longest wait is not judged, since it may be the loop's doing.
    """
    if measured.turns <= 0:
        return Verdict.NOT_MEASURED, ("no turn ended in this row",)
    differences = misplaced(measured, expected)
    if expected.wait is not None:
        if measured.p50 is None or measured.p95 is None or measured.highest is None:
            return Verdict.NOT_MEASURED, ("its turns are counted, their waits are not",)
        differences += _waits(measured.p50, measured.p95, measured.highest, expected.wait, loop_lag)
    return (Verdict.DIFFERS if differences else Verdict.AS_STATED), tuple(differences)


def misplaced(measured: Measured, expected: Expectation) -> list[str]:
    """Say where memory went that it should not have, and what was told of that wrongly; waits are another matter."""
    return [
        *_strangers("memory went to", measured.delivered, expected.delivered),
        *_strangers("the reason was", measured.reasons, expected.reasons),
    ]


def _seen(delivered: Delivered, reason: Reason = Reason.NONE, *, wait: WaitLimits | None = None) -> Expectation:
    return Expectation(delivered=frozenset({delivered}), reasons=frozenset({reason}), wait=wait)


def _strangers(
    what: str, counted: Mapping[Delivered, float] | Mapping[Reason, float], allowed: frozenset[str]
) -> list[str]:
    total = sum(counted.values())
    return [
        f"{what} {value} in {count:.0f} of {total:.0f} turns"
        for value, count in counted.items()
        if count > 0 and value not in allowed
    ]


def _waits(p50: float, p95: float, highest: float, limits: WaitLimits, loop_lag: float | None) -> list[str]:
    limit = _bound(limits.p95)
    found: list[str] = []
    if limits.least is not None and p50 < limits.least - _ROUNDING:
        found.append(f"wait p50 {_milliseconds(p50)} is below {_milliseconds(limits.least)}")
    if p95 > limit + _ROUNDING:
        found.append(f"wait p95 {_milliseconds(p95)} is above {_milliseconds(limits.p95)}")
    if limits.held and loop_lag is not None and highest > limit + loop_lag + _ROUNDING:
        found.append(
            f"the longest wait (≤ {_milliseconds(highest)}) is above {_milliseconds(limits.p95)} "
            f"and the loop lag (≤ {_milliseconds(loop_lag)})"
        )
    if found and loop_lag is not None and loop_lag > TOLERANCE:
        found.append(f"the loop was held up by as much as {_milliseconds(loop_lag)}: was the machine busy?")
    return found


def _bound(limit: float) -> float:
    """Return the upper bound of the bucket in which `limit` lies."""
    return next((bound for bound in BUCKETS_R if bound >= limit - _ROUNDING), limit)


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.4g} ms"
