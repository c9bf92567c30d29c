"""Our tracer beside the SDK's: the same events give the same spans, limits and samplers hold, nothing is guessed."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, ParentBased, Sampler, TraceIdRatioBased
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, NonRecordingSpan, SpanContext, Status, StatusCode, Tracer, set_span_in_context

from recallscope.telemetry.anchor import Anchor
from recallscope.telemetry.otlp_spans import SpanEncoder
from recallscope.telemetry.spans import SpanObserver
from recallscope.telemetry.testing.golden import AT, WALL, golden_process
from recallscope.telemetry.tracer import LeanTracer

RESOURCE = Resource({"service.name": "x"})
FAR_AWAY = set_span_in_context(NonRecordingSpan(SpanContext(7, 8, is_remote=True)), Context())


class Counting(IdGenerator):
    """Ids in order, so that two tracers give the same ones."""

    def __init__(self) -> None:
        self._next = itertools.count(1)

    def generate_span_id(self) -> int:
        """Return the next number."""
        return next(self._next)

    def generate_trace_id(self) -> int:
        """Return the next number."""
        return next(self._next)


Made = tuple[Tracer, Callable[[], tuple[ReadableSpan, ...]]]


def _theirs(sampler: Sampler, limits: SpanLimits) -> Made:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(
        sampler=sampler, resource=RESOURCE, span_limits=limits, id_generator=Counting(), shutdown_on_exit=False
    )
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider.get_tracer("s", "1"), exporter.get_finished_spans


def _ours(sampler: Sampler, limits: SpanLimits) -> Made:
    spans: list[ReadableSpan] = []
    tracer = LeanTracer(
        sampler=sampler,
        ids=Counting(),
        resource=RESOURCE,
        scope=InstrumentationScope("s", "1"),
        limits=limits,
        ended=spans.append,
    )
    return tracer, lambda: tuple(spans)


def _wire(spans: tuple[ReadableSpan, ...]) -> bytes:
    return SpanEncoder().request(span for span in spans if span.context and span.context.trace_flags.sampled)


@pytest.mark.parametrize("sampler", [ALWAYS_ON, ALWAYS_OFF, ParentBased(ALWAYS_ON), TraceIdRatioBased(0.5)], ids=str)
def test_a_golden_process_gives_the_same_spans_as_with_the_sdk(sampler: Sampler) -> None:
    """Byte for byte what goes to a collector, under every sampler."""
    sent: list[bytes] = []
    for make in (_ours, _theirs):
        tracer, finished = make(sampler, SpanLimits())
        observer = SpanObserver(tracer, anchor=Anchor.stated(at=AT, wall=WALL))
        for event in golden_process():
            observer(event)
        observer.close(AT + 100)
        sent.append(_wire(finished()))

    assert sent[0] == sent[1]


def test_limits_cut_as_the_sdk_cuts() -> None:
    """Too many attributes, too long ones, too many events and links: the same is kept, the same number is told."""
    limits = SpanLimits(
        max_span_attributes=3,
        max_span_attribute_length=4,
        max_attribute_length=4,
        max_events=2,
        max_event_attributes=1,
        max_links=1,
    )
    sent: list[bytes] = []
    for make in (_ours, _theirs):
        tracer, finished = make(ALWAYS_ON, limits)
        links = [Link(SpanContext(9, number, is_remote=False)) for number in (1, 2)]
        span = tracer.start_span("x", context=FAR_AWAY, attributes={"a": "long text"}, links=links, start_time=1)
        span.set_attributes({"b": ("long text", "ok"), "c": 1, "d": 2.0})
        for number in range(3):
            span.add_event(f"e{number}", {"k": "long text", "l": number}, number)
        span.set_status(Status(StatusCode.ERROR, "why"))
        span.update_name("y")
        span.set_attribute("e", True)
        span.end(5)
        sent.append(_wire(finished()))

    assert sent[0] == sent[1]


def test_an_unsampled_span_still_says_who_it_is() -> None:
    """What is not recorded has a context for those below it, takes anything, and is handed to nobody."""
    tracer, finished = _ours(ALWAYS_OFF, SpanLimits())
    span = tracer.start_span("x", context=FAR_AWAY)
    span.set_attribute("a", 1)
    span.end()

    assert (span.get_span_context().trace_id, span.is_recording(), finished()) == (7, False, ())


@pytest.mark.parametrize("refused", ["start_as_current_span", "record_exception"])
def test_nothing_is_taken_from_the_surroundings(refused: str) -> None:
    """No span is made the current one, and none reads an exception."""
    tracer: Any = _ours(ALWAYS_ON, SpanLimits())[0]
    holder = tracer if refused == "start_as_current_span" else tracer.start_span("x", context=FAR_AWAY)

    with pytest.raises(NotImplementedError):
        getattr(holder, refused)("x")
