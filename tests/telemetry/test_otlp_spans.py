"""Our encoding of spans: decoded, it is the very message that the library's own encoder makes."""

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags
from opentelemetry.util.types import AttributeValue

from recallscope.telemetry.otlp_spans import SpanEncoder

TEXT = st.text(st.characters(codec="utf-8"), max_size=200)
SINGLE = TEXT | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False)
VALUES = (
    SINGLE
    | st.lists(TEXT, max_size=3).map(tuple)
    | st.lists(st.booleans(), max_size=3).map(tuple)
    | st.lists(st.integers(-9, 9), max_size=3).map(tuple)
)
ATTRIBUTES: st.SearchStrategy[dict[str, AttributeValue]] = st.dictionaries(TEXT, VALUES, max_size=6)
TIMES = st.integers(0, 2**63)
CONTEXTS = st.builds(
    SpanContext,
    trace_id=st.integers(1, 2**128 - 1),
    span_id=st.integers(1, 2**64 - 1),
    is_remote=st.booleans(),
    trace_flags=st.just(TraceFlags(1)),
)
SPANS = st.builds(
    ReadableSpan,
    name=TEXT,
    context=CONTEXTS,
    parent=st.none() | CONTEXTS,
    resource=st.sampled_from([Resource({"service.name": "a"}), Resource({"n": 1}, "https://schema")]),
    attributes=ATTRIBUTES,
    events=st.lists(st.builds(Event, name=TEXT, attributes=ATTRIBUTES, timestamp=TIMES), max_size=3).map(tuple),
    links=st.lists(st.builds(Link, context=CONTEXTS, attributes=ATTRIBUTES), max_size=2).map(tuple),
    kind=st.sampled_from(SpanKind),
    status=st.builds(Status, st.sampled_from([StatusCode.UNSET, StatusCode.OK]))
    | st.builds(Status, st.just(StatusCode.ERROR), st.none() | TEXT),
    start_time=TIMES,
    end_time=TIMES,
    instrumentation_scope=st.sampled_from(
        [InstrumentationScope("s", "1", "https://s"), InstrumentationScope("t", None, None, {"k": "v"}), None]
    ),
)


def _ours(encoder: SpanEncoder, spans: Sequence[ReadableSpan]) -> ExportTraceServiceRequest:
    request = ExportTraceServiceRequest()
    request.ParseFromString(encoder.request(spans))
    return request


@settings(max_examples=150)
@given(st.lists(st.lists(SPANS, max_size=3), max_size=2))
def test_any_spans_are_encoded_as_the_library_does_it(batches: list[list[ReadableSpan]]) -> None:
    """Whatever the spans hold, also in a second batch that meets what the first one taught, the message is the same."""
    encoder = SpanEncoder()

    assert [_sorted(_ours(encoder, spans)) for spans in batches] == [_sorted(encode_spans(spans)) for spans in batches]


def _sorted(request: ExportTraceServiceRequest) -> list[tuple[bytes, bytes, bytes]]:
    """List each span with its resource and scope, in any order of the groups."""
    return sorted(
        (group.resource.SerializeToString() + group.schema_url.encode(), _scope(scope), span.SerializeToString())
        for group in request.resource_spans
        for scope in group.scope_spans
        for span in scope.spans
    )


def _scope(scope: ScopeSpans) -> bytes:
    return bytes(scope.scope.SerializeToString()) + scope.schema_url.encode()


def test_text_that_is_no_unicode_costs_no_batch() -> None:
    """Half a surrogate pair becomes a question mark, a number beyond 64 bits its digits."""
    context = SpanContext(1, 2, is_remote=False)
    span = ReadableSpan(name="a\ud800", context=context, attributes={"t": "b\udfff", "n": 2**64})
    request = _ours(SpanEncoder(), [span])
    got = request.resource_spans[0].scope_spans[0].spans[0]

    assert (got.name, [(pair.key, pair.value.string_value) for pair in got.attributes]) == (
        "a?",
        [("t", "b?"), ("n", str(2**64))],
    )
