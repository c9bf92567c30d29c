"""How long a send is held: each rule by itself, without a clock."""

import pytest

from recallscope.runtime.messages import NoteVersion
from recallscope.runtime.recall import hold
from recallscope.runtime.recall.handle import RecalledNote, RecallHandle, Settled
from recallscope.runtime.recall.policy import policy_named
from recallscope.runtime.terms import Cause, EndedBy, Point, PolicyName, Strategy

NOTE = RecalledNote(NoteVersion("project:a.md", "1"), "a")
DEADLINE, PREFETCH, TIERED = (
    policy_named(name) for name in (PolicyName.DEADLINE, PolicyName.PREFETCH, PolicyName.TIERED)
)


def handle(*, fast: bool = False, settled: bool = False, closed: bool = False) -> RecallHandle:
    """Make a handle of `tiered` in the state that these facts make."""
    made = RecallHandle(fast_allowed=True)
    if fast:
        made.publish_fast([NOTE])
    if settled:
        made.settle(Settled(notes=(NOTE,), strategy=Strategy.MODEL), at=1.0)
    if closed:
        made.close(Cause.TURN_END)
    return made


def test_the_first_attempt_of_the_first_send_is_held_and_nothing_else() -> None:
    """The limit is the policy's ceiling, 0 for retries and tool results."""
    assert [hold.limit_of(policy, Point.INITIAL, retry=False) for policy in (DEADLINE, PREFETCH, TIERED)] == [
        2.5,
        0.0,
        0.1,
    ]
    assert hold.limit_of(TIERED, Point.INITIAL, retry=True) == 0.0
    assert hold.limit_of(TIERED, Point.TOOL_RESULT, retry=False) == 0.0


def test_a_send_takes_memory_where_the_policy_delivers_and_while_the_recall_is_open() -> None:
    """`deadline` takes none with tool results; a closed recall gives none."""
    assert hold.may_take(TIERED, handle(), Point.TOOL_RESULT)
    assert not hold.may_take(DEADLINE, handle(), Point.TOOL_RESULT)
    assert not hold.may_take(TIERED, handle(closed=True), Point.INITIAL)


@pytest.mark.parametrize(
    ("made", "at_once", "later"),
    [
        (handle(), None, EndedBy.CEILING),
        (handle(fast=True), None, EndedBy.FAST),
        (handle(settled=True), EndedBy.ALREADY_SETTLED, EndedBy.REFINED),
        (handle(fast=True, settled=True), EndedBy.ALREADY_SETTLED, EndedBy.REFINED),
        (handle(fast=True, closed=True), None, EndedBy.CANCELLED),
    ],
)
def test_what_ends_a_wait(made: RecallHandle, at_once: EndedBy | None, later: EndedBy) -> None:
    """A settled result before a fast one, a close before both; without a limit there is nothing to wait for."""
    assert hold.ended_at_once(made, 0.1) == at_once
    assert hold.ended_at_once(made, 0.0) == (at_once or EndedBy.NOTHING_TO_WAIT_FOR)
    assert hold.ended_by(made) is later


def test_the_look_at_files_has_the_rest_of_the_ceiling_and_a_little_at_least() -> None:
    """60 ms are left of 100 after 40; where nothing is left it has 4 ms."""
    assert hold.time_to_check(0.1, now=0.04) == pytest.approx(0.06)
    assert hold.time_to_check(0.1, now=0.1) == hold.CHECK_SECONDS


def test_the_selector_is_asked_behind_a_send_that_has_what_it_waits_for() -> None:
    """Word matches end the hold, and the send goes first; without them, or without a send, nothing is waited for."""
    assert hold.refines_behind(handle(fast=True), held=True)
    assert not hold.refines_behind(handle(), held=True)
    assert not hold.refines_behind(handle(fast=True), held=False)


def test_deadline_gives_up_what_is_not_there() -> None:
    """The other policies have more places to deliver at."""
    assert hold.gives_up(DEADLINE, handle())
    assert not hold.gives_up(DEADLINE, handle(settled=True))
    assert not hold.gives_up(TIERED, handle())


def test_the_shorter_limit_ends_a_selection_and_says_whose_it_is() -> None:
    """`deadline` has one of its own; the others have the safety ceiling alone."""
    limits = [policy.limit_selection(30.0) for policy in (DEADLINE, TIERED)]

    assert [(limit.seconds, limit.own) for limit in limits] == [(1.0, True), (30.0, False)]
    assert DEADLINE.limit_selection(0.5).own is False
