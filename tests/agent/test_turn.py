"""One logical turn: its order, its tools, its phases, and the work after it."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import anyio
import pytest

from recallscope.runtime.agent.host import Agent
from recallscope.runtime.agent.tools.registry import Tool, function_tool
from recallscope.runtime.agent.turn_state import AnswerText, ToolCallEnded, ToolCallStarted, TurnRequest, TurnResult
from recallscope.runtime.errors import MemoryWriteError, ModelConnectionError, RecallscopeError, ToolError
from recallscope.runtime.events import (
    PolicyName,
    PostTurnFailed,
    RecallClosed,
    RecallDelivered,
    Status,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnFirstToken,
    TurnStarted,
)
from recallscope.runtime.messages import (
    AssistantMessage,
    MemoryPart,
    Message,
    ReminderPart,
    ToolResultPart,
    UserMessage,
)
from recallscope.runtime.model.seam import Chunk
from recallscope.runtime.observe import Observers
from recallscope.runtime.terms import Cause, Delivered, Outcome, Reason, Scenario, TurnOutcome, TurnPhase
from recallscope.runtime.testing.fake_clock import VirtualLoop
from recallscope.runtime.testing.memory import FakeMemory, make_note
from recallscope.runtime.testing.models import FakeModel, Turnout, calling, choosing, saying
from recallscope.runtime.testing.recorder import EventRecorder

pytestmark = pytest.mark.anyio

MakeAgent = Callable[..., Agent]
FAST, OTHER = make_note("fast"), make_note("other")
ASK = TurnRequest(text="how do we deploy?")


@pytest.fixture
def anyio_backend() -> tuple[str, Mapping[str, object]]:
    """Let time be virtual."""
    return "asyncio", {"loop_factory": VirtualLoop}


async def _work(arguments: Mapping[str, Any]) -> str:
    await anyio.sleep(arguments["seconds"])
    if arguments["seconds"] > 60:
        raise ToolError("that takes too long")
    return f"worked {arguments['seconds']} s"


WORK = function_tool(
    "work",
    "Work for some seconds.",
    {"type": "object", "properties": {"seconds": {"type": "number"}}, "required": ["seconds"]},
    _work,
)


def _bug(_: Mapping[str, Any], __: object) -> Any:
    raise ZeroDivisionError


def parts(message: Message) -> list[str]:
    """Return the kinds of the parts of a message to the model."""
    assert isinstance(message, UserMessage)
    return [type(part).__name__ for part in message.parts]


# Order


async def test_the_order_of_a_turn(make_agent: MakeAgent) -> None:
    """Recall begins before the reminders, which run beside it; memory is asked behind them; it ends before the turn."""
    recorder = EventRecorder()

    async def snapshot(_: Sequence[Message]) -> ReminderPart:
        await anyio.sleep(0.25)
        return ReminderPart("the workspace", "workspace")

    agent = make_agent(
        FakeModel(turnouts=[saying("blue", delay=0.5)]),
        recorder,
        memory=FakeMemory(fast=[FAST], delay=0.125),
        reminders=[snapshot],
    )
    result = await agent.open_session().prompt(ASK)

    assert recorder.kinds() == [
        "SessionOpened",
        "TurnStarted",
        "RecallBegun",
        "RecallFastResult",
        "RecallSettled",
        "RecallWaited",
        "ModelCallStarted",
        "ModelFirstChunk",
        "RecallDelivered",
        "TurnFirstToken",
        "ModelCallFinished",
        "RecallClosed",
        "TurnFinished",
    ]
    finished = recorder.only(TurnFinished)
    assert finished.phases == (
        (TurnPhase.QUEUE, 0.0),
        (TurnPhase.PREPARE, 0.25),
        (TurnPhase.RECALL_WAIT, 0.0),
        (TurnPhase.MODEL, 0.5),
        (TurnPhase.OTHER, 0.0),
    )
    assert (finished.scenario, finished.delivered, finished.recall_reason, finished.recall_waited) == (
        Scenario.SETTLED_BEFORE_SEND,
        Delivered.INITIAL,
        Reason.NONE,
        0.0,
    )
    assert recorder.only(TurnFirstToken).at == 0.75
    assert result.recall is not None
    assert result.recall.outcome is Outcome.DELIVERED


async def test_the_phases_end_when_the_turn_does(make_agent: MakeAgent) -> None:
    """On a clock that moves between any two looks at it, the phases still add up to the turn's wall time."""
    recorder = EventRecorder()
    moments = itertools.count()
    observers = Observers([recorder], clock=lambda: next(moments) / 8)
    model = FakeModel(turnouts=[calling(("c1", "work", '{"seconds": 1}')), saying("blue")])
    agent = replace(make_agent(model, memory=FakeMemory(fast=[FAST]), tools=[WORK]), observers=observers)
    await agent.open_session().prompt(ASK)

    started, finished = recorder.only(TurnStarted), recorder.only(TurnFinished)
    assert sum(seconds for _, seconds in finished.phases) == finished.at - started.at


async def test_every_operation_has_its_parent(make_agent: MakeAgent) -> None:
    """Recall, model calls and tools stand below the turn, the selector below the recall, and none ends after it."""
    recorder = EventRecorder()
    agent = make_agent(
        FakeModel(turnouts=[calling(("c1", "work", '{"seconds": 1}')), saying("done")]),
        recorder,
        memory=FakeMemory(fast=[FAST], candidates=[FAST]),
        selector=FakeModel(turnouts=[choosing(1, delay=0.5)]),
        tools=[WORK],
    )
    await agent.open_session().prompt(ASK)
    turn = recorder.only(TurnStarted).op
    parents = [(type(event).__name__, getattr(event, "parent", None)) for event in recorder.events]

    assert [kind for kind, parent in parents if parent == turn] == [
        "RecallBegun",
        "ModelCallStarted",
        "ToolStarted",
        "ModelCallStarted",
    ]
    assert recorder.kinds()[-2:] == ["RecallClosed", "TurnFinished"]


async def test_the_query_is_what_the_person_wrote(make_agent: MakeAgent) -> None:
    """Reminders and history never enter the recall query."""
    memory = FakeMemory(fast=[FAST])

    async def snapshot(_: Sequence[Message]) -> ReminderPart:
        return ReminderPart("secret workspace", "workspace")

    agent = make_agent(FakeModel(turnouts=[saying("blue")]), memory=memory, reminders=[snapshot])
    session = agent.open_session()
    await session.prompt(ASK)
    await session.prompt(TurnRequest(text="and\n  who? "))

    assert [call.query for call in memory.calls] == ["how do we deploy?", "and\n  who? "]


async def test_a_note_is_surfaced_once(make_agent: MakeAgent) -> None:
    """The version that stands in the conversation is excluded from the next turns; an edited one goes again, marked."""
    memory = FakeMemory(fast=[FAST])
    model = FakeModel(turnouts=[saying("blue")])
    session = make_agent(model, memory=memory).open_session()
    await session.prompt(ASK)
    await session.prompt(ASK)
    edited = make_note("fast", version="2")
    memory.fast = [edited]
    await session.prompt(ASK)
    kinds = [parts(request.messages[-1]) for request in model.requests]

    assert kinds == [["MemoryPart", "TextPart"], ["TextPart"], ["MemoryPart", "TextPart"]]
    assert [call.exclude for call in memory.calls] == [
        frozenset(),
        frozenset({FAST.note_version}),
        frozenset({FAST.note_version}),
    ]
    assert "updated since you last saw it" in str(model.requests[2].messages[-1])
    assert session.history.surfaced() == {FAST.note_version, edited.note_version}


async def test_memory_never_precedes_a_tool_result(make_agent: MakeAgent) -> None:
    """Refined notes go behind all leading tool results of the next send, in call order."""
    model = FakeModel(
        turnouts=[
            calling(("c1", "work", '{"seconds": 1}'), ("c2", "work", '{"seconds": 0}')),
            saying("done"),
        ]
    )
    agent = make_agent(
        model,
        memory=FakeMemory(fast=[FAST], candidates=[FAST, OTHER]),
        selector=FakeModel(turnouts=[choosing(1, 2, delay=0.9)]),
        tools=[WORK],
    )
    await agent.open_session().prompt(ASK)
    message = model.requests[1].messages[-1]

    assert parts(message) == ["ToolResultPart", "ToolResultPart", "MemoryPart"]
    assert isinstance(message, UserMessage)
    assert message.parts[:2] == (
        ToolResultPart("c1", "work", "worked 1 s"),
        ToolResultPart("c2", "work", "worked 0 s"),
    )
    assert isinstance(message.parts[2], MemoryPart)
    assert message.parts[2].versions == (OTHER.note_version,)


# Tools


async def test_the_tool_loop(make_agent: MakeAgent) -> None:
    """Calls are run in order, shown as they begin and end, answered in one message, and remembered as used."""
    recorder, shown = EventRecorder(), list[object]()
    model = FakeModel(
        turnouts=[
            calling(("c1", "work", '{"seconds": 1}'), ("c2", "nothing", "{}"), text="let me see"),
            calling(("c3", "work", "no JSON"), ("c4", "work", '{"seconds": 99}')),
            saying("done"),
        ]
    )
    session = make_agent(model, recorder, tools=[WORK]).open_session()

    async def show(update: object) -> None:
        shown.append(update)

    result = await session.prompt(ASK, show)

    assert (result.outcome, result.text, result.sends) == (TurnOutcome.END_TURN, "done", 3)
    assert shown == [
        AnswerText("let me see"),
        ToolCallStarted("c1", "work", '{"seconds": 1}'),
        ToolCallEnded("c1", "work", is_error=False),
        ToolCallStarted("c2", "nothing", "{}"),
        ToolCallEnded("c2", "nothing", is_error=True),
        ToolCallStarted("c3", "work", "no JSON"),
        ToolCallEnded("c3", "work", is_error=True),
        ToolCallStarted("c4", "work", '{"seconds": 99}'),
        ToolCallEnded("c4", "work", is_error=True),
        AnswerText("done"),
    ]
    assert [event.tool for event in recorder.of(ToolStarted)] == ["work", "_other", "work", "work"]
    assert [(event.status, event.is_error) for event in recorder.of(ToolFinished)] == [
        (Status.OK, False),
        (Status.OK, True),
        (Status.OK, True),
        (Status.OK, True),
    ]
    assert session.recent_tools.names() == ("work",)
    assert dict(recorder.only(TurnFinished).phases)[TurnPhase.TOOL] == 100.0


async def test_recent_tools_reach_the_next_recall(make_agent: MakeAgent) -> None:
    """The recall of the next turn knows which tools were used, so that notes about their use are left out."""
    memory = FakeMemory(fast=[FAST])
    model = FakeModel(turnouts=[calling(("c1", "work", '{"seconds": 1}')), saying("done")])
    session = make_agent(model, memory=memory, tools=[WORK]).open_session()
    await session.prompt(ASK)
    await session.prompt(ASK)

    assert [call.recent_tools for call in memory.calls] == [(), ("work",)]


async def test_a_cancelled_tool_is_answered_and_not_remembered(make_agent: MakeAgent) -> None:
    """Every call of the batch has one answer in the history, and a call that was cut off is no recent tool."""
    recorder = EventRecorder()
    calls = (("c1", "work", '{"seconds": 0.5}'), ("c2", "work", '{"seconds": 9}'), ("c3", "work", '{"seconds": 1}'))
    session = make_agent(FakeModel(turnouts=[calling(*calls)]), recorder, tools=[WORK]).open_session()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(session.prompt, ASK)
        await anyio.sleep(0.25)
        session.recent_tools.clear()
        await anyio.sleep(1)
        session.recent_tools.clear()
        session.cancel()

    *_, answer, last = session.history.snapshot()
    assert isinstance(answer, AssistantMessage)
    assert [call.call_id for call in answer.tool_calls] == ["c1", "c2", "c3"]
    assert isinstance(last, UserMessage)
    assert [(part.call_id, part.is_error) for part in last.parts if isinstance(part, ToolResultPart)] == [
        ("c1", False),
        ("c2", True),
        ("c3", True),
    ]
    assert session.recent_tools.names() == ()
    cut = recorder.of(ToolFinished)[1]
    assert (cut.status, cut.cause) == (Status.CANCELLED, Cause.USER_CANCEL)


async def test_a_tool_that_ran_counts_as_run(make_agent: MakeAgent) -> None:
    """When the turn is cancelled while the front end is told of a tool's end, the tool's own answer stands."""
    session = make_agent(FakeModel(turnouts=[calling(("c1", "work", '{"seconds": 1}'))]), tools=[WORK]).open_session()

    async def cancel_at_the_end(update: object) -> None:
        if isinstance(update, ToolCallEnded):
            session.cancel()
            await anyio.sleep(1)

    await session.prompt(ASK, cancel_at_the_end)

    assert session.history.snapshot()[-1] == UserMessage((ToolResultPart("c1", "work", "worked 1 s"),))


async def test_a_fault_of_a_tool_ends_the_turn_as_itself(make_agent: MakeAgent) -> None:
    """A bug in a tool is no answer to the model: it leaves as it is, every call is answered, the recall is closed."""
    recorder = EventRecorder()
    tool = Tool(WORK.spec, _bug)
    model = FakeModel(turnouts=[calling(("c1", "work", '{"seconds": 1}'))])
    session = make_agent(model, recorder, memory=FakeMemory(fast=[FAST]), tools=[tool]).open_session()

    with pytest.raises(ZeroDivisionError):
        await session.prompt(ASK)

    last = session.history.snapshot()[-1]
    assert parts(last) == ["ToolResultPart"]
    assert recorder.only(RecallClosed).outcome is Outcome.DELIVERED
    assert recorder.only(TurnFinished).error_type == "ZeroDivisionError"


async def test_tool_results_that_were_not_accepted_still_answer_their_calls(make_agent: MakeAgent) -> None:
    """A provider that fails behind tools leaves a history in which every call is answered, and no memory surfaced."""
    failure = ModelConnectionError(url="http://127.0.0.1:1", problem="refused")
    model = FakeModel(
        turnouts=[calling(("c1", "work", '{"seconds": 2}')), Turnout(error=failure), Turnout(error=failure)]
    )
    agent = make_agent(
        model,
        memory=FakeMemory(candidates=[OTHER]),
        selector=FakeModel(turnouts=[choosing(1, delay=0.9)]),
        tools=[WORK],
    )
    session = agent.open_session()
    result = await session.prompt(ASK)

    assert result.outcome is TurnOutcome.FAILED
    assert parts(session.history.snapshot()[-1]) == ["ToolResultPart"]
    assert session.history.surfaced() == frozenset()


async def test_tool_results_that_were_accepted_are_answered_once(make_agent: MakeAgent) -> None:
    """A provider that breaks off behind accepted tool results leaves one answer to each call, with its memory."""
    cut = Turnout(chunks=[Chunk("bl")], error=ModelConnectionError(url="http://127.0.0.1:1", problem="reset"))
    agent = make_agent(
        FakeModel(turnouts=[calling(("c1", "work", '{"seconds": 2}')), cut]),
        memory=FakeMemory(candidates=[OTHER]),
        selector=FakeModel(turnouts=[choosing(1, delay=0.9)]),
        tools=[WORK],
    )
    session = agent.open_session()
    await session.prompt(ASK)
    results, fragment = session.history.snapshot()[-2:]

    assert parts(results) == ["ToolResultPart", "MemoryPart"]
    assert fragment == AssistantMessage("bl", complete=False)
    assert len(session.history) == 4


async def test_calls_of_an_answer_that_hit_its_length_are_not_made(make_agent: MakeAgent) -> None:
    """A cut-off answer may hold half a call: none of its calls is run, and the turn ends there."""
    whole = calling(("c1", "work", '{"seconds": 1'), text="I will")
    cut = Turnout(chunks=[whole.chunks[0], Chunk(finish_reason="length")])
    session = make_agent(FakeModel(turnouts=[cut]), tools=[WORK]).open_session()
    result = await session.prompt(ASK)

    assert (result.outcome, result.sends) == (TurnOutcome.MAX_TOKENS, 1)
    assert session.history.snapshot()[-1] == AssistantMessage("I will", complete=False)


async def test_the_sends_of_a_turn_are_limited(make_agent: MakeAgent) -> None:
    """A model that never stops calling tools is stopped by the limit, with every call answered."""
    recorder = EventRecorder()
    model = FakeModel(turnouts=[calling(("c", "work", '{"seconds": 0}'))])
    session = make_agent(model, recorder, memory=FakeMemory(fast=[FAST]), tools=[WORK]).open_session()
    result = await session.prompt(TurnRequest(text="hi", max_sends=3))

    assert (result.outcome, result.sends, len(model.requests)) == (TurnOutcome.MAX_TURN_REQUESTS, 3, 3)
    assert recorder.only(RecallClosed).cause is Cause.TURN_BUDGET
    assert parts(session.history.snapshot()[-1]) == ["ToolResultPart"]


# The work after a turn


async def test_the_work_after_a_turn_sees_the_final_history(make_agent: MakeAgent) -> None:
    """It is scheduled once, after the last answer, before the turn's finish is stated, and not awaited."""
    recorder, scheduled = EventRecorder(), list[tuple[TurnResult, Sequence[Message], str]]()

    def post_turn(result: TurnResult, history: Sequence[Message]) -> None:
        scheduled.append((result, history, recorder.kinds()[-1]))

    model = FakeModel(turnouts=[calling(("c1", "work", '{"seconds": 1}')), saying("done")])
    agent = make_agent(model, recorder, memory=FakeMemory(fast=[FAST]), tools=[WORK], post_turn=post_turn)
    session = agent.open_session()
    result = await session.prompt(ASK)

    assert scheduled == [(result, session.history.snapshot(), "RecallClosed")]
    assert scheduled[0][1][-1] == AssistantMessage("done")


@pytest.mark.parametrize(
    "failure",
    [OSError("disk full"), MemoryWriteError(path="queue", problem="locked", remedy="wait"), RecallscopeError("no")],
)
async def test_a_queue_that_cannot_be_written_is_an_event(make_agent: MakeAgent, failure: Exception) -> None:
    """A failure to schedule the work after a turn is told and is not the turn's."""
    recorder = EventRecorder()

    def post_turn(_: TurnResult, __: Sequence[Message]) -> None:
        raise failure

    agent = make_agent(FakeModel(turnouts=[saying("blue")]), recorder, post_turn=post_turn)
    result = await agent.open_session().prompt(ASK)

    assert (result.outcome, result.error) == (TurnOutcome.END_TURN, None)
    assert recorder.only(PostTurnFailed).error_type == type(failure).__name__
    assert recorder.only(TurnFinished).status is Status.OK


@pytest.mark.parametrize(
    ("turnout", "max_sends", "outcome"),
    [
        (Turnout(error=ModelConnectionError(url="u", problem="refused")), None, TurnOutcome.FAILED),
        (saying("blue"), 0, TurnOutcome.MAX_TURN_REQUESTS),
        (saying("blue", delay=9.0), None, TurnOutcome.CANCELLED),
    ],
)
async def test_no_work_after_a_turn_that_did_not_succeed(
    make_agent: MakeAgent, turnout: Turnout, max_sends: int | None, outcome: TurnOutcome
) -> None:
    """Cancelled, failed and stopped turns schedule nothing."""
    scheduled, results = list[TurnResult](), list[TurnResult]()

    def post_turn(result: TurnResult, _: Sequence[Message]) -> None:
        scheduled.append(result)

    session = make_agent(FakeModel(turnouts=[turnout]), post_turn=post_turn).open_session()

    async def prompt() -> None:
        results.append(await session.prompt(TurnRequest(text="hi", max_sends=max_sends)))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(prompt)
        await anyio.sleep(8.5)
        session.cancel()

    assert ([result.outcome for result in results], scheduled) == ([outcome], [])


async def test_no_recall_under_off(make_agent: MakeAgent) -> None:
    """Under the policy `off` the turn states no recall, and its recall fields stay empty."""
    recorder = EventRecorder()
    agent = make_agent(
        FakeModel(turnouts=[saying("blue")]), recorder, memory=FakeMemory(fast=[FAST]), policy=PolicyName.OFF
    )
    result = await agent.open_session().prompt(ASK)

    finished = recorder.only(TurnFinished)
    assert (result.recall, finished.scenario, finished.delivered) == (None, None, None)
    assert recorder.of(RecallDelivered) == []
