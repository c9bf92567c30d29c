"""Which attributes stand on which span and span event: the contract that the golden turn and the docs are held to."""

from typing import Final

from recallscope.telemetry import names

__all__ = ["ATTRIBUTES", "EVENT_ATTRIBUTES", "RESOURCE_ATTRIBUTES", "SPAN_ATTRIBUTES"]

_WORK: Final = (names.STATUS, names.STATUS_CAUSE, names.ERROR_TYPE)
_WRITE: Final = (names.OPERATION_NAME, names.MEMORY_STORE_ID, names.MEMORY_RECORD_ID, *_WORK)

SPAN_ATTRIBUTES: Final[dict[str, tuple[str, ...]]] = {
    names.INVOKE_AGENT: (
        *(names.OPERATION_NAME, names.AGENT_NAME, names.CONVERSATION_ID, names.TURN_ID, names.TURN_ORIGIN),
        *(names.TURN_POLICY, names.TURN_OUTCOME, names.TURN_CAUSE, names.TURN_SCENARIO, names.TURN_DELIVERED),
        *(names.TURN_REASON, names.TURN_WAITED, names.TURN_SENDS, names.TURN_FIRST_TOKEN, names.TURN_PHASES),
        *(names.TURN_KEEP, names.TURN_KEEP_REASON, names.ERROR_TYPE),
    ),
    names.SEARCH_MEMORY: (
        *(names.OPERATION_NAME, names.CONVERSATION_ID, names.TURN_ID, names.MEMORY_RECORD_COUNT),
        *(names.RECALL_POLICY, names.RECALL_CEILING, names.RECALL_OUTCOME, names.RECALL_REASON, names.RECALL_CAUSE),
        *(names.RECALL_PHASES, names.RECALL_STRATEGY, names.RECALL_POINTS, names.RECALL_FAST, names.RECALL_SETTLED),
        *(names.RECALL_DELIVERED, names.RECALL_WAITED, names.RECALL_NOTES_DELIVERED, names.RECALL_NOTES_WITHDRAWN),
        *(names.RECALL_SKIPS, names.RECALL_ROLLBACKS, names.RECALL_PARTIAL, names.TURN_SCENARIO),
        *(names.RECALL_ASKED, names.RECALL_FIRST_WAIT, names.RECALL_ENDED_BY, names.RECALL_FAST_NOTES),
        *(names.RECALL_SELECTOR_ERROR, names.RECALL_NOT_ASKED, names.TURN_DELIVERED, names.ERROR_TYPE),
    ),
    names.CHAT: (
        *(names.OPERATION_NAME, names.PROVIDER_NAME, names.REQUEST_MODEL, names.REQUEST_STREAM),
        *(names.SERVER_ADDRESS, names.SERVER_PORT, names.CONVERSATION_ID, names.PURPOSE, names.SEND_INDEX),
        *(names.SEND_POINT, names.SEND_ATTEMPTS, names.SEND_NOTES, names.RESPONSE_FIRST_CHUNK, names.USAGE_INPUT),
        *(names.USAGE_OUTPUT, names.USAGE_CACHE_READ, names.RESPONSE_MODEL, names.RESPONSE_ID),
        *(names.RESPONSE_FINISH_REASONS, *_WORK),
    ),
    names.EMBEDDINGS: (
        *(names.OPERATION_NAME, names.PROVIDER_NAME, names.REQUEST_MODEL, names.SERVER_ADDRESS, names.SERVER_PORT),
        *(names.CONVERSATION_ID, names.PURPOSE, names.SEND_ATTEMPTS, names.SEND_NOTES, names.USAGE_INPUT),
        *(names.RESPONSE_MODEL, *_WORK),
    ),
    names.EXECUTE_TOOL: (
        *(names.OPERATION_NAME, names.TOOL_NAME, names.TOOL_CALL_ID, names.TOOL_TYPE, names.TOOL_CHARACTERS),
        *(names.TOOL_IS_ERROR, *_WORK),
    ),
    names.CREATE_MEMORY: _WRITE,
    names.UPDATE_MEMORY: _WRITE,
    names.DELETE_MEMORY: _WRITE,
    names.TURN_MARK: (names.TURN_KEEP, names.TURN_KEEP_REASON, names.TURN_ID, names.CONVERSATION_ID),
}
"""What each span may carry."""

EVENT_ATTRIBUTES: Final[dict[str, tuple[str, ...]]] = {
    names.EVENT_BEGIN: (names.RECALL_POLICY, names.RECALL_CEILING, names.RECALL_CATALOG),
    names.EVENT_FAST_RESULT: (*(names.RECALL_NOTES, names.RECALL_ELAPSED, names.RECALL_PARTIAL, names.RECALL_SOURCES),),
    names.EVENT_SETTLED: (
        *(names.RECALL_NOTES, names.RECALL_STRATEGY, names.RECALL_ELAPSED, names.RECALL_NOT_ASKED, names.ERROR_TYPE),
    ),
    names.EVENT_DELIVERED: (
        *(names.RECALL_PHASE, names.RECALL_POINT, names.RECALL_NOTES, names.RECALL_ELAPSED, names.RECALL_WAITED),
    ),
    names.EVENT_ROLLED_BACK: (names.RECALL_POINT, names.RECALL_NOTES, names.RECALL_CAUSE),
    names.EVENT_SKIPPED: (names.RECALL_POINT, names.RECALL_REASON),
    names.EVENT_CANCELLED: (names.RECALL_REASON, names.RECALL_CAUSE),
    names.EVENT_ATTEMPT_FAILED: (names.SEND_ATTEMPT, names.ERROR_TYPE, names.STATUS_CODE, names.SEND_RETRY_IN),
    names.EVENT_POST_TURN_FAILED: (names.ERROR_TYPE,),
}
"""What each span event may carry."""

RESOURCE_ATTRIBUTES: Final = (
    *(names.SERVICE_NAME, names.SERVICE_NAMESPACE, names.SERVICE_VERSION, names.SERVICE_INSTANCE),
    *(names.DEPLOYMENT, names.HOST, names.PROCESS, names.FRONT_END),
)
"""What every signal says of its process."""

ATTRIBUTES: Final = frozenset(
    name for group in (*SPAN_ATTRIBUTES.values(), *EVENT_ATTRIBUTES.values(), RESOURCE_ATTRIBUTES) for name in group
)
"""Every attribute."""
