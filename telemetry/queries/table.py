"""The comparison table: what `recallscope compare` asks a Prometheus for, and what its dashboard shows."""

from typing import Final

from recallscope.runtime.events import Delivered, Scenario
from recallscope.telemetry import names

__all__ = [
    "TABLE_SCENARIOS",
    "loop_lag_buckets",
    "loop_lag_max",
    "rows",
    "table_delivered",
    "table_turns",
    "table_turns_of_row",
    "table_wait_buckets",
    "table_wait_max",
    "table_wait_quantile",
    "wait_quantile_of_policy",
]

TABLE_SCENARIOS: Final = (
    Scenario.SETTLED_BEFORE_SEND,
    Scenario.SLOW_WITH_TOOLS,
    Scenario.TIMED_OUT,
    Scenario.SLOW_WITHOUT_TOOLS,
    Scenario.SUPERSEDED,
)
"""The rows of the table, in its order; the other scenarios stand apart from it."""

_ROW: Final = f"{names.POLICY}, {names.SCENARIO}"
_WAIT: Final = names.RECALL_TURN_WAIT_DURATION.prometheus


def rows(selector: str) -> str:
    """Narrow a selector to the table's own scenarios: the others say nothing about a policy."""
    return f'{selector}, {names.SCENARIO}=~"{"|".join(TABLE_SCENARIOS)}"'


def table_turns(selector: str, window: str) -> str:
    """Count the turns of each row, by where memory was delivered and why not."""
    labels = f"{_ROW}, {names.DELIVERED}, {names.REASON}"
    return f"sum by ({labels}) (increase({names.RECALL_TURNS.prometheus}{{{selector}}}[{window}]))"


def table_turns_of_row(selector: str, window: str) -> str:
    """Count the turns of each row that had any."""
    return f"{_turns(selector, window)} > 0"


def table_delivered(selector: str, window: str) -> str:
    """Give the share of each row's turns that received memory, at whatever point."""
    delivered = _turns(f'{selector}, {names.DELIVERED}!="{Delivered.NONE}"', window)
    return f"{delivered} / ({_turns(selector, window)} > 0)"


def table_wait_buckets(selector: str, window: str) -> str:
    """Count the turns of each row by how long they waited for memory, as a classic histogram."""
    return f"sum by ({_ROW}, le) (increase({_WAIT}_bucket{{{selector}}}[{window}]))"


def table_wait_quantile(quantile: float, selector: str, window: str) -> str:
    """Give a quantile of the wait of each row, in seconds."""
    return f"histogram_quantile({quantile:g}, {table_wait_buckets(selector, window)})"


def table_wait_max(selector: str, window: str) -> str:
    """Give the upper bound of the highest bucket that holds a wait of the row, in seconds (≥ 30: above all bounds)."""
    return table_wait_quantile(1, selector, window)


def wait_quantile_of_policy(quantile: float, selector: str, window: str) -> str:
    """Give a quantile of the wait of all turns of a policy, in seconds."""
    waits = f"sum by ({names.POLICY}, le) (rate({_WAIT}_bucket{{{selector}}}[{window}]))"
    return f"histogram_quantile({quantile:g}, {waits})"


def loop_lag_buckets(selector: str, window: str) -> str:
    """Count the intervals of 100 ms by their worst loop lag, as a classic histogram."""
    return f"sum by (le) (increase({names.LOOP_LAG.prometheus}_bucket{{{selector}}}[{window}]))"


def loop_lag_max(selector: str, window: str) -> str:
    """Give the upper bound of the highest bucket that holds a loop lag, in seconds."""
    return f"histogram_quantile(1, {loop_lag_buckets(selector, window)})"


def _turns(selector: str, window: str) -> str:
    return f"sum by ({_ROW}) (increase({names.RECALL_TURNS.prometheus}{{{selector}}}[{window}]))"
