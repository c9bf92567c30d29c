"""The send boundary: what is asked of the model how often, and what becomes of memory and history."""

from collections.abc import Callable, Mapping, Sequence

import anyio
import pytest

from recallscope.runtime.agent.gates import Limits
from recallscope.runtime.agent.host import Agent
from recallscope.runtime.agent.send import Attempts
from recallscope.runtime.agent.turn_state import TurnRequest, TurnResult
from recallscope.runtime.errors import ModelConnectionError, ModelStatusError, ModelStreamError
from recallscope.runtime.events import (
    ModelAttemptFailed,
    ModelCallFinished,
    ModelFirstChunk,
    RecallClosed,
    RecallDelivered,
    RecallRolledBack,
    RecallWaited,
    Status,
    TurnFinished,
)
from recallscope.runtime.messages import AssistantMessage, MemoryPart, Message, TextPart, UserMessage
from recallscope.runtime.model.seam import Chunk, Usage
from recallscope.runtime.terms import Cause, RollbackCause, Scenario, TurnOrigin, TurnOutcome, TurnPhase
from recallscope.runtime.testing.fake_clock import VirtualLoop
from recallscope.runtime.testing.memory import FakeMemory, make_note
from recallscope.runtime.testing.models import FakeModel, Turnout, saying
from recallscope.runtime.testing.recorder import EventRecorder

pytestmark = pytest.mark.anyio

MakeAgent = Callable[..., Agent]
URL = "http://127.0.0.1:1/v1"
NOTE = make_note("deploy")
ASK = TurnRequest(text="how do we deploy?")


@pytest.fixture
def anyio_backend() -> tuple[str, Mapping[str, object]]:
    """Let time be virtual."""
    return "asyncio", {"loop_factory": VirtualLoop}


def refused(status: int, retry_after: float | None = None, delay: float = 0.0) -> Turnout:
    """Refuse with a status."""
    error = ModelStatusError(url=URL, status_code=status, body="busy", retry_after=retry_after)
    return Turnout(error=error, delay=delay)


def broken(*chunks: Chunk, problem: str = "it stopped") -> Turnout:
    """Break the answer off after some chunks."""
    return Turnout(chunks=chunks, error=ModelStreamError(url=URL, problem=problem))


def unreachable() -> Turnout:
    """Give no answer at all."""
    return Turnout(error=ModelConnectionError(url=URL, problem="connection refused"))


def memories(messages: Sequence[Message]) -> list[MemoryPart]:
    """Return the memory parts in a history or request."""
    parts = [part for message in messages if isinstance(message, UserMessage) for part in message.parts]
    return [part for part in parts if isinstance(part, MemoryPart)]


# Attempts


@pytest.mark.parametrize("turnout", [refused(500), refused(429), refused(408), unreachable(), broken()])
async def test_what_may_pass_is_tried_again(make_agent: MakeAgent, turnout: Turnout) -> None:
    """A refusal that may pass is retried after a pause that doubles, and the turn ends as if nothing had been."""
    recorder = EventRecorder()
    model = FakeModel(turnouts=[turnout, turnout, saying("blue")])
    result = await make_agent(model, recorder).open_session().prompt(ASK)

    assert (result.outcome, result.text, result.sends, result.error) == (TurnOutcome.END_TURN, "blue", 1, None)
    assert [event.retry_in for event in recorder.of(ModelAttemptFailed)] == [0.5, 1.0]
    finished = recorder.only(ModelCallFinished)
    assert (finished.attempts, finished.first_chunk, finished.at) == (3, 1.5, 1.5)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
async def test_what_cannot_pass_is_not_tried_again(make_agent: MakeAgent, status: int) -> None:
    """A refusal that another attempt cannot change fails the turn at once, with what to do."""
    model = FakeModel(turnouts=[refused(status)])
    result = await make_agent(model).open_session().prompt(ASK)

    assert (result.outcome, len(model.requests)) == (TurnOutcome.FAILED, 1)
    assert result.error is not None
    assert result.error.startswith(f"{URL} answered {status}: busy")
    assert result.error.endswith("(1 attempt in 0.0 s)")


async def test_retry_after_is_honoured(make_agent: MakeAgent) -> None:
    """A server that says when to come back is asked again then, and neither earlier nor later."""
    recorder = EventRecorder()
    model = FakeModel(turnouts=[refused(429, retry_after=7.0), saying("blue")])
    result = await make_agent(model, recorder).open_session().prompt(ASK)

    assert (result.text, anyio.current_time()) == ("blue", 7.0)
    assert dict(recorder.only(TurnFinished).phases)[TurnPhase.BACKOFF] == 7.0


async def test_a_retry_after_beyond_the_total_time_is_not_waited_for(make_agent: MakeAgent) -> None:
    """When the server asks for more patience than the send has, it fails at once."""
    model = FakeModel(turnouts=[refused(429, retry_after=3600.0)])
    result = await make_agent(model).open_session().prompt(ASK)

    assert (result.outcome, anyio.current_time(), len(model.requests)) == (TurnOutcome.FAILED, 0.0, 1)


async def test_attempts_are_bounded_and_told(make_agent: MakeAgent) -> None:
    """After the last attempt the error says how often and how long it was tried."""
    recorder = EventRecorder()
    model = FakeModel(turnouts=[refused(503)])
    result = await make_agent(model, recorder, attempts=Attempts(number=3)).open_session().prompt(ASK)

    assert len(model.requests) == 3
    assert result.error == f"{URL} answered 503: busy (3 attempts in 1.5 s)"
    assert [event.retry_in for event in recorder.of(ModelAttemptFailed)] == [0.5, 1.0, None]
    finished = recorder.only(TurnFinished)
    assert (finished.status, finished.error_type, finished.outcome) == (Status.FAILED, "503", TurnOutcome.FAILED)


async def test_the_total_time_ends_a_silent_attempt(make_agent: MakeAgent) -> None:
    """A model that never answers is given up when the total time is over, and the error says so."""
    model = FakeModel(turnouts=[Turnout(delay=10_000.0)])
    result = await make_agent(model, attempts=Attempts(total=20.0)).open_session().prompt(ASK)

    assert anyio.current_time() == 20.0
    assert result.error is not None
    assert "not accepted within 20 s in all" in result.error
    assert model.closed_early == 1


async def test_an_accepted_answer_may_take_its_time(make_agent: MakeAgent) -> None:
    """The total time bounds the acceptance; a long answer after it is no failure."""
    model = FakeModel(turnouts=[saying("a", "b", "c", between=30.0)])
    result = await make_agent(model, attempts=Attempts(total=20.0)).open_session().prompt(ASK)

    assert (result.outcome, result.text, anyio.current_time()) == (TurnOutcome.END_TURN, "abc", 120.0)


async def test_there_may_be_no_total_time(make_agent: MakeAgent) -> None:
    """An unlimited total time is accepted like any other."""
    model = FakeModel(turnouts=[saying("blue", delay=5_000.0)])
    result = await make_agent(model, attempts=Attempts(total=float("inf"))).open_session().prompt(ASK)

    assert result.text == "blue"


# Memory over attempts


@pytest.mark.parametrize(
    ("turnout", "cause"),
    [
        (refused(500), RollbackCause.REFUSED),
        (unreachable(), RollbackCause.CONNECTION),
        (broken(), RollbackCause.STREAM_ERROR),
        (broken(Chunk(accepted=False)), RollbackCause.STREAM_ERROR),
        (Turnout(), RollbackCause.STREAM_ERROR),
        (Turnout(chunks=[Chunk(accepted=False, usage=Usage(3, 0))]), RollbackCause.STREAM_ERROR),
    ],
)
async def test_what_was_not_accepted_is_rolled_back_and_offered_again(
    make_agent: MakeAgent, turnout: Turnout, cause: RollbackCause
) -> None:
    """Refusal, no connection, an error or the end before a choice: the notes come back and go with the next attempt."""
    recorder = EventRecorder()
    model = FakeModel(turnouts=[turnout, saying("blue")])
    session = make_agent(model, recorder, memory=FakeMemory(fast=[NOTE])).open_session()
    result = await session.prompt(ASK)

    assert [len(memories(request.messages)) for request in model.requests] == [1, 1]
    assert [event.cause for event in recorder.of(RecallRolledBack)] == [cause]
    assert recorder.only(RecallDelivered).notes == (NOTE.id,)
    assert len(recorder.of(RecallWaited)) == 1
    assert session.history.surfaced() == {NOTE.note_version}
    assert result.outcome is TurnOutcome.END_TURN


async def test_a_failed_turn_surfaces_nothing(make_agent: MakeAgent) -> None:
    """When no attempt is accepted, the prompt and its notes are not in the history, and the next turn gets them."""
    recorder = EventRecorder()
    model = FakeModel(turnouts=[refused(401), saying("blue")])
    session = make_agent(model, recorder, memory=FakeMemory(fast=[NOTE])).open_session()
    result = await session.prompt(ASK)
    history = session.history.snapshot()
    await session.prompt(ASK)

    assert history == ()
    assert result.recall is not None
    assert result.recall.scenario is Scenario.NOT_SENT
    assert recorder.of(RecallClosed)[0].cause is Cause.PROVIDER_ERROR
    assert len(memories(model.requests[1].messages)) == 1


async def test_a_turn_that_is_cancelled_before_the_acceptance_takes_its_notes_back(make_agent: MakeAgent) -> None:
    """While the model has not begun to answer, a cancellation rolls the delivery back and says so."""
    recorder = EventRecorder()
    model = FakeModel(turnouts=[saying("blue", delay=5.0)])
    session = make_agent(model, recorder, memory=FakeMemory(fast=[NOTE])).open_session()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(session.prompt, ASK)
        await anyio.sleep(0.5)
        session.cancel()

    assert (recorder.only(RecallRolledBack).cause, session.history.snapshot()) == (RollbackCause.CANCELLED, ())


async def test_acceptance_is_the_first_chunk_with_a_choice(make_agent: MakeAgent) -> None:
    """A chunk without a choice commits nothing; the first one with a choice does."""
    recorder = EventRecorder()
    chunks = [Chunk(accepted=False), Chunk("blue"), Chunk(finish_reason="stop")]
    model = FakeModel(turnouts=[Turnout(chunks=chunks, delay=0.25, between=1.0)])
    session = make_agent(model, recorder, memory=FakeMemory(fast=[NOTE])).open_session()
    await session.prompt(ASK)

    assert recorder.only(RecallDelivered).at == 1.25
    assert recorder.only(ModelFirstChunk).at == 1.25


async def test_an_error_after_the_acceptance_leaves_memory_where_it_is(make_agent: MakeAgent) -> None:
    """The message was accepted, so the next attempt sends the same one, memory included and not asked for anew."""
    recorder = EventRecorder()
    model = FakeModel(turnouts=[broken(Chunk()), saying("blue")])
    session = make_agent(model, recorder, memory=FakeMemory(fast=[NOTE])).open_session()
    result = await session.prompt(ASK)
    first, second = model.requests

    assert list(first.messages) == list(second.messages)
    assert recorder.of(RecallRolledBack) == []
    assert len(recorder.of(RecallDelivered)) == 1
    assert (result.text, len(session.history)) == ("blue", 2)


async def test_an_answer_that_has_begun_is_not_asked_for_twice(make_agent: MakeAgent) -> None:
    """Text that was shown is not said again by another attempt: the turn fails and the history keeps what came."""
    model = FakeModel(turnouts=[broken(Chunk("blu")), saying("blue")])
    session = make_agent(model, memory=FakeMemory(fast=[NOTE])).open_session()
    result = await session.prompt(ASK)

    assert (result.outcome, result.text, len(model.requests)) == (TurnOutcome.FAILED, "blu", 1)
    assert session.history.snapshot()[-1] == AssistantMessage("blu", complete=False)
    assert session.history.surfaced() == {NOTE.note_version}


async def test_no_attempt_during_a_wait_for_the_next_one(make_agent: MakeAgent) -> None:
    """A turn that is cancelled in the pause between two attempts has delivered nothing."""
    recorder = EventRecorder()
    model = FakeModel(turnouts=[refused(500)])
    session = make_agent(model, recorder, memory=FakeMemory(fast=[NOTE])).open_session()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(session.prompt, ASK)
        await anyio.sleep(0.2)
        session.cancel()

    assert (len(model.requests), session.history.snapshot()) == (1, ())
    assert recorder.only(RecallClosed).rollbacks == 1


async def test_whole_answers_are_accepted_as_one(make_agent: MakeAgent) -> None:
    """Without streaming, the answer with a choice is the acceptance."""
    recorder = EventRecorder()
    model = FakeModel(turnouts=[saying("bl", "ue", delay=0.5)])
    agent = make_agent(model, recorder, memory=FakeMemory(fast=[NOTE]), streamed=False)
    result = await agent.open_session().prompt(ASK)

    assert (result.text, recorder.only(RecallDelivered).at) == ("blue", 0.5)


# What a request holds


async def test_the_first_request(make_agent: MakeAgent) -> None:
    """System text, tools and history go with a request, then one message: memory before the person's text."""
    model = FakeModel(turnouts=[saying("blue")])
    await make_agent(model, memory=FakeMemory(fast=[NOTE])).open_session().prompt(ASK)
    (request,) = model.requests
    (message,) = request.messages

    assert request.system == "Be brief."
    assert isinstance(message, UserMessage)
    assert [type(part) for part in message.parts] == [MemoryPart, TextPart]
    assert message.parts[1] == TextPart("how do we deploy?")


# Gates


@pytest.mark.parametrize(
    ("limits", "max_sends", "cause", "outcome"),
    [
        (Limits(), 0, Cause.TURN_BUDGET, TurnOutcome.MAX_TURN_REQUESTS),
        (Limits(max_sends=0), None, Cause.TURN_BUDGET, TurnOutcome.MAX_TURN_REQUESTS),
        (Limits(max_turns=0), None, Cause.MAX_TURNS, TurnOutcome.MAX_TURN_REQUESTS),
        (Limits(session_tokens=0), None, Cause.TOKEN_LIMIT, TurnOutcome.MAX_TOKENS),
    ],
)
async def test_a_gate_ends_the_turn_before_memory_is_asked(
    make_agent: MakeAgent, limits: Limits, max_sends: int | None, cause: Cause, outcome: TurnOutcome
) -> None:
    """A turn that may not send ends with its reason; memory was not held against it, and nothing was delivered."""
    recorder = EventRecorder()
    model = FakeModel(turnouts=[saying("never")])
    agent = make_agent(model, recorder, memory=FakeMemory(fast=[NOTE]), limits=limits)
    result = await agent.open_session().prompt(TurnRequest(text="hi", max_sends=max_sends))

    assert (result.outcome, result.sends, model.requests) == (outcome, 0, [])
    assert (recorder.only(RecallClosed).cause, recorder.of(RecallWaited)) == (cause, [])
    assert recorder.only(RecallClosed).scenario is Scenario.NOT_SENT


async def test_the_limit_of_a_turn_wins_over_that_of_the_session(make_agent: MakeAgent) -> None:
    """The caller's own limit holds, also where it allows more."""
    model = FakeModel(turnouts=[saying("blue")])
    session = make_agent(model, limits=Limits(max_sends=0)).open_session()
    result = await session.prompt(TurnRequest(text="hi", max_sends=1))

    assert result.outcome is TurnOutcome.END_TURN


async def test_turns_of_a_session_are_limited(make_agent: MakeAgent) -> None:
    """The turn after the last allowed one is stopped."""
    model = FakeModel(turnouts=[saying("blue")])
    session = make_agent(model, limits=Limits(max_turns=2)).open_session()
    outcomes = [(await session.prompt(ASK)).outcome for _ in range(3)]

    assert outcomes == [TurnOutcome.END_TURN, TurnOutcome.END_TURN, TurnOutcome.MAX_TURN_REQUESTS]


async def test_tokens_of_a_session_are_limited(make_agent: MakeAgent) -> None:
    """Input and output tokens of all turns count, as the model server tells them."""
    model = FakeModel(turnouts=[saying("blue", usage=Usage(60, 20))])
    session = make_agent(model, limits=Limits(session_tokens=160)).open_session()
    outcomes = [(await session.prompt(ASK)).outcome for _ in range(3)]

    assert outcomes == [TurnOutcome.END_TURN, TurnOutcome.END_TURN, TurnOutcome.MAX_TOKENS]


@pytest.mark.parametrize(
    ("finish_reason", "outcome"),
    [
        ("stop", TurnOutcome.END_TURN),
        ("length", TurnOutcome.MAX_TOKENS),
        ("content_filter", TurnOutcome.REFUSAL),
        (None, TurnOutcome.END_TURN),
    ],
)
async def test_why_the_model_stopped_is_how_the_turn_ended(
    make_agent: MakeAgent, finish_reason: str | None, outcome: TurnOutcome
) -> None:
    """The finish reason of the last answer names the turn's end."""
    model = FakeModel(turnouts=[Turnout(chunks=[Chunk("blue"), Chunk(finish_reason=finish_reason)])])
    result = await make_agent(model).open_session().prompt(ASK)

    assert (result.outcome, result.text) == (outcome, "blue")


@pytest.mark.parametrize("origin", [origin for origin in TurnOrigin if origin is not TurnOrigin.PROMPT])
async def test_only_a_fresh_prompt_recalls(make_agent: MakeAgent, origin: TurnOrigin) -> None:
    """Retries, continuations and machine turns begin no recall and schedule nothing after them."""
    recorder, after = EventRecorder(), list[object]()
    memory = FakeMemory(fast=[NOTE])
    model = FakeModel(turnouts=[saying("blue")])

    def keep(result: TurnResult, _: object) -> None:
        after.append(result)

    agent = make_agent(model, recorder, memory=memory, post_turn=keep)
    result = await agent.open_session().prompt(TurnRequest(text="go on", origin=origin))

    assert (result.outcome, result.recall) == (TurnOutcome.END_TURN, None)
    assert (memory.calls, after, memories(model.requests[0].messages)) == ([], [], [])
    assert not [kind for kind in recorder.kinds() if kind.startswith("Recall")]
