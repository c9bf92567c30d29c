"""Turns to explain: played by the engine on virtual time, recorded as events, and told as a journal and as spans."""

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from recallscope.runtime.agent.gates import Limits
from recallscope.runtime.agent.host import Agent, RecallSettings
from recallscope.runtime.agent.send import SendSettings
from recallscope.runtime.agent.tools.registry import Toolbox, function_tool
from recallscope.runtime.agent.turn_state import TurnRequest
from recallscope.runtime.errors import ModelError, ModelStatusError
from recallscope.runtime.events import Cause, Event, OpId, PolicyName
from recallscope.runtime.memory.note import Note
from recallscope.runtime.messages import Message, ReminderPart
from recallscope.runtime.observe import Observers
from recallscope.runtime.recall.handle import Budget
from recallscope.runtime.recall.policy import DEFAULT_CEILING, PolicySplit
from recallscope.runtime.testing.fake_clock import run
from recallscope.runtime.testing.memory import FakeMemory, make_note
from recallscope.runtime.testing.models import FakeModel, Turnout, calling, choosing, saying
from recallscope.runtime.testing.recorder import EventRecorder
from recallscope.telemetry.anchor import Anchor
from recallscope.telemetry.encode import Encoder
from recallscope.telemetry.otlp_spans import SpanEncoder
from recallscope.telemetry.read.journal_turns import JournalTurns
from recallscope.telemetry.read.recorded import RecordedTurn
from recallscope.telemetry.spans import SpanObserver

WALL = 1_800_000_000.0
WORD, CHOSEN = make_note("word"), make_note("chosen")
REFUSAL = ModelStatusError(url="http://127.0.0.1:1", status_code=401, body="no")
BUSY = ModelStatusError(url="http://127.0.0.1:1", status_code=429, body="slow down")


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A turn: seconds of the selector, the reminders, the tool (None: no tool) and the answer; what goes wrong in it.

    The answer's first piece comes after 0.1 s. The words match one note, and the selector chooses it and another one,
    unless stated otherwise.
    """

    selector: float = 1.6
    reminders: float = 0.0
    tool: float | None = None
    answer: float = 0.2
    words: Sequence[Note] = (WORD,)
    chosen: tuple[int, ...] = (1, 2)
    selector_fails: ModelError | None = None
    failures: Sequence[ModelError] = ()
    unavailable: bool = False
    ended_after: float | None = None
    cause: Cause = Cause.SUPERSEDED
    ceiling: float = DEFAULT_CEILING
    budget: Budget | None = None
    limits: Limits | None = None


SCRIPTS: Mapping[str, Script] = {
    "settled_before_send": Script(selector=0.02, reminders=0.15),
    "slow_with_tools": Script(selector=0.908, tool=1.5),
    "timed_out": Script(tool=2.5),
    "slow_without_tools": Script(answer=0.3),
    "superseded": Script(answer=2.0, ended_after=0.3),
    "interrupted": Script(answer=2.0, ended_after=0.4, cause=Cause.USER_CANCEL),
    "not_sent": Script(failures=(REFUSAL,)),
    "unavailable": Script(unavailable=True),
    "nothing_found": Script(words=(), chosen=(), selector=0.3, answer=0.5),
    "no_word_match": Script(words=(), selector=0.4, answer=2.0),
    "selector_fails": Script(selector=0.05, selector_fails=REFUSAL, tool=0.4),
    "selector_fails_without_words": Script(words=(), chosen=(), selector=0.05, selector_fails=REFUSAL),
    "no_budget": Script(selector=0.02, reminders=0.15, budget=Budget(characters=10)),
    "no_sends": Script(selector=0.02, limits=Limits(max_sends=0)),
    "no_turns": Script(selector=0.02, limits=Limits(max_turns=0)),
    "no_tokens": Script(selector=0.02, limits=Limits(session_tokens=0)),
    "retried": Script(failures=(BUSY, BUSY), selector=0.3),
    "no_ceiling": Script(ceiling=0.0, answer=0.3),
}


async def _play(script: Script, policy: PolicyName) -> list[Event]:
    recorder = EventRecorder()
    numbers = itertools.count(1)
    observers = Observers([recorder], clock=anyio.current_time, ids=lambda: OpId(f"op{next(numbers)}"))

    async def prepare(_: Sequence[Message]) -> ReminderPart | None:
        await anyio.sleep(script.reminders)
        return None

    async def work(_: Mapping[str, Any]) -> str:
        await anyio.sleep(script.tool or 0.0)
        return "done"

    failing = [Turnout(error=error, delay=0.05) for error in script.failures]
    calls = [calling(("c1", "run_job", "{}"), delay=0.05)] if script.tool is not None else []
    answer = saying("It is ", "done.", delay=0.1, between=script.answer / 3)
    select = choosing(*script.chosen, delay=script.selector)
    toolbox = Toolbox([function_tool("run_job", "Run it.", {"type": "object"}, work, read_only=True)])
    agent = Agent(
        name="tester",
        model=FakeModel(turnouts=[*failing, *calls, answer]),
        selector_model=FakeModel(turnouts=[replace(select, error=script.selector_fails)]),
        memory=FakeMemory(
            fast=script.words, candidates=(*script.words, CHOSEN), delay=0.003, unavailable=script.unavailable
        ),
        recall=RecallSettings(
            split=PolicySplit.parse(policy), ceiling=script.ceiling, budget=script.budget or Budget()
        ),
        observers=observers,
        toolbox=toolbox,
        settings=SendSettings(
            system="Be brief.", tools=toolbox.specs, limits=script.limits or Limits(), jitter=lambda: 1.0
        ),
        reminders=(prepare,) if script.reminders else (),
        ids=lambda: "s",
        wall=lambda: 0.0,
    )
    session = agent.open_session()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(session.prompt, TurnRequest(text="how do we deploy?"))
        if script.ended_after is not None:
            await anyio.sleep(script.ended_after)
            session.cancel(script.cause)
    return recorder.events


@pytest.fixture(scope="session")
def played() -> Callable[..., list[Event]]:
    """Play a script by name under a policy, once, and return what the engine stated; `changed` is a script's fields."""
    known: dict[tuple[str, PolicyName], list[Event]] = {}

    def play(name: str, policy: PolicyName, **changed: Any) -> list[Event]:
        if changed:
            return run(_play, replace(SCRIPTS[name], **changed), policy)
        if (name, policy) not in known:
            known[name, policy] = run(_play, SCRIPTS[name], policy)
        return known[name, policy]

    return play


@pytest.fixture(scope="session")
def scripts() -> tuple[str, ...]:
    """Name the scripts."""
    return tuple(SCRIPTS)


def journal_lines(events: Sequence[Event]) -> bytes:
    """Return the lines that a journal has of `events`."""
    encoder = Encoder(Anchor(at=0.0, wall_ns=round(WALL * 1e9)))
    return b"".join(encoder(event) + b"\n" for event in events)


@pytest.fixture(scope="session")
def as_lines() -> Callable[..., list[dict[str, Any]]]:
    """Return the lines, decoded, that a journal has of some events."""

    def decoded(events: Sequence[Event]) -> list[dict[str, Any]]:
        return [json.loads(line) for line in journal_lines(events).splitlines()]

    return decoded


@pytest.fixture
def as_journal(tmp_path: Path) -> Callable[..., RecordedTurn]:
    """Write events as a journal and read the turn `s.1` of it."""

    def read(events: Sequence[Event]) -> RecordedTurn:
        (tmp_path / "journal-1-1-0001.jsonl").write_bytes(journal_lines(events))
        return JournalTurns([tmp_path]).find("s.1")

    return read


@pytest.fixture(scope="session")
def as_otlp() -> Callable[..., dict[str, Any]]:
    """Draw events as spans, encode them as they are exported, and return the message as protobuf's JSON has it.

    That is Tempo's JSON but for the name of the outer list: ids are Base64, kinds are names. Without `events` the
    spans have no span events.
    """

    def draw(stated: Sequence[Event], *, events: bool = True) -> dict[str, Any]:
        exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        observer = SpanObserver(provider.get_tracer("test"), anchor=Anchor(at=0.0, wall_ns=round(WALL * 1e9)))
        for event in stated:
            observer(event)
        message = ExportTraceServiceRequest()
        message.ParseFromString(SpanEncoder().request(exporter.get_finished_spans()))
        if not events:
            for span in _spans(message):
                del span.events[:]
        return json.loads(json.dumps(MessageToDict(message)))

    return draw


def _spans(message: ExportTraceServiceRequest) -> list[Any]:
    return [span for group in message.resource_spans for scope in group.scope_spans for span in scope.spans]
