"""Turns to explain: played by the engine on virtual time, recorded as events, and told as a journal and as spans."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from scripted_turns import SCRIPTS, play

from recallscope.runtime.events import Event, PolicyName
from recallscope.telemetry.anchor import Anchor
from recallscope.telemetry.encode import Encoder
from recallscope.telemetry.otlp_spans import SpanEncoder
from recallscope.telemetry.read.journal_turns import JournalTurns
from recallscope.telemetry.read.recorded import RecordedTurn
from recallscope.telemetry.spans import SpanObserver

WALL = 1_800_000_000.0


@pytest.fixture(scope="session")
def played() -> Callable[..., list[Event]]:
    """Play a script by name under a policy, once, and return what the engine stated; `changed` is a script's fields."""
    known: dict[tuple[str, PolicyName], list[Event]] = {}

    def once(name: str, policy: PolicyName, **changed: Any) -> list[Event]:
        if changed:
            return play(name, policy, **changed)
        if (name, policy) not in known:
            known[name, policy] = play(name, policy)
        return known[name, policy]

    return once


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
