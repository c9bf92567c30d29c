"""Cells are computed from figures alone, and what is printed as JSON has a fixed shape."""

import json
import math
from collections.abc import Callable
from dataclasses import replace

from recallscope.runtime.lab.comparison import Comparison, compare_figures
from recallscope.runtime.lab.expectations import POLICIES, Verdict, live, scripted
from recallscope.runtime.terms import Delivered, PolicyName, Reason, Scenario
from recallscope.telemetry.queries import TABLE_SCENARIOS
from recallscope.telemetry.read.figures import Figures, Row, TurnKind
from recallscope.telemetry.read.quantile import Buckets

Make = Callable[..., Figures]

TIMED_OUT = Row(PolicyName.TIERED, Scenario.TIMED_OUT)


def _compared(figures: Figures, *, played: bool = True) -> Comparison:
    return compare_figures(figures, scripted(0.1), ceiling=0.1, policies=POLICIES, played=played)


def test_figures_in_which_all_is_as_stated(figures: Make) -> None:
    """Every row under every policy is a cell, in the table's order, and all of them are as stated."""
    comparison = _compared(figures())

    assert [(row.scenario, row.policy) for row in comparison.cells] == [
        (scenario, policy) for scenario in TABLE_SCENARIOS for policy in POLICIES
    ]
    assert {cell.verdict for cell in comparison.cells.values()} == {Verdict.AS_STATED}
    assert comparison.verdict is Verdict.AS_STATED
    assert comparison.loop_lag == 0.0025


def test_the_scenarios_that_stand_apart_are_counted(figures: Make) -> None:
    """Turns that say nothing about a policy are counted by policy, and are in no cell."""
    comparison = _compared(figures(turns=4))

    assert comparison.apart[Row(PolicyName.TIERED, Scenario.NOTHING_FOUND)].turns == 4
    assert comparison.apart[Row(PolicyName.TIERED, Scenario.INTERRUPTED)].turns == 0
    assert len(comparison.apart) == 4 * len(POLICIES)
    assert (comparison.turns, comparison.turns_apart) == (60, 12)


def test_a_cell_as_json(figures: Make) -> None:
    """The schema of a cell, with the figures as they are read."""
    cell = _compared(figures()).cells[Row(PolicyName.DEADLINE, Scenario.TIMED_OUT)]

    assert cell.as_data() == {
        "policy": "deadline",
        "scenario": "timed_out",
        "turns": 5,
        "delivered": {"initial": 0, "tool_result": 0, "both": 0, "none": 5},
        "reasons": {"selector_timeout": 5},
        "wait_seconds": {"p50": 0.925, "p95": 0.9925, "max": 1.0},
        "expected": "none; selector_timeout; wait 0.85 to 1.1 s",
        "verdict": "as_stated",
    }


def test_the_comparison_as_json(figures: Make) -> None:
    """The schema of the whole, which is JSON that any parser reads."""
    data = _compared(figures()).as_data()

    assert list(data) == ["schema", "ceiling_seconds", "cells", "apart", "verdict"]
    assert (data["schema"], data["ceiling_seconds"], data["verdict"]) == (1, 0.1, "as_stated")
    assert (len(data["cells"]), len(data["apart"])) == (15, 12)
    assert data["apart"][-1] == {
        "policy": "tiered",
        "scenario": "nothing_found",
        "turns": 5,
        "reasons": {"no_relevant_results": 5},
    }
    assert json.loads(json.dumps(data, allow_nan=False)) == data


def test_a_wait_above_all_buckets_has_no_number(figures: Make) -> None:
    """Infinity is no JSON: a longest wait above 30 s is null, and the cell differs."""
    good = figures()
    endless = Buckets((30.0, math.inf), (4.0, 5.0))

    cell = _compared(replace(good, waits={**good.waits, TIMED_OUT: endless})).cells[TIMED_OUT]

    assert cell.as_data()["wait_seconds"] == {"p50": 18.75, "p95": 30.0, "max": None}
    assert cell.verdict is Verdict.DIFFERS


def test_a_cell_that_was_not_measured(figures: Make) -> None:
    """A cell without turns has no figures; that is a fault where it was played, and none in live traffic."""
    good = figures()
    without = replace(
        good, turns={kind: count for kind, count in good.turns.items() if kind.row != TIMED_OUT}, waits={}
    )

    played, seen = _compared(without), _compared(without, played=False)
    data = played.cells[TIMED_OUT].as_data()

    assert (data["turns"], data["verdict"]) == (0, "not_measured")
    assert data["wait_seconds"] == {"p50": None, "p95": None, "max": None}
    assert (played.verdict, seen.verdict) == (Verdict.NOT_MEASURED, Verdict.AS_STATED)


def test_one_cell_that_differs_is_a_table_that_differs(figures: Make) -> None:
    """The verdict of the table is that of its worst cell."""
    slow = _compared(figures(waits={TIMED_OUT: 0.2}))

    assert slow.verdict is Verdict.DIFFERS
    assert [cell.row for cell in slow.with_verdict(Verdict.DIFFERS)] == [TIMED_OUT]


def test_nothing_at_all_is_not_measured() -> None:
    """A Prometheus that knows no such job gives a table without figures."""
    comparison = compare_figures(Figures(), live({PolicyName.TIERED: 0.1}), ceiling=0.1, policies=POLICIES)

    assert comparison.verdict is Verdict.NOT_MEASURED
    assert (comparison.loop_lag, comparison.void) == (None, False)


def test_fractions_of_turns_are_rounded_when_they_are_shown(figures: Make) -> None:
    """`increase` extrapolates, so five turns may come as 5.17."""
    good = figures()
    kind = TurnKind(TIMED_OUT, Delivered.BOTH, Reason.NONE)

    cell = _compared(replace(good, turns={**good.turns, kind: 5.17})).cells[TIMED_OUT]

    assert (cell.as_data()["turns"], cell.as_data()["delivered"]["both"]) == (5, 5)
    assert cell.verdict is Verdict.AS_STATED


HELD = Row(PolicyName.PREFETCH, Scenario.TIMED_OUT)


def test_a_reading_of_a_busy_machine_is_void(figures: Make) -> None:
    """A loop that stood still tells nothing; one that was held up somewhat excuses waits, a free one does not."""
    late = {HELD: 0.009}

    assert [
        _compared(figures(lag=0.03)).void,
        _compared(figures(lag=0.009, waits=late)).void,
        _compared(figures(lag=0.009)).void,
        _compared(figures(lag=0.002, waits=late)).void,
    ] == [True, True, False, False]


def test_memory_that_went_astray_is_never_excused(figures: Make) -> None:
    """A cell whose memory went elsewhere differs, however busy the loop was."""
    good = figures(lag=0.009)
    astray = next(kind for kind in good.turns if kind.row == HELD)
    turns = {**good.turns, replace(astray, delivered=Delivered.NONE): 1.0}
    comparison = _compared(replace(good, turns=turns))

    assert (comparison.verdict, comparison.void) == (Verdict.DIFFERS, False)
