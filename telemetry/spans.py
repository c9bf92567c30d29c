"""Draws spans from events: `invoke_agent` over `search_memory` over `chat`, tools and memory writes beside them.

The observer must see events before any observer that asks it for contexts. It is not safe for several threads: it
runs in the thread that states the events. Nothing here reads or sets the current context.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from opentelemetry.context import Context
from opentelemetry.trace import SpanKind, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from recallscope.runtime.events import (
    Event,
    Finished,
    MemoryWriteFinished,
    MemoryWriteStarted,
    ModelAttemptFailed,
    ModelCallFinished,
    ModelCallStarted,
    OpId,
    Outcome,
    Point,
    PostTurnFailed,
    ProcessStarted,
    RecallBegun,
    RecallClosed,
    RecallDelivered,
    RecallFastResult,
    RecallRolledBack,
    RecallSettled,
    RecallSkipped,
    RecallWaited,
    RecallWithdrawn,
    Status,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnFirstToken,
    TurnOutcome,
    TurnStarted,
)
from recallscope.telemetry import names
from recallscope.telemetry import span_attributes as say
from recallscope.telemetry.anchor import Anchor
from recallscope.telemetry.span_table import SpanTable

__all__ = ["SLOW_TURN_SECONDS", "WAIT_TOLERANCE_SECONDS", "SpanObserver"]

WAIT_TOLERANCE_SECONDS: Final = 0.005
"""How much longer than its ceiling an initial wait may take before it counts as an overrun."""

SLOW_TURN_SECONDS: Final = 10.24
MAX_DELIVERED_EVENTS: Final = 2
MAX_ATTEMPT_EVENTS: Final = 10

_PROPAGATOR = TraceContextTextMapPropagator()


@dataclass(slots=True)
class _Turn:
    """What a turn must remember until it ends; `keep` is why it has its marker span."""

    op: OpId
    at: float
    session: str
    turn: str
    keep: str | None = None


@dataclass(slots=True)
class _Recall:
    """Which bounded events a recall has had; `withdrawn` counts notes."""

    turn: OpId
    begun_at: float
    seen: dict[object, int] = field(default_factory=dict[object, int])
    withdrawn: int = 0


class SpanObserver:
    """Turns events into spans.

    Args:
        tracer: makes the spans.
        anchor: ties event times to the wall until a `ProcessStarted` event states its own.
        slow_turn_seconds: a turn older than this gets its marker span at once (see `tick`).
    """

    name = "spans"

    def __init__(
        self, tracer: Tracer, *, anchor: Anchor | None = None, slow_turn_seconds: float = SLOW_TURN_SECONDS
    ) -> None:
        self._table = SpanTable(tracer, forget=self._forget)
        self._tracer = tracer
        self._anchor = anchor or Anchor.now()
        self._slow = slow_turn_seconds
        self._turns: dict[OpId, _Turn] = {}
        self._unmarked: dict[OpId, _Turn] = {}
        self._recalls: dict[OpId, _Recall] = {}
        self._sessions: dict[OpId, str] = {}
        self._attempts: dict[OpId, int] = {}
        self._handlers: dict[type[Event], Callable[[Any], None]] = {
            ProcessStarted: self._process_started,
            TurnStarted: self._turn_started,
            TurnFirstToken: self._first_token,
            TurnFinished: self._turn_finished,
            PostTurnFailed: self._post_turn_failed,
            RecallBegun: self._recall_begun,
            RecallFastResult: self._told,
            RecallSettled: self._told,
            RecallRolledBack: self._once,
            RecallDelivered: self._delivered,
            RecallSkipped: self._skipped,
            RecallWaited: self._waited,
            RecallWithdrawn: self._withdrawn,
            RecallClosed: self._recall_closed,
            ModelCallStarted: self._call_started,
            ModelAttemptFailed: self._attempt_failed,
            ModelCallFinished: self._call_finished,
            ToolStarted: self._tool_started,
            ToolFinished: self._tool_finished,
            MemoryWriteStarted: self._write_started,
            MemoryWriteFinished: self._finish,
        }

    def __call__(self, event: Event, /) -> None:
        """Take one event; kinds that no span shows are ignored."""
        handler = self._handlers.get(type(event))
        if handler is not None:
            handler(event)

    @property
    def unclosed(self) -> int:
        """How many spans were ended because their parent ended."""
        return self._table.closed_with_parent

    @property
    def refused(self) -> int:
        """How many operations got no span because too many were open."""
        return self._table.refused

    def trace_headers(self, op: OpId) -> Mapping[str, str]:
        """Return the W3C headers for work that `op` asks others for; empty for an unknown operation."""
        context = self._table.span_context(op)
        if context is None or not context.is_valid:
            return {}
        flags = int(context.trace_flags) & 0xFF
        return {"traceparent": f"00-{context.trace_id:032x}-{context.span_id:016x}-{flags:02x}"}

    def trace_id(self, op: OpId) -> str | None:
        """Return the id of the trace of `op`, 32 hexadecimal digits; any thread may ask."""
        context = self._table.span_context(op)
        return f"{context.trace_id:032x}" if context is not None and context.is_valid else None

    def context_of(self, op: OpId) -> Context:
        """Return a context that holds the span of `op`, also shortly after it ended."""
        return self._table.context(op)

    def tick(self, now: float) -> None:
        """Mark turns that have become slow; `now` is of the clock that events carry. Call this every now and then."""
        while self._unmarked:
            turn = next(iter(self._unmarked.values()))
            if now - turn.at <= self._slow:
                return
            self._mark(turn, now, names.KEEP_SLOW)

    def close(self, now: float) -> None:
        """End whatever is still open; for the end of a process."""
        self._table.close_all(self._anchor.ns(now))

    # The process and the turn

    def _process_started(self, event: ProcessStarted) -> None:
        self._anchor = Anchor.stated(at=event.at, wall=event.wall)

    def _turn_started(self, event: TurnStarted) -> None:
        remote = _PROPAGATOR.extract({"traceparent": event.traceparent}, Context()) if event.traceparent else None
        name, start_ns = f"{names.INVOKE_AGENT} {event.agent}", self._anchor.ns(event.at)
        attributes = say.turn_start(event)
        if self._table.open(event.op, name, start_ns, parent=event.parent, remote=remote, attributes=attributes):
            turn = _Turn(event.op, event.at, event.session, event.turn)
            self._turns[event.op] = turn
            self._unmarked[event.op] = turn
            self._sessions[event.op] = event.session

    def _first_token(self, event: TurnFirstToken) -> None:
        turn, opened = self._turns.get(event.op), self._table.get(event.op)
        if turn is not None and opened is not None:
            opened.attributes.setdefault(names.TURN_FIRST_TOKEN, event.at - turn.at)

    def _turn_finished(self, event: TurnFinished) -> None:
        turn, opened = self._turns.get(event.op), self._table.get(event.op)
        if turn is None or opened is None:
            return
        failed = event.status is Status.FAILED or event.outcome is TurnOutcome.FAILED
        if failed:
            self._mark(turn, event.at, names.KEEP_FAILED)
        elif event.at - turn.at > self._slow:
            self._mark(turn, event.at, names.KEEP_SLOW)
        opened.attributes.update(say.turn_end(event))
        self._close(event.op, event.at, (event.error_type or names.ERROR_OTHER) if failed else None)

    def _post_turn_failed(self, event: PostTurnFailed) -> None:
        opened = self._table.get(event.op)
        if opened is not None:
            opened.span.add_event(
                names.EVENT_POST_TURN_FAILED, {names.ERROR_TYPE: event.error_type}, self._anchor.ns(event.at)
            )

    def _mark(self, turn: _Turn, at: float, reason: str) -> None:
        """Record the marker span, once per turn, so that a sampler that waits for the root need not."""
        self._unmarked.pop(turn.op, None)
        opened = self._table.get(turn.op)
        if turn.keep is not None or opened is None:
            return
        turn.keep = reason
        keep: say.Attributes = {names.TURN_KEEP: True, names.TURN_KEEP_REASON: reason}
        opened.attributes.update(keep)
        at_ns = max(self._anchor.ns(at), opened.start_ns)
        opened.latest_ns = max(opened.latest_ns, at_ns)
        mark = self._tracer.start_span(
            names.TURN_MARK,
            context=opened.context,
            attributes={**keep, names.TURN_ID: turn.turn, names.CONVERSATION_ID: turn.session},
            start_time=at_ns,
        )
        mark.end(at_ns)

    # The recall

    def _recall_begun(self, event: RecallBegun) -> None:
        attributes = say.recall_start(event)
        start_ns = self._anchor.ns(event.at)
        if self._table.open(event.op, names.SEARCH_MEMORY, start_ns, parent=event.parent, attributes=attributes):
            self._recalls[event.op] = _Recall(event.parent, event.at)
            self._sessions[event.op] = event.session
            self._add(event)

    def _once(self, event: Event) -> None:
        self._add_bounded(event, type(event), 1)

    def _told(self, event: RecallFastResult | RecallSettled) -> None:
        self._note(event)
        self._once(event)

    def _note(self, event: RecallFastResult | RecallSettled | RecallWaited) -> None:
        """Keep as attributes what a verdict needs; the first of its kind counts."""
        recall, opened = self._recalls.get(event.op), self._table.get(event.op)
        if recall is not None and opened is not None:
            opened.attributes = say.recall_on_the_way(event, recall.begun_at) | opened.attributes

    def _delivered(self, event: RecallDelivered) -> None:
        self._add_bounded(event, type(event), MAX_DELIVERED_EVENTS)

    def _skipped(self, event: RecallSkipped) -> None:
        self._add_bounded(event, event.point, 1)

    def _waited(self, event: RecallWaited) -> None:
        if event.point is not Point.INITIAL:
            return
        self._note(event)
        if event.waited > event.ceiling + WAIT_TOLERANCE_SECONDS:
            self._mark_turn_of(event, names.KEEP_OVERRUN)

    def _withdrawn(self, event: RecallWithdrawn) -> None:
        recall = self._recalls.get(event.op)
        if recall is not None:
            recall.withdrawn += len(event.notes)

    def _recall_closed(self, event: RecallClosed) -> None:
        recall, opened = self._recalls.get(event.op), self._table.get(event.op)
        if recall is None or opened is None:
            return
        if event.settled_seconds is None or event.reason is event.close_reason:
            self._add(event)
        if event.outcome is Outcome.DISCARDED and event.notes_selected:
            self._mark_turn_of(event, names.KEEP_MISS)
        opened.attributes.update(say.recall_end(event, recall.withdrawn))
        self._close(event.op, event.at, event.reason.value if event.outcome is Outcome.FAILED else None)

    # Model, tools, memory

    def _call_started(self, event: ModelCallStarted) -> None:
        session = self._sessions.get(event.parent) if event.parent is not None else None
        self._table.open(
            event.op,
            f"{say.call_operation(event)} {event.model}",
            self._anchor.ns(event.at),
            parent=event.parent,
            kind=SpanKind.CLIENT,
            attributes=say.call_start(event, session),
        )

    def _attempt_failed(self, event: ModelAttemptFailed) -> None:
        number = self._attempts.get(event.op, 0)
        if self._table.get(event.op) is not None and number < MAX_ATTEMPT_EVENTS:
            self._attempts[event.op] = number + 1
            self._add(event)

    def _call_finished(self, event: ModelCallFinished) -> None:
        opened = self._table.get(event.op)
        if opened is not None:
            opened.attributes.update(say.call_end(event))
            self._finish(event)

    def _tool_started(self, event: ToolStarted) -> None:
        name, start_ns = f"{names.EXECUTE_TOOL} {event.tool}", self._anchor.ns(event.at)
        self._table.open(event.op, name, start_ns, parent=event.parent, attributes=say.tool_start(event))

    def _tool_finished(self, event: ToolFinished) -> None:
        opened = self._table.get(event.op)
        if opened is not None:
            opened.attributes[names.TOOL_CHARACTERS] = event.characters
            opened.attributes[names.TOOL_IS_ERROR] = event.is_error
            self._finish(event)

    def _write_started(self, event: MemoryWriteStarted) -> None:
        name, start_ns = say.MEMORY_OPERATIONS[event.operation], self._anchor.ns(event.at)
        self._table.open(event.op, name, start_ns, parent=event.parent, attributes=say.write_start(event))

    def _finish(self, event: Finished) -> None:
        opened = self._table.get(event.op)
        if opened is None:
            return
        if event.status is not Status.OK:
            opened.attributes[names.STATUS] = event.status.value
        if event.cause is not None:
            opened.attributes[names.STATUS_CAUSE] = event.cause.value
        failed = event.status is Status.FAILED
        self._close(event.op, event.at, (event.error_type or names.ERROR_OTHER) if failed else None)

    # What they share

    def _close(self, op: OpId, at: float, error_type: str | None) -> None:
        self._table.close(op, self._anchor.ns(at), error_type=error_type)

    def _forget(self, op: OpId) -> None:
        """Drop what is remembered of an operation whose span has ended, however it ended."""
        self._sessions.pop(op, None)
        self._attempts.pop(op, None)
        self._recalls.pop(op, None)
        self._turns.pop(op, None)
        self._unmarked.pop(op, None)

    def _add(self, event: Event) -> None:
        """Add `event` to its span, if that is open."""
        opened, said = self._table.get(event.op), say.span_event(event)
        if opened is not None and said is not None:
            opened.span.add_event(*said, self._anchor.ns(event.at))

    def _add_bounded(self, event: Event, kind: object, most: int) -> None:
        """Add a recall's event unless it has had `most` of its kind: so a recall never has more than 10."""
        recall = self._recalls.get(event.op)
        if recall is not None and recall.seen.get(kind, 0) < most:
            recall.seen[kind] = recall.seen.get(kind, 0) + 1
            self._add(event)

    def _mark_turn_of(self, event: Event, reason: str) -> None:
        recall = self._recalls.get(event.op)
        turn = self._turns.get(recall.turn) if recall is not None else None
        if turn is not None:
            self._mark(turn, event.at, reason)
