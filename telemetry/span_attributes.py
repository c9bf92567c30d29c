"""What spans and their events say: attributes from events, as plain functions."""

from typing import Final

from opentelemetry.util.types import AttributeValue

from recallscope.runtime.events import (
    Event,
    MemoryWriteStarted,
    ModelAttemptFailed,
    ModelCallFinished,
    ModelCallStarted,
    Purpose,
    RecallBegun,
    RecallClosed,
    RecallDelivered,
    RecallFastResult,
    RecallRolledBack,
    RecallSettled,
    RecallSkipped,
    RecallWaited,
    ToolStarted,
    TurnFinished,
    TurnPhase,
    TurnStarted,
)
from recallscope.telemetry import names

__all__ = ["MEMORY_OPERATIONS", "Attributes", "call_operation"]

Attributes = dict[str, AttributeValue]

MEMORY_OPERATIONS: Final = {
    "create": names.CREATE_MEMORY,
    "update": names.UPDATE_MEMORY,
    "delete": names.DELETE_MEMORY,
}
_PHASES: Final = {phase: names.turn_phase(phase.value) for phase in TurnPhase}


def turn_start(event: TurnStarted) -> Attributes:
    """Say what is known of a turn when it starts."""
    return {
        names.OPERATION_NAME: names.INVOKE_AGENT,
        names.AGENT_NAME: event.agent,
        names.CONVERSATION_ID: event.session,
        names.TURN_ID: event.turn,
        names.TURN_ORIGIN: event.origin.value,
        names.TURN_POLICY: event.policy.value,
    }


def turn_end(event: TurnFinished) -> Attributes:
    """Say how a turn ended."""
    attributes: Attributes = {names.TURN_OUTCOME: event.outcome.value, names.TURN_SENDS: event.sends}
    for phase, seconds in event.phases:
        attributes[_PHASES[phase]] = seconds
    return attributes | _present(
        (names.TURN_CAUSE, event.cause),
        (names.TURN_SCENARIO, event.scenario),
        (names.TURN_DELIVERED, event.delivered),
        (names.TURN_REASON, event.recall_reason),
        (names.TURN_WAITED, event.recall_waited),
    )


def recall_start(event: RecallBegun) -> Attributes:
    """Say what is known of a recall when it begins."""
    return {
        names.OPERATION_NAME: names.SEARCH_MEMORY,
        names.CONVERSATION_ID: event.session,
        names.TURN_ID: event.turn,
        names.RECALL_POLICY: event.policy.value,
        names.RECALL_CEILING: event.ceiling,
    }


def recall_on_the_way(event: RecallFastResult | RecallSettled | RecallWaited, begun_at: float) -> Attributes:
    """Say of a recall what its end does not tell: what a verdict needs when the span's events are missing."""
    match event:
        case RecallFastResult():
            return {names.RECALL_FAST_NOTES: len(event.notes)}
        case RecallSettled():
            return _present((names.RECALL_SELECTOR_ERROR, event.error_type), (names.RECALL_NOT_ASKED, event.not_asked))
        case RecallWaited():
            return {
                names.RECALL_ASKED: round(event.at - event.waited - begun_at, 6),
                names.RECALL_FIRST_WAIT: event.waited,
                names.RECALL_ENDED_BY: event.ended_by.value,
            }


def recall_end(event: RecallClosed, withdrawn: int) -> Attributes:
    """Say how a recall ended: enough for the verdict without its events."""
    attributes: Attributes = {
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
    return attributes | _present(
        (names.RECALL_FAST, event.fast_seconds),
        (names.RECALL_SETTLED, event.settled_seconds),
        (names.RECALL_DELIVERED, event.delivered_seconds),
        (names.RECALL_NOTES_WITHDRAWN, withdrawn or None),
    )


def call_operation(event: ModelCallStarted) -> str:
    """Return what the conventions call a request to a model: texts in, vectors out is `embeddings`."""
    return names.EMBEDDINGS if event.purpose is Purpose.EMBEDDING else names.CHAT


def call_start(event: ModelCallStarted, session: str | None) -> Attributes:
    """Say what a model is asked, and where."""
    attributes: Attributes = {
        names.OPERATION_NAME: call_operation(event),
        names.PROVIDER_NAME: event.provider,
        names.REQUEST_MODEL: event.model,
        names.SERVER_ADDRESS: event.address,
        names.SERVER_PORT: event.port,
        names.PURPOSE: event.purpose.value,
    }
    return attributes | _present(
        (names.CONVERSATION_ID, session),
        (names.REQUEST_STREAM, event.streamed or None),
        (names.SEND_INDEX, event.send),
        (names.SEND_POINT, event.point),
    )


def call_end(event: ModelCallFinished) -> Attributes:
    """Say what a model answered, without its words."""
    attributes: Attributes = {names.SEND_ATTEMPTS: event.attempts, names.SEND_NOTES: event.notes}
    if event.finish_reason is not None:
        attributes[names.RESPONSE_FINISH_REASONS] = (_clean(event.finish_reason),)
    return attributes | _present(
        (names.RESPONSE_FIRST_CHUNK, event.first_chunk),
        (names.USAGE_INPUT, event.input_tokens),
        (names.USAGE_OUTPUT, event.output_tokens),
        (names.USAGE_CACHE_READ, event.cached_tokens),
        (names.RESPONSE_MODEL, event.response_model),
        (names.RESPONSE_ID, event.response_id),
    )


def tool_start(event: ToolStarted) -> Attributes:
    """Say which tool is called."""
    return {
        names.OPERATION_NAME: names.EXECUTE_TOOL,
        names.TOOL_NAME: event.tool,
        names.TOOL_CALL_ID: _clean(event.call_id),
        names.TOOL_TYPE: "function",
    }


def write_start(event: MemoryWriteStarted) -> Attributes:
    """Say which note is written."""
    return {
        names.OPERATION_NAME: MEMORY_OPERATIONS[event.operation],
        names.MEMORY_STORE_ID: event.scope.value,
        names.MEMORY_RECORD_ID: _clean(event.note),
    }


def span_event(event: Event) -> tuple[str, Attributes] | None:  # noqa: PLR0911 - a table, one row per event
    """Return the name and attributes of the span event that `event` is; None if it is none."""
    match event:
        case RecallBegun():
            return names.EVENT_BEGIN, {
                names.RECALL_POLICY: event.policy.value,
                names.RECALL_CEILING: event.ceiling,
                names.RECALL_CATALOG: event.catalog_notes,
            }
        case RecallFastResult():
            return names.EVENT_FAST_RESULT, {
                names.RECALL_NOTES: len(event.notes),
                names.RECALL_ELAPSED: event.elapsed,
                names.RECALL_PARTIAL: event.partial,
                names.RECALL_SOURCES: event.sources,
            }
        case RecallSettled():
            settled: Attributes = {
                names.RECALL_NOTES: len(event.notes),
                names.RECALL_STRATEGY: event.strategy.value,
                names.RECALL_ELAPSED: event.elapsed,
            }
            return names.EVENT_SETTLED, settled | _present(
                (names.ERROR_TYPE, event.error_type), (names.RECALL_NOT_ASKED, event.not_asked)
            )
        case RecallDelivered():
            return names.EVENT_DELIVERED, {
                names.RECALL_PHASE: event.phase.value,
                names.RECALL_POINT: event.point.value,
                names.RECALL_NOTES: len(event.notes),
                names.RECALL_ELAPSED: event.elapsed,
                names.RECALL_WAITED: event.waited,
            }
        case RecallRolledBack():
            return names.EVENT_ROLLED_BACK, {
                names.RECALL_POINT: event.point.value,
                names.RECALL_NOTES: len(event.notes),
                names.RECALL_CAUSE: event.cause.value,
            }
        case RecallSkipped():
            return names.EVENT_SKIPPED, {
                names.RECALL_POINT: event.point.value,
                names.RECALL_REASON: event.reason.value,
            }
        case RecallClosed():
            return names.EVENT_CANCELLED, {
                names.RECALL_REASON: event.close_reason.value,
                names.RECALL_CAUSE: event.cause.value,
            }
        case ModelAttemptFailed():
            failed: Attributes = {names.SEND_ATTEMPT: event.attempt, names.ERROR_TYPE: event.error_type}
            return names.EVENT_ATTEMPT_FAILED, failed | _present(
                (names.STATUS_CODE, event.status_code), (names.SEND_RETRY_IN, event.retry_in)
            )
        case _:
            return None


def _present(*pairs: tuple[str, AttributeValue | None]) -> Attributes:
    """Return the pairs that have a value, as plain values."""
    return {name: _clean(value) if isinstance(value, str) else value for name, value in pairs if value is not None}


def _clean(text: str) -> str:
    """Return text from outside so that protobuf takes it: one lone surrogate would cost a whole batch of spans."""
    return str(text) if text.isascii() else text.encode("utf-8", "replace").decode()
