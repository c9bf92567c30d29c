"""The figures that the comparison table is drawn from, whether a scrape or a Prometheus delivers them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from recallscope.runtime.events import Delivered, PolicyName, Reason, Scenario
from recallscope.telemetry import names
from recallscope.telemetry.read.ceilings import Ceilings
from recallscope.telemetry.read.quantile import EMPTY, Buckets

__all__ = ["Figures", "ReadError", "Row", "TurnKind", "collect_buckets", "collect_turns", "collect_waits"]

Labels = Mapping[str, str]
Point = tuple[Labels, float]
"""One sample: its labels and its value."""

_EnumT = TypeVar("_EnumT", bound=StrEnum)


class ReadError(Exception):
    """The figures could not be read: from where, why, and what to do."""


@dataclass(frozen=True, slots=True)
class Row:
    """One place in the table."""

    policy: PolicyName
    scenario: Scenario


@dataclass(frozen=True, slots=True)
class TurnKind:
    """What `recallscope.recall.turns` counts apart."""

    row: Row
    delivered: Delivered
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Counted turns, the waits (seconds) of the turns of each row, and the lag (seconds) of the event loop.

    Counts may be fractions when they come from Prometheus, whose `increase` extrapolates. `ceilings` are those of the
    recalls, by policy, as far as the source tells them; the loop lag is empty where it does not tell that.
    """

    turns: Mapping[TurnKind, float] = field(default_factory=dict[TurnKind, float])
    waits: Mapping[Row, Buckets] = field(default_factory=dict[Row, Buckets])
    loop_lag: Buckets = EMPTY
    ceilings: Mapping[PolicyName, Ceilings] = field(default_factory=dict[PolicyName, Ceilings])

    def since(self, earlier: "Figures") -> "Figures":
        """Return what was counted since `earlier`, an older reading of the same process."""
        return Figures(
            turns={kind: count - earlier.turns.get(kind, 0.0) for kind, count in self.turns.items()},
            waits={row: waits - earlier.waits.get(row, EMPTY) for row, waits in self.waits.items()},
            loop_lag=self.loop_lag - earlier.loop_lag,
            ceilings=self.ceilings,
        )


def collect_turns(points: Iterable[Point]) -> dict[TurnKind, float]:
    """Add up the points of `recallscope.recall.turns`; labels that this version does not know are left out."""
    turns: dict[TurnKind, float] = {}
    for labels, value in points:
        row = _row(labels)
        delivered = _member(Delivered, labels.get(names.DELIVERED))
        reason = _member(Reason, labels.get(names.REASON))
        if row is not None and delivered is not None and reason is not None:
            kind = TurnKind(row, delivered, reason)
            turns[kind] = turns.get(kind, 0.0) + value
    return turns


def collect_waits(points: Iterable[Point]) -> dict[Row, Buckets]:
    """Make the histograms of `recallscope.recall.turn.wait.duration` from its bucket points, series added up."""
    found: dict[Row, list[Point]] = {}
    for labels, value in points:
        row = _row(labels)
        if row is not None:
            found.setdefault(row, []).append((labels, value))
    return {row: collect_buckets(of_row) for row, of_row in found.items()}


def collect_buckets(points: Iterable[Point]) -> Buckets:
    """Make one histogram from bucket points, series added up."""
    counts: dict[float, float] = {}
    for labels, value in points:
        bound = float(labels["le"])
        counts[bound] = counts.get(bound, 0.0) + value
    return Buckets.of(counts)


def _row(labels: Labels) -> Row | None:
    policy = _member(PolicyName, labels.get(names.POLICY))
    scenario = _member(Scenario, labels.get(names.SCENARIO))
    return Row(policy, scenario) if policy is not None and scenario is not None else None


def _member(enum: type[_EnumT], value: str | None) -> _EnumT | None:
    return next((member for member in enum if member.value == value), None)
