"""What must be seen in each cell, and the program that judges it."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallscope.runtime.lab.expectations import (
    POLICIES,
    Expectation,
    Measured,
    Verdict,
    WaitLimits,
    judge,
    live,
    scripted,
)
from recallscope.runtime.terms import Delivered, PolicyName, Reason, Scenario

DEADLINE, PREFETCH, TIERED = POLICIES

GOOD = Measured(delivered={Delivered.BOTH: 5}, reasons={Reason.NONE: 5}, p50=0.002, p95=0.0048, highest=0.005)
BOTH = scripted(0.1)[Scenario.TIMED_OUT, TIERED]


def test_the_table_is_that_of_the_design() -> None:
    """What must be seen in the scripted scenarios, cell by cell, in words."""
    about_a_second = "wait 0.85 to 1.1 s"
    assert {f"{scenario} {policy}": str(expected) for (scenario, policy), expected in scripted(0.1).items()} == {
        "settled_before_send deadline": "initial; wait p95 ≤ 5 ms",
        "settled_before_send prefetch": "initial; wait p95 ≤ 5 ms",
        "settled_before_send tiered": "initial; wait p95 ≤ 5 ms",
        "slow_with_tools deadline": f"initial; {about_a_second}",
        "slow_with_tools prefetch": "tool_result; wait p95 ≤ 5 ms",
        "slow_with_tools tiered": "both; wait p95 ≤ 105 ms",
        "timed_out deadline": f"none; selector_timeout; {about_a_second}",
        "timed_out prefetch": "tool_result; wait p95 ≤ 5 ms",
        "timed_out tiered": "both; wait p95 ≤ 105 ms",
        "slow_without_tools deadline": f"none; selector_timeout; {about_a_second}",
        "slow_without_tools prefetch": "none; no_safe_delivery_point",
        "slow_without_tools tiered": "initial; no_safe_delivery_point; wait p95 ≤ 105 ms",
        "superseded deadline": "none; new_query",
        "superseded prefetch": "none; new_query",
        "superseded tiered": "initial; new_query; wait p95 ≤ 105 ms",
    }


def test_the_longest_wait_is_judged_in_every_cell_of_tiered_and_in_no_other() -> None:
    """The promise of `tiered` holds for each turn, not for most of them."""
    held = {
        policy for (_, policy), expected in scripted(0.1).items() if expected.wait is not None and expected.wait.held
    }
    unheld = [
        1 for (_, policy), seen in scripted(0.1).items() if policy is TIERED and not (seen.wait and seen.wait.held)
    ]

    assert held == {TIERED}
    assert unheld == []


def test_live_traffic_is_judged_by_what_a_policy_promises() -> None:
    """Prompts and times of live traffic are its own; a policy's points and bounds are not."""
    rows = live({TIERED: 0.2})

    assert rows.keys() == scripted(0.1).keys()
    assert {policy: str(rows[Scenario.TIMED_OUT, policy]) for policy in POLICIES} == {
        DEADLINE: "initial or none; wait p95 ≤ 2600 ms",
        PREFETCH: "anywhere; wait p95 ≤ 5 ms",
        TIERED: "anywhere; wait p95 ≤ 205 ms",
    }


def test_live_traffic_is_judged_by_the_ceilings_that_it_had() -> None:
    """A policy's limit is the ceiling of the traffic's own recalls."""
    rows = live({TIERED: 0.05, DEADLINE: 1.0})

    assert [str(rows[Scenario.TIMED_OUT, policy].wait) for policy in POLICIES] == [
        "wait p95 ≤ 1100 ms",
        "wait p95 ≤ 5 ms",
        "wait p95 ≤ 55 ms",
    ]


def test_a_limit_within_a_bucket_is_judged_by_the_bound_of_the_bucket() -> None:
    """Waits of 200 ms under that ceiling lie in the bucket up to 250 ms: nobody can say that they were longer."""
    expected = live({TIERED: 0.2})[Scenario.TIMED_OUT, TIERED]

    assert judge(replace(GOOD, p50=0.2, p95=0.245, highest=0.25), expected, loop_lag=0.001) == (Verdict.AS_STATED, ())
    assert judge(replace(GOOD, p95=0.26, highest=0.5), expected, loop_lag=0.001)[0] is Verdict.DIFFERS


def test_without_a_measured_loop_lag_the_longest_wait_is_not_judged() -> None:
    """It may be the loop's doing; the 95th percentile is judged all the same."""
    assert judge(replace(GOOD, highest=0.15), BOTH, loop_lag=None) == (Verdict.AS_STATED, ())
    assert judge(replace(GOOD, p95=0.15), BOTH, loop_lag=None)[0] is Verdict.DIFFERS


def test_what_is_as_stated_has_no_remarks() -> None:
    """A cell in which all holds."""
    assert judge(GOOD, BOTH, loop_lag=0.001) == (Verdict.AS_STATED, ())


def test_a_cell_without_turns_is_not_measured() -> None:
    """Nothing is claimed about what nobody saw."""
    empty = Measured(delivered={}, reasons={}, p50=None, p95=None, highest=None)

    assert judge(empty, BOTH, loop_lag=0.0) == (Verdict.NOT_MEASURED, ("no turn ended in this row",))


def test_a_cell_whose_waits_are_missing_is_not_measured_where_waits_matter() -> None:
    """Counted turns without a histogram of their waits prove only half."""
    measured = replace(GOOD, p50=None, p95=None, highest=None)

    assert judge(measured, BOTH, loop_lag=0.0) == (
        Verdict.NOT_MEASURED,
        ("its turns are counted, their waits are not",),
    )
    assert judge(measured, replace(BOTH, wait=None), loop_lag=0.0) == (Verdict.AS_STATED, ())


@pytest.mark.parametrize(
    ("measured", "expected", "loop_lag", "remarks"),
    [
        (
            replace(GOOD, delivered={Delivered.BOTH: 3, Delivered.NONE: 2}),
            BOTH,
            0.0,
            ("memory went to none in 2 of 5 turns",),
        ),
        (
            replace(GOOD, reasons={Reason.NONE: 4, Reason.SELECTOR_TIMEOUT: 1}),
            BOTH,
            0.0,
            ("the reason was selector_timeout in 1 of 5 turns",),
        ),
        (replace(GOOD, p95=0.1051), BOTH, 0.0, ("wait p95 105.1 ms is above 105 ms",)),
        (
            replace(GOOD, p95=0.1, highest=0.15),
            BOTH,
            0.005,
            ("the longest wait (≤ 150 ms) is above 105 ms and the loop lag (≤ 5 ms)",),
        ),
        (
            replace(GOOD, p95=0.2),
            BOTH,
            0.025,
            ("wait p95 200 ms is above 105 ms", "the loop was held up by as much as 25 ms: was the machine busy?"),
        ),
        (
            replace(GOOD, p50=0.8, p95=1.05, highest=1.1),
            replace(BOTH, wait=WaitLimits(least=0.85, p95=1.1)),
            0.0,
            ("wait p50 800 ms is below 850 ms",),
        ),
    ],
)
def test_what_differs_is_told_in_words(
    measured: Measured, expected: Expectation, loop_lag: float, remarks: tuple[str, ...]
) -> None:
    """Each thing that differs is one sentence with its figures."""
    assert judge(measured, expected, loop_lag=loop_lag) == (Verdict.DIFFERS, remarks)


def test_the_longest_wait_may_pass_its_limit_by_the_loop_lag() -> None:
    """A wait that ends in a bucket above the ceiling is the loop's doing as far as its own lag reaches."""
    assert judge(replace(GOOD, highest=0.15), BOTH, loop_lag=0.05)[0] is Verdict.AS_STATED
    assert judge(replace(GOOD, highest=math.inf), BOTH, loop_lag=0.05)[0] is Verdict.DIFFERS


@given(
    delivered=st.dictionaries(st.sampled_from(Delivered), st.integers(1, 9), min_size=1),
    reason=st.sampled_from(Reason),
    p95=st.sampled_from([0.001, 0.005, 0.0051, 0.105, 0.11, 1.0, 2.0]),
    cell=st.sampled_from(sorted(scripted(0.1))),
)
def test_a_verdict_is_as_stated_exactly_without_remarks(
    delivered: dict[Delivered, float], reason: Reason, p95: float, cell: tuple[Scenario, PolicyName]
) -> None:
    """Whatever was measured, `differs` gives its reasons and `as_stated` has none."""
    turns = sum(delivered.values())
    measured = Measured(delivered=delivered, reasons={reason: turns}, p50=p95 / 2, p95=p95, highest=p95)

    verdict, remarks = judge(measured, scripted(0.1)[cell], loop_lag=0.0)

    assert (verdict is Verdict.AS_STATED) == (not remarks)
    if verdict is Verdict.AS_STATED:
        assert set(delivered) <= scripted(0.1)[cell].delivered


def test_the_page_states_what_the_program_judges() -> None:
    """`docs/comparison.md` has the same table, word for word."""
    page = (Path(__file__).parents[2] / "docs" / "comparison.md").read_text(encoding="utf-8").splitlines()
    rows = {
        scenario: [str(scripted(0.1)[scenario, policy]) for policy in POLICIES]
        for scenario in dict.fromkeys(scenario for scenario, _ in scripted(0.1))
    }

    assert [
        row for scenario, cells in rows.items() if (row := f"| `{scenario}` | {' | '.join(cells)} |") not in page
    ] == []
