"""A tracer that records with little: the SDK's sampler, ids, limits and ended spans, without what only others need.

The SDK's span locks, copies and checks each attribute for callers that it does not know; here one module calls, with
values that it has made. What is ended is the SDK's `ReadableSpan`, so that processors and exporters see no difference:
a test feeds both tracers and compares what arrives.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from opentelemetry.attributes import BoundedAttributes
from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan, SpanLimits
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, Decision, Sampler
from opentelemetry.sdk.util import BoundedList
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    Tracer,
    get_current_span,
)
from opentelemetry.util.types import AttributeValue

__all__ = ["LeanTracer"]

_SAMPLED: Final = TraceFlags(TraceFlags.SAMPLED)
_DROPPED: Final = TraceFlags(TraceFlags.DEFAULT)
_UNSET: Final = Status(StatusCode.UNSET)


class LeanTracer(Tracer):
    """Begins spans; `ended` takes each recorded one at its end. A span belongs to one thread at a time.

    Times and the parent's context are always stated; an exception is never recorded by a span of its own accord.
    """

    def __init__(
        self,
        *,
        sampler: Sampler,
        ids: IdGenerator,
        resource: Resource,
        scope: InstrumentationScope,
        limits: SpanLimits,
        ended: Callable[[ReadableSpan], None],
    ) -> None:
        self._sampler = sampler
        self._ids = ids
        self.resource = resource
        self.scope = scope
        self.limits = limits
        self.ended = ended
        self._random_flag = TraceFlags.RANDOM_TRACE_ID if ids.is_trace_id_random() else 0

    def start_span(  # noqa: PLR0917 - the API's own list
        self,
        name: str,
        context: Context | None = None,
        kind: SpanKind = SpanKind.INTERNAL,
        attributes: Mapping[str, Any] | None = None,
        links: Sequence[Link] | None = (),
        start_time: int | None = None,
        record_exception: bool = True,
        set_status_on_exception: bool = True,
    ) -> Span:
        """Begin a span below the one in `context`, or a root."""
        above = get_current_span(context).get_span_context()
        parent = above if above.is_valid else None
        trace_id = parent.trace_id if parent is not None else self._ids.generate_trace_id()
        flags, state, begun = _SAMPLED, parent.trace_state if parent is not None else None, attributes
        recorded = True
        if self._sampler is not ALWAYS_ON:  # it would say the same, and cost more than all the rest
            result = self._sampler.should_sample(context, trace_id, name, kind, attributes, links)
            flags = _SAMPLED if result.decision is Decision.RECORD_AND_SAMPLE else _DROPPED
            state, begun = result.trace_state, _attributes_of(result)
            recorded = result.decision is not Decision.DROP
        random = (parent.trace_flags & TraceFlags.RANDOM_TRACE_ID) if parent is not None else self._random_flag
        own = SpanContext(
            trace_id,
            self._ids.generate_span_id(),
            is_remote=False,
            trace_flags=TraceFlags(flags | random) if random else flags,
            trace_state=state,
        )
        if not recorded:
            return NonRecordingSpan(own)
        return _RecordedSpan(
            self, name, own, parent=parent, kind=kind, attributes=dict(begun or {}), links=links or (), start=start_time
        )

    def start_as_current_span(self, *arguments: Any, **more: Any) -> Any:
        """Refuse: no span of ours is ever the current one.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("spans are begun with start_span and a stated context")


class _RecordedSpan(Span):
    """A span under way."""

    __slots__ = (
        "_attributes",
        "_context",
        "_events",
        "_kind",
        "_links",
        "_name",
        "_parent",
        "_start",
        "_status",
        "_tracer",
    )

    def __init__(
        self,
        tracer: LeanTracer,
        name: str,
        context: SpanContext,
        *,
        parent: SpanContext | None,
        kind: SpanKind,
        attributes: dict[str, Any],
        links: Sequence[Link],
        start: int | None,
    ) -> None:
        self._tracer = tracer
        self._name = name
        self._context = context
        self._parent = parent
        self._kind = kind
        self._attributes = attributes
        self._links = links
        self._start = start
        self._events: list[Event] = []
        self._status = _UNSET

    def end(self, end_time: int | None = None) -> None:
        """End and hand over what was recorded."""
        tracer, limits = self._tracer, self._tracer.limits
        tracer.ended(
            ReadableSpan(
                name=self._name,
                context=self._context,
                parent=self._parent,
                resource=tracer.resource,
                attributes=_within(self._attributes, limits.max_span_attributes, limits.max_span_attribute_length),
                events=_latest(self._events, limits.max_events),
                links=_latest(self._links, limits.max_links),
                kind=self._kind,
                status=self._status,
                start_time=self._start,
                end_time=end_time,
                instrumentation_scope=tracer.scope,
            )
        )

    def get_span_context(self) -> SpanContext:
        """Return what identifies the span."""
        return self._context

    def set_attributes(self, attributes: Mapping[str, Any]) -> None:
        """Set several attributes."""
        self._attributes.update(attributes)

    def set_attribute(self, key: str, value: Any) -> None:
        """Set one attribute."""
        self._attributes[key] = value

    def add_event(
        self, name: str, attributes: Mapping[str, AttributeValue] | None = None, timestamp: int | None = None
    ) -> None:
        """Add an event."""
        limits = self._tracer.limits
        kept = _within(attributes or {}, limits.max_event_attributes, limits.max_attribute_length)
        self._events.append(Event(name, kept, timestamp))

    def update_name(self, name: str) -> None:
        """Rename the span."""
        self._name = name

    def is_recording(self) -> bool:
        """Say yes: what is not recorded has no such span."""
        return True

    def set_status(self, status: Status | StatusCode, description: str | None = None) -> None:
        """Set the status."""
        self._status = status if isinstance(status, Status) else Status(status, description)

    def record_exception(self, *arguments: Any, **more: Any) -> None:
        """Refuse: what went wrong is stated by the engine, never read from an exception, whose text may be private.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("failures are stated as attributes, exceptions are not recorded")


def _attributes_of(result: Any) -> Mapping[str, Any]:
    """Return the attributes that a sampler gives a span; the SDK says no types."""
    return cast("Mapping[str, Any]", result.attributes)


def _within(attributes: Mapping[str, Any], most: int | None, longest: int | None) -> Mapping[str, Any]:
    """Return `attributes` as they are if they keep the limits, else as the SDK cuts them."""
    if (most is None or len(attributes) <= most) and (
        longest is None or all(_is_short(value, longest) for value in attributes.values())
    ):
        return attributes
    return BoundedAttributes(most, attributes, immutable=True, max_value_len=longest)


def _is_short(value: object, longest: int) -> bool:
    match value:
        case str():
            return len(value) <= longest
        case tuple():
            return all(_is_short(item, longest) for item in cast("tuple[object, ...]", value))
        case _:
            return True


def _latest(items: Sequence[Any], most: int | None) -> Sequence[Any]:
    """Return `items` if there are no more than `most`, else the last ones, with the number of the others."""
    if most is None or len(items) <= most:
        return tuple(items)
    kept: BoundedList[Any] = BoundedList(most)
    for item in items:
        kept.append(item)
    return kept
