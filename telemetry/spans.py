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
from opentelemetry.util.types import AttributeValue

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
    TurnPhase,
    TurnStarted,
)
from recallscope.telemetry import names
from recallscope.telemetry.anchor import Anchor
from recallscope.telemetry.span_table import OpenSpan, SpanTable

__all__ = ["WAIT_TOLERANCE_SECONDS", "SpanObserver"]

WAIT_TOLERANCE_SECONDS: Final = 0.005
"""How much longer than its ceiling an initial wait may take before it counts as an overrun."""

SLOW_TURN_SECONDS: Final = 10.24
MAX_DELIVERED_EVENTS: Final = 2
MAX_ATTEMPT_EVENTS: Final = 10

_PROPAGATOR = TraceContextTextMapPropagator()
_MEMORY_OPERATIONS = {"create": names.CREATE_MEMORY, "update": names.UPDATE_MEMORY, "delete": names.DELETE_MEMORY}
_PHASE_ATTRIBUTES = {phase: names.turn_phase(phase.value) for phase in TurnPhase}


@dataclass(slots=True)
class _Turn:
    """What a turn must remember until it ends."""

    op: OpId
    at: float
    session: str
    turn: str
    keep: str | None = None


@dataclass(slots=True)
class _Recall:
    """Which bounded events a recall has had; `withdrawn` counts notes."""

    turn: OpId
    seen: set[object] = field(default_factory=set[object])
    delivered: int = 0
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
            RecallFastResult: self._fast_result,
            RecallSettled: self._settled,
            RecallWaited: self._waited,
            RecallWithdrawn: self._withdrawn,
            RecallDelivered: self._delivered,
            RecallRolledBack: self._rolled_back,
            RecallSkipped: self._skipped,
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
    def untraced(self) -> int:
        """How many operations got no span because too many were open."""
        return self._table.untraced

    def trace_headers(self, op: OpId) -> Mapping[str, str]:
        """Return the W3C headers for work that `op` asks others for; empty for an unknown operation."""
        context = self._table.span_context(op)
        if context is None or not context.is_valid:
            return {}
        flags = int(context.trace_flags) & 0xFF
        return {"traceparent": f"00-{context.trace_id:032x}-{context.span_id:016x}-{flags:02x}"}

    def context_of(self, op: OpId) -> Context:
        """Return a context that holds the span of `op`, also shortly after it ended."""
        return self._table.context(op)

    def tick(self, now: float) -> None:
        """Mark turns that have become slow; `now` is of the clock that events carry. Call this every now and then."""
        while self._unmarked:
            turn = next(iter(self._unmarked.values()))
            if now - turn.at <= self._slow:
                return
            self._mark(turn, now, "slow")

    def close(self, now: float) -> None:
        """End whatever is still open; for the end of a process."""
        self._table.close_all(self._anchor.ns(now))

    # The process and the turn

    def _process_started(self, event: ProcessStarted) -> None:
        self._anchor = Anchor.stated(at=event.at, wall=event.wall)

    def _turn_started(self, event: TurnStarted) -> None:
        remote = _PROPAGATOR.extract({"traceparent": event.traceparent}, Context()) if event.traceparent else None
        opened = self._table.open(
            event.op,
            f"{names.INVOKE_AGENT} {event.agent}",
            self._anchor.ns(event.at),
            parent=event.parent,
            remote=remote,
            attributes={
                names.OPERATION_NAME: names.INVOKE_AGENT,
                names.AGENT_NAME: event.agent,
                names.CONVERSATION_ID: event.session,
                names.TURN_ID: event.turn,
                names.TURN_ORIGIN: event.origin.value,
                names.TURN_POLICY: event.policy.value,
            },
        )
        if opened is not None:
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
            self._mark(turn, event.at, "failed")
        elif event.at - turn.at > self._slow:
            self._mark(turn, event.at, "slow")
        attributes = opened.attributes
        attributes[names.TURN_OUTCOME] = event.outcome.value
        attributes[names.TURN_SENDS] = event.sends
        if event.cause is not None:
            attributes[names.TURN_CAUSE] = event.cause.value
        if event.scenario is not None:
            attributes[names.TURN_SCENARIO] = event.scenario.value
        if event.delivered is not None:
            attributes[names.TURN_DELIVERED] = event.delivered.value
        if event.recall_reason is not None:
            attributes[names.TURN_REASON] = event.recall_reason.value
        if event.recall_waited is not None:
            attributes[names.TURN_WAITED] = event.recall_waited
        for phase, seconds in event.phases:
            attributes[_PHASE_ATTRIBUTES[phase]] = seconds
        self._close(event.op, event.at, (event.error_type or names.ERROR_OTHER) if failed else None)

    def _post_turn_failed(self, event: PostTurnFailed) -> None:
        self._add(event, names.EVENT_POST_TURN_FAILED, {names.ERROR_TYPE: event.error_type})

    def _mark(self, turn: _Turn, at: float, reason: str) -> None:
        """Record the marker span, once per turn, so that a sampler that waits for the root need not."""
        self._unmarked.pop(turn.op, None)
        opened = self._table.get(turn.op)
        if turn.keep is not None or opened is None:
            return
        turn.keep = reason
        keep: dict[str, AttributeValue] = {names.TURN_KEEP: True, names.TURN_KEEP_REASON: reason}
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
        policy = event.policy.value
        opened = self._table.open(
            event.op,
            names.SEARCH_MEMORY,
            self._anchor.ns(event.at),
            parent=event.parent,
            attributes={
                names.OPERATION_NAME: names.SEARCH_MEMORY,
                names.CONVERSATION_ID: event.session,
                names.TURN_ID: event.turn,
                names.RECALL_POLICY: policy,
                names.RECALL_CEILING: event.ceiling,
            },
        )
        if opened is not None:
            self._recalls[event.op] = _Recall(event.parent)
            self._sessions[event.op] = event.session
            self._add(
                event,
                names.EVENT_BEGIN,
                {
                    names.RECALL_POLICY: policy,
                    names.RECALL_CEILING: event.ceiling,
                    names.RECALL_CATALOG: event.catalog_notes,
                },
            )

    def _fast_result(self, event: RecallFastResult) -> None:
        if self._first(event, names.EVENT_FAST_RESULT):
            attributes: dict[str, AttributeValue] = {
                names.RECALL_NOTES: len(event.notes),
                names.RECALL_ELAPSED: event.elapsed,
                names.RECALL_PARTIAL: event.partial,
            }
            self._add(event, names.EVENT_FAST_RESULT, attributes)

    def _settled(self, event: RecallSettled) -> None:
        if self._first(event, names.EVENT_SETTLED):
            attributes: dict[str, AttributeValue] = {
                names.RECALL_NOTES: len(event.notes),
                names.RECALL_STRATEGY: event.strategy.value,
                names.RECALL_ELAPSED: event.elapsed,
            }
            if event.error_type is not None:
                attributes[names.ERROR_TYPE] = event.error_type.value
            self._add(event, names.EVENT_SETTLED, attributes)

    def _waited(self, event: RecallWaited) -> None:
        if event.point is Point.INITIAL and event.waited > event.ceiling + WAIT_TOLERANCE_SECONDS:
            self._mark_turn_of(event, "overrun")

    def _withdrawn(self, event: RecallWithdrawn) -> None:
        recall = self._recalls.get(event.op)
        if recall is not None:
            recall.withdrawn += len(event.notes)

    def _delivered(self, event: RecallDelivered) -> None:
        recall = self._recalls.get(event.op)
        if recall is None or recall.delivered >= MAX_DELIVERED_EVENTS:
            return
        recall.delivered += 1
        attributes: dict[str, AttributeValue] = {
            names.RECALL_PHASE: event.phase.value,
            names.RECALL_POINT: event.point.value,
            names.RECALL_NOTES: len(event.notes),
            names.RECALL_ELAPSED: event.elapsed,
            names.RECALL_WAITED: event.waited,
        }
        self._add(event, names.EVENT_DELIVERED, attributes)

    def _rolled_back(self, event: RecallRolledBack) -> None:
        if self._first(event, names.EVENT_ROLLED_BACK):
            attributes: dict[str, AttributeValue] = {
                names.RECALL_POINT: event.point.value,
                names.RECALL_NOTES: len(event.notes),
                names.RECALL_CAUSE: event.cause.value,
            }
            self._add(event, names.EVENT_ROLLED_BACK, attributes)

    def _skipped(self, event: RecallSkipped) -> None:
        if self._first(event, event.point):
            attributes = {names.RECALL_POINT: event.point.value, names.RECALL_REASON: event.reason.value}
            self._add(event, names.EVENT_SKIPPED, attributes)

    def _recall_closed(self, event: RecallClosed) -> None:
        recall, opened = self._recalls.get(event.op), self._table.get(event.op)
        if recall is None or opened is None:
            return
        if event.settled_seconds is None or event.reason is event.close_reason:
            attributes = {names.RECALL_REASON: event.close_reason.value, names.RECALL_CAUSE: event.cause.value}
            self._add(event, names.EVENT_CANCELLED, attributes)
        if event.outcome is Outcome.DISCARDED and event.notes_selected:
            turn = self._turns.get(recall.turn)
            if turn is not None:
                self._mark(turn, event.at, "miss")
        opened.attributes.update(
            {
                names.RECALL_OUTCOME: event.outcome.value,
                names.RECALL_REASON: event.reason.value,
                names.RECALL_CAUSE: event.cause.value,
                names.RECALL_PHASES: event.phases.value,
                names.RECALL_STRATEGY: event.strategy.value,
                names.RECALL_POINTS: tuple(point.value for point in event.points),
                names.RECALL_WAITED: event.waited,
                names.RECALL_NOTES_DELIVERED: event.notes_delivered,
                names.RECALL_SKIPS: event.skips,
                names.RECALL_ROLLBACKS: event.rollbacks,
                names.RECALL_PARTIAL: event.partial,
                names.MEMORY_RECORD_COUNT: event.notes_selected,
                names.TURN_SCENARIO: event.scenario.value,
                names.TURN_DELIVERED: event.delivered.value,
            }
        )
        for name, seconds in (
            (names.RECALL_FAST, event.fast_seconds),
            (names.RECALL_SETTLED, event.settled_seconds),
            (names.RECALL_DELIVERED, event.delivered_seconds),
        ):
            if seconds is not None:
                opened.attributes[name] = seconds
        if recall.withdrawn:
            opened.attributes[names.RECALL_NOTES_WITHDRAWN] = recall.withdrawn
        self._close(event.op, event.at, event.reason.value if event.outcome is Outcome.FAILED else None)

    # Model, tools, memory

    def _call_started(self, event: ModelCallStarted) -> None:
        attributes: dict[str, AttributeValue] = {
            names.OPERATION_NAME: names.CHAT,
            names.PROVIDER_NAME: event.provider,
            names.REQUEST_MODEL: event.model,
            names.SERVER_ADDRESS: event.address,
            names.SERVER_PORT: event.port,
            names.PURPOSE: event.purpose.value,
        }
        session = self._session_of(event.parent)
        if session is not None:
            attributes[names.CONVERSATION_ID] = session
        if event.streamed:
            attributes[names.REQUEST_STREAM] = True
        if event.send is not None:
            attributes[names.SEND_INDEX] = event.send
        if event.point is not None:
            attributes[names.SEND_POINT] = event.point.value
        self._table.open(
            event.op,
            f"{names.CHAT} {event.model}",
            self._anchor.ns(event.at),
            parent=event.parent,
            kind=SpanKind.CLIENT,
            attributes=attributes,
        )

    def _attempt_failed(self, event: ModelAttemptFailed) -> None:
        if self._table.get(event.op) is None or self._attempts.get(event.op, 0) >= MAX_ATTEMPT_EVENTS:
            return
        self._attempts[event.op] = self._attempts.get(event.op, 0) + 1
        attributes: dict[str, AttributeValue] = {
            names.SEND_ATTEMPT: event.attempt,
            names.ERROR_TYPE: event.error_type,
        }
        if event.status_code is not None:
            attributes[names.STATUS_CODE] = event.status_code
        if event.retry_in is not None:
            attributes[names.SEND_RETRY_IN] = event.retry_in
        self._add(event, names.EVENT_ATTEMPT_FAILED, attributes)

    def _call_finished(self, event: ModelCallFinished) -> None:
        opened = self._table.get(event.op)
        if opened is None:
            return
        attributes = opened.attributes
        attributes[names.SEND_ATTEMPTS] = event.attempts
        attributes[names.SEND_NOTES] = event.notes
        for name, value in (
            (names.RESPONSE_FIRST_CHUNK, event.first_chunk),
            (names.USAGE_INPUT, event.input_tokens),
            (names.USAGE_OUTPUT, event.output_tokens),
            (names.USAGE_CACHE_READ, event.cached_tokens),
            (names.RESPONSE_MODEL, event.response_model),
            (names.RESPONSE_ID, event.response_id),
        ):
            if value is not None:
                attributes[name] = value
        if event.finish_reason is not None:
            attributes[names.RESPONSE_FINISH_REASONS] = (event.finish_reason,)
        self._finish(event)

    def _tool_started(self, event: ToolStarted) -> None:
        self._table.open(
            event.op,
            f"{names.EXECUTE_TOOL} {event.tool}",
            self._anchor.ns(event.at),
            parent=event.parent,
            attributes={
                names.OPERATION_NAME: names.EXECUTE_TOOL,
                names.TOOL_NAME: event.tool,
                names.TOOL_CALL_ID: event.call_id,
                names.TOOL_TYPE: "function",
            },
        )

    def _tool_finished(self, event: ToolFinished) -> None:
        opened = self._table.get(event.op)
        if opened is not None:
            opened.attributes[names.TOOL_CHARACTERS] = event.characters
            opened.attributes[names.TOOL_IS_ERROR] = event.is_error
            self._finish(event)

    def _write_started(self, event: MemoryWriteStarted) -> None:
        operation = _MEMORY_OPERATIONS[event.operation]
        self._table.open(
            event.op,
            operation,
            self._anchor.ns(event.at),
            parent=event.parent,
            attributes={
                names.OPERATION_NAME: operation,
                names.MEMORY_STORE_ID: event.scope.value,
                names.MEMORY_RECORD_ID: event.note,
            },
        )

    def _finish(self, event: Finished) -> None:
        opened = self._table.get(event.op)
        if opened is None:
            return
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

    def _first(self, event: Event, what: object) -> bool:
        """Say whether this is the recall's first event of that kind, and remember it."""
        recall = self._recalls.get(event.op)
        if recall is None or what in recall.seen:
            return False
        recall.seen.add(what)
        return True

    def _add(self, event: Event, name: str, attributes: Mapping[str, AttributeValue]) -> None:
        opened: OpenSpan | None = self._table.get(event.op)
        if opened is not None:
            opened.span.add_event(name, attributes, self._anchor.ns(event.at))

    def _session_of(self, op: OpId | None) -> str | None:
        return self._sessions.get(op) if op is not None else None

    def _mark_turn_of(self, event: Event, reason: str) -> None:
        recall = self._recalls.get(event.op)
        turn = self._turns.get(recall.turn) if recall is not None else None
        if turn is not None:
            self._mark(turn, event.at, reason)
