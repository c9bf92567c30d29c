"""Every PromQL expression, of the comparison table and of the service levels, for the command and the dashboards.

Each is a function of `selector`, the matchers between the braces, which must name a `job`: one series may reach a
Prometheus on two ways (scrape and push), and a sum over both would count double. `window` is a PromQL range such as
`1h`; dashboards pass `$__rate_interval` or `$__range`.
"""

import re
from typing import Final

from recallscope.runtime.events import Scenario
from recallscope.telemetry import names

__all__ = [
    "TABLE_SCENARIOS",
    "delivery",
    "hold",
    "is_range",
    "job",
    "loop_lag_buckets",
    "loop_lag_max",
    "slow_turns",
    "table_turns",
    "table_wait_buckets",
    "table_wait_max",
    "table_wait_quantile",
    "telemetry_loss",
]

TABLE_SCENARIOS: Final = (
    Scenario.SETTLED_BEFORE_SEND,
    Scenario.SLOW_WITH_TOOLS,
    Scenario.TIMED_OUT,
    Scenario.SLOW_WITHOUT_TOOLS,
    Scenario.SUPERSEDED,
)
"""The rows of the table, in its order; the other scenarios stand apart from it."""

SLOW_TURN: Final = "10.24"
"""From here a turn is slow: a boundary of the turn histograms, as Prometheus spells it."""

_RANGE = re.compile(r"(?:[1-9]\d*(?:ms|[smhdwy]))+")
_ROW: Final = f"{names.POLICY}, {names.SCENARIO}"
_WAIT: Final = names.RECALL_TURN_WAIT_DURATION.prometheus


def job(name: str) -> str:
    """Return the selector of the job `name`."""
    escaped = name.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return f'job="{escaped}"'


def is_range(text: str) -> bool:
    """Say whether `text` is a range that PromQL takes: `90s`, `1h30m`, `7d`."""
    return _RANGE.fullmatch(text) is not None


# The comparison table


def table_turns(selector: str, window: str) -> str:
    """Count the turns of each row, by where memory was delivered and why not."""
    labels = f"{_ROW}, {names.DELIVERED}, {names.REASON}"
    return f"sum by ({labels}) (increase({names.RECALL_TURNS.prometheus}{{{selector}}}[{window}]))"


def table_wait_buckets(selector: str, window: str) -> str:
    """Count the turns of each row by how long they waited for memory, as a classic histogram."""
    return f"sum by ({_ROW}, le) (increase({_WAIT}_bucket{{{selector}}}[{window}]))"


def table_wait_quantile(quantile: float, selector: str, window: str) -> str:
    """Give a quantile of the wait of each row, in seconds."""
    return f"histogram_quantile({quantile:g}, {table_wait_buckets(selector, window)})"


def table_wait_max(selector: str, window: str) -> str:
    """Give the upper bound of the highest bucket that holds a wait of the row, in seconds (≥ 30: above all bounds)."""
    return table_wait_quantile(1, selector, window)


def loop_lag_buckets(selector: str, window: str) -> str:
    """Count the intervals of 100 ms by their worst loop lag, as a classic histogram."""
    return f"sum by (le) (increase({names.LOOP_LAG.prometheus}_bucket{{{selector}}}[{window}]))"


def loop_lag_max(selector: str, window: str) -> str:
    """Give the upper bound of the highest bucket that holds a loop lag, in seconds."""
    return f"histogram_quantile(1, {loop_lag_buckets(selector, window)})"


# The service levels, by policy where a turn has one


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
