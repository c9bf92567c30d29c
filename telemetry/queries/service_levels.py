"""The service levels, by policy where a turn has one: as shares to look at, and as counts to record and alert on."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from recallscope.runtime.events import PolicyName
from recallscope.telemetry import names
from recallscope.telemetry.queries.selector import JOB
from recallscope.telemetry.queries.shape import grown
from recallscope.telemetry.queries.table import TABLE_SCENARIOS

__all__ = [
    "DELIVERY_LEVEL",
    "HOLD_LEVEL",
    "SLOW_TURN",
    "SLOW_TURNS_LEVEL",
    "ServiceLevel",
    "delivery",
    "hold",
    "slow_turns",
    "telemetry_loss",
]

SLOW_TURN: Final = "10.24"
"""From here a turn is slow: a boundary of the turn histograms, as Prometheus spells it."""


def hold(selector: str, window: str) -> str:
    """Give the share of initial waits that kept their ceiling (`tiered`: at least 99.9 %)."""
    waits = f'{names.RECALL_WAIT_DURATION.prometheus}_count{{{selector}, {names.POINT}="initial"}}'
    overruns = f"{names.RECALL_WAIT_OVERRUNS.prometheus}{{{selector}}}"
    return f"1 - {_by_policy(overruns, window)} / {_by_policy(waits, window)}"


def delivery(selector: str, window: str) -> str:
    """Give the share of the table's turns that received memory (`tiered`: at least 95 %)."""
    rows = f'{names.SCENARIO}=~"{"|".join(TABLE_SCENARIOS)}"'
    turns = names.RECALL_TURNS.prometheus
    delivered = f'{turns}{{{selector}, {rows}, {names.DELIVERED}!="none"}}'
    return f"{_by_policy(delivered, window)} / {_by_policy(f'{turns}{{{selector}, {rows}}}', window)}"


def slow_turns(selector: str, window: str) -> str:
    """Give the share of turns above 10.24 s, cancelled ones left out on both sides (at most 5 %)."""
    kept = f'{selector}, {names.OUTCOME}!="cancelled"'
    duration = names.TURN_DURATION.prometheus
    quick = _by_policy(f'{duration}_bucket{{{kept}, le="{SLOW_TURN}"}}', window)
    return f"1 - {quick} / {_by_policy(f'{duration}_count{{{kept}}}', window)}"


def telemetry_loss(selector: str, window: str) -> str:
    """Give the share of spans, points, records and lines that were lost, by signal (below 0.1 %)."""
    lost = f"sum by ({names.SIGNAL}) ({grown(f'{names.TELEMETRY_DROPPED.prometheus}{{{selector}}}', window)})"
    passed = f"sum by ({names.SIGNAL}) ({grown(f'{names.TELEMETRY_EXPORTED.prometheus}{{{selector}}}', window)})"
    return f"{lost} / ({lost} + {passed})"


def _by_policy(series: str, window: str) -> str:
    return f"sum by ({names.POLICY}) (increase({series}[{window}]))"


# What is recorded, and what burn-rate alerts ask


@dataclass(frozen=True, slots=True)
class ServiceLevel:
    """Which events of a kind are bad; `bad` and `total` count them by job and policy: functions of selector, window.

    `name` stands in the names of the series that Prometheus records of them.
    """

    name: str
    bad: Callable[[str, str], str]
    total: Callable[[str, str], str]

    def recorded_bad(self, window: str) -> str:
        """Name the recorded count of bad events within `window`."""
        return f"job_policy:recallscope_{self.name}_bad:increase{window}"

    def recorded_total(self, window: str) -> str:
        """Name the recorded count of all events within `window`."""
        return f"job_policy:recallscope_{self.name}_total:increase{window}"

    def share(self, window: str) -> str:
        """Give the share of bad events within `window`, from what is recorded."""
        return f"{self.recorded_bad(window)} / {self.recorded_total(window)}"


def _slow(selector: str, window: str) -> str:
    kept = f'{selector}, {names.OUTCOME}!="cancelled"'
    quick = f'{names.TURN_DURATION.prometheus}_bucket{{{kept}, le="{SLOW_TURN}"}}'
    return f"clamp_min(\n  {_ended(selector, window)}\n  - {_counted(quick, window)},\n  0\n)"


def _ended(selector: str, window: str) -> str:
    return _counted(f'{names.TURN_DURATION.prometheus}_count{{{selector}, {names.OUTCOME}!="cancelled"}}', window)


def _overrun(selector: str, window: str) -> str:
    return _counted(f"{names.RECALL_WAIT_OVERRUNS.prometheus}{{{selector}}}", window)


def _waited(selector: str, window: str) -> str:
    return _counted(f'{names.RECALL_WAIT_DURATION.prometheus}_count{{{selector}, {names.POINT}="initial"}}', window)


def _undelivered(selector: str, window: str) -> str:
    return _due(f'{selector}, {names.DELIVERED}="none"', window)


def _due(selector: str, window: str) -> str:
    rows = f'{names.POLICY}="{PolicyName.TIERED}", {names.SCENARIO}=~"{"|".join(TABLE_SCENARIOS)}"'
    return _counted(f"{names.RECALL_TURNS.prometheus}{{{selector}, {rows}}}", window)


def _counted(series: str, window: str) -> str:
    return f"sum by ({JOB}, {names.POLICY}) (increase({series}[{window}]))"


SLOW_TURNS_LEVEL: Final = ServiceLevel("slow_turns", bad=_slow, total=_ended)
"""Turns above 10.24 s, of all that were not cancelled."""

HOLD_LEVEL: Final = ServiceLevel("recall_holds", bad=_overrun, total=_waited)
"""Initial waits longer than their ceiling and 5 ms, of all."""

DELIVERY_LEVEL: Final = ServiceLevel("undelivered", bad=_undelivered, total=_due)
"""Turns of the table's scenarios that received nothing, under `tiered`: the other policies promise no share."""
