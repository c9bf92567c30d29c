"""The service levels, by policy where a turn has one."""

from typing import Final

from recallscope.telemetry import names
from recallscope.telemetry.queries.table import TABLE_SCENARIOS

__all__ = ["SLOW_TURN", "delivery", "hold", "slow_turns", "telemetry_loss"]

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
    lost = f"sum by ({names.SIGNAL}) (increase({names.TELEMETRY_DROPPED.prometheus}{{{selector}}}[{window}]))"
    passed = f"sum by ({names.SIGNAL}) (increase({names.TELEMETRY_EXPORTED.prometheus}{{{selector}}}[{window}]))"
    return f"{lost} / ({lost} + {passed})"


def _by_policy(series: str, window: str) -> str:
    return f"sum by ({names.POLICY}) (increase({series}[{window}]))"
