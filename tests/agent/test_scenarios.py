"""The nine rows of the comparison table (docs/comparison.md), each produced by a turn on virtual time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import anyio
import pytest

from recallscope.runtime.agent.host import Agent
from recallscope.runtime.agent.tools.registry import function_tool
from recallscope.runtime.agent.turn_state import TurnRequest
from recallscope.runtime.errors import ModelStatusError
from recallscope.runtime.events import PolicyName, RecallClosed
from recallscope.runtime.messages import Message, ReminderPart
from recallscope.runtime.terms import Cause, Delivered, Reason, Scenario
from recallscope.runtime.testing.fake_clock import VirtualLoop
from recallscope.runtime.testing.memory import FakeMemory, make_note
from recallscope.runtime.testing.models import FakeModel, Turnout, calling, choosing, saying
from recallscope.runtime.testing.recorder import EventRecorder

pytestmark = pytest.mark.anyio

MakeAgent = Callable[..., Agent]
FAST, OTHER = make_note("fast"), make_note("other")
POLICIES = [PolicyName.DEADLINE, PolicyName.PREFETCH, PolicyName.TIERED]
REFUSAL = ModelStatusError(url="http://127.0.0.1:1", status_code=401, body="no")


@pytest.fixture
def anyio_backend() -> tuple[str, Mapping[str, object]]:
    """Let time be virtual."""
    return "asyncio", {"loop_factory": VirtualLoop}


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A turn: seconds of the selector, the reminders, the tool (None: no tool) and the answer, and what cuts it off.

    The answer's first piece comes after 0.1 s. The words match one note, and the selector chooses it and another one,
    unless stated otherwise.
    """

    selector: float
    reminders: float = 0.0
    tool: float | None = None
    answer: float = 0.2
    fast: Sequence[Any] = (FAST,)
    chosen: tuple[int, ...] = (1, 2)
    refused: bool = False
    unavailable: bool = False
    cancelled_after: float | None = None
    cause: Cause = Cause.SUPERSEDED


async def row(make_agent: MakeAgent, script: Script, policy: PolicyName) -> RecallClosed:
    """Play a script under a policy and return what its recall came to."""
    recorder = EventRecorder()

    async def prepare(_: Sequence[Message]) -> ReminderPart | None:
        await anyio.sleep(script.reminders)
        return None

    async def work(_: Mapping[str, Any]) -> str:
        await anyio.sleep(script.tool or 0.0)
        return "done"

    answer = Turnout(error=REFUSAL) if script.refused else saying("blue", delay=0.1, between=script.answer - 0.1)
    tools = [] if script.tool is None else [calling(("c1", "work", "{}"), delay=0.1)]
    agent = make_agent(
        FakeModel(turnouts=[*tools, answer]),
        recorder,
        memory=FakeMemory(fast=script.fast, candidates=[FAST, OTHER], unavailable=script.unavailable, delay=0.002),
        selector=FakeModel(turnouts=[choosing(*script.chosen, delay=script.selector)]),
        policy=policy,
        tools=[function_tool("work", "Work.", {"type": "object"}, work)],
        reminders=[prepare],
    )
    session = agent.open_session()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(session.prompt, TurnRequest(text="how do we deploy?"))
        if script.cancelled_after is not None:
            await anyio.sleep(script.cancelled_after)
            session.cancel(script.cause)
    return recorder.only(RecallClosed)


SETTLED_BEFORE_SEND = Script(selector=0.02, reminders=0.15)
SLOW_WITH_TOOLS = Script(selector=0.908, tool=1.5)
TIMED_OUT = Script(selector=1.6, tool=2.5)
SLOW_WITHOUT_TOOLS = Script(selector=1.6, answer=0.3)
SUPERSEDED = Script(selector=1.6, answer=2.0, cancelled_after=0.3)
NONE, BOTH = Delivered.NONE, Delivered.BOTH
INITIAL, TOOL_RESULT = Delivered.INITIAL, Delivered.TOOL_RESULT
NO_POINT = Reason.NO_SAFE_DELIVERY_POINT


@pytest.mark.parametrize(
    ("script", "policy", "scenario", "delivered", "reason", "waited"),
    [
        (SETTLED_BEFORE_SEND, PolicyName.DEADLINE, Scenario.SETTLED_BEFORE_SEND, INITIAL, Reason.NONE, 0.0),
        (SETTLED_BEFORE_SEND, PolicyName.PREFETCH, Scenario.SETTLED_BEFORE_SEND, INITIAL, Reason.NONE, 0.0),
        (SETTLED_BEFORE_SEND, PolicyName.TIERED, Scenario.SETTLED_BEFORE_SEND, INITIAL, Reason.NONE, 0.0),
        (SLOW_WITH_TOOLS, PolicyName.DEADLINE, Scenario.SLOW_WITH_TOOLS, INITIAL, Reason.NONE, 0.91),
        (SLOW_WITH_TOOLS, PolicyName.PREFETCH, Scenario.SLOW_WITH_TOOLS, TOOL_RESULT, Reason.NONE, 0.0),
        (SLOW_WITH_TOOLS, PolicyName.TIERED, Scenario.SLOW_WITH_TOOLS, BOTH, Reason.NONE, 0.002),
        (TIMED_OUT, PolicyName.DEADLINE, Scenario.TIMED_OUT, NONE, Reason.SELECTOR_TIMEOUT, 1.002),
        (TIMED_OUT, PolicyName.PREFETCH, Scenario.TIMED_OUT, TOOL_RESULT, Reason.NONE, 0.0),
        (TIMED_OUT, PolicyName.TIERED, Scenario.TIMED_OUT, BOTH, Reason.NONE, 0.002),
        (SLOW_WITHOUT_TOOLS, PolicyName.DEADLINE, Scenario.SLOW_WITHOUT_TOOLS, NONE, Reason.SELECTOR_TIMEOUT, 1.002),
        (SLOW_WITHOUT_TOOLS, PolicyName.PREFETCH, Scenario.SLOW_WITHOUT_TOOLS, NONE, NO_POINT, 0.0),
        (SLOW_WITHOUT_TOOLS, PolicyName.TIERED, Scenario.SLOW_WITHOUT_TOOLS, INITIAL, NO_POINT, 0.002),
        (SUPERSEDED, PolicyName.DEADLINE, Scenario.SUPERSEDED, NONE, Reason.NEW_QUERY, 0.3),
        (SUPERSEDED, PolicyName.PREFETCH, Scenario.SUPERSEDED, NONE, Reason.NEW_QUERY, 0.0),
        (SUPERSEDED, PolicyName.TIERED, Scenario.SUPERSEDED, INITIAL, Reason.NEW_QUERY, 0.002),
    ],
)
async def test_what_the_table_must_show(
    make_agent: MakeAgent,
    *,
    script: Script,
    policy: PolicyName,
    scenario: Scenario,
    delivered: Delivered,
    reason: Reason,
    waited: float,
) -> None:
    """The five rows of the table under the three policies: where memory came, why not, and how long a send was held."""
    closed = await row(make_agent, script, policy)

    assert (closed.scenario, closed.delivered, closed.reason, round(closed.waited, 4)) == (
        scenario,
        delivered,
        reason,
        waited,
    )


ROWS = [
    (SUPERSEDED, Scenario.SUPERSEDED),
    (Script(selector=1.6, answer=2.0, cancelled_after=0.3, cause=Cause.USER_CANCEL), Scenario.INTERRUPTED),
    (Script(selector=1.6, answer=2.0, cancelled_after=0.3, cause=Cause.SESSION_RESET), Scenario.INTERRUPTED),
    (Script(selector=1.6, answer=2.0, cancelled_after=0.3, cause=Cause.PROCESS_SHUTDOWN), Scenario.INTERRUPTED),
    (Script(selector=0.02, reminders=0.15, refused=True), Scenario.NOT_SENT),
    (Script(selector=0.02, unavailable=True), Scenario.UNAVAILABLE),
    (Script(selector=0.02, reminders=0.15, fast=(), chosen=()), Scenario.NOTHING_FOUND),
    (SETTLED_BEFORE_SEND, Scenario.SETTLED_BEFORE_SEND),
    (Script(selector=0.02, reminders=0.15, chosen=()), Scenario.SETTLED_BEFORE_SEND),
    (SLOW_WITHOUT_TOOLS, Scenario.SLOW_WITHOUT_TOOLS),
    (TIMED_OUT, Scenario.TIMED_OUT),
    (SLOW_WITH_TOOLS, Scenario.SLOW_WITH_TOOLS),
]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("script", "scenario"), ROWS)
async def test_a_turn_stands_in_the_same_row_under_every_policy(
    make_agent: MakeAgent, script: Script, scenario: Scenario, policy: PolicyName
) -> None:
    """The row is decided by facts of the recall, so the same turn stands in the same row whatever the policy does."""
    assert (await row(make_agent, script, policy)).scenario is scenario


def test_every_row_is_played() -> None:
    """No scenario is left out of the test above."""
    assert {scenario for _, scenario in ROWS} == set(Scenario)
