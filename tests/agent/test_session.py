"""A session: one turn at a time, the latest prompt wins, and every way to stop has its cause."""

from collections.abc import Callable, Mapping

import anyio
import pytest

from recallscope.runtime.agent.gates import Limits
from recallscope.runtime.agent.host import Agent
from recallscope.runtime.agent.session import Session
from recallscope.runtime.agent.turn_state import TurnRequest, TurnResult
from recallscope.runtime.errors import SessionClosedError
from recallscope.runtime.events import (
    ModelCallFinished,
    PolicyName,
    RecallBegun,
    RecallClosed,
    SessionClosed,
    SessionOpened,
    Status,
    TurnFinished,
    TurnStarted,
)
from recallscope.runtime.messages import AssistantMessage, Message, prompt_text
from recallscope.runtime.model.seam import Usage
from recallscope.runtime.terms import Cause, Reason, Scenario, TurnOutcome, TurnPhase
from recallscope.runtime.testing.fake_clock import VirtualLoop
from recallscope.runtime.testing.memory import FakeMemory, make_note
from recallscope.runtime.testing.models import FakeModel, choosing, saying
from recallscope.runtime.testing.recorder import EventRecorder

pytestmark = pytest.mark.anyio

MakeAgent = Callable[..., Agent]
NOTE = make_note("deploy")


@pytest.fixture
def anyio_backend() -> tuple[str, Mapping[str, object]]:
    """Let time be virtual."""
    return "asyncio", {"loop_factory": VirtualLoop}


def ask(text: str = "how do we deploy?") -> TurnRequest:
    """Make a prompt."""
    return TurnRequest(text=text)


async def prompts(session: Session, *starts: float) -> list[TurnResult]:
    """Send prompts `p1`, `p2` … at these times and return their results in order."""
    results: dict[int, TurnResult] = {}

    async def prompt(number: int, start: float) -> None:
        await anyio.sleep(start)
        results[number] = await session.prompt(ask(f"p{number}"))

    async with anyio.create_task_group() as tasks:
        for number, start in enumerate(starts, start=1):
            tasks.start_soon(prompt, number, start)
    return [results[number] for number in sorted(results)]


def said(history: tuple[Message, ...]) -> list[str]:
    """Return a history as texts, an answer that was cut off with a dash."""
    return [
        message.text + ("" if message.complete else "-")
        if isinstance(message, AssistantMessage)
        else prompt_text(message.parts)
        for message in history
    ]


async def test_turns_follow_each_other(make_agent: MakeAgent) -> None:
    """A conversation goes on: history grows, turns are counted, and each request holds what was said before."""
    recorder = EventRecorder()
    model = FakeModel(turnouts=[saying("a1"), saying("a2")])
    session = make_agent(model, recorder).open_session()
    first, second = await session.prompt(ask("p1")), await session.prompt(ask("p2"))

    assert (first.turn, second.turn) == ("s.1", "s.2")
    assert said(session.history.snapshot()) == ["p1", "a1", "p2", "a2"]
    assert said(tuple(model.requests[1].messages)) == ["p1", "a1", "p2"]
    assert recorder.only(SessionOpened).policy is PolicyName.TIERED


async def test_a_second_prompt_supersedes_the_first(make_agent: MakeAgent) -> None:
    """The first turn is cancelled, its recall closed as a new query, and the second runs when it has ended."""
    recorder = EventRecorder()
    model = FakeModel(turnouts=[saying("a1", between=2.0), saying("a2")])
    selector = FakeModel(turnouts=[choosing(1, delay=1.6)])
    agent = make_agent(model, recorder, memory=FakeMemory(candidates=[NOTE]), selector=selector)
    session = agent.open_session()
    first, second = await prompts(session, 0.0, 0.5)

    assert (first.outcome, first.cause, first.text) == (TurnOutcome.CANCELLED, Cause.SUPERSEDED, "a1")
    assert (second.outcome, second.text) == (TurnOutcome.END_TURN, "a2")
    assert said(session.history.snapshot()) == ["p1", "a1-", "p2", "a2"]
    old = recorder.of(RecallClosed)[0]
    assert (old.reason, old.scenario) == (Reason.NEW_QUERY, Scenario.SUPERSEDED)
    calls = [(call.status, call.cause) for call in recorder.of(ModelCallFinished) if call.status is Status.CANCELLED]
    assert calls[:2] == [(Status.CANCELLED, Cause.SUPERSEDED)] * 2
    assert model.closed_early == 1


async def test_three_prompts_end_in_order(make_agent: MakeAgent) -> None:
    """The one in the middle never runs, its recall is told all the same, and the last one is answered."""
    recorder = EventRecorder()
    model = FakeModel(turnouts=[saying("a1", delay=5.0), saying("a3")])
    session = make_agent(model, recorder, memory=FakeMemory(fast=[NOTE])).open_session()
    results = await prompts(session, 0.0, 0.5, 0.5)

    assert [(result.turn, result.outcome, result.cause) for result in results] == [
        ("s.1", TurnOutcome.CANCELLED, Cause.SUPERSEDED),
        ("s.2", TurnOutcome.CANCELLED, Cause.SUPERSEDED),
        ("s.3", TurnOutcome.END_TURN, None),
    ]
    assert said(session.history.snapshot()) == ["p3", "a3"]
    assert [event.turn for event in recorder.of(RecallBegun)] == ["s.1", "s.2", "s.3"]
    assert len(recorder.of(RecallClosed)) == 3
    assert [event.outcome for event in recorder.of(TurnFinished)] == [result.outcome for result in results]


async def test_a_session_has_at_most_one_pending_recall(make_agent: MakeAgent) -> None:
    """However prompts come, a recall begins only after the one before it was closed."""
    recorder = EventRecorder()
    model = FakeModel(turnouts=[saying("a", delay=0.3)])
    selector = FakeModel(turnouts=[choosing(1, delay=1.0)])
    agent = make_agent(model, recorder, memory=FakeMemory(candidates=[NOTE]), selector=selector)
    await prompts(agent.open_session(), 0.0, 0.05, 0.1, 0.35, 0.5, 0.5)

    kinds = [kind for kind in recorder.kinds() if kind in {"RecallBegun", "RecallClosed"}]
    assert kinds == ["RecallBegun", "RecallClosed"] * 6


async def test_a_turn_that_waited_says_so(make_agent: MakeAgent) -> None:
    """The time behind another turn is the phase `queue`, and the turn began when its prompt arrived."""
    recorder = EventRecorder()
    session = make_agent(FakeModel(turnouts=[saying("a1"), saying("a2", delay=1.0)]), recorder).open_session()

    async def slow_to_end(_: object) -> None:
        with anyio.CancelScope(shield=True):
            await anyio.sleep(0.25)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(session.prompt, ask("p1"), slow_to_end)
        await anyio.sleep(0.0625)
        tasks.start_soon(session.prompt, ask("p2"))

    assert dict(recorder.of(TurnFinished)[1].phases)[TurnPhase.QUEUE] == 0.1875
    assert recorder.of(TurnStarted)[1].at == 0.0625


@pytest.mark.parametrize(
    ("cause", "reason"),
    [
        (Cause.USER_CANCEL, Reason.ABORT),
        (Cause.PROCESS_SHUTDOWN, Reason.SHUTDOWN),
    ],
)
async def test_cancel_ends_the_turn_with_its_cause(make_agent: MakeAgent, cause: Cause, reason: Reason) -> None:
    """Cancelling returns at once, the turn ends as cancelled, and the cause is on every fact of it."""
    recorder = EventRecorder()
    selector = FakeModel(turnouts=[choosing(1, delay=9.0)])
    model = FakeModel(turnouts=[saying("a", delay=5.0)])
    agent = make_agent(model, recorder, memory=FakeMemory(candidates=[NOTE]), selector=selector)
    session = agent.open_session()
    under_way, results = list[bool](), list[TurnResult]()

    async def prompt() -> None:
        results.append(await session.prompt(ask()))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(prompt)
        await anyio.sleep(0.5)
        under_way.append(session.cancel(cause))
        session.cancel(Cause.CONTROL_STOP)

    finished, closed = recorder.only(TurnFinished), recorder.only(RecallClosed)
    assert (under_way, session.cancel()) == ([True], False)
    assert (results[0].outcome, results[0].cause) == (TurnOutcome.CANCELLED, cause)
    assert (finished.status, finished.cause, finished.outcome) == (Status.CANCELLED, cause, TurnOutcome.CANCELLED)
    assert (closed.cause, closed.reason, closed.scenario) == (cause, reason, Scenario.INTERRUPTED)
    assert (finished.scenario, finished.recall_reason) == (Scenario.INTERRUPTED, reason)
    assert {call.cause for call in recorder.of(ModelCallFinished)} == {cause}


async def test_stop_waits_until_the_turns_have_ended(make_agent: MakeAgent) -> None:
    """The embedding host stops what is under way; the session takes prompts afterwards."""
    recorder = EventRecorder()
    session = make_agent(
        FakeModel(turnouts=[saying("a", delay=5.0), saying("b")]), recorder, memory=FakeMemory(fast=[NOTE])
    ).open_session()
    ended: list[Cause | None] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(session.prompt, ask())
        await anyio.sleep(0.5)
        await session.stop()
        ended.extend(event.cause for event in recorder.of(TurnFinished))
    result = await session.prompt(ask())

    assert (ended, result.text) == ([Cause.CONTROL_STOP], "b")
    assert recorder.of(RecallClosed)[0].cause is Cause.CONTROL_STOP


async def test_reset_begins_anew(make_agent: MakeAgent) -> None:
    """History, recent tools and tokens are gone, and notes may be delivered again."""
    model = FakeModel(turnouts=[saying("a", usage=Usage(90, 10)), saying("b")])
    agent = make_agent(model, memory=FakeMemory(fast=[NOTE]), limits=Limits(session_tokens=100))
    session = agent.open_session()
    await session.prompt(ask("p1"))
    session.recent_tools.record("grep")
    await session.reset()
    emptied = (session.history.snapshot(), session.recent_tools.names(), session.history.surfaced())
    result = await session.prompt(ask("p2"))

    assert emptied == ((), (), frozenset())
    assert (result.turn, result.outcome) == ("s.2", TurnOutcome.END_TURN)
    assert session.history.surfaced() == {NOTE.note_version}


async def test_a_reset_closes_the_recall_of_the_turn(make_agent: MakeAgent) -> None:
    """A turn that is under way when the history is replaced ends with that cause."""
    recorder = EventRecorder()
    session = make_agent(
        FakeModel(turnouts=[saying("a", delay=5.0)]), recorder, memory=FakeMemory(delay=9.0)
    ).open_session()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(session.prompt, ask())
        await anyio.sleep(0.5)
        await session.reset()

    assert (recorder.only(RecallClosed).cause, recorder.only(RecallClosed).reason) == (
        Cause.SESSION_RESET,
        Reason.RESET,
    )


async def test_a_prompt_during_a_reset_sees_the_empty_history(make_agent: MakeAgent) -> None:
    """A prompt that comes while the reset waits runs after it, in the new history, with the tokens of the new one."""
    model = FakeModel(turnouts=[saying("a1", between=2.0), saying("a2")])
    session = make_agent(model).open_session()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(session.prompt, ask("p1"))
        await anyio.sleep(0.5)
        tasks.start_soon(session.reset)
        await anyio.lowlevel.checkpoint()
        tasks.start_soon(session.prompt, ask("p2"))

    assert said(session.history.snapshot()) == ["p2", "a2"]


async def test_close_takes_no_more_prompts(make_agent: MakeAgent) -> None:
    """Closing ends what is under way, is stated once, and every later prompt is told to open a new session."""
    recorder = EventRecorder()
    session = make_agent(
        FakeModel(turnouts=[saying("a", delay=5.0)]), recorder, memory=FakeMemory(delay=9.0)
    ).open_session()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(session.prompt, ask())
        await anyio.sleep(0.5)
        await session.close()
        await session.close()

    with pytest.raises(SessionClosedError, match="session s is closed; open a new one"):
        await session.prompt(ask())

    assert recorder.only(SessionClosed).cause is Cause.SESSION_DISPOSE
    assert recorder.only(RecallClosed).cause is Cause.SESSION_DISPOSE
    assert recorder.kinds()[-1] == "SessionClosed"


async def test_tokens_of_overlapping_turns_add_up(make_agent: MakeAgent) -> None:
    """A prompt that arrived during another turn counts that turn's tokens as well."""
    model = FakeModel(turnouts=[saying("a1", between=0.5, usage=Usage(90, 10)), saying("a2", usage=Usage(1, 1))])
    session = make_agent(model, limits=Limits(session_tokens=102)).open_session()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(session.prompt, ask("p1"))
        await anyio.sleep(0.9)
        tasks.start_soon(session.prompt, ask("p2"))
    third = await session.prompt(ask("p3"))
    fourth = await session.prompt(ask("p4"))

    assert [third.outcome, fourth.outcome] == [TurnOutcome.END_TURN, TurnOutcome.END_TURN]


async def test_a_host_that_ends_the_task_disposes_of_the_turn(make_agent: MakeAgent) -> None:
    """When the task that a turn runs in is cancelled from outside, every fact is told, with that cause."""
    recorder = EventRecorder()
    selector = FakeModel(turnouts=[choosing(1, delay=9.0)])
    model = FakeModel(turnouts=[saying("a", "b", between=2.0)])
    agent = make_agent(model, recorder, memory=FakeMemory(candidates=[NOTE]), selector=selector)
    session = agent.open_session()
    with anyio.move_on_after(1.0):
        await session.prompt(ask())
    next_turn = await session.prompt(ask("again"))

    finished, closed = recorder.of(TurnFinished)[0], recorder.of(RecallClosed)[0]
    assert (finished.status, finished.cause, finished.outcome) == (
        Status.CANCELLED,
        Cause.SESSION_DISPOSE,
        TurnOutcome.CANCELLED,
    )
    assert (finished.sends, finished.scenario, finished.recall_reason) == (1, Scenario.INTERRUPTED, Reason.ABORT)
    assert sum(seconds for _, seconds in finished.phases) == 1.0
    assert (closed.cause, closed.reason) == (Cause.SESSION_DISPOSE, Reason.ABORT)
    assert said(session.history.snapshot())[:2] == ["how do we deploy?", "a-"]
    assert next_turn.outcome is TurnOutcome.END_TURN


async def test_a_host_that_ends_a_waiting_prompt_leaves_the_others_alone(make_agent: MakeAgent) -> None:
    """A prompt that is given up before its admission ends as cancelled and holds nobody."""
    recorder = EventRecorder()
    model = FakeModel(turnouts=[saying("a1"), saying("a2")])
    session = make_agent(model, recorder).open_session()

    async def slow_to_end(_: object) -> None:
        with anyio.CancelScope(shield=True):
            await anyio.sleep(1.0)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(session.prompt, ask("p1"), slow_to_end)
        await anyio.sleep(0.25)
        with anyio.move_on_after(0.5):
            await session.prompt(ask("p2"))
    result = await session.prompt(ask("p3"))

    assert recorder.of(TurnFinished)[0].phases == ((TurnPhase.QUEUE, 0.5),)
    assert (result.outcome, session.cancel()) == (TurnOutcome.END_TURN, False)


async def test_the_trace_of_the_caller_is_passed_on(make_agent: MakeAgent) -> None:
    """A `traceparent` that came with the prompt stands in the fact of the turn's start."""
    recorder = EventRecorder()
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    session = make_agent(FakeModel(turnouts=[saying("a")]), recorder).open_session()
    await session.prompt(TurnRequest(text="hi", traceparent=parent))

    started = recorder.only(TurnStarted)
    assert (started.traceparent, started.agent, started.session) == (parent, "tester", "s")


async def test_a_front_end_that_fails_ends_the_turn_and_not_the_session(make_agent: MakeAgent) -> None:
    """An error of the listener leaves as itself; the recall is closed, the facts are whole, the next prompt runs."""
    recorder = EventRecorder()
    model = FakeModel(turnouts=[saying("a", "b", delay=0.5)])
    session = make_agent(model, recorder, memory=FakeMemory(fast=[NOTE])).open_session()

    async def gone(_: object) -> None:
        raise BrokenPipeError("nobody reads")

    with pytest.raises(BrokenPipeError):
        await session.prompt(ask(), gone)
    finished = recorder.only(TurnFinished)
    result = await session.prompt(ask())

    assert (finished.status, finished.error_type, finished.outcome) == (
        Status.FAILED,
        "BrokenPipeError",
        TurnOutcome.FAILED,
    )
    assert (finished.sends, finished.scenario) == (1, Scenario.SETTLED_BEFORE_SEND)
    assert sum(seconds for _, seconds in finished.phases) == 0.5
    assert len(recorder.of(RecallClosed)) == 2
    assert result.outcome is TurnOutcome.END_TURN
