"""What fails in a recall is stated with its cause, and no fault of it reaches the turn."""

from collections.abc import Callable, Sequence

import anyio
import pytest
from anyio.abc import TaskGroup

from recallscope.runtime.errors import ModelStatusError, StoreUnavailableError
from recallscope.runtime.events import (
    EndedBy,
    ModelCallFinished,
    OpId,
    PolicyName,
    RecallClosed,
    RecallDelivered,
    RecallFastResult,
    RecallSettled,
    RecallSkipped,
    RecallWaited,
    Status,
)
from recallscope.runtime.memory.note import Note
from recallscope.runtime.memory.search import Found
from recallscope.runtime.messages import NoteVersion
from recallscope.runtime.model.seam import Answer, Chunk, ModelRequest
from recallscope.runtime.recall.recaller import Recaller, RecallTurn, RecallVerdict
from recallscope.runtime.terms import Cause, Outcome, Point, Reason, RecallPhase, Scenario, Strategy
from recallscope.runtime.testing.memory import FakeMemory, make_note
from recallscope.runtime.testing.models import FakeModel, Turnout
from recallscope.runtime.testing.recorder import EventRecorder

pytestmark = pytest.mark.anyio

MakeRecaller = Callable[..., Recaller]
Choosing = Callable[..., FakeModel]

FAST, OTHER = make_note("fast"), make_note("other")
REFUSED = ModelStatusError(url="http://127.0.0.1:1", status_code=500, body="no")


async def whole_turn(recaller: Recaller, tasks: TaskGroup, *, before_tools: float = 2.0) -> RecallVerdict:
    """Run a turn of two sends, the second behind tools, and return what its recall came to."""
    turn = RecallTurn(op=OpId("turn"), session="s", turn="s.1", tasks=tasks, cause=lambda: None)
    recaller.begin(turn, "how do we deploy?", surfaced=frozenset(), recent_tools=())
    (await recaller.consume(Point.INITIAL)).accepted()
    await anyio.sleep(before_tools)
    (await recaller.consume(Point.TOOL_RESULT)).accepted()
    verdict = await recaller.finish(Cause.TURN_END)
    assert verdict is not None
    return verdict


class BrokenMemory(FakeMemory):
    """A memory with a fault in one of its methods."""

    broken: str = "search"
    fault: Exception = RuntimeError("a bug")

    async def search(
        self,
        query: str,
        *,
        exclude: frozenset[NoteVersion],
        recent_tools: Sequence[str],
        within: float | None = None,
        op: OpId | None = None,
    ) -> Found:
        """Search, or fail."""
        found = await super().search(query, exclude=exclude, recent_tools=recent_tools, within=within, op=op)
        if self.broken == "search":
            raise self.fault
        return found

    async def load(self, notes: Sequence[Note]) -> tuple[Note, ...]:
        """Load, or fail."""
        if self.broken == "load":
            raise self.fault
        return await super().load(notes)

    async def stale(self, notes: Sequence[Note]) -> frozenset[NoteVersion]:
        """Check, or fail."""
        if self.broken == "stale":
            raise self.fault
        return await super().stale(notes)


class BrokenModel(FakeModel):
    """A small model whose client has a bug."""

    async def complete(self, request: ModelRequest) -> Answer:
        """Fail."""
        raise RuntimeError("a bug")


def broken_memory(method: str, fault: Exception) -> BrokenMemory:
    """Make a memory with word matches whose `method` fails."""
    memory = BrokenMemory(fast=[FAST], candidates=[FAST, OTHER])
    memory.broken, memory.fault = method, fault
    return memory


@pytest.mark.parametrize("policy", [PolicyName.DEADLINE, PolicyName.PREFETCH, PolicyName.TIERED])
async def test_an_unavailable_store_is_not_empty(
    make_recaller: MakeRecaller, choosing: Choosing, recorder: EventRecorder, tasks: TaskGroup, policy: PolicyName
) -> None:
    """A store that cannot be read fails the recall, ends the wait, and asks no model."""
    model = choosing(1)
    verdict = await whole_turn(make_recaller(policy, FakeMemory(unavailable=True, delay=0.004), model), tasks)

    assert (verdict.outcome, verdict.reason, verdict.scenario) == (
        Outcome.FAILED,
        Reason.STORE_UNAVAILABLE,
        Scenario.UNAVAILABLE,
    )
    assert (model.requests, recorder.of(RecallFastResult)) == ([], [])
    assert recorder.of(RecallWaited)[0].waited <= 0.004


async def test_a_known_failure_is_one_line_of_log(
    make_recaller: MakeRecaller, tasks: TaskGroup, caplog: pytest.LogCaptureFixture
) -> None:
    """What is known to happen in the world is a warning without a traceback."""
    await whole_turn(make_recaller(PolicyName.TIERED, FakeMemory(unavailable=True)), tasks)

    assert [(record.levelname, record.exc_info) for record in caplog.records] == [("WARNING", None)]


@pytest.mark.parametrize("policy", [PolicyName.PREFETCH, PolicyName.TIERED])
async def test_a_failed_selector_leaves_the_word_matches(
    make_recaller: MakeRecaller, recorder: EventRecorder, tasks: TaskGroup, policy: PolicyName
) -> None:
    """When the selector fails, the refined result is the word matches, with the cause of the failure."""
    memory = FakeMemory(fast=[FAST, OTHER], candidates=[FAST, OTHER])
    model = FakeModel(turnouts=[Turnout(error=REFUSED, delay=0.5)])
    verdict = await whole_turn(make_recaller(policy, memory, model), tasks)

    settled, call = recorder.only(RecallSettled), recorder.only(ModelCallFinished)
    assert (settled.strategy, settled.error_type) == (Strategy.LEXICAL, Reason.SELECTOR_UNAVAILABLE)
    assert settled.notes == ("project:fast.md", "project:other.md")
    assert (call.status, call.error_type) == (Status.FAILED, "500")
    assert verdict.outcome is Outcome.DELIVERED


async def test_under_deadline_nothing_stands_in_for_the_selector(
    make_recaller: MakeRecaller, recorder: EventRecorder, tasks: TaskGroup
) -> None:
    """The old way knows no word matches: a failed selector is a failed recall."""
    memory = FakeMemory(fast=[FAST], candidates=[FAST])
    model = FakeModel(turnouts=[Turnout(error=REFUSED, delay=0.5)])
    verdict = await whole_turn(make_recaller(PolicyName.DEADLINE, memory, model), tasks)

    assert recorder.only(RecallWaited).ended_by is EndedBy.REFINED
    assert (verdict.outcome, verdict.reason, verdict.scenario) == (
        Outcome.FAILED,
        Reason.SELECTOR_UNAVAILABLE,
        Scenario.UNAVAILABLE,
    )


@pytest.mark.parametrize("text", ["no JSON", "[]", '{"selected": "n01"}', '{"chosen": []}', "[" * 100_000])
async def test_an_answer_that_is_no_selection_is_a_failed_call(
    make_recaller: MakeRecaller, recorder: EventRecorder, tasks: TaskGroup, text: str
) -> None:
    """A small model that answers anything else than a list of ids has failed."""
    model = FakeModel(turnouts=[Turnout(chunks=[Chunk(text)], delay=0.2)])
    await whole_turn(make_recaller(PolicyName.PREFETCH, FakeMemory(fast=[FAST], candidates=[FAST]), model), tasks)

    assert recorder.only(ModelCallFinished).status is Status.FAILED
    assert recorder.only(RecallSettled).error_type is Reason.SELECTOR_UNAVAILABLE
    assert recorder.only(RecallDelivered).strategy is Strategy.LEXICAL


async def test_an_empty_selection_is_final(
    make_recaller: MakeRecaller, choosing: Choosing, recorder: EventRecorder, tasks: TaskGroup
) -> None:
    """A model that chooses nothing is believed: word matches do not stand in for it."""
    memory = FakeMemory(fast=[FAST], candidates=[FAST])
    verdict = await whole_turn(make_recaller(PolicyName.PREFETCH, memory, choosing(after=0.2)), tasks)

    assert (verdict.outcome, verdict.reason) == (Outcome.EMPTY, Reason.NO_RELEVANT_RESULTS)
    assert verdict.scenario is Scenario.SLOW_WITH_TOOLS
    assert [(event.point, event.reason) for event in recorder.of(RecallSkipped)] == [
        (Point.INITIAL, Reason.NOT_SETTLED),
        (Point.TOOL_RESULT, Reason.NOTHING_FOUND),
    ]


async def test_nothing_to_choose_from_asks_no_model(
    make_recaller: MakeRecaller, choosing: Choosing, recorder: EventRecorder, tasks: TaskGroup
) -> None:
    """Without candidates the recall settles empty at once, and the wait ends then."""
    model = choosing(1)
    verdict = await whole_turn(make_recaller(PolicyName.TIERED, FakeMemory(delay=0.003), model), tasks)

    assert (verdict.outcome, verdict.reason, verdict.scenario) == (
        Outcome.EMPTY,
        Reason.NO_RELEVANT_RESULTS,
        Scenario.NOTHING_FOUND,
    )
    assert (model.requests, recorder.of(RecallWaited)[0].waited) == ([], 0.003)


async def test_the_safety_ceiling_stops_a_leaked_call(
    make_recaller: MakeRecaller, choosing: Choosing, recorder: EventRecorder, tasks: TaskGroup
) -> None:
    """A selector that never answers is stopped, and the word matches stand in for it; nobody has waited for that."""
    memory = FakeMemory(fast=[FAST], candidates=[FAST])
    recaller = make_recaller(PolicyName.PREFETCH, memory, choosing(1, after=3600.0))
    verdict = await whole_turn(recaller, tasks, before_tools=40.0)

    settled = recorder.only(RecallSettled)
    assert (settled.elapsed, settled.strategy, settled.error_type) == (30.0, Strategy.LEXICAL, Reason.SELECTOR_TIMEOUT)
    assert (verdict.outcome, verdict.waited) == (Outcome.DELIVERED, 0.0)
    assert recorder.only(ModelCallFinished).status is Status.CANCELLED


async def test_the_limit_of_a_policy_is_the_cause_of_its_cancel(
    make_recaller: MakeRecaller, choosing: Choosing, recorder: EventRecorder, tasks: TaskGroup
) -> None:
    """A selector that the policy `deadline` cuts off is cancelled by the policy's limit."""
    recaller = make_recaller(PolicyName.DEADLINE, FakeMemory(candidates=[OTHER]), choosing(1, after=1.6))
    verdict = await whole_turn(recaller, tasks)

    call = recorder.only(ModelCallFinished)
    assert (call.status, call.cause, call.at) == (Status.CANCELLED, Cause.POLICY_LIMIT, 1.0)
    assert verdict.scenario is Scenario.TIMED_OUT


@pytest.mark.parametrize("policy", [PolicyName.DEADLINE, PolicyName.PREFETCH, PolicyName.TIERED])
async def test_a_bug_in_the_search_does_not_reach_the_turn(
    make_recaller: MakeRecaller,
    choosing: Choosing,
    tasks: TaskGroup,
    caplog: pytest.LogCaptureFixture,
    policy: PolicyName,
) -> None:
    """A fault of the program in the search fails the recall, is logged with its traceback, and the turn goes on."""
    memory = broken_memory("search", RuntimeError("a bug"))
    verdict = await whole_turn(make_recaller(policy, memory, choosing(1)), tasks)

    assert (verdict.outcome, verdict.reason) == (Outcome.FAILED, Reason.STORE_UNAVAILABLE)
    assert [record.exc_info is not None for record in caplog.records] == [True]


async def test_a_bug_in_the_selector_does_not_reach_the_turn(
    make_recaller: MakeRecaller, recorder: EventRecorder, tasks: TaskGroup, caplog: pytest.LogCaptureFixture
) -> None:
    """A fault of the program in the selector is a failed selector: logged, and word matches stand in for it."""
    memory = FakeMemory(fast=[FAST], candidates=[FAST])
    verdict = await whole_turn(make_recaller(PolicyName.PREFETCH, memory, BrokenModel(turnouts=[])), tasks)

    assert recorder.only(RecallSettled).error_type is Reason.SELECTOR_UNAVAILABLE
    assert verdict.outcome is Outcome.DELIVERED
    assert [record.exc_info is not None for record in caplog.records] == [True]


@pytest.mark.parametrize("fault", [StoreUnavailableError("gone"), RuntimeError("a bug")])
async def test_chosen_notes_that_cannot_be_read_are_the_fault_of_the_store(
    make_recaller: MakeRecaller, choosing: Choosing, recorder: EventRecorder, tasks: TaskGroup, fault: Exception
) -> None:
    """The store may fail between the search and the reading of the chosen notes; that is no fault of the selector."""
    memory = broken_memory("load", fault)
    verdict = await whole_turn(make_recaller(PolicyName.PREFETCH, memory, choosing(1, after=0.1)), tasks)

    assert (verdict.outcome, verdict.reason) == (Outcome.FAILED, Reason.STORE_UNAVAILABLE)
    assert recorder.only(ModelCallFinished).status is Status.OK


@pytest.mark.parametrize("fault", [StoreUnavailableError("gone"), PermissionError("no"), RuntimeError("a bug")])
async def test_notes_that_cannot_be_checked_wait(
    make_recaller: MakeRecaller, choosing: Choosing, recorder: EventRecorder, tasks: TaskGroup, fault: Exception
) -> None:
    """When the look at the notes' files fails, nothing unchecked is delivered, and the turn goes on."""
    memory = broken_memory("stale", fault)
    verdict = await whole_turn(make_recaller(PolicyName.TIERED, memory, choosing(1, after=0.1)), tasks)

    assert (verdict.outcome, recorder.of(RecallDelivered)) == (Outcome.DISCARDED, [])
    assert [(event.point, event.reason) for event in recorder.of(RecallSkipped)] == [
        (Point.INITIAL, Reason.NOT_SETTLED),
        (Point.TOOL_RESULT, Reason.NOT_SETTLED),
    ]


async def test_an_unrenderable_note_does_not_reach_the_turn(
    make_recaller: MakeRecaller, recorder: EventRecorder, tasks: TaskGroup
) -> None:
    """A note that cannot even be rendered fails the recall and nothing else."""
    memory = FakeMemory(fast=[make_note("endless", updated=float("-inf"))])
    verdict = await whole_turn(make_recaller(PolicyName.TIERED, memory), tasks)

    assert (verdict.outcome, verdict.reason) == (Outcome.FAILED, Reason.STORE_UNAVAILABLE)
    assert recorder.only(RecallClosed).outcome is Outcome.FAILED


# Notes whose files changed


async def test_a_stale_note_is_withdrawn(
    make_recaller: MakeRecaller, choosing: Choosing, recorder: EventRecorder, tasks: TaskGroup
) -> None:
    """A note that is gone or changed on disk is left out, that is stated, and the others go."""
    memory = FakeMemory(fast=[FAST, OTHER], candidates=[FAST, OTHER], changed={FAST.note_version})
    await whole_turn(make_recaller(PolicyName.TIERED, memory, choosing(1, 2, after=0.5)), tasks)

    assert [event.notes for event in recorder.of(RecallDelivered)] == [("project:other.md",)]
    assert "RecallWithdrawn" in recorder.kinds()
    assert recorder.kinds().count("RecallWithdrawn") == 1


async def test_a_slow_check_holds_the_notes_back_and_no_send(
    make_recaller: MakeRecaller, choosing: Choosing, recorder: EventRecorder, tasks: TaskGroup
) -> None:
    """When the files cannot be looked at in time, the send leaves at the ceiling and the notes wait for the next."""
    memory = FakeMemory(fast=[FAST], candidates=[FAST], check_delay=5.0)
    await whole_turn(make_recaller(PolicyName.TIERED, memory, choosing(1, after=0.5)), tasks)

    first, second = recorder.of(RecallWaited)
    assert (first.waited, first.ended_by) == (0.1, EndedBy.FAST)
    assert second.waited == pytest.approx(0.004)
    assert recorder.of(RecallDelivered) == []


async def test_the_check_is_inside_the_measured_wait(
    make_recaller: MakeRecaller, recorder: EventRecorder, tasks: TaskGroup
) -> None:
    """The look at the files counts as waiting, since the send is held for it."""
    memory = FakeMemory(fast=[FAST], delay=0.002, check_delay=0.003)
    await whole_turn(make_recaller(PolicyName.TIERED, memory), tasks)

    assert recorder.of(RecallWaited)[0].waited == pytest.approx(0.005)


async def test_what_settles_during_the_check_is_checked_as_well(
    make_recaller: MakeRecaller, choosing: Choosing, recorder: EventRecorder, tasks: TaskGroup
) -> None:
    """A refined result that comes while the fast notes are looked at goes first, and not unchecked."""
    memory = FakeMemory(fast=[FAST], candidates=[OTHER, FAST], check_delay=0.02, changed={OTHER.note_version})
    recaller = make_recaller(PolicyName.TIERED, memory, choosing(1, 2, after=0.01))
    turn = RecallTurn(op=OpId("turn"), session="s", turn="s.1", tasks=tasks, cause=lambda: None)
    recaller.begin(turn, "how do we deploy?", surfaced=frozenset(), recent_tools=())
    await anyio.sleep(0.005)
    (await recaller.consume(Point.INITIAL)).accepted()
    await recaller.finish(Cause.TURN_END)

    assert [(event.phase, event.notes) for event in recorder.of(RecallDelivered)] == [
        (RecallPhase.REFINED, ("project:fast.md",))
    ]
    assert recorder.only(RecallWaited).waited == pytest.approx(0.04)
