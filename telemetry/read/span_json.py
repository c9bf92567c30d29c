"""Spans from JSON as back ends hand them out: OTLP JSON of the collector, Tempo and Jaeger, and Jaeger's own shape.

They differ: ids are hexadecimal or Base64, kinds and statuses numbers or names, 64-bit numbers texts or numbers, and
Jaeger's own shape has tags, logs and references, times in microseconds, and lists as text. What is no span is left out.
"""

import binascii
from base64 import b64decode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from recallscope.telemetry.read.lenient import entries, mapping, number, text, whole

__all__ = ["Span", "SpanEvent", "spans_in"]

Attributes = Mapping[str, object]

NANOSECONDS: Final = 1_000
"""In a microsecond."""

MAX_DEPTH: Final = 6


@dataclass(frozen=True, slots=True)
class SpanEvent:
    """What happened in a span at `at_ns` (nanoseconds since 1970)."""

    name: str
    at_ns: int
    attributes: Attributes


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One ended span; ids are lower-case hexadecimal, times nanoseconds since 1970."""

    trace_id: str
    span_id: str
    parent_id: str | None
    name: str
    start_ns: int
    end_ns: int
    attributes: Attributes
    events: tuple[SpanEvent, ...] = ()


def spans_in(document: object) -> Iterator[Span]:
    """Yield the spans in a decoded document of any of the shapes; none if it has no spans."""
    yield from _spans_in(document, 0)


def _spans_in(document: object, depth: int) -> Iterator[Span]:
    if depth > MAX_DEPTH:
        return
    for item in entries(document):
        yield from _spans_in(item, depth + 1)
    found = mapping(document)
    if isinstance(found.get("spans"), list) and "traceID" in found:
        yield from _jaeger(found)
    for key in ("resourceSpans", "batches"):
        for resource in entries(found.get(key)):
            yield from _otlp(mapping(resource))
    for key in ("trace", "result", "data"):
        if key in found:
            yield from _spans_in(found[key], depth + 1)


# OTLP


def _otlp(resource: Mapping[str, Any]) -> Iterator[Span]:
    scopes = resource.get("scopeSpans", resource.get("instrumentationLibrarySpans"))
    for scope in entries(scopes):
        for item in entries(mapping(scope).get("spans")):
            span = _otlp_span(mapping(item))
            if span is not None:
                yield span


def _otlp_span(item: Mapping[str, Any]) -> Span | None:
    trace_id, span_id = _id(item.get("traceId"), 16), _id(item.get("spanId"), 8)
    start, end = _nanoseconds(item.get("startTimeUnixNano")), _nanoseconds(item.get("endTimeUnixNano"))
    if trace_id is None or span_id is None or start is None or end is None:
        return None
    return Span(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=_id(item.get("parentSpanId"), 8),
        name=text(item.get("name")) or "",
        start_ns=start,
        end_ns=max(start, end),
        attributes=_otlp_attributes(item.get("attributes")),
        events=tuple(event for one in entries(item.get("events")) if (event := _otlp_event(mapping(one))) is not None),
    )


def _otlp_event(item: Mapping[str, Any]) -> SpanEvent | None:
    name, at = text(item.get("name")), _nanoseconds(item.get("timeUnixNano"))
    if name is None or at is None:
        return None
    return SpanEvent(name, at, _otlp_attributes(item.get("attributes")))


def _otlp_attributes(value: object) -> dict[str, object]:
    pairs = (mapping(pair) for pair in entries(value))
    return {key: _otlp_value(pair.get("value")) for pair in pairs if (key := text(pair.get("key"))) is not None}


def _otlp_value(value: object) -> object:
    said = mapping(value)
    if "intValue" in said:
        return _integer(said["intValue"])
    if "doubleValue" in said:
        return number(said["doubleValue"])
    if "arrayValue" in said:
        return tuple(_otlp_value(item) for item in entries(mapping(said["arrayValue"]).get("values")))
    if "stringValue" in said:
        return _list_of(said["stringValue"])
    return said.get("boolValue")


# Jaeger


def _jaeger(trace: Mapping[str, Any]) -> Iterator[Span]:
    for item in entries(trace.get("spans")):
        span = _jaeger_span(mapping(item))
        if span is not None:
            yield span


def _jaeger_span(item: Mapping[str, Any]) -> Span | None:
    trace_id, span_id = _id(item.get("traceID"), 16), _id(item.get("spanID"), 8)
    start, duration = _integer(item.get("startTime")), _integer(item.get("duration"))
    if trace_id is None or span_id is None or start is None or duration is None:
        return None
    references = (mapping(one) for one in entries(item.get("references")))
    parents = (_id(one.get("spanID"), 8) for one in references if one.get("refType") == "CHILD_OF")
    return Span(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=next(parents, None) or _id(item.get("parentSpanID"), 8),
        name=text(item.get("operationName")) or "",
        start_ns=start * NANOSECONDS,
        end_ns=(start + max(0, duration)) * NANOSECONDS,
        attributes=_tags(item.get("tags")),
        events=tuple(event for one in entries(item.get("logs")) if (event := _log(mapping(one))) is not None),
    )


def _log(item: Mapping[str, Any]) -> SpanEvent | None:
    at, fields = _integer(item.get("timestamp")), _tags(item.get("fields"))
    name = fields.pop("event", None)
    return SpanEvent(name, at * NANOSECONDS, fields) if isinstance(name, str) and at is not None else None


def _tags(value: object) -> dict[str, object]:
    tags = (mapping(tag) for tag in entries(value))
    return {key: _list_of(tag.get("value")) for tag in tags if (key := text(tag.get("key"))) is not None}


# What they share


def _list_of(value: object) -> object:
    """Return a value; a list comes from Jaeger as its JSON text, in its own shape and in its OTLP."""
    if isinstance(value, str) and value.startswith("["):
        try:
            found: object = orjson.loads(value)
        except ValueError:
            return value
        return tuple(entries(found))
    return value


def _id(value: object, size: int) -> str | None:
    """Return an id of `size` bytes as hexadecimal; None without one, or for what is none."""
    if not isinstance(value, str) or not value:
        return None
    try:
        raw = bytes.fromhex(value.rjust(size * 2, "0"))  # Jaeger has dropped leading zeros
    except ValueError:
        raw = b""
    if len(raw) != size:
        try:
            raw = b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            return None
    return raw.hex() if len(raw) == size and any(raw) else None


def _nanoseconds(value: object) -> int | None:
    """Return a time; none is negative or beyond 64 bits."""
    found = _integer(value)
    return found if found is not None and 0 <= found < 1 << 64 else None


def _integer(value: object) -> int | None:
    """Return a whole number that JSON holds as number or text."""
    if isinstance(value, str) and value.isascii() and value.lstrip("-").isdigit() and len(value) < MAX_DIGITS:
        return int(value)
    return whole(value)


MAX_DIGITS: Final = 21
