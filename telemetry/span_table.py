"""Which operation is which span: the one place that parents, contexts and headers come from.

Spans are opened and closed here only, with times that are stated, never with the current context. The table keeps
two promises: no span ends after its parent, and nothing is added to a span that has ended.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from opentelemetry.context import Context
from opentelemetry.trace import (
    INVALID_SPAN,
    Link,
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    Tracer,
    set_span_in_context,
)
from opentelemetry.util.types import AttributeValue

from recallscope.runtime.events import OpId
from recallscope.telemetry import names

__all__ = ["NO_SPAN", "OpenSpan", "SpanTable"]

MAX_OPEN = 10_000
MAX_ENDED = 4_096
ENDED_KEPT_SECONDS = 60.0

NO_SPAN = set_span_in_context(INVALID_SPAN, Context())
"""A context that says "no span": an empty one would be taken for "use the current one"."""


@dataclass(slots=True)
class OpenSpan:
    """A span under way: `attributes` are set when it ends, `latest_ns` is the latest end among its children."""

    span: Span
    context: Context
    start_ns: int
    parent: "OpenSpan | None"
    attributes: dict[str, AttributeValue]
    children: dict[OpId, None] = field(default_factory=dict[OpId, None])
    latest_ns: int = 0


class SpanTable:
    """The spans of all operations: open ones, and for a minute the contexts of ended ones.

    `forget` is told each operation whose span ends. `refused` counts operations that got no span because the table was
    full, `closed_with_parent` the spans that were ended because their parent ended.
    """

    def __init__(self, tracer: Tracer, *, forget: Callable[[OpId], None]) -> None:
        self._tracer = tracer
        self._forget = forget
        self._open: dict[OpId, OpenSpan] = {}
        self._ended: dict[OpId, tuple[SpanContext, int]] = {}
        self.closed_with_parent = 0
        self.refused = 0

    def open(
        self,
        op: OpId,
        name: str,
        start_ns: int,
        *,
        parent: OpId | None = None,
        remote: Context | None = None,
        kind: SpanKind = SpanKind.INTERNAL,
        attributes: Mapping[str, AttributeValue],
    ) -> OpenSpan | None:
        """Start the span of `op`; None if it has one already or the table is full.

        Work that begins after its parent ended outlives it, so it becomes a root that is linked to the parent.
        """
        if op in self._open or op in self._ended:
            return None
        if len(self._open) >= MAX_OPEN:
            self.refused += 1
            return None
        above = self._open.get(parent) if parent is not None else None
        links: Sequence[Link] = ()
        if above is None and parent is not None and parent in self._ended:
            links = (Link(self._ended[parent][0]),)
        span = self._tracer.start_span(
            name,
            context=above.context if above is not None else remote if remote is not None else NO_SPAN,
            kind=kind,
            attributes=attributes,
            links=links,
            start_time=start_ns,
        )
        opened = OpenSpan(span, set_span_in_context(span, NO_SPAN), start_ns, above, {})
        if above is not None:
            above.children[op] = None
        self._open[op] = opened
        return opened

    def get(self, op: OpId) -> OpenSpan | None:
        """Return the open span of `op`, None if it never began or has ended."""
        return self._open.get(op)

    def close(self, op: OpId, end_ns: int, *, error_type: str | None = None) -> None:
        """End the span of `op` and, before it, whatever is still open below it; without one, do nothing."""
        opened = self._open.pop(op, None)
        if opened is None:
            return
        end_ns = max(end_ns, opened.start_ns, opened.latest_ns)
        if opened.children:
            end_ns = max(end_ns, self._last_start(opened))
            for child in tuple(opened.children):
                self.closed_with_parent += 1
                self.close(child, end_ns)
        above = opened.parent
        if above is not None:
            above.children.pop(op, None)
            above.latest_ns = max(above.latest_ns, end_ns)
        if error_type is not None:
            opened.attributes[names.ERROR_TYPE] = error_type
            opened.span.set_status(Status(StatusCode.ERROR))
        if opened.attributes:
            opened.span.set_attributes(opened.attributes)
        opened.span.end(end_ns)
        self._forget(op)
        self._remember(op, opened.span.get_span_context(), end_ns)

    def close_all(self, end_ns: int) -> None:
        """End every span that is still open, children first."""
        for op in tuple(self._open):
            if op in self._open and self._open[op].parent is None:
                self.close(op, end_ns)

    def span_context(self, op: OpId) -> SpanContext | None:
        """Return the span context of `op`, also for a minute after its end."""
        opened = self._open.get(op)
        if opened is not None:
            return opened.span.get_span_context()
        ended = self._ended.get(op)
        return ended[0] if ended is not None else None

    def context(self, op: OpId) -> Context:
        """Return a context that holds the span of `op`; `NO_SPAN` if it is unknown."""
        opened = self._open.get(op)
        if opened is not None:
            return opened.context
        ended = self._ended.get(op)
        return set_span_in_context(NonRecordingSpan(ended[0]), NO_SPAN) if ended is not None else NO_SPAN

    def __len__(self) -> int:
        return len(self._open)

    def _last_start(self, opened: OpenSpan) -> int:
        """Return the latest time that a span below must not end before."""
        latest = opened.latest_ns
        for op in opened.children:
            child = self._open[op]
            latest = max(latest, child.start_ns, self._last_start(child))
        return latest

    def _remember(self, op: OpId, context: SpanContext, end_ns: int) -> None:
        self._ended[op] = (context, end_ns)
        oldest = next(iter(self._ended))
        expired = end_ns - self._ended[oldest][1] > ENDED_KEPT_SECONDS * 1e9
        if len(self._ended) > MAX_ENDED or (expired and oldest != op):
            del self._ended[oldest]
