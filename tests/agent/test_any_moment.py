"""A turn that is cut off at any moment: history stays valid, memory is told truly, the phases add up."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.lowlevel
from hypothesis import given, settings
from hypothesis import strategies as st

from recallscope.runtime.agent.host import Agent
from recallscope.runtime.agent.session import Session
from recallscope.runtime.agent.tools.registry import function_tool
from recallscope.runtime.agent.turn_state import TurnRequest
from recallscope.runtime.errors import ModelConnectionError, ModelStatusError, ModelStreamError
from recallscope.runtime.events import (
    Finished,
    ModelCallStarted,
    PolicyName,
    RecallBegun,
    RecallClosed,
    RecallDelivered,
    RecallRolledBack,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from recallscope.runtime.messages import (
    AssistantMessage,
    MemoryPart,
    Message,
    NoteVersion,
    Part,
    ReminderPart,
    TextPart,
    ToolResultPart,
    UserMessage,
    surfaced,
)
from recallscope.runtime.model.seam import Chunk
from recallscope.runtime.terms import Cause
from recallscope.runtime.testing.fake_clock import run
from recallscope.runtime.testing.memory import FakeMemory, make_note
from recallscope.runtime.testing.models import FakeModel, Turnout, calling, choosing, saying
from recallscope.runtime.testing.recorder import EventRecorder

MakeAgent = Callable[..., Agent]
NOTES = [make_note(name) for name in "abcd"]
URL = "http://127.0.0.1:1"
STARTS, ENDS = (TurnStarted, ModelCallStarted, ToolStarted, RecallBegun), (Finished, RecallClosed)
# Seconds in eighths: sums of them are exact, so phases can be compared without a tolerance.
SECONDS = st.sampled_from([0.0, 0.125, 0.25, 0.5, 1.0])


def failing(delay: float, kind: int) -> Turnout:
    """Fail before the acceptance, or right after it, or in the middle of the answer."""
    match kind:
        case 0:
            return Turnout(delay=delay, error=ModelStatusError(url=URL, status_code=429, body="", retry_after=0.25))
        case 1:
            return Turnout(delay=delay, error=ModelConnectionError(url=URL, problem="reset"))
        case 2:
            return Turnout(delay=delay, chunks=[Chunk()], error=ModelStreamError(url=URL, problem="cut"))
        case _:
            return Turnout(delay=delay, chunks=[Chunk("bl")], error=ModelStreamError(url=URL, problem="cut"))


def batch(delay: float, seconds: Sequence[float]) -> Turnout:
    """Call the tool once for each of `seconds`."""
    calls = [(f"c{number}", "work", f'{{"seconds": {each}}}') for number, each in enumerate(seconds)]
    return calling(*calls, delay=delay, text="so")


def answering(delay: float, between: float) -> Turnout:
    """Answer in two pieces."""
    return saying("bl", "ue", delay=delay, between=between)


TURNOUTS = st.one_of(
    st.builds(failing, SECONDS, st.integers(0, 3)),
    st.builds(batch, SECONDS, st.lists(SECONDS, min_size=1, max_size=3)),
    st.builds(answering, SECONDS, SECONDS),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What happens in two turns, and when the first is cut off and how."""

    turnouts: Sequence[Turnout]
    policy: PolicyName
    search: float
    selector: float
    reminders: float
    listener: float
    cut_at: float
    checkpoints: int
    how: str


CASES = st.builds(
    Case,
    turnouts=st.lists(TURNOUTS, min_size=1, max_size=4),
    policy=st.sampled_from(PolicyName),
    search=SECONDS,
    selector=SECONDS,
    reminders=SECONDS,
    listener=st.sampled_from([0.0, 0.125]),
    cut_at=st.sampled_from([0.0, 0.0625, 0.125, 0.1875, 0.25, 0.375, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0]),
    checkpoints=st.integers(0, 12),
    how=st.sampled_from(["cancel", "host", "supersede", "reset", "stop", "close", "not at all"]),
)


def build(make_agent: MakeAgent, case: Case, recorder: EventRecorder) -> Session:
    """Open a session for a case."""

    async def work(arguments: Mapping[str, Any]) -> str:
        await anyio.sleep(arguments["seconds"])
        return "done"

    async def remind(_: Sequence[Message]) -> ReminderPart:
        await anyio.sleep(case.reminders)
        return ReminderPart("the workspace", "workspace")

    parameters = {"type": "object", "properties": {"seconds": {"type": "number"}}}
    agent = make_agent(
        FakeModel(turnouts=[*case.turnouts, saying("end")]),
        recorder,
        memory=FakeMemory(fast=NOTES[:2], candidates=NOTES, delay=case.search, check_delay=0.0),
        selector=FakeModel(turnouts=[choosing(4, 1, 3, delay=case.selector)]),
        policy=case.policy,
        ceiling=0.125,
        tools=[function_tool("work", "Work.", parameters, work)],
        reminders=[remind],
    )
    return agent.open_session()


async def play(session: Session, case: Case) -> None:
    """Run a turn, cut it off at some moment in some way, and run another one if the session still takes it."""

    async def listen(_: object) -> None:
        await anyio.sleep(case.listener)

    async def cut_off(host: anyio.CancelScope) -> None:
        await anyio.sleep(case.cut_at)
        for _ in range(case.checkpoints):
            await anyio.lowlevel.checkpoint()
        await cut(session, case.how, host)

    async with anyio.create_task_group() as tasks:
        with anyio.CancelScope() as host:
            tasks.start_soon(cut_off, host)
            await session.prompt(TurnRequest(text="first"), listen)
    if case.how != "close":
        await session.prompt(TurnRequest(text="last"))


async def cut(session: Session, how: str, host: anyio.CancelScope) -> None:
    """Cut the turn off, or let it be."""
    match how:
        case "cancel":
            session.cancel(Cause.USER_CANCEL)
        case "host":
            host.cancel()
        case "supersede":
            await session.prompt(TurnRequest(text="second"))
        case "reset":
            await session.reset()
        case "stop":
            await session.stop()
        case "close":
            await session.close()
        case _:
            pass


def check_history(history: Sequence[Message]) -> None:
    """Every tool call has exactly one answer, at once and in order; no version of a note stands twice."""
    for message, following in zip(history, [*history, None][1:], strict=True):
        if isinstance(message, AssistantMessage):
            answers = _answers(following)
            assert [call.call_id for call in message.tool_calls] == answers
        elif not isinstance(following, AssistantMessage | None):
            assert _answers(following) == []
    versions = [version for part in _memories(history) for version in part.versions]
    assert len(versions) == len(set(versions))


def _answers(message: Message | None) -> list[str]:
    if not isinstance(message, UserMessage):
        return []
    order = [_rank(part) for part in message.parts]
    assert order == sorted(order)
    return [part.call_id for part in message.parts if isinstance(part, ToolResultPart)]


def _rank(part: Part) -> int:
    return [ToolResultPart, MemoryPart, ReminderPart, TextPart].index(type(part))


def _memories(history: Sequence[Message]) -> list[MemoryPart]:
    users = [message for message in history if isinstance(message, UserMessage)]
    return [part for message in users for part in message.parts if isinstance(part, MemoryPart)]


def check_facts(recorder: EventRecorder, case: Case, standing: frozenset[NoteVersion]) -> None:
    """One outcome per recall, one pending recall, one finish per start, phases that add up, memory told truly."""
    begun = [event.op for event in recorder.of(RecallBegun)]
    assert [event.op for event in recorder.of(RecallClosed)] == begun
    lives = [kind for kind in recorder.kinds() if kind in {"RecallBegun", "RecallClosed"}]
    assert lives == ["RecallBegun", "RecallClosed"] * len(begun)
    parents = {event.op: event.parent for event in recorder.events if isinstance(event, STARTS)}
    ends = {event.op: place for place, event in enumerate(recorder.events) if isinstance(event, ENDS)}
    assert parents.keys() == ends.keys()
    assert len([event for event in recorder.events if isinstance(event, ENDS)]) == len(ends)
    assert all(ends[op] < ends[parent] for op, parent in parents.items() if parent is not None)
    for start, end in zip(recorder.of(TurnStarted), sorted(recorder.of(TurnFinished), key=_number), strict=True):
        assert sum(seconds for _, seconds in end.phases) == end.at - start.at
    told = {name for event in recorder.of(RecallDelivered) for name in event.notes}
    assert {version.note for version in standing} <= told
    if case.how != "reset":
        assert {version.note for version in standing} == told
    assert all(event.at <= end.at for event in recorder.of(RecallRolledBack) for end in recorder.of(TurnFinished)[-1:])


def _number(event: TurnFinished) -> int:
    return int(event.op.removeprefix("op"))


@settings(max_examples=100, deadline=None)
@given(CASES)
def test_a_turn_may_be_cut_off_at_any_moment(make_agent: MakeAgent, case: Case) -> None:
    """Whatever happens and whenever it ends: one outcome per recall, valid history, whole facts, exact phases."""
    recorder = EventRecorder()
    histories: list[tuple[Message, ...]] = []

    async def whole() -> None:
        session = build(make_agent, case, recorder)
        await play(session, case)
        histories.append(session.history.snapshot())

    run(whole)

    check_history(histories[0])
    check_facts(recorder, case, surfaced(histories[0]))
