"""The PromQL of the table and of the service levels: names that exist, and one job."""

import re
from collections.abc import Callable

import pytest

from recallscope.telemetry import names, queries
from recallscope.telemetry.queries import whatif

SELECTOR = queries.job("agents")
ALL: dict[str, Callable[[str, str], str]] = {
    "table_turns": queries.table_turns,
    "table_wait_buckets": queries.table_wait_buckets,
    "table_wait_p95": lambda selector, window: queries.table_wait_quantile(0.95, selector, window),
    "table_wait_max": queries.table_wait_max,
    "loop_lag_buckets": queries.loop_lag_buckets,
    "loop_lag_max": queries.loop_lag_max,
    "hold": queries.hold,
    "delivery": queries.delivery,
    "slow_turns": queries.slow_turns,
    "telemetry_loss": queries.telemetry_loss,
    "share_by_ceiling": whatif.share_by_ceiling,
    "ready_quantile": lambda selector, window: whatif.ready_quantile(0.9, selector, window),
}


@pytest.mark.parametrize("query", ALL.values(), ids=ALL)
def test_a_query_asks_for_metrics_that_exist(query: Callable[[str, str], str]) -> None:
    """Each series belongs to a metric that telemetry emits, and is asked for in one job alone."""
    known = {metric.prometheus for metric in names.METRICS}
    text = query(SELECTOR, "5m")
    series = re.findall(r"(\w+)\{([^}]*)\}\[5m\]", text)

    assert series
    assert {re.sub(r"_(?:bucket|count)$", "", name) for name, _ in series} <= known
    assert [matchers for _, matchers in series if not matchers.startswith('job="agents"')] == []
    assert text.count("(") == text.count(")")


def test_the_boundary_of_a_slow_turn_is_a_bucket() -> None:
    """A share above a bound can only be asked for at a boundary, spelled as the exposition spells it."""
    assert float(queries.SLOW_TURN) in names.BUCKETS_T


def test_the_curve_by_ceiling_has_no_endless_ceiling() -> None:
    """Grafana reads the bound `+Inf` as a number that no axis holds."""
    assert 'le!="+Inf"' in whatif.share_by_ceiling(SELECTOR, "1h")


def test_the_labels_of_the_table_are_those_of_its_metric() -> None:
    """What the table groups by is what the counter carries."""
    grouped = re.search(r"sum by \(([^)]*)\)", queries.table_turns(SELECTOR, "1h"))

    assert grouped is not None
    assert tuple(grouped[1].split(", ")) == names.RECALL_TURNS.labels


def test_a_job_is_escaped() -> None:
    """A name with quotes stays one matcher."""
    assert queries.job('a"} or vector(1) #\\') == 'job="a\\"} or vector(1) #\\\\"'


@pytest.mark.parametrize(("text", "right"), [("1h", True), ("1h30m", True), ("90s", True), ("0s", False)])
def test_a_range_that_promql_takes(text: str, right: bool) -> None:
    """Numbers with units, one or several."""
    assert queries.is_range(text) is right


@pytest.mark.parametrize("text", ["", "1", "h", "1 h", "-1h", "1h]) or vector(1", "yesterday"])
def test_a_range_that_promql_refuses(text: str) -> None:
    """Anything else, and whatever would end the expression."""
    assert not queries.is_range(text)
