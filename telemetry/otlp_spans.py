"""Spans as OTLP bytes: the same message that the exporters' own encoder makes, at a sixth of its cost.

That encoder builds two objects for each attribute, and the spans of a turn have a hundred. Here what repeats (most keys
with most values) is encoded once, by the official classes, and joined: protobuf merges messages that stand one behind
the other. Field numbers are those of `opentelemetry/proto/trace/v1/trace.proto`; a test compares what both encoders
make.
"""

from collections.abc import Iterable, Mapping, Sequence
from struct import Struct
from typing import Any, Final, cast

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, SpanFlags, Status
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.trace import Link, SpanContext, StatusCode

__all__ = ["SpanEncoder"]

MOST_KNOWN: Final = 4_096

_INT64: Final = 1 << 63
_STATUSES: Final = {
    StatusCode.UNSET: Span(status=Status()).SerializeToString(),
    StatusCode.OK: Span(status=Status(code=Status.STATUS_CODE_OK)).SerializeToString(),
    StatusCode.ERROR: Span(status=Status(code=Status.STATUS_CODE_ERROR)).SerializeToString(),
}
_FLAGS: Final = Struct("<B B I")
_FLAGS_TAG: Final = (16 << 3 & 0x7F | 5 | 0x80, 16 >> 4)
_LOCAL: Final = int(SpanFlags.SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK)
_REMOTE: Final = _LOCAL | int(SpanFlags.SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK)
_PARENT: Final = Struct(">B B 8s")
_PARENT_ID: Final = 4 << 3 | 2

_LIST: Final = 2  # protobuf's wire type of everything that has a length
_RESOURCE_SPANS: Final = bytes([1 << 3 | _LIST])
_SCOPE_SPANS: Final = bytes([2 << 3 | _LIST])
_SPANS: Final = bytes([2 << 3 | _LIST])
_NAME: Final = bytes([5 << 3 | _LIST])
_ATTRIBUTES: Final = bytes([9 << 3 | _LIST])
_EVENTS: Final = bytes([11 << 3 | _LIST])
_EVENT_NAME: Final = bytes([2 << 3 | _LIST])
_EVENT_ATTRIBUTES: Final = bytes([3 << 3 | _LIST])

_IDS: Final = Struct(">B B 16s B B 8s")
_TIMES: Final = Struct("<B B B Q B Q")
_EVENT_TIME: Final = Struct("<B Q")
_DOUBLE: Final = Struct("<d")
_TRACE_ID, _SPAN_ID, _KIND, _START, _END, _TIME = 1 << 3 | 2, 2 << 3 | 2, 6 << 3, 7 << 3 | 1, 8 << 3 | 1, 1 << 3 | 1
_DOUBLE_VALUE: Final = bytes([2 << 3 | _LIST, 9, 4 << 3 | 1])


class SpanEncoder:
    """Encodes spans as `ExportTraceServiceRequest`; remembers the attributes that it has met (4,096 at most)."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, object, type], bytes] = {}
        self._doubles: dict[str, bytes] = {}

    def request(self, spans: Iterable[ReadableSpan]) -> bytes:
        """Return the request that carries `spans`, grouped by resource and scope."""
        groups: dict[tuple[int, object], list[ReadableSpan]] = {}
        for span in spans:
            groups.setdefault((id(span.resource), span.instrumentation_scope), []).append(span)
        return b"".join(_RESOURCE_SPANS + _sized(self._group(group)) for group in groups.values())

    def _group(self, spans: Sequence[ReadableSpan]) -> bytes:
        resource, scope = spans[0].resource, spans[0].instrumentation_scope
        scoped = ScopeSpans()
        if scope is not None:
            about = InstrumentationScope(
                name=scope.name, version=scope.version or "", attributes=_key_values(scope.attributes or {})
            )
            scoped = ScopeSpans(scope=about, schema_url=scope.schema_url or "")
        body = scoped.SerializeToString() + b"".join(_SPANS + _sized(self._span(span)) for span in spans)
        head = ResourceSpans(
            resource=Resource(attributes=_key_values(resource.attributes)), schema_url=resource.schema_url
        )
        return bytes(head.SerializeToString()) + _SCOPE_SPANS + _sized(body)

    def _span(self, span: ReadableSpan) -> bytes:
        context = span.context
        if context is None:
            return b""
        trace, own = context.trace_id.to_bytes(16, "big"), context.span_id.to_bytes(8, "big")
        parts = [
            _IDS.pack(_TRACE_ID, 16, trace, _SPAN_ID, 8, own),
            _NAME + _sized(_utf8(span.name)),
            _TIMES.pack(_KIND, span.kind.value + 1, _START, span.start_time or 0, _END, span.end_time or 0),
            self._attributes(_ATTRIBUTES, span.attributes),
        ]
        parts += [_EVENTS + _sized(self._event(event)) for event in span.events]
        parts.append(_rest(span, context))
        return b"".join(parts)

    def _event(self, event: Event) -> bytes:
        head = _EVENT_TIME.pack(_TIME, event.timestamp) + _EVENT_NAME + _sized(_utf8(event.name))
        cut = event.dropped_attributes
        tail = Span.Event(dropped_attributes_count=cut).SerializeToString() if cut else b""
        return head + self._attributes(_EVENT_ATTRIBUTES, event.attributes) + tail

    def _attributes(self, tag: bytes, attributes: Mapping[str, object] | None) -> bytes:
        if not attributes:
            return b""
        parts: list[bytes] = []
        for key, value in dict(attributes).items():
            kind: type = type(value)
            if kind is float:
                parts += (tag, self._double(key), _DOUBLE.pack(value))
                continue
            known = self._known.get((key, value, kind))
            if known is None:
                known = _sized(_key_value(key, value).SerializeToString())
                if len(self._known) >= MOST_KNOWN:
                    self._known.clear()
                if kind is not tuple or _is_text(value):  # (1,) and (True,) are equal and not the same
                    self._known[key, value, kind] = known
            parts += (tag, known)
        return b"".join(parts)

    def _double(self, key: str) -> bytes:
        """Return what stands before the eight bytes of a number: sizes, the key, and the tags of the value."""
        known = self._doubles.get(key)
        if known is None:
            named = KeyValue(key=key).SerializeToString()
            size = len(named) + len(_DOUBLE_VALUE) + _DOUBLE.size
            if len(self._doubles) >= MOST_KNOWN:
                self._doubles.clear()
            known = self._doubles[key] = _varint(size) + named + _DOUBLE_VALUE
        return known


def _rest(span: ReadableSpan, context: SpanContext) -> bytes:
    """Return parent, status, flags, and, by the official classes, what is rare: trace state, links, what was cut."""
    parts: list[bytes] = []
    if span.parent is not None:
        parts.append(_PARENT.pack(_PARENT_ID, 8, span.parent.span_id.to_bytes(8, "big")))
    if span.status.description:
        parts.append(Span(status=Status(message=span.status.description)).SerializeToString())
    parts += (_STATUSES[span.status.status_code], _FLAGS.pack(*_FLAGS_TAG, _flags(span.parent)))
    if context.trace_state or span.links or span.dropped_links or span.dropped_attributes or span.dropped_events:
        rare = Span(
            trace_state=context.trace_state.to_header(),
            links=[_link(link) for link in span.links],
            dropped_attributes_count=span.dropped_attributes,
            dropped_events_count=span.dropped_events,
            dropped_links_count=span.dropped_links,
        )
        parts.append(rare.SerializeToString())
    return b"".join(parts)


def _flags(context: SpanContext | None) -> int:
    """Return the flags that say whether `context` came from another process."""
    return _REMOTE if context is not None and context.is_remote else _LOCAL


def _link(link: Link) -> Span.Link:
    return Span.Link(
        trace_id=link.context.trace_id.to_bytes(16, "big"),
        span_id=link.context.span_id.to_bytes(8, "big"),
        attributes=_key_values(link.attributes or {}),
        flags=_flags(link.context),
    )


def _is_text(value: object) -> bool:
    return all(isinstance(item, str) for item in cast("tuple[object, ...]", value))


def _key_values(attributes: Mapping[str, Any]) -> list[KeyValue]:
    return [_key_value(key, value) for key, value in attributes.items()]


def _key_value(key: str, value: object) -> KeyValue:
    return KeyValue(key=key, value=_any_value(value))


def _any_value(value: object) -> AnyValue:
    """Return an attribute's value; of what is none of OTLP's kinds, its text."""
    match value:
        case bool():
            return AnyValue(bool_value=value)
        case int() if -_INT64 <= value < _INT64:
            return AnyValue(int_value=value)
        case float():
            return AnyValue(double_value=value)
        case bytes():
            return AnyValue(bytes_value=value)
        case tuple() | list():
            items = cast("Sequence[object]", value)
            return AnyValue(array_value=ArrayValue(values=[_any_value(item) for item in items]))
        case _:
            return AnyValue(string_value=_utf8(str(value)).decode())


def _utf8(text: str) -> bytes:
    """Return `text` so that protobuf takes it: half a surrogate pair would cost a whole batch."""
    return text.encode("utf-8", "replace")


def _sized(data: bytes) -> bytes:
    return _varint(len(data)) + data


def _varint(number: int) -> bytes:
    """Return a number as protobuf writes lengths: seven bits a byte, the lowest first."""
    if number < 0x80:  # noqa: PLR2004 - one byte
        return bytes([number])
    low = bytearray()
    while number > 0x7F:  # noqa: PLR2004 - seven bits
        low.append(number & 0x7F | 0x80)
        number >>= 7
    low.append(number)
    return bytes(low)
