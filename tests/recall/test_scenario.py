"""The row of the comparison table: the nine rules of docs/comparison.md, first match wins."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallscope.runtime.recall.scenario import TurnFacts, delivered_at, scenario_of
from recallscope.runtime.terms import Cause, Delivered, Point, Reason, Scenario

SLOW_WITH_TOOLS = TurnFacts(
    begun_at=10.0,
    settled_at=10.908,
    error=None,
    cut_by_policy=False,
    selected=True,
    found=True,
    cause=Cause.TURN_END,
    first_send_at=10.1,
    last_tool_send_at=11.6,
    accepted=True,
)
PENDING = replace(SLOW_WITH_TOOLS, settled_at=None, selected=False)


@pytest.mark.parametrize(
    ("facts", "scenario"),
    [
        (replace(PENDING, cause=Cause.SUPERSEDED), Scenario.SUPERSEDED),
        (replace(PENDING, cause=Cause.SUPERSEDED, accepted=False), Scenario.SUPERSEDED),
        (replace(PENDING, cause=Cause.USER_CANCEL), Scenario.INTERRUPTED),
        (replace(PENDING, cause=Cause.SESSION_RESET), Scenario.INTERRUPTED),
        (replace(PENDING, cause=Cause.PROCESS_SHUTDOWN, accepted=False), Scenario.INTERRUPTED),
        (replace(SLOW_WITH_TOOLS, accepted=False), Scenario.NOT_SENT),
        (replace(PENDING, accepted=False, cause=Cause.PROVIDER_ERROR), Scenario.NOT_SENT),
        (replace(SLOW_WITH_TOOLS, selected=False, error=Reason.STORE_UNAVAILABLE), Scenario.UNAVAILABLE),
        (replace(SLOW_WITH_TOOLS, error=Reason.SELECTOR_UNAVAILABLE), Scenario.SLOW_WITH_TOOLS),
        (replace(SLOW_WITH_TOOLS, selected=False, found=False), Scenario.NOTHING_FOUND),
        (replace(SLOW_WITH_TOOLS, selected=False), Scenario.SLOW_WITH_TOOLS),
        (replace(SLOW_WITH_TOOLS, settled_at=10.05), Scenario.SETTLED_BEFORE_SEND),
        (replace(SLOW_WITH_TOOLS, settled_at=12.0, first_send_at=12.5), Scenario.SETTLED_BEFORE_SEND),
        (replace(SLOW_WITH_TOOLS, last_tool_send_at=None), Scenario.SLOW_WITHOUT_TOOLS),
        (replace(PENDING, last_tool_send_at=None), Scenario.SLOW_WITHOUT_TOOLS),
        (replace(SLOW_WITH_TOOLS, settled_at=11.1), Scenario.TIMED_OUT),
        (replace(SLOW_WITH_TOOLS, settled_at=11.0), Scenario.SLOW_WITH_TOOLS),
        (replace(SLOW_WITH_TOOLS, last_tool_send_at=10.7), Scenario.TIMED_OUT),
        (PENDING, Scenario.TIMED_OUT),
        (SLOW_WITH_TOOLS, Scenario.SLOW_WITH_TOOLS),
        # A settled recall is not interrupted: what happened to its result says the rest.
        (replace(SLOW_WITH_TOOLS, cause=Cause.USER_CANCEL), Scenario.SLOW_WITH_TOOLS),
        (replace(SLOW_WITH_TOOLS, cause=Cause.SUPERSEDED), Scenario.SLOW_WITH_TOOLS),
    ],
)
def test_the_first_rule_that_holds(facts: TurnFacts, scenario: Scenario) -> None:
    """Facts of the recall decide about the row."""
    assert scenario_of(facts) is scenario


@pytest.mark.parametrize("first_send_at", [10.1, 11.5])
@pytest.mark.parametrize(
    ("last_tool_send_at", "scenario"), [(12.0, Scenario.TIMED_OUT), (None, Scenario.SLOW_WITHOUT_TOOLS)]
)
def test_what_a_policy_cut_off_did_not_settle_by_itself(
    first_send_at: float, last_tool_send_at: float | None, scenario: Scenario
) -> None:
    """A selector that the policy's limit ended stands where the other policies put a selector as slow as that."""
    facts = replace(
        SLOW_WITH_TOOLS,
        settled_at=11.0,
        error=Reason.SELECTOR_TIMEOUT,
        cut_by_policy=True,
        selected=False,
        first_send_at=first_send_at,
        last_tool_send_at=last_tool_send_at,
    )

    assert scenario_of(facts) is scenario


MOMENTS = st.none() | st.sampled_from([10.0, 10.1, 10.9, 11.0, 11.1, 12.0])
ANY_FACTS = st.builds(
    TurnFacts,
    begun_at=st.just(10.0),
    settled_at=MOMENTS,
    error=st.none() | st.sampled_from([Reason.STORE_UNAVAILABLE, Reason.SELECTOR_TIMEOUT]),
    cut_by_policy=st.booleans(),
    selected=st.booleans(),
    found=st.booleans(),
    cause=st.sampled_from(Cause),
    first_send_at=MOMENTS,
    last_tool_send_at=MOMENTS,
    accepted=st.booleans(),
)


@given(ANY_FACTS)
def test_every_turn_has_a_row(facts: TurnFacts) -> None:
    """Whatever happened, there is exactly one scenario."""
    assert scenario_of(facts) in Scenario


@pytest.mark.parametrize(
    ("points", "delivered"),
    [
        ((), Delivered.NONE),
        ((Point.INITIAL,), Delivered.INITIAL),
        ((Point.TOOL_RESULT,), Delivered.TOOL_RESULT),
        ((Point.INITIAL, Point.TOOL_RESULT), Delivered.BOTH),
    ],
)
def test_where_memory_came(points: tuple[Point, ...], delivered: Delivered) -> None:
    """The points of a recall in the table's word."""
    assert delivered_at(points) is delivered
