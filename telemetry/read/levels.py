"""The service levels, from what was counted: their figures, their targets, and whether they were met."""

from dataclasses import dataclass
from enum import StrEnum, unique
from typing import Final

from recallscope.runtime.events import Delivered, Point, PolicyName, TurnOutcome
from recallscope.telemetry import names
from recallscope.telemetry.queries import TABLE_SCENARIOS
from recallscope.telemetry.read.counts import Counts

__all__ = ["FEW", "SLOW_TURN_SECONDS", "LevelName", "ServiceLevel", "service_levels"]

SLOW_TURN_SECONDS: Final = 10.24
"""From here a turn is slow: a boundary of the turn histograms."""

FEW: Final = 20
"""Below so many turns a share says little, and is not judged."""


@unique
class LevelName(StrEnum):
    """What is promised."""

    HOLD = "hold"
    DELIVERY = "delivery"
    SLOW_TURNS = "slow_turns"
    TELEMETRY_LOSS = "telemetry_loss"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceLevel:
    """A share of good ones, `good` of `total`, and the share that is promised (None: nothing is promised here).

    `of`: the policy, or the signal of `telemetry_loss`.
    """

    name: LevelName
    of: str
    good: float
    total: float
    target: float | None

    @property
    def share(self) -> float:
        """The share of good ones; 1 where there are none at all."""
        return self.good / self.total if self.total > 0 else 1.0

    @property
    def met(self) -> bool | None:
        """Say whether the promise was kept; None where nothing is promised, or too little was counted to say."""
        if self.target is None or self.total < FEW:
            return None
        return self.share >= self.target


_TARGETS: Final = {LevelName.HOLD: 0.999, LevelName.DELIVERY: 0.95, LevelName.SLOW_TURNS: 0.95}
_LOSS_TARGET: Final = 0.999
_JUDGED: Final = frozenset({LevelName.HOLD, LevelName.DELIVERY})
"""Levels that only `tiered` promises."""


def service_levels(counts: Counts) -> tuple[ServiceLevel, ...]:
    """Return the levels of which anything was counted, in the order of `LevelName`, by policy or signal."""
    return (*_hold(counts), *_delivery(counts), *_slow_turns(counts), *_loss(counts))


def _hold(counts: Counts) -> list[ServiceLevel]:
    waits = counts.by(names.RECALL_WAIT_DURATION, names.POLICY, where={names.POINT: (Point.INITIAL,)})
    overruns = counts.by(names.RECALL_WAIT_OVERRUNS, names.POLICY)
    return [
        _level(LevelName.HOLD, policy, total - overruns.get((policy,), 0.0), total)
        for policy in PolicyName
        if (total := waits.get((policy,), 0.0)) > 0
    ]


def _delivery(counts: Counts) -> list[ServiceLevel]:
    rows = {names.SCENARIO: TABLE_SCENARIOS}
    turns = counts.by(names.RECALL_TURNS, names.POLICY, where=rows)
    missed = counts.by(names.RECALL_TURNS, names.POLICY, where={**rows, names.DELIVERED: (Delivered.NONE,)})
    return [
        _level(LevelName.DELIVERY, policy, total - missed.get((policy,), 0.0), total)
        for policy in PolicyName
        if (total := turns.get((policy,), 0.0)) > 0
    ]


def _slow_turns(counts: Counts) -> list[ServiceLevel]:
    kept = [outcome for outcome in TurnOutcome if outcome is not TurnOutcome.CANCELLED]
    found = counts.histogram(names.TURN_DURATION, names.POLICY, where={names.OUTCOME: kept})
    return [
        _level(LevelName.SLOW_TURNS, policy, durations.at_most(SLOW_TURN_SECONDS), durations.count)
        for policy in PolicyName
        if (durations := found.get((policy,))) is not None
    ]


def _loss(counts: Counts) -> list[ServiceLevel]:
    lost = counts.by(names.TELEMETRY_DROPPED, names.SIGNAL)
    passed = counts.by(names.TELEMETRY_EXPORTED, names.SIGNAL)
    return [
        ServiceLevel(
            name=LevelName.TELEMETRY_LOSS,
            of=signal,
            good=passed.get((signal,), 0.0),
            total=passed.get((signal,), 0.0) + lost.get((signal,), 0.0),
            target=_LOSS_TARGET,
        )
        for (signal,) in sorted({*lost, *passed})
    ]


def _level(name: LevelName, policy: PolicyName, good: float, total: float) -> ServiceLevel:
    judged = name not in _JUDGED or policy is PolicyName.TIERED
    return ServiceLevel(
        name=name, of=policy.value, good=max(good, 0.0), total=total, target=_TARGETS[name] if judged else None
    )
