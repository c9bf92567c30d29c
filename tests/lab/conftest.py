"""Figures as a process would have counted them."""

import math
from collections.abc import Callable, Mapping

import pytest

from recallscope.runtime.lab.expectations import POLICIES, scripted
from recallscope.runtime.terms import Delivered, PolicyName, Reason, Scenario
from recallscope.telemetry.names import BUCKETS_R
from recallscope.telemetry.read.figures import Figures, Row, TurnKind
from recallscope.telemetry.read.quantile import Buckets

WAITS = {PolicyName.DEADLINE: 0.92, PolicyName.PREFETCH: 0.0002, PolicyName.TIERED: 0.002}


def _histogram(seconds: float, count: int) -> Buckets:
    """Return the histogram of `count` observations of `seconds`, with the buckets of recall."""
    return Buckets.of({bound: float(count if seconds <= bound else 0) for bound in (*BUCKETS_R, math.inf)})


def _figures(turns: int = 5, *, waits: Mapping[Row, float] | None = None, lag: float = 0.002) -> Figures:
    """Return figures in which every cell is as stated, but for the waits in `waits` and the loop `lag` (seconds)."""
    rows = {Row(policy, scenario): expected for (scenario, policy), expected in scripted(0.1).items()}
    kinds = {
        TurnKind(row, next(iter(expected.delivered)), next(iter(expected.reasons))): float(turns)
        for row, expected in rows.items()
    }
    for policy in POLICIES:
        apart = TurnKind(Row(policy, Scenario.NOTHING_FOUND), Delivered.NONE, Reason.NO_RELEVANT_RESULTS)
        kinds[apart] = float(turns)
    usual = {row: 0.0005 if row.scenario is Scenario.SETTLED_BEFORE_SEND else WAITS[row.policy] for row in rows}
    return Figures(
        turns=kinds,
        waits={row: _histogram(seconds, turns) for row, seconds in {**usual, **(waits or {})}.items()},
        loop_lag=_histogram(lag, 100),
    )


@pytest.fixture
def figures() -> Callable[..., Figures]:
    """Give a function that makes figures in which all is as stated, but for what it is told."""
    return _figures
