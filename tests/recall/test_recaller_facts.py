"""What is stated of deliveries, skips and the budget: each once, and true."""

from collections.abc import Callable

import anyio
import pytest
from anyio.abc import TaskGroup

from recallscope.runtime.events import (
    OpId,
    PolicyName,
    RecallBegun,
    RecallClosed,
    RecallDelivered,
    RecallFastResult,
    RecallRolledBack,
    RecallSettled,
    RecallSkipped,
)
from recallscope.runtime.memory.note import Note
from recallscope.runtime.messages import MemoryPart
from recallscope.runtime.recall.handle import Budget
from recallscope.runtime.recall.recaller import Recaller, RecallTurn
from recallscope.runtime.terms import Cause, Delivered, Outcome, Phase, Point, Reason, RollbackCause, Scenario, Strategy
from recallscope.runtime.testing.memory import FakeMemory, make_note
from recallscope.runtime.testing.models import FakeModel
from recallscope.runtime.testing.recorder import EventRecorder

pytestmark = pytest.mark.anyio

MakeRecaller = Callable[..., Recaller]
Choosing = Callable[..., FakeModel]

A, B, C, D = (make_note(name) for name in "abcd")


def begin(recaller: Recaller, tasks: TaskGroup, *surfaced: str) -> None:
    """Begin the recall of a turn; notes named in `surfaced` stand in the conversation."""
    turn = RecallTurn(op=OpId("turn"), session="s", turn="s.1", tasks=tasks, cause=lambda: None)
    standing = frozenset(note.note_version for note in (A, B, C, D) if note.title in surfaced)
    recaller.begin(turn, "how do we deploy?", surfaced=standing, recent_tools=())


def skips(recorder: EventRecorder) -> list[tuple[Point, Reason]]:
    """Return the skipped deliveries that were stated."""
    return [(event.point, event.reason) for event in recorder.of(RecallSkipped)]


async def test_the_facts_of_a_whole_recall(
    make_recaller: MakeRecaller, choosing: Choosing, recorder: EventRecorder, tasks: TaskGroup
) -> None:
    """Begin, fast result, delivery, refined result, delivery, close: in this order, with their times and notes."""
    memory = FakeMemory(fast=[A], candidates=[A, B], delay=0.25)
    recaller = make_recaller(PolicyName.TIERED, memory, choosing(1, 2, after=0.5), ceiling=0.5)
    begin(recaller, tasks)
    first = await recaller.consume(Point.INITIAL)
    await anyio.sleep(0.25)
    first.accepted()
    await anyio.sleep(0.5)
    (await recaller.consume(Point.TOOL_RESULT)).accepted()
    await recaller.finish(Cause.TURN_END)

    assert recorder.kinds() == [
        "RecallBegun",
        "RecallFastResult",
        "RecallWaited",
        "ModelCallStarted",
        "RecallDelivered",
        "ModelCallFinished",
        "RecallSettled",
        "RecallWaited",
        "RecallDelivered",
        "RecallClosed",
    ]
    op = OpId("op1")
    assert recorder.only(RecallBegun) == RecallBegun(
        op=op,
        at=0.0,
        parent=OpId("turn"),
        session="s",
        turn="s.1",
        policy=PolicyName.TIERED,
        ceiling=0.5,
        catalog_notes=2,
    )
    assert recorder.only(RecallFastResult) == RecallFastResult(
        op=op, at=0.25, policy=PolicyName.TIERED, notes=("project:a.md",), elapsed=0.25, partial=False
    )
    assert recorder.only(RecallSettled) == RecallSettled(
        op=op,
        at=0.75,
        policy=PolicyName.TIERED,
        notes=("project:a.md", "project:b.md"),
        strategy=Strategy.MODEL,
        elapsed=0.75,
    )
    fast, refined = recorder.of(RecallDelivered)
    assert (fast.at, fast.elapsed, fast.waited, fast.strategy) == (0.5, 0.5, 0.25, Strategy.LEXICAL)
    assert (refined.at, refined.elapsed, refined.waited, refined.strategy) == (1.0, 1.0, 0.0, Strategy.MODEL)
    part = first.part
    assert isinstance(part, MemoryPart)
    assert fast.characters == len(part.text) - len("<recalled_memory>\n\n</recalled_memory>")
    assert recorder.only(RecallClosed) == RecallClosed(
        op=op,
        at=1.0,
        policy=PolicyName.TIERED,
        outcome=Outcome.DELIVERED,
        reason=Reason.NONE,
        close_reason=Reason.NO_SAFE_DELIVERY_POINT,
        cause=Cause.TURN_END,
        phases=Phase.BOTH,
        strategy=Strategy.MODEL,
        points=(Point.INITIAL, Point.TOOL_RESULT),
        ceiling=0.5,
        fast_seconds=0.25,
        settled_seconds=0.75,
        delivered_seconds=0.5,
        ready_seconds=0.25,
        waited=0.25,
        notes_selected=2,
        notes_delivered=2,
        skips=0,
        rollbacks=0,
        partial=False,
        scenario=Scenario.SLOW_WITH_TOOLS,
        delivered=Delivered.BOTH,
    )


@pytest.mark.parametrize("found", [[A], []], ids=["found", "empty"])
@pytest.mark.parametrize("policy", [PolicyName.TIERED, PolicyName.DEADLINE, PolicyName.PREFETCH])
async def test_the_close_says_when_the_fast_result_came(
    policy: PolicyName, found: list[Note], make_recaller: MakeRecaller, recorder: EventRecorder, tasks: TaskGroup
) -> None:
    """The time to the fast result is that of its event, whether or not it was published or found anything."""
    recaller = make_recaller(policy, FakeMemory(fast=found, candidates=[B], delay=0.25))
    begin(recaller, tasks)
    await anyio.sleep(1.0)
    await recaller.finish(Cause.TURN_END)

    assert recorder.only(RecallFastResult).elapsed == 0.25
    assert recorder.only(RecallClosed).fast_seconds == 0.25


@pytest.mark.parametrize(
    ("found", "chosen", "asked_after", "ready"),
    [
        ([A], 1, 0.5, 0.0),
        ([A], 0, 0.125, 0.125),
        ([], 1, 0.5, 0.25),
        ([], 1, 1.0, 0.0),
        ([], 0, 0.5, None),
        ([A], 1, None, None),
    ],
    ids=["fast before", "fast after", "refined after", "refined before", "nothing found", "no send asked"],
)
async def test_the_close_says_how_long_after_the_first_question_notes_were_there(
    *,
    found: list[Note],
    chosen: int,
    asked_after: float | None,
    ready: float | None,
    make_recaller: MakeRecaller,
    choosing: Choosing,
    recorder: EventRecorder,
    tasks: TaskGroup,
) -> None:
    """It is the first result with notes that counts, also where the ceiling had ended the hold before it."""
    memory = FakeMemory(fast=found, candidates=[B], delay=0.25)
    recaller = make_recaller(PolicyName.TIERED, memory, choosing(chosen, after=0.5), ceiling=0.0625)
    begin(recaller, tasks)
    if asked_after is not None:
        await anyio.sleep(asked_after)
        await recaller.consume(Point.INITIAL)
    await anyio.sleep(1.0)
    await recaller.finish(Cause.TURN_END)

    assert recorder.only(RecallClosed).ready_seconds == ready


async def test_a_search_that_never_answered_has_no_time(
    make_recaller: MakeRecaller, recorder: EventRecorder, tasks: TaskGroup
) -> None:
    """Without a fast result there is no time to it."""
    recaller = make_recaller(PolicyName.PREFETCH, FakeMemory(fast=[A], delay=9.0))
    begin(recaller, tasks)
    await anyio.sleep(1.0)
    await recaller.finish(Cause.TURN_END)

    assert recorder.of(RecallFastResult) == []
    assert recorder.only(RecallClosed).fast_seconds is None


async def test_a_skip_is_stated_once_per_point_and_reason(
    make_recaller: MakeRecaller, choosing: Choosing, recorder: EventRecorder, tasks: TaskGroup
) -> None:
    """Many sends without memory state their reason once; another reason at the same point is another fact."""
    recaller = make_recaller(PolicyName.TIERED, FakeMemory(candidates=[A]), choosing(1, after=1.0))
    begin(recaller, tasks)
    await recaller.consume(Point.INITIAL)
    for _ in range(5):
        await anyio.sleep(0.1)
        await recaller.consume(Point.TOOL_RESULT)
    await anyio.sleep(1)
    (await recaller.consume(Point.TOOL_RESULT)).accepted()
    for _ in range(3):
        await recaller.consume(Point.TOOL_RESULT)
    await recaller.finish(Cause.TURN_END)

    assert skips(recorder) == [
        (Point.INITIAL, Reason.NOT_SETTLED),
        (Point.TOOL_RESULT, Reason.NOT_SETTLED),
        (Point.TOOL_RESULT, Reason.ALREADY_DELIVERED),
    ]
    assert recorder.only(RecallClosed).skips == 3


async def test_the_budget_is_one_for_the_turn(
    make_recaller: MakeRecaller, choosing: Choosing, recorder: EventRecorder, tasks: TaskGroup
) -> None:
    """Fast and refined notes share the budget; what was cut is counted once and changes no outcome."""
    memory = FakeMemory(fast=[A, B], candidates=[A, B, C, D])
    recaller = make_recaller(PolicyName.TIERED, memory, choosing(3, 4, after=0.5), budget=Budget(notes=3))
    begin(recaller, tasks)
    (await recaller.consume(Point.INITIAL)).accepted()
    await anyio.sleep(1)
    for _ in range(3):
        (await recaller.consume(Point.TOOL_RESULT)).accepted()
    verdict = await recaller.finish(Cause.TURN_END)

    assert [event.notes for event in recorder.of(RecallDelivered)] == [
        ("project:a.md", "project:b.md"),
        ("project:c.md",),
    ]
    assert skips(recorder) == [(Point.TOOL_RESULT, Reason.OVER_BUDGET)]
    assert verdict is not None
    assert (verdict.outcome, verdict.reason) == (Outcome.DELIVERED, Reason.NONE)


async def test_what_was_cut_is_counted_once_over_all_points(
    make_recaller: MakeRecaller, choosing: Choosing, recorder: EventRecorder, tasks: TaskGroup
) -> None:
    """Notes that did not fit at the first send are not counted again behind tool results."""
    memory = FakeMemory(candidates=[A, B])
    recaller = make_recaller(PolicyName.TIERED, memory, choosing(1, 2), budget=Budget(notes=1))
    begin(recaller, tasks)
    (await recaller.consume(Point.INITIAL)).accepted()
    (await recaller.consume(Point.TOOL_RESULT)).accepted()
    await recaller.finish(Cause.TURN_END)

    assert skips(recorder) == [(Point.INITIAL, Reason.OVER_BUDGET)]


async def test_a_turn_that_may_have_no_memory(
    make_recaller: MakeRecaller, recorder: EventRecorder, tasks: TaskGroup
) -> None:
    """A budget that nothing fits into discards the recall as over budget."""
    recaller = make_recaller(PolicyName.TIERED, FakeMemory(fast=[A]), budget=Budget(characters=10))
    begin(recaller, tasks)
    (await recaller.consume(Point.INITIAL)).accepted()
    await anyio.sleep(1)
    verdict = await recaller.finish(Cause.TURN_END)

    assert verdict is not None
    assert (verdict.outcome, verdict.reason) == (Outcome.DISCARDED, Reason.OVER_BUDGET)
    assert skips(recorder) == [(Point.INITIAL, Reason.OVER_BUDGET)]


async def test_a_rolled_back_delivery_is_told_and_offered_again(
    make_recaller: MakeRecaller, recorder: EventRecorder, tasks: TaskGroup
) -> None:
    """Each refused attempt is a fact with its cause, and the next one carries the same notes."""
    recaller = make_recaller(PolicyName.TIERED, FakeMemory(fast=[A]))
    begin(recaller, tasks)
    (await recaller.consume(Point.INITIAL)).dropped(RollbackCause.REFUSED)
    (await recaller.consume(Point.INITIAL, retry=True)).dropped(RollbackCause.CONNECTION)
    (await recaller.consume(Point.INITIAL, retry=True)).accepted()
    await recaller.finish(Cause.TURN_END)

    assert [(event.cause, event.notes) for event in recorder.of(RecallRolledBack)] == [
        (RollbackCause.REFUSED, ("project:a.md",)),
        (RollbackCause.CONNECTION, ("project:a.md",)),
    ]
    assert recorder.only(RecallDelivered).notes == ("project:a.md",)
    assert recorder.only(RecallClosed).rollbacks == 2


@pytest.mark.parametrize(
    ("budget", "refined", "reason"),
    [
        (Budget(), (1,), Reason.ALREADY_DELIVERED),
        (Budget(), (), Reason.NO_RELEVANT_RESULTS),
        (Budget(notes=1), (2,), Reason.OVER_BUDGET),
        (Budget(), (2,), Reason.NO_SAFE_DELIVERY_POINT),
    ],
)
async def test_a_refined_part_that_did_not_go_is_counted_at_no_point(
    make_recaller: MakeRecaller,
    choosing: Choosing,
    recorder: EventRecorder,
    tasks: TaskGroup,
    *,
    budget: Budget,
    refined: tuple[int, ...],
    reason: Reason,
) -> None:
    """A recall that delivered its fast notes says once why the refined part did not go."""
    memory = FakeMemory(fast=[A], candidates=[A, B])
    recaller = make_recaller(PolicyName.TIERED, memory, choosing(*refined, after=0.5), budget=budget)
    begin(recaller, tasks)
    (await recaller.consume(Point.INITIAL)).accepted()
    await anyio.sleep(1)
    verdict = await recaller.finish(Cause.TURN_END)

    assert skips(recorder) == [(Point.NONE, reason)]
    assert verdict is not None
    assert (verdict.outcome, verdict.reason) == (Outcome.DELIVERED, reason)


async def test_what_stands_in_the_conversation_is_not_delivered_again(
    make_recaller: MakeRecaller, choosing: Choosing, recorder: EventRecorder, tasks: TaskGroup
) -> None:
    """Candidates leave out what is surfaced at begin, so the model cannot even choose it."""
    model = choosing(1, 2, after=0.01)
    recaller = make_recaller(PolicyName.TIERED, FakeMemory(fast=[A], candidates=[A, B]), model)
    begin(recaller, tasks, "a")
    (await recaller.consume(Point.INITIAL)).accepted()
    await recaller.finish(Cause.TURN_END)

    assert recorder.only(RecallDelivered).notes == ("project:b.md",)
    assert "about a" not in str(model.requests[0].messages)


async def test_an_interrupted_search_is_told(
    make_recaller: MakeRecaller, recorder: EventRecorder, tasks: TaskGroup
) -> None:
    """A search that could not look at everything says so in its fact and at the close."""
    recaller = make_recaller(PolicyName.TIERED, FakeMemory(fast=[A], partial=True))
    begin(recaller, tasks)
    await recaller.consume(Point.INITIAL)
    await recaller.finish(Cause.TURN_END)

    assert (recorder.only(RecallFastResult).partial, recorder.only(RecallClosed).partial) == (True, True)
