"""What a model server can do wrong, on a real wire: the error that a person reads, the attempts, and the memory."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from recallscope.runtime.agent.host import Agent
from recallscope.runtime.agent.send import Attempts
from recallscope.runtime.agent.turn_state import TurnRequest
from recallscope.runtime.terms import Cause, TurnOutcome
from recallscope.runtime.testing.model_server import ModelServer, serve
from recallscope.runtime.testing.recorder import EventRecorder
from recallscope.runtime.testing.script import ErrorChunk, Malformed, Order, Scenario, Script, Select, Step, Steps

if TYPE_CHECKING:
    from conftest import Done, Place

pytestmark = pytest.mark.anyio

PROMPT = "What is the release branch of June called?"
NOTE = "cut on the first Tuesday of the month"
"""Words of the note that the prompt's words find."""

SELECTION = Step(select=Select(contains=("Release branches",)))
ATTEMPTS = 2

FAULTS: dict[str, tuple[tuple[Step, ...], int, str, str]] = {
    "401": ((Step(status=401),), 1, "answered 401: ", "; check the API key (OPENAI_API_KEY)"),
    "404": ((Step(status=404),), 1, "answered 404: ", "; check the base URL (OPENAI_BASE_URL) and the model name"),
    "500": ((Step(status=500),), ATTEMPTS, "answered 500: ", f"({ATTEMPTS} attempts in "),
    "malformed": ((Step(answer="x", malformed=Malformed(line="{no json")),), ATTEMPTS, "is broken: ", "2 attempts"),
    "stopped": ((Step(answer="one two", chunks=7, cut_after=3),), 1, "is broken: it stopped early", "1 attempt in"),
    "error chunk": (
        (Step(answer="one two", chunks=7, error_chunk=ErrorChunk(message="overloaded", after=3)),),
        1,
        "overloaded",
        "1 attempt in",
    ),
}
"""By name: what the server does, how many requests it gets, and what the error says at its place and at its end."""


async def test_each_fault_is_told_with_its_cause_after_bounded_attempts(place: "Place") -> None:
    """Exit code 1, one line with the cause, as many requests as a retry can help, and the recall is closed."""
    scenarios = (
        Scenario(name=name, text=f"<{name}>", purposes={"main": Steps(steps)})
        for name, (steps, _, _, _) in FAULTS.items()
    )
    script = Script(purposes={"memory_selection": Steps((SELECTION,))}, scenarios=tuple(scenarios))
    done: dict[str, Done] = {}
    two = anyio.CapacityLimiter(2)

    async def run(name: str, environ: dict[str, str]) -> None:
        async with two:
            done[name] = await place.run("run", "--json", f"{PROMPT} <{name}>", environ=environ)

    async with serve(script) as server, anyio.create_task_group() as tasks:
        for name in FAULTS:
            tasks.start_soon(run, name, place.environ(server.url, RECALLSCOPE_MODEL_ATTEMPTS=str(ATTEMPTS)))

    for name, (_, requests, told, hint) in FAULTS.items():
        asked = _asked(server, name)
        lines = done[name].err.splitlines()
        assert (name, done[name].code, len(asked)) == (name, 1, requests)
        assert lines[-1].startswith("recallscope: the turn ended with failed: ")
        assert told in lines[-1]
        assert hint in lines[-1]
        assert len(lines) == 2
        assert [NOTE in text for text in asked] == [True] * requests
        assert _only(done[name], "RecallClosed")["cause"] == "provider_error"
        assert _only(done[name], "TurnFinished")["outcome"] == "failed"


async def test_a_server_that_is_down_is_told_by_its_address(place: "Place", free_port: int) -> None:
    """Nobody listens there: the address and what the system said, after all attempts."""
    url = f"http://127.0.0.1:{free_port}/v1"
    done = await place.run("run", "--json", PROMPT, environ=place.environ(url, RECALLSCOPE_MODEL_ATTEMPTS="2"))

    closed = _only(done, "RecallClosed")
    assert done.code == 1
    assert f"no answer from {url}: Connection refused; check that the server runs" in done.err
    assert "(2 attempts in " in done.err
    assert (closed["cause"], closed["close_reason"], closed["rollbacks"]) == (
        "provider_error",
        "no_safe_delivery_point",
        2,
    )


async def test_the_time_that_the_server_asks_for_is_waited_out(place: "Place") -> None:
    """After 429 with Retry-After the next request comes no earlier, with the memory again, and the turn succeeds."""
    steps = Steps((Step(status=429, retry_after=0.4), Step(answer="It is.")), Order.ARRIVAL)
    script = Script(purposes={"main": steps, "memory_selection": Steps((SELECTION,))})
    async with serve(script) as server:
        done = await place.run("run", PROMPT, environ=place.environ(server.url))

    first, second = (request for request in server.requests if request.purpose == "main")
    assert (done.code, done.out) == (0, "It is.\n")
    assert first.answer_ended is not None
    assert second.received - first.answer_ended >= 0.4
    assert [NOTE in request.raw.decode() for request in (first, second)] == [True, True]


MakeAgent = Callable[..., AbstractAsyncContextManager[Agent]]


async def test_a_wait_beyond_the_total_time_is_not_begun(make_agent: MakeAgent) -> None:
    """A server that asks for a minute, and two seconds in all: the turn fails at once, after one request."""
    script = Script.of(Step(status=429, retry_after=60), memory_selection=SELECTION)
    async with serve(script) as server, make_agent(server.url, attempts=Attempts(total=2.0)) as agent:
        result = await agent.open_session().prompt(TurnRequest(text=PROMPT))

    assert result.outcome is TurnOutcome.FAILED
    assert "answered 429" in (result.error or "")
    assert "(1 attempt in 0." in (result.error or "")
    assert [request.purpose for request in server.requests if request.purpose == "main"] == ["main"]


@pytest.mark.parametrize(
    "fault",
    [
        Step(status=500),
        Step(status=401),
        Step(answer="x", error_chunk=ErrorChunk(message="overloaded")),
        Step(answer="x", malformed=Malformed(line="{no json")),
        Step(answer="x", cut_after=0),
    ],
)
async def test_a_turn_that_the_model_refused_leaves_nothing_surfaced(make_agent: MakeAgent, fault: Step) -> None:
    """The note of a failed turn is offered again to the next turn of the session, and stands in history then."""
    prompt = Scenario(name="fault", text="<fault>", purposes={"main": Steps((fault,))})
    script = Script(
        purposes={"main": Steps((Step(answer="It is."),)), "memory_selection": Steps((SELECTION,))}, scenarios=(prompt,)
    )
    attempts = Attempts(number=3, first_backoff=0.01)
    async with serve(script) as server, make_agent(server.url, attempts=attempts) as agent:
        session = agent.open_session()
        failed = await session.prompt(TurnRequest(text=f"{PROMPT} <fault>"))
        after_failure = session.history.surfaced()
        again = await session.prompt(TurnRequest(text=PROMPT))
        after_success = session.history.surfaced()

    sent = [NOTE in request.raw.decode() for request in server.requests if request.purpose == "main"]
    assert (failed.outcome, again.outcome) == (TurnOutcome.FAILED, TurnOutcome.END_TURN)
    assert after_failure == frozenset()
    assert {version.note for version in after_success} == {"project:feedback/release-branches.md"}
    assert sent == [True] * len(sent)
    assert len(sent) == (2 if fault.status == 401 else 4)


async def test_an_endless_answer_ends_when_the_turn_is_cancelled(
    make_agent: MakeAgent, recorder: EventRecorder
) -> None:
    """The server sees the client close both connections, and the recall ends with the turn."""
    script = Script.of(Step(answer="word ", endless=True, chunk_delay=0.01), memory_selection=Step(hang=True))
    async with serve(script) as server, make_agent(server.url) as agent, anyio.create_task_group() as tasks:
        session = agent.open_session()
        tasks.start_soon(session.prompt, TurnRequest(text=PROMPT))
        with anyio.fail_after(10):
            await server.wait_for(lambda request: request.purpose == "main" and request.answer_began is not None)
            await server.wait_for(lambda request: request.purpose == "memory_selection")
            session.cancel(Cause.USER_CANCEL)
            for purpose in ("main", "memory_selection"):
                await server.wait_for(lambda request, of=purpose: request.purpose == of and request.client_closed)

    assert [event["cause"] for event in _ends(recorder)] == ["user_cancel", "user_cancel"]


def _ends(recorder: EventRecorder) -> list[dict[str, Any]]:
    kinds = ("RecallClosed", "TurnFinished")
    return [{"cause": str(getattr(event, "cause", None))} for event in recorder.events if type(event).__name__ in kinds]


def _asked(server: ModelServer, name: str) -> list[str]:
    """Return the bodies of the sends of scenario `name`."""
    return [
        request.raw.decode() for request in server.requests if request.purpose == "main" and request.scenario == name
    ]


def _only(done: "Done", kind: str) -> dict[str, Any]:
    (event,) = [event for event in done.events if event["event"] == kind]
    return event
