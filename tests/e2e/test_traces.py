"""The traces of the comparison's scenarios, exported over OTLP to a receiver and decoded by the official package."""

import logging
from collections.abc import Callable, Generator
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from recallscope.runtime.agent.host import Agent
from recallscope.runtime.agent.turn_state import TurnRequest
from recallscope.runtime.lab.scenarios import (
    SCENARIOS,
    Play,
    SecondPrompt,
    build_script,
    job_tool,
    preparation,
    write_sample_notes,
)
from recallscope.runtime.observe import Observers
from recallscope.runtime.recall.policy import Arm, PolicySplit
from recallscope.runtime.terms import PolicyName, Scenario
from recallscope.runtime.testing.model_server import RecordedRequest, serve
from recallscope.telemetry.sdk import TelemetrySettings, open_telemetry
from recallscope.telemetry.testing.receiver import OtlpReceiver, ReceivedSpan

if TYPE_CHECKING:
    from conftest import Place

OpenAgent = Callable[..., AbstractAsyncContextManager[Agent]]

UNSET = 0
_TIMES: dict[Scenario, dict[str, Any]] = {
    Scenario.SETTLED_BEFORE_SEND: {"preparation": 0.6},
    Scenario.SLOW_WITH_TOOLS: {"selector": 0.5},
    Scenario.SUPERSEDED: {"second": SecondPrompt("Thanks, never mind.", after=0.8)},
}
PLAYS = {scenario: replace(play, **_TIMES.get(scenario, {})) for scenario, play in SCENARIOS.items()}
"""The scenarios of the comparison, with times so far apart that a busy machine plays the same ones."""

CELLS = [
    *((scenario, PolicyName.TIERED) for scenario in SCENARIOS),
    (Scenario.SLOW_WITH_TOOLS, PolicyName.DEADLINE),
    (Scenario.SLOW_WITH_TOOLS, PolicyName.PREFETCH),
]


@dataclass(slots=True)
class Played:
    """What was seen of all turns: spans that arrived, requests that were made, complaints of the context."""

    spans: list[ReceivedSpan] = field(default_factory=list[ReceivedSpan])
    requests: tuple[RecordedRequest, ...] = ()
    complaints: list[str] = field(default_factory=list[str])

    def turns(self, session: str) -> "list[Turn]":
        """Return the turns of one session in order."""
        roots = [span for span in self.spans if span.attributes.get("gen_ai.conversation.id") == session]
        roots = sorted((span for span in roots if not span.parent_id), key=lambda span: span.start_ns)
        return [Turn(root, [span for span in self.spans if span.trace_id == root.trace_id]) for root in roots]

    def turn(self, scenario: Scenario, policy: PolicyName = PolicyName.TIERED) -> "Turn":
        """Return the first turn of a cell."""
        return self.turns(f"{scenario}-{policy}")[0]


@dataclass(frozen=True, slots=True)
class Turn:
    """One trace: its root, and all of its spans."""

    root: ReceivedSpan
    spans: list[ReceivedSpan]

    def below(self, span: ReceivedSpan) -> list[Any]:
        """Return what hangs below `span`: names in the order of their start, a list behind a name is what it holds."""
        children = sorted(
            (each for each in self.spans if each.parent_id == span.span_id), key=lambda each: (each.start_ns, each.name)
        )
        shape: list[Any] = []
        for child in children:
            shape.append(child.name)
            if below := self.below(child):
                shape.append(below)
        return shape

    @property
    def recall(self) -> ReceivedSpan:
        """The one `search_memory` span."""
        (span,) = self.named("search_memory")
        return span

    def named(self, name: str) -> list[ReceivedSpan]:
        """Return the spans of one name."""
        return [span for span in self.spans if span.name == name]

    @property
    def moments(self) -> list[str]:
        """The events of the recall, with the points of deliveries."""
        prefix = "recallscope.recall."
        return [
            name.removeprefix(prefix) + (f" {values[f'{prefix}point']}" if f"{prefix}point" in values else "")
            for name, values in self.recall.events
        ]


@pytest.fixture(scope="module", params=["http/protobuf", "grpc"])
def played(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, open_agent: OpenAgent) -> Played:
    """Play all cells, each in its session, most of them at once, and give what arrived at the receiver."""
    folder = tmp_path_factory.mktemp("traces")
    write_sample_notes(folder / "notes")
    played = Played()
    with OtlpReceiver() as receiver, pytest.MonkeyPatch.context() as patch, _complaints(played.complaints):
        for name, value in receiver.environ(str(request.param)).items():
            patch.setenv(name, value)  # the exporters read the process's own variables
        with open_telemetry(TelemetrySettings(version="0", front_end="e2e", journal=False)) as telemetry:

            async def play_all() -> None:
                observers = Observers(telemetry.observers)
                async with (
                    serve(build_script(list(PLAYS.values()))) as server,
                    open_agent(
                        server.url,
                        folder / "notes",
                        folder,
                        observers,
                        trace_headers=telemetry.trace_headers,
                        tools=[job_tool()],
                    ) as agent,
                    anyio.create_task_group() as background,
                ):
                    background.start_soon(telemetry.run)
                    if agent.memory is not None:  # the first search of a process loads what later ones find loaded
                        await agent.memory.search("port", exclude=frozenset(), recent_tools=())
                    # Under `prefetch` a send held for more than 5 ms marks its turn: that cell has the loop for itself.
                    for alone in (True, False):
                        async with anyio.create_task_group() as tasks:
                            for scenario, policy in CELLS:
                                if (policy is PolicyName.PREFETCH) is alone:
                                    tasks.start_soon(_play, agent, PLAYS[scenario], policy)
                    background.cancel_scope.cancel()
                played.requests = server.requests

            anyio.run(play_all)
        played.spans = receiver.spans()
    return played


async def _play(agent: Agent, play: Play, policy: PolicyName) -> None:
    session = replace(
        agent,
        recall=replace(agent.recall, split=PolicySplit((Arm(policy, 1),))),
        reminders=(preparation(play.preparation),) if play.preparation else (),
    ).open_session(f"{play.scenario}-{policy}")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(session.prompt, TurnRequest(text=play.prompt))
        if play.second is not None:
            await anyio.sleep(play.second.after)
            tasks.start_soon(session.prompt, TurnRequest(text=play.second.text))
    await session.close()


@contextmanager
def _complaints(into: list[str]) -> Generator[None]:
    """Collect what OpenTelemetry's context says, which is nothing unless a span was current in the wrong task."""
    handler, logger = logging.Handler(), logging.getLogger("opentelemetry.context")
    handler.emit = lambda record: into.append(record.getMessage())
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


SELECTED = ["search_memory", ["chat scripted-small"]]
MAIN, JOB = "chat scripted-main", "execute_tool run_job"


@pytest.mark.parametrize(
    ("scenario", "policy", "shape"),
    [
        (Scenario.SETTLED_BEFORE_SEND, PolicyName.TIERED, [*SELECTED, MAIN]),
        (Scenario.SLOW_WITH_TOOLS, PolicyName.TIERED, [*SELECTED, MAIN, JOB, MAIN]),
        (Scenario.SLOW_WITH_TOOLS, PolicyName.DEADLINE, [*SELECTED, MAIN, JOB, MAIN]),
        (Scenario.SLOW_WITH_TOOLS, PolicyName.PREFETCH, [*SELECTED, MAIN, JOB, MAIN]),
        (Scenario.TIMED_OUT, PolicyName.TIERED, [*SELECTED, MAIN, JOB, MAIN]),
        (Scenario.SLOW_WITHOUT_TOOLS, PolicyName.TIERED, [*SELECTED, MAIN]),
        (Scenario.SUPERSEDED, PolicyName.TIERED, [*SELECTED, MAIN]),
    ],
)
def test_the_tree_of_a_turn(played: Played, scenario: Scenario, policy: PolicyName, shape: list[Any]) -> None:
    """The selector's call hangs below the recall, and that, each send and each tool below the turn."""
    turn = played.turn(scenario, policy)
    assert (turn.root.name, turn.below(turn.root)) == ("invoke_agent e2e", shape)
    assert len(turn.spans) == 1 + len(shape)


def test_every_fresh_turn_has_exactly_one_recall(played: Played) -> None:
    """Seven cells, one of them with a second prompt: eight turns, each a trace of its own with one recall."""
    turns = [turn for scenario, policy in CELLS for turn in played.turns(f"{scenario}-{policy}")]
    assert len({turn.root.trace_id for turn in turns}) == len(turns) == 8
    assert [len(turn.named("search_memory")) for turn in turns] == [1] * 8
    assert sum(len(turn.spans) for turn in turns) == len(played.spans)


def test_no_span_begins_before_its_parent_or_ends_after_it(played: Played) -> None:
    """Each span lies within its parent, also where the turn was cut off; nothing lacks its parent."""
    spans = {span.span_id: span for span in played.spans}
    outside = [
        (span.name, parent.name)
        for span in played.spans
        if span.parent_id
        for parent in [spans[span.parent_id]]
        if not parent.start_ns <= span.start_ns <= span.end_ns <= parent.end_ns
    ]
    assert outside == []


@pytest.mark.parametrize(
    ("scenario", "policy", "moments"),
    [
        (
            Scenario.SETTLED_BEFORE_SEND,
            PolicyName.TIERED,
            ["begin", "fast_result", "refined_settled", "delivered initial"],
        ),
        (
            Scenario.SLOW_WITH_TOOLS,
            PolicyName.TIERED,
            ["begin", "fast_result", "delivered initial", "refined_settled", "delivered tool_result"],
        ),
        (
            Scenario.SLOW_WITH_TOOLS,
            PolicyName.DEADLINE,
            ["begin", "fast_result", "refined_settled", "delivered initial"],
        ),
        (
            Scenario.SLOW_WITH_TOOLS,
            PolicyName.PREFETCH,
            ["begin", "delivery_skipped initial", "refined_settled", "delivered tool_result"],
        ),
        (
            Scenario.TIMED_OUT,
            PolicyName.TIERED,
            ["begin", "fast_result", "delivered initial", "refined_settled", "delivered tool_result"],
        ),
        (
            Scenario.SLOW_WITHOUT_TOOLS,
            PolicyName.TIERED,
            ["begin", "fast_result", "delivered initial", "delivery_skipped none", "cancelled"],
        ),
        (
            Scenario.SUPERSEDED,
            PolicyName.TIERED,
            ["begin", "fast_result", "delivered initial", "delivery_skipped none", "cancelled"],
        ),
    ],
)
def test_the_events_of_a_recall_tell_its_life_in_order(
    played: Played, scenario: Scenario, policy: PolicyName, moments: list[str]
) -> None:
    """When it began, what came when, where it went, and why not."""
    told = played.turn(scenario, policy).moments
    if policy is PolicyName.PREFETCH:
        told.remove("fast_result")  # nobody waits for it, so it may come on either side of the first send
    assert told == moments


def test_the_turn_says_what_its_row_of_the_table_is(played: Played) -> None:
    """Scenario and delivery stand on the root span, as on the recall."""
    rows = {
        (scenario, policy): (
            turn.root.attributes["recallscope.turn.scenario"],
            turn.root.attributes["recallscope.turn.delivered"],
            turn.recall.attributes["recallscope.turn.delivered"],
        )
        for scenario, policy in CELLS
        for turn in [played.turn(scenario, policy)]
    }
    delivered = {
        (Scenario.SETTLED_BEFORE_SEND, PolicyName.TIERED): "initial",
        (Scenario.SLOW_WITH_TOOLS, PolicyName.TIERED): "both",
        (Scenario.SLOW_WITH_TOOLS, PolicyName.DEADLINE): "initial",
        (Scenario.SLOW_WITH_TOOLS, PolicyName.PREFETCH): "tool_result",
        (Scenario.TIMED_OUT, PolicyName.TIERED): "both",
        (Scenario.SLOW_WITHOUT_TOOLS, PolicyName.TIERED): "initial",
        (Scenario.SUPERSEDED, PolicyName.TIERED): "initial",
    }
    assert rows == {
        (scenario, policy): (str(scenario), where, where) for (scenario, policy), where in delivered.items()
    }


def test_a_cancelled_turn_is_told_and_is_no_error(played: Played) -> None:
    """The superseded turn, its send, its recall and its selector say so with their cause; no status is an error."""
    turn = played.turn(Scenario.SUPERSEDED)
    told = {
        span.name: [
            value
            for key in ("recallscope.turn.outcome", "recallscope.status", "recallscope.recall.reason")
            if (value := span.attributes.get(key)) is not None
        ]
        + [
            value
            for key in ("recallscope.turn.cause", "recallscope.cause", "recallscope.recall.cause")
            if (value := span.attributes.get(key)) is not None
        ]
        for span in turn.spans
    }
    assert told == {
        "invoke_agent e2e": ["cancelled", "superseded"],
        "search_memory": ["new_query", "superseded"],
        "chat scripted-small": ["cancelled", "superseded"],
        "chat scripted-main": ["cancelled", "superseded"],
    }
    assert {span.status for span in played.spans} == {UNSET}


def test_the_model_server_sees_the_span_of_each_request(played: Played) -> None:
    """The `traceparent` of each request is the `chat` span that the receiver got for it: one request, one span."""
    seen = {request.headers["traceparent"]: f"chat {request.body['model']}" for request in played.requests}
    chats = (span for span in played.spans if span.name.startswith("chat "))
    assert {traceparent[3:52]: name for traceparent, name in seen.items()} == {
        f"{span.trace_id}-{span.span_id}": span.name for span in chats
    }
    assert len(seen) == len(played.requests) == 20


def test_the_context_of_no_task_was_touched(played: Played) -> None:
    """OpenTelemetry's context machinery has nothing to complain about."""
    assert played.complaints == []


@pytest.mark.anyio
@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
async def test_a_run_exports_its_trace_before_it_ends(place: "Place", protocol: str) -> None:
    """The spans of `run` are at the receiver when the process has ended, as one tree of the product's own service."""
    play = SCENARIOS[Scenario.SETTLED_BEFORE_SEND]
    with OtlpReceiver() as receiver:
        async with serve(build_script()) as server:
            done = await place.run("run", play.prompt, environ=place.environ(server.url) | receiver.environ(protocol))
        spans, metrics = receiver.spans(), receiver.metrics()

    (root,) = (span for span in spans if not span.parent_id)
    turn = Turn(root, spans)
    assert (done.code, done.out) == (0, f"{play.says}\n")
    assert len(done.err.splitlines()) == 1
    assert turn.below(root) == ["search_memory", [MAIN], MAIN]
    assert root.resource["service.name"] == "recallscope"
    assert root.resource["recallscope.front_end"] == "run"
    assert "recallscope.recall.turns" in metrics
