"""How a recall ends: every way out has one outcome, stated once, after everything that happened below it."""

from collections.abc import Callable, Sequence

import anyio
import pytest
from anyio.abc import TaskGroup

from recallscope.runtime.events import (
    EndedBy,
    ModelCallFinished,
    OpId,
    PolicyName,
    RecallBegun,
    RecallClosed,
    RecallLate,
    RecallRolledBack,
    RecallSkipped,
    RecallWaited,
    Status,
)
from recallscope.runtime.memory.note import Note
from recallscope.runtime.memory.search import Found, Hit
from recallscope.runtime.messages import NoteVersion
from recallscope.runtime.recall.recaller import Recaller, RecallTurn
from recallscope.runtime.terms import Cause, Outcome, Phase, Point, Reason, RollbackCause, Scenario
from recallscope.runtime.testing.memory import FakeMemory, make_note
from recallscope.runtime.testing.models import FakeModel
from recallscope.runtime.testing.recorder import EventRecorder

pytestmark = pytest.mark.anyio

MakeRecaller = Callable[..., Recaller]
Choosing = Callable[..., FakeModel]

FAST, OTHER = make_note("fast"), make_note("other")


def begin(recaller: Recaller, tasks: TaskGroup, turn: str = "s.1", cause: Cause | None = None) -> None:
    """Begin the recall of a turn; `cause`: it is cancelled already."""
    asked = RecallTurn(op=OpId(turn), session="s", turn=turn, tasks=tasks, cause=lambda: cause)
    recaller.begin(asked, "how do we deploy?", surfaced=frozenset(), recent_tools=())


class StubbornMemory(FakeMemory):
    """A memory whose search does not care for cancellation."""

    async def search(
        self,
        query: str,
        *,
        exclude: frozenset[NoteVersion],
        recent_tools: Sequence[str],
        within: float | None = None,
        op: OpId | None = None,
    ) -> Found:
        """Answer after the delay, whatever happens."""
        with anyio.CancelScope(shield=True):
            await anyio.sleep(self.delay)
        return Found(fast=tuple(Hit(note, 1.0) for note in self.fast))

    async def load(self, notes: Sequence[Note]) -> tuple[Note, ...]:
        """Return them without a checkpoint."""
        return tuple(notes)


async def test_finish_closes_with_the_cause_of_the_turn(
    make_recaller: MakeRecaller, choosing: Choosing, recorder: EventRecorder, tasks: TaskGroup
) -> None:
    """A pending recall is closed with the cause that ended the turn, its model call ends before it."""
    model = choosing(1, after=9.0)
    recaller = make_recaller(PolicyName.PREFETCH, FakeMemory(candidates=[OTHER]), model)
    begin(recaller, tasks)
    await anyio.sleep(0.5)
    verdict = await recaller.finish(Cause.USER_CANCEL)

    call, closed = recorder.only(ModelCallFinished), recorder.only(RecallClosed)
    assert (call.status, call.cause) == (Status.CANCELLED, Cause.USER_CANCEL)
    assert recorder.events.index(call) < recorder.events.index(closed)
    assert (closed.outcome, closed.reason, closed.close_reason, closed.cause) == (
        Outcome.DISCARDED,
        Reason.ABORT,
        Reason.ABORT,
        Cause.USER_CANCEL,
    )
    assert (closed.at, closed.settled_seconds) == (0.5, None)
    assert verdict is not None
    assert (verdict.outcome, verdict.reason, verdict.scenario) == (
        Outcome.DISCARDED,
        Reason.ABORT,
        Scenario.INTERRUPTED,
    )


async def test_finish_is_idempotent(make_recaller: MakeRecaller, recorder: EventRecorder, tasks: TaskGroup) -> None:
    """A second finish, and one without a recall, does nothing."""
    recaller = make_recaller(PolicyName.TIERED, FakeMemory(fast=[FAST]))
    before = await recaller.finish(Cause.TURN_END)
    begin(recaller, tasks)
    first = await recaller.finish(Cause.TURN_END)
    second = await recaller.finish(Cause.USER_CANCEL)

    assert (before, second) == (None, None)
    assert first is not None
    assert recorder.only(RecallClosed).cause is Cause.TURN_END


async def test_begin_and_finish_at_once(make_recaller: MakeRecaller, recorder: EventRecorder, tasks: TaskGroup) -> None:
    """A turn that ends before its recall has run a step closes it all the same, and without waiting."""
    recaller = make_recaller(PolicyName.TIERED, FakeMemory(fast=[FAST], delay=5.0))
    begin(recaller, tasks)
    await recaller.finish(Cause.TURN_BUDGET)

    assert anyio.current_time() == 0.0
    assert recorder.kinds() == ["RecallBegun", "RecallClosed"]
    assert recorder.only(RecallClosed).scenario is Scenario.NOT_SENT


async def test_finish_in_a_cancelled_scope_still_awaits_the_task(
    make_recaller: MakeRecaller, choosing: Choosing, recorder: EventRecorder, tasks: TaskGroup
) -> None:
    """Cancellation of the turn does not cut the clean-up short: nothing of the recall ends after it."""
    recaller = make_recaller(PolicyName.TIERED, FakeMemory(candidates=[OTHER]), choosing(1, after=9.0))
    begin(recaller, tasks)
    await anyio.sleep(0.2)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await recaller.finish(Cause.SUPERSEDED)

    assert [kind for kind in recorder.kinds() if kind in {"ModelCallFinished", "RecallClosed"}] == [
        "ModelCallFinished",
        "RecallClosed",
    ]


async def test_finish_waits_for_a_stuck_task_no_longer_than_a_second(
    make_recaller: MakeRecaller, recorder: EventRecorder, tasks: TaskGroup, caplog: pytest.LogCaptureFixture
) -> None:
    """A search that cannot be cancelled holds the turn's end for a second at most, is logged, and comes late."""
    recaller = make_recaller(PolicyName.PREFETCH, StubbornMemory(fast=[FAST], delay=4.0))
    begin(recaller, tasks)
    await anyio.sleep(0.5)
    await recaller.finish(Cause.TURN_END)
    finished_at = anyio.current_time()
    await anyio.sleep(10)

    assert finished_at == 1.5
    assert "the recall of turn s.1 did not end within 1.0 s of its cancel" in caplog.text
    assert recorder.only(RecallClosed).at == 1.5
    assert [event.move for event in recorder.of(RecallLate)] == ["settle"]


async def test_a_late_result_changes_nothing_and_is_told(
    make_recaller: MakeRecaller, recorder: EventRecorder, tasks: TaskGroup
) -> None:
    """A result that comes after the close is a fact of its own, before the end of the recall is stated."""
    recaller = make_recaller(PolicyName.TIERED, StubbornMemory(fast=[FAST], delay=0.5))
    begin(recaller, tasks)
    await anyio.sleep(0.2)
    verdict = await recaller.finish(Cause.USER_CANCEL)

    assert verdict is not None
    assert (verdict.outcome, verdict.reason) == (Outcome.DISCARDED, Reason.ABORT)
    assert [event.move for event in recorder.of(RecallLate)] == ["publish_fast", "settle"]
    assert recorder.kinds()[-1] == "RecallClosed"


async def test_a_new_recall_closes_the_pending_one(
    make_recaller: MakeRecaller, choosing: Choosing, recorder: EventRecorder, tasks: TaskGroup
) -> None:
    """One pending recall per session: the old one is closed as a new query, and both are told completely."""
    recaller = make_recaller(PolicyName.TIERED, FakeMemory(candidates=[OTHER]), choosing(1, after=0.5))
    begin(recaller, tasks)
    await anyio.sleep(0.2)
    begin(recaller, tasks, "s.2")
    await anyio.sleep(1)
    (await recaller.consume(Point.INITIAL)).accepted()
    await recaller.finish(Cause.TURN_END)

    first, second = recorder.of(RecallBegun)
    old, new = recorder.of(RecallClosed)
    assert (old.op, old.cause, old.reason, old.scenario) == (
        first.op,
        Cause.SUPERSEDED,
        Reason.NEW_QUERY,
        Scenario.SUPERSEDED,
    )
    assert (new.op, new.outcome) == (second.op, Outcome.DELIVERED)
    calls = recorder.of(ModelCallFinished)
    assert [(call.status, call.cause) for call in calls] == [
        (Status.CANCELLED, Cause.SUPERSEDED),
        (Status.OK, None),
    ]
    assert recorder.events.index(calls[0]) < recorder.events.index(old)


async def test_a_settled_recall_is_superseded_at_once(
    make_recaller: MakeRecaller, recorder: EventRecorder, tasks: TaskGroup
) -> None:
    """A recall whose task has ended is closed and told within begin itself."""
    recaller = make_recaller(PolicyName.TIERED, FakeMemory(fast=[FAST]))
    begin(recaller, tasks)
    await anyio.sleep(1)
    begin(recaller, tasks, "s.2")

    assert recorder.only(RecallClosed).cause is Cause.SUPERSEDED
    await recaller.finish(Cause.TURN_END)


async def test_word_of_an_old_send_never_reaches_a_new_recall(
    make_recaller: MakeRecaller, recorder: EventRecorder, tasks: TaskGroup
) -> None:
    """An acceptance that comes after the recall was superseded is late for that one and nothing for its successor."""
    recaller = make_recaller(PolicyName.TIERED, FakeMemory(fast=[FAST]))
    begin(recaller, tasks)
    old = await recaller.consume(Point.INITIAL)
    begin(recaller, tasks, "s.2")
    old.accepted()
    new = await recaller.consume(Point.INITIAL)
    new.accepted()
    await recaller.finish(Cause.TURN_END)

    first, second = recorder.of(RecallClosed)
    assert old.part == new.part
    assert [event.op for event in recorder.of(RecallLate) if event.move == "commit"] == [first.op]
    assert recorder.only(RecallRolledBack).cause is RollbackCause.CLOSED
    assert (first.outcome, second.outcome) == (Outcome.DISCARDED, Outcome.DELIVERED)


async def test_a_turn_that_is_cancelled_at_begin_has_a_whole_recall(
    make_recaller: MakeRecaller, recorder: EventRecorder, tasks: TaskGroup
) -> None:
    """The handle exists and closes at once, nothing is searched, and the facts are complete."""
    memory = FakeMemory(fast=[FAST])
    recaller = make_recaller(PolicyName.TIERED, memory)
    begin(recaller, tasks, cause=Cause.SUPERSEDED)
    handover = await recaller.consume(Point.INITIAL)
    verdict = await recaller.finish(Cause.USER_CANCEL)

    assert (memory.calls, handover.part, anyio.current_time()) == ([], None, 0.0)
    assert recorder.kinds() == ["RecallBegun", "RecallClosed"]
    assert verdict is not None
    assert (verdict.reason, verdict.scenario) == (Reason.NEW_QUERY, Scenario.SUPERSEDED)
    assert recorder.only(RecallClosed).cause is Cause.SUPERSEDED


async def test_the_first_cause_wins(make_recaller: MakeRecaller, recorder: EventRecorder, tasks: TaskGroup) -> None:
    """A recall that the policy closed keeps that cause when the turn is cancelled later."""
    recaller = make_recaller(PolicyName.DEADLINE, FakeMemory(fast=[FAST], delay=60.0))
    begin(recaller, tasks)
    await recaller.consume(Point.INITIAL)
    await recaller.finish(Cause.USER_CANCEL)

    assert recorder.only(RecallClosed).cause is Cause.POLICY_LIMIT


async def test_a_cancelled_wait_is_a_wait(
    make_recaller: MakeRecaller, choosing: Choosing, recorder: EventRecorder, tasks: TaskGroup
) -> None:
    """A send that is cancelled while it is held states how long it was held, and that cancellation ended it."""
    recaller = make_recaller(PolicyName.TIERED, FakeMemory(candidates=[OTHER]), choosing(1, after=9.0))
    begin(recaller, tasks)
    with anyio.move_on_after(0.03):
        await recaller.consume(Point.INITIAL)
    verdict = await recaller.finish(Cause.USER_CANCEL)

    waited = recorder.only(RecallWaited)
    assert (waited.waited, waited.ended_by) == (0.03, EndedBy.CANCELLED)
    assert verdict is not None
    assert verdict.waited == 0.03


async def test_a_wait_ends_when_the_recall_is_closed(
    make_recaller: MakeRecaller, choosing: Choosing, recorder: EventRecorder, tasks: TaskGroup
) -> None:
    """When somebody closes the recall during a wait, the send is let go at once with nothing."""
    recaller = make_recaller(PolicyName.TIERED, FakeMemory(candidates=[OTHER]), choosing(1, after=9.0))
    begin(recaller, tasks)

    async def finish_soon() -> None:
        await anyio.sleep(0.04)
        await recaller.finish(Cause.USER_CANCEL)

    tasks.start_soon(finish_soon)
    handover = await recaller.consume(Point.INITIAL)

    waited = recorder.only(RecallWaited)
    assert (handover.part, waited.waited, waited.ended_by) == (None, 0.04, EndedBy.CANCELLED)


async def test_a_cancelled_check_leaves_nothing_outstanding(
    make_recaller: MakeRecaller, recorder: EventRecorder, tasks: TaskGroup
) -> None:
    """A send that is cancelled while the notes' files are looked at has prepared nothing."""
    recaller = make_recaller(PolicyName.TIERED, FakeMemory(fast=[FAST], check_delay=0.05))
    begin(recaller, tasks)
    with anyio.move_on_after(0.02):
        await recaller.consume(Point.INITIAL)
    await recaller.finish(Cause.USER_CANCEL)

    assert recorder.only(RecallWaited).ended_by is EndedBy.CANCELLED
    assert recorder.of(RecallRolledBack) == []


async def test_the_unsaid_refined_part_is_counted_once(
    make_recaller: MakeRecaller, choosing: Choosing, recorder: EventRecorder, tasks: TaskGroup
) -> None:
    """A recall that delivered its fast notes and ends before the refined ones counts them at no point."""
    memory = FakeMemory(fast=[FAST], candidates=[FAST, OTHER])
    recaller = make_recaller(PolicyName.TIERED, memory, choosing(1, 2, after=1.6))
    begin(recaller, tasks)
    (await recaller.consume(Point.INITIAL)).accepted()
    await anyio.sleep(0.3)
    await recaller.finish(Cause.TURN_END)

    closed = recorder.only(RecallClosed)
    assert [(event.point, event.reason) for event in recorder.of(RecallSkipped)] == [
        (Point.NONE, Reason.NO_SAFE_DELIVERY_POINT)
    ]
    assert (closed.outcome, closed.phases, closed.reason, closed.skips) == (
        Outcome.DELIVERED,
        Phase.FAST,
        Reason.NO_SAFE_DELIVERY_POINT,
        1,
    )
    assert recorder.kinds()[-2:] == ["RecallSkipped", "RecallClosed"]
