"""How long a send is held for memory under each policy, and what goes with it: on virtual time, to the millisecond."""

from collections.abc import Callable

import anyio
import pytest
from anyio.abc import TaskGroup

from recallscope.runtime.events import (
    EndedBy,
    OpId,
    PolicyName,
    RecallBegun,
    RecallClosed,
    RecallDelivered,
    RecallFastResult,
    RecallSettled,
    RecallSkipped,
    RecallWaited,
)
from recallscope.runtime.recall.recaller import Recaller, RecallTurn
from recallscope.runtime.terms import Cause, Outcome, Point, Reason, RecallPhase, RollbackCause, Strategy
from recallscope.runtime.testing.memory import FakeMemory, make_note
from recallscope.runtime.testing.models import FakeModel
from recallscope.runtime.testing.recorder import EventRecorder

pytestmark = pytest.mark.anyio

MakeRecaller = Callable[..., Recaller]
Choosing = Callable[..., FakeModel]

FAST, OTHER = make_note("fast"), make_note("other")


def begin(recaller: Recaller, tasks: TaskGroup, query: str = "how do we deploy?") -> None:
    """Begin the recall of a turn that nobody cancels."""
    turn = RecallTurn(op=OpId("turn"), session="s", turn="s.1", tasks=tasks, cause=lambda: None)
    recaller.begin(turn, query, surfaced=frozenset(), recent_tools=("grep",))


def waits(recorder: EventRecorder) -> list[tuple[Point, float, EndedBy]]:
    """Return the waits that were stated, their seconds rounded to a tenth of a millisecond."""
    return [(event.point, round(event.waited, 4), event.ended_by) for event in recorder.of(RecallWaited)]


def skips(recorder: EventRecorder) -> list[tuple[Point, Reason]]:
    """Return the skipped deliveries that were stated."""
    return [(event.point, event.reason) for event in recorder.of(RecallSkipped)]


def went(recorder: EventRecorder) -> list[tuple[Point, RecallPhase, tuple[str, ...]]]:
    """Return the deliveries that were stated."""
    return [(event.point, event.phase, event.notes) for event in recorder.of(RecallDelivered)]


# tiered


async def test_tiered_ends_at_the_fast_result(
    make_recaller: MakeRecaller, choosing: Choosing, recorder: EventRecorder, tasks: TaskGroup
) -> None:
    """The first send waits until the word matches are there, takes them, and the refined rest goes behind tools."""
    memory = FakeMemory(fast=[FAST], candidates=[FAST, OTHER], delay=0.008)
    recaller = make_recaller(PolicyName.TIERED, memory, choosing(1, 2, after=0.9))
    begin(recaller, tasks)
    (await recaller.consume(Point.INITIAL)).accepted()
    await anyio.sleep(1.5)
    (await recaller.consume(Point.TOOL_RESULT)).accepted()
    verdict = await recaller.finish(Cause.TURN_END)

    assert waits(recorder) == [
        (Point.INITIAL, 0.008, EndedBy.FAST),
        (Point.TOOL_RESULT, 0.0, EndedBy.ALREADY_SETTLED),
    ]
    assert went(recorder) == [
        (Point.INITIAL, RecallPhase.FAST, ("project:fast.md",)),
        (Point.TOOL_RESULT, RecallPhase.REFINED, ("project:other.md",)),
    ]
    assert verdict is not None
    assert (verdict.outcome, verdict.reason, round(verdict.waited, 4)) == (Outcome.DELIVERED, Reason.NONE, 0.008)


async def test_tiered_takes_a_quick_refined_result(
    make_recaller: MakeRecaller, choosing: Choosing, recorder: EventRecorder, tasks: TaskGroup
) -> None:
    """With no word match and a selector at 60 ms, the refined notes go with the first send after 60 ms."""
    recaller = make_recaller(PolicyName.TIERED, FakeMemory(candidates=[OTHER]), choosing(1, after=0.06))
    begin(recaller, tasks)
    (await recaller.consume(Point.INITIAL)).accepted()
    await recaller.finish(Cause.TURN_END)

    assert waits(recorder) == [(Point.INITIAL, 0.06, EndedBy.REFINED)]
    assert went(recorder) == [(Point.INITIAL, RecallPhase.REFINED, ("project:other.md",))]
    assert recorder.only(RecallFastResult).notes == ()


@pytest.mark.parametrize("ceiling", [0.1, 0.025])
async def test_tiered_ends_at_the_ceiling(
    make_recaller: MakeRecaller, choosing: Choosing, recorder: EventRecorder, ceiling: float, tasks: TaskGroup
) -> None:
    """With no word match and a slow selector, the first send leaves at the ceiling without memory."""
    recaller = make_recaller(
        PolicyName.TIERED, FakeMemory(candidates=[OTHER]), choosing(1, after=0.908), ceiling=ceiling
    )
    begin(recaller, tasks)
    handover = await recaller.consume(Point.INITIAL)
    sent_at = anyio.current_time()
    await recaller.finish(Cause.TURN_END)

    assert (handover.part, round(sent_at, 4)) == (None, ceiling)
    assert waits(recorder) == [(Point.INITIAL, ceiling, EndedBy.CEILING)]
    assert skips(recorder) == [(Point.INITIAL, Reason.NOT_SETTLED)]
    assert (recorder.only(RecallBegun).ceiling, recorder.only(RecallClosed).ceiling) == (ceiling, ceiling)


async def test_the_ceiling_counts_from_the_wait(
    make_recaller: MakeRecaller, choosing: Choosing, recorder: EventRecorder, tasks: TaskGroup
) -> None:
    """The ceiling begins with the wait and not with the recall: preparation is free time."""
    recaller = make_recaller(PolicyName.TIERED, FakeMemory(candidates=[OTHER]), choosing(1, after=0.3))
    begin(recaller, tasks)
    await anyio.sleep(0.25)
    (await recaller.consume(Point.INITIAL)).accepted()
    await recaller.finish(Cause.TURN_END)

    assert waits(recorder) == [(Point.INITIAL, 0.05, EndedBy.REFINED)]


async def test_a_slow_search_cannot_pass_the_ceiling(
    make_recaller: MakeRecaller, recorder: EventRecorder, tasks: TaskGroup
) -> None:
    """A search that waits for a place or a disk counts against the ceiling as well."""
    recaller = make_recaller(PolicyName.TIERED, FakeMemory(fast=[FAST], delay=3.0))
    begin(recaller, tasks)
    await recaller.consume(Point.INITIAL)
    await recaller.finish(Cause.TURN_END)

    assert waits(recorder) == [(Point.INITIAL, 0.1, EndedBy.CEILING)]


# prefetch


async def test_prefetch_never_waits(
    make_recaller: MakeRecaller, choosing: Choosing, recorder: EventRecorder, tasks: TaskGroup
) -> None:
    """An unsettled recall holds the first send not at all, even with word matches there; it goes behind the tools."""
    memory = FakeMemory(fast=[FAST], candidates=[FAST, OTHER])
    recaller = make_recaller(PolicyName.PREFETCH, memory, choosing(2, 1, after=0.908))
    begin(recaller, tasks)
    await anyio.sleep(0.01)
    first = await recaller.consume(Point.INITIAL)
    await anyio.sleep(0.5)
    second = await recaller.consume(Point.TOOL_RESULT)
    await anyio.sleep(0.5)
    (await recaller.consume(Point.TOOL_RESULT)).accepted()
    await recaller.finish(Cause.TURN_END)

    assert (first.part, second.part) == (None, None)
    assert waits(recorder) == [
        (Point.INITIAL, 0.0, EndedBy.NOTHING_TO_WAIT_FOR),
        (Point.TOOL_RESULT, 0.0, EndedBy.NOTHING_TO_WAIT_FOR),
        (Point.TOOL_RESULT, 0.0, EndedBy.ALREADY_SETTLED),
    ]
    assert skips(recorder) == [(Point.INITIAL, Reason.NOT_SETTLED), (Point.TOOL_RESULT, Reason.NOT_SETTLED)]
    assert went(recorder) == [(Point.TOOL_RESULT, RecallPhase.REFINED, ("project:other.md", "project:fast.md"))]


@pytest.mark.parametrize("policy", [PolicyName.PREFETCH, PolicyName.TIERED, PolicyName.DEADLINE])
async def test_what_is_settled_goes_at_once(
    make_recaller: MakeRecaller, choosing: Choosing, recorder: EventRecorder, policy: PolicyName, tasks: TaskGroup
) -> None:
    """A recall that settled before the first send goes with it, refined and without a wait, under every policy."""
    recaller = make_recaller(policy, FakeMemory(fast=[FAST], candidates=[FAST, OTHER]), choosing(2, 1, after=0.02))
    begin(recaller, tasks)
    await anyio.sleep(0.15)
    (await recaller.consume(Point.INITIAL)).accepted()
    await recaller.finish(Cause.TURN_END)

    assert waits(recorder) == [(Point.INITIAL, 0.0, EndedBy.ALREADY_SETTLED)]
    assert went(recorder) == [(Point.INITIAL, RecallPhase.REFINED, ("project:other.md", "project:fast.md"))]


# deadline


async def test_deadline_waits_for_the_refined_result(
    make_recaller: MakeRecaller, choosing: Choosing, recorder: EventRecorder, tasks: TaskGroup
) -> None:
    """The old way: word matches end nothing, the send is held until the selector has chosen."""
    memory = FakeMemory(fast=[FAST], candidates=[FAST, OTHER])
    recaller = make_recaller(PolicyName.DEADLINE, memory, choosing(1, 2, after=0.908))
    begin(recaller, tasks)
    (await recaller.consume(Point.INITIAL)).accepted()
    await recaller.finish(Cause.TURN_END)

    assert waits(recorder) == [(Point.INITIAL, 0.908, EndedBy.REFINED)]
    assert went(recorder) == [(Point.INITIAL, RecallPhase.REFINED, ("project:fast.md", "project:other.md"))]


async def test_deadline_cuts_the_selector(
    make_recaller: MakeRecaller, choosing: Choosing, recorder: EventRecorder, tasks: TaskGroup
) -> None:
    """After a second of the selector the result is empty, with its cause and without word matches in its place."""
    memory = FakeMemory(fast=[FAST], candidates=[FAST, OTHER])
    model = choosing(1, after=1.6)
    recaller = make_recaller(PolicyName.DEADLINE, memory, model)
    begin(recaller, tasks)
    handover = await recaller.consume(Point.INITIAL)
    handover.accepted()
    verdict = await recaller.finish(Cause.TURN_END)

    settled = recorder.only(RecallSettled)
    assert handover.part is None
    assert waits(recorder) == [(Point.INITIAL, 1.0, EndedBy.REFINED)]
    assert (settled.notes, settled.strategy, settled.error_type) == ((), Strategy.NONE, Reason.SELECTOR_TIMEOUT)
    assert verdict is not None
    assert (verdict.outcome, verdict.reason) == (Outcome.FAILED, Reason.SELECTOR_TIMEOUT)


async def test_deadline_gives_a_slow_store_up(
    make_recaller: MakeRecaller, recorder: EventRecorder, tasks: TaskGroup
) -> None:
    """The outer limit of 2.5 s bounds a store that does not answer; the recall is closed and the send goes."""
    recaller = make_recaller(PolicyName.DEADLINE, FakeMemory(fast=[FAST], delay=10.0))
    begin(recaller, tasks)
    handover = await recaller.consume(Point.INITIAL)
    sent_at = anyio.current_time()
    handover.accepted()
    await anyio.sleep(20)
    await recaller.consume(Point.TOOL_RESULT)
    await recaller.finish(Cause.TURN_END)

    closed = recorder.only(RecallClosed)
    assert (handover.part, round(sent_at, 4)) == (None, 2.5)
    assert waits(recorder) == [(Point.INITIAL, 2.5, EndedBy.CEILING)]
    assert (closed.cause, closed.reason, closed.outcome) == (
        Cause.POLICY_LIMIT,
        Reason.NO_SAFE_DELIVERY_POINT,
        Outcome.DISCARDED,
    )
    assert recorder.of(RecallSettled) == []


async def test_deadline_never_delivers_at_tool_results(
    make_recaller: MakeRecaller, choosing: Choosing, recorder: EventRecorder, tasks: TaskGroup
) -> None:
    """What the first send did not take goes nowhere: a send behind tools gets nothing and states no wait."""
    recaller = make_recaller(PolicyName.DEADLINE, FakeMemory(candidates=[OTHER]), choosing(1, after=0.5))
    begin(recaller, tasks)
    (await recaller.consume(Point.INITIAL)).dropped(RollbackCause.CONNECTION)
    second = await recaller.consume(Point.TOOL_RESULT)
    second.accepted()
    verdict = await recaller.finish(Cause.TURN_END)

    assert second.part is None
    assert [point for point, _, _ in waits(recorder)] == [Point.INITIAL]
    assert verdict is not None
    assert (verdict.outcome, verdict.reason) == (Outcome.DISCARDED, Reason.NO_SAFE_DELIVERY_POINT)


# off, and what is the same under every policy


@pytest.mark.parametrize("without_memory", [True, False])
async def test_no_recall_no_facts(
    make_recaller: MakeRecaller, choosing: Choosing, recorder: EventRecorder, tasks: TaskGroup, *, without_memory: bool
) -> None:
    """Under `off`, and without a usable memory, there is no handle: nothing is searched, held or stated."""
    memory = FakeMemory(fast=[FAST], candidates=[FAST])
    model = choosing(1)
    if without_memory:
        recaller = make_recaller(PolicyName.TIERED, None, model)
    else:
        recaller = make_recaller(PolicyName.OFF, memory, model)
    begin(recaller, tasks)
    handover = await recaller.consume(Point.INITIAL)
    handover.accepted()
    verdict = await recaller.finish(Cause.TURN_END)

    assert (handover.part, verdict, recorder.events) == (None, None, [])
    assert (memory.calls, model.requests) == ([], [])


@pytest.mark.parametrize("policy", [PolicyName.DEADLINE, PolicyName.PREFETCH, PolicyName.TIERED])
async def test_a_send_that_is_no_delivery_point_gets_nothing(
    make_recaller: MakeRecaller, recorder: EventRecorder, policy: PolicyName, tasks: TaskGroup
) -> None:
    """Text after tool results takes no memory, is not held, and nothing is stated."""
    recaller = make_recaller(policy, FakeMemory(fast=[FAST]))
    begin(recaller, tasks)
    await anyio.sleep(1)
    handover = await recaller.consume(Point.NONE)
    await recaller.finish(Cause.TURN_END)

    assert (handover.part, waits(recorder), skips(recorder)) == (None, [], [])


async def test_a_retry_asks_again_without_waiting(
    make_recaller: MakeRecaller, choosing: Choosing, recorder: EventRecorder, tasks: TaskGroup
) -> None:
    """A second attempt is offered the same notes again, is not held, and states no wait of its own."""
    memory = FakeMemory(fast=[FAST], candidates=[FAST, OTHER], delay=0.01)
    recaller = make_recaller(PolicyName.TIERED, memory, choosing(1, 2, after=5.0))
    begin(recaller, tasks)
    first = await recaller.consume(Point.INITIAL)
    first.dropped(RollbackCause.REFUSED)
    asked_at = anyio.current_time()
    second = await recaller.consume(Point.INITIAL, retry=True)
    assert anyio.current_time() == asked_at
    second.accepted()
    await recaller.finish(Cause.TURN_END)

    assert first.part == second.part
    assert first.part is not None
    assert waits(recorder) == [(Point.INITIAL, 0.01, EndedBy.FAST)]
    assert recorder.only(RecallClosed).rollbacks == 1


async def test_a_retry_without_anything_to_take_is_not_held(
    make_recaller: MakeRecaller, choosing: Choosing, recorder: EventRecorder, tasks: TaskGroup
) -> None:
    """The ceiling is spent once per send: a second attempt leaves at once, also when nothing is there."""
    recaller = make_recaller(PolicyName.TIERED, FakeMemory(candidates=[OTHER]), choosing(1, after=5.0))
    begin(recaller, tasks)
    (await recaller.consume(Point.INITIAL)).dropped(RollbackCause.REFUSED)
    asked_at = anyio.current_time()
    handover = await recaller.consume(Point.INITIAL, retry=True)
    held = anyio.current_time() - asked_at
    await recaller.finish(Cause.TURN_END)

    assert (handover.part, held) == (None, 0.0)
    assert waits(recorder) == [(Point.INITIAL, 0.1, EndedBy.CEILING)]


async def test_a_retry_takes_what_settled_meanwhile(
    make_recaller: MakeRecaller, choosing: Choosing, recorder: EventRecorder, tasks: TaskGroup
) -> None:
    """When the refined result came during the pause between two attempts, the second one carries it."""
    memory = FakeMemory(fast=[FAST], candidates=[FAST, OTHER])
    recaller = make_recaller(PolicyName.TIERED, memory, choosing(2, 1, after=0.5))
    begin(recaller, tasks)
    (await recaller.consume(Point.INITIAL)).dropped(RollbackCause.CONNECTION)
    await anyio.sleep(1)
    (await recaller.consume(Point.INITIAL, retry=True)).accepted()
    await recaller.finish(Cause.TURN_END)

    assert went(recorder) == [(Point.INITIAL, RecallPhase.REFINED, ("project:other.md", "project:fast.md"))]


@pytest.mark.parametrize(
    ("policy", "within"), [(PolicyName.TIERED, 0.08), (PolicyName.PREFETCH, None), (PolicyName.DEADLINE, None)]
)
async def test_a_search_learns_how_long_it_may_take(
    policy: PolicyName, within: float | None, make_recaller: MakeRecaller, tasks: TaskGroup
) -> None:
    """The search gets the policy's limit."""
    memory = FakeMemory(fast=[FAST])
    recaller = make_recaller(policy, memory)
    begin(recaller, tasks)
    await recaller.consume(Point.INITIAL)
    await recaller.finish(Cause.TURN_END)

    assert [call.within for call in memory.calls] == [pytest.approx(within)]


async def test_the_query_and_what_it_leaves_out(make_recaller: MakeRecaller, tasks: TaskGroup) -> None:
    """The search gets the prompt as it was written, what stands in the conversation, and the tools used last."""
    memory = FakeMemory(fast=[FAST])
    recaller = make_recaller(PolicyName.TIERED, memory)
    turn = RecallTurn(op=OpId("turn"), session="s", turn="s.1", tasks=tasks, cause=lambda: None)
    recaller.begin(turn, " How?\n", surfaced=frozenset({OTHER.note_version}), recent_tools=("grep", "glob"))
    await recaller.consume(Point.INITIAL)
    await recaller.finish(Cause.TURN_END)

    (call,) = memory.calls
    assert (call.query, call.exclude, call.recent_tools) == (
        " How?\n",
        frozenset({OTHER.note_version}),
        ("grep", "glob"),
    )
