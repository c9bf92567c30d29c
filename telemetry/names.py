"""Every name that telemetry emits: spans, attributes, span events, metrics, grouped by the part that emits them.

No other file spells a name. The `gen_ai.*` names are those of the GenAI semantic conventions v0.1.0 (the Python
constants still carry older ones), the rest stands under `recallscope.*`. `docs/telemetry.md` explains each of them,
and a test compares both. Durations are seconds; labels hold enum values or configuration, never ids or text.
"""

from typing import Final

from recallscope.telemetry.metric import Metric, counter, gauge, histogram, up_down

SCOPE: Final = "recallscope"
"""The instrumentation scope of the tracer, the meter and the logger."""

BUCKETS_R: Final = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.105, 0.15),
    *(0.25, 0.5, 0.85, 1.0, 1.1, 2.5, 2.6, 5.0, 10.0, 30.0),
)
"""Recall: every bound that a verdict uses is a boundary; 0.105 is the default ceiling plus its tolerance."""

BUCKETS_T: Final = tuple(round(0.08 * 2**n, 2) for n in range(13))
"""Turns: 0.08 s to 327.68 s in doublings; 10.24 s is the boundary of a slow turn."""

BUCKETS_INFERENCE: Final = tuple(round(0.01 * 2**n, 2) for n in range(14))
"""What the conventions advise for model and tool calls."""

BUCKETS_INVOKE_AGENT: Final = tuple(round(0.1 * 2**n, 1) for n in range(13))
"""What the conventions' own library uses for whole agent invocations."""


# Labels of our own metrics

AGENT: Final = "agent"
POLICY: Final = "policy"
OUTCOME: Final = "outcome"
REASON: Final = "reason"
PHASE: Final = "phase"
POINT: Final = "point"
ENDED_BY: Final = "ended_by"
STRATEGY: Final = "strategy"
SCENARIO: Final = "scenario"
DELIVERED: Final = "delivered"
CAUSE: Final = "cause"
SCOPE_LABEL: Final = "scope"
SIGNAL: Final = "signal"
OBSERVER: Final = "observer"

# Resource

SERVICE_NAME: Final = "service.name"
SERVICE_NAMESPACE: Final = "service.namespace"
SERVICE_VERSION: Final = "service.version"
SERVICE_INSTANCE: Final = "service.instance.id"
DEPLOYMENT: Final = "deployment.environment.name"
HOST: Final = "host.name"
PROCESS: Final = "process.pid"
FRONT_END: Final = "recallscope.front_end"

# Attributes of the conventions

OPERATION_NAME: Final = "gen_ai.operation.name"
PROVIDER_NAME: Final = "gen_ai.provider.name"
REQUEST_MODEL: Final = "gen_ai.request.model"
REQUEST_STREAM: Final = "gen_ai.request.stream"
RESPONSE_ID: Final = "gen_ai.response.id"
RESPONSE_MODEL: Final = "gen_ai.response.model"
RESPONSE_FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
RESPONSE_FIRST_CHUNK: Final = "gen_ai.response.time_to_first_chunk"
USAGE_INPUT: Final = "gen_ai.usage.input_tokens"
USAGE_OUTPUT: Final = "gen_ai.usage.output_tokens"
USAGE_CACHE_READ: Final = "gen_ai.usage.cache_read.input_tokens"
TOKEN_MODALITY: Final = "gen_ai.token.modality"  # noqa: S105 - a model's tokens
AGENT_NAME: Final = "gen_ai.agent.name"
CONVERSATION_ID: Final = "gen_ai.conversation.id"
TOOL_NAME: Final = "gen_ai.tool.name"
TOOL_CALL_ID: Final = "gen_ai.tool.call.id"
TOOL_TYPE: Final = "gen_ai.tool.type"
MEMORY_STORE_ID: Final = "gen_ai.memory.store.id"
MEMORY_RECORD_ID: Final = "gen_ai.memory.record.id"
MEMORY_RECORD_COUNT: Final = "gen_ai.memory.record.count"
ERROR_TYPE: Final = "error.type"
SERVER_ADDRESS: Final = "server.address"
SERVER_PORT: Final = "server.port"
STATUS_CODE: Final = "http.response.status_code"

EXCEPTION_TYPE: Final = "exception.type"
EXCEPTION_STACKTRACE: Final = "exception.stacktrace"

ERROR_OTHER: Final = "_OTHER"
"""The conventions' `error.type` for a failure of which no class is known."""

# Operations of the conventions, and the spans that they name

CHAT: Final = "chat"
EMBEDDINGS: Final = "embeddings"
EXECUTE_TOOL: Final = "execute_tool"
INVOKE_AGENT: Final = "invoke_agent"
SEARCH_MEMORY: Final = "search_memory"
CREATE_MEMORY: Final = "create_memory"
UPDATE_MEMORY: Final = "update_memory"
DELETE_MEMORY: Final = "delete_memory"

# Turn

TURN_MARK: Final = "recallscope.turn.mark"
TURN_ID: Final = "recallscope.turn.id"
TURN_ORIGIN: Final = "recallscope.turn.origin"
TURN_OUTCOME: Final = "recallscope.turn.outcome"
TURN_CAUSE: Final = "recallscope.turn.cause"
TURN_POLICY: Final = "recallscope.turn.policy"
TURN_SCENARIO: Final = "recallscope.turn.scenario"
TURN_DELIVERED: Final = "recallscope.turn.delivered"
TURN_REASON: Final = "recallscope.turn.reason"
TURN_WAITED: Final = "recallscope.turn.waited.seconds"
TURN_SENDS: Final = "recallscope.turn.sends"
TURN_FIRST_TOKEN: Final = "recallscope.turn.time_to_first_token.seconds"  # noqa: S105 - the first word of an answer
TURN_KEEP: Final = "recallscope.turn.keep"
TURN_KEEP_REASON: Final = "recallscope.turn.keep.reason"
KEEP_SLOW: Final = "slow"
KEEP_FAILED: Final = "failed"
KEEP_OVERRUN: Final = "overrun"
KEEP_MISS: Final = "miss"
TURN_PHASES: Final = "recallscope.turn.phase.<phase>.seconds"
EVENT_POST_TURN_FAILED: Final = "recallscope.turn.post_turn_failed"


def turn_phase(phase: str) -> str:
    """Return the attribute that holds the seconds of one phase of a turn."""
    return f"recallscope.turn.phase.{phase}.seconds"


TURN_DURATION: Final = histogram(
    "recallscope.turn.duration",
    "Wall time of a turn, less the time that it queued or waited for a permission.",
    *(AGENT, POLICY, OUTCOME),
    buckets=BUCKETS_T,
)
TURN_PHASE_DURATION: Final = histogram(
    "recallscope.turn.phase.duration",
    "Wall time of one phase of a turn; the phases of a turn add up to its wall time.",
    *(AGENT, PHASE),
    buckets=BUCKETS_T,
)
TURN_TIME_TO_FIRST_TOKEN: Final = histogram(
    "recallscope.turn.time_to_first_token",
    "Time from a prompt's arrival to the first visible text of its answer.",
    *(AGENT, POLICY),
    buckets=BUCKETS_T,
)
TURN_ACTIVE: Final = up_down("recallscope.turn.active", "{turn}", "Turns under way.")
TURN_OLDEST_AGE: Final = gauge("recallscope.turn.oldest_age", "s", "Age of the oldest turn under way, 0 without one.")
TURN_POST_FAILURES: Final = counter(
    "recallscope.turn.post_turn_failures", "{failure}", "Turns whose follow-up work could not be scheduled."
)
SESSION_ACTIVE: Final = up_down("recallscope.session.active", "{session}", "Open sessions.")

# Recall

RECALL_POLICY: Final = "recallscope.recall.policy"
RECALL_OUTCOME: Final = "recallscope.recall.outcome"
RECALL_REASON: Final = "recallscope.recall.reason"
RECALL_CAUSE: Final = "recallscope.recall.cause"
RECALL_PHASE: Final = "recallscope.recall.phase"
RECALL_PHASES: Final = "recallscope.recall.phases"
RECALL_STRATEGY: Final = "recallscope.recall.strategy"
RECALL_POINT: Final = "recallscope.recall.point"
RECALL_POINTS: Final = "recallscope.recall.delivery.points"
RECALL_CEILING: Final = "recallscope.recall.ceiling.seconds"
RECALL_FAST: Final = "recallscope.recall.fast.seconds"
RECALL_SETTLED: Final = "recallscope.recall.settled.seconds"
RECALL_DELIVERED: Final = "recallscope.recall.delivered.seconds"
RECALL_WAITED: Final = "recallscope.recall.waited.seconds"
RECALL_ASKED: Final = "recallscope.recall.asked.seconds"
RECALL_FIRST_WAIT: Final = "recallscope.recall.wait.initial.seconds"
RECALL_ENDED_BY: Final = "recallscope.recall.wait.ended_by"
RECALL_ELAPSED: Final = "recallscope.recall.elapsed.seconds"
RECALL_NOTES: Final = "recallscope.recall.notes"
RECALL_FAST_NOTES: Final = "recallscope.recall.fast.notes"
RECALL_NOTES_DELIVERED: Final = "recallscope.recall.notes.delivered"
RECALL_NOTES_WITHDRAWN: Final = "recallscope.recall.notes.withdrawn"
RECALL_SKIPS: Final = "recallscope.recall.skips"
RECALL_ROLLBACKS: Final = "recallscope.recall.rollbacks"
RECALL_PARTIAL: Final = "recallscope.recall.partial"
RECALL_SOURCES: Final = "recallscope.recall.sources"
RECALL_SELECTOR_ERROR: Final = "recallscope.recall.selector.error"
RECALL_NOT_ASKED: Final = "recallscope.recall.selector.not_asked"
RECALL_CATALOG: Final = "recallscope.recall.catalog.notes"

EVENT_BEGIN: Final = "recallscope.recall.begin"
EVENT_FAST_RESULT: Final = "recallscope.recall.fast_result"
EVENT_SETTLED: Final = "recallscope.recall.refined_settled"
EVENT_DELIVERED: Final = "recallscope.recall.delivered"
EVENT_ROLLED_BACK: Final = "recallscope.recall.delivery_rolled_back"
EVENT_SKIPPED: Final = "recallscope.recall.delivery_skipped"
EVENT_CANCELLED: Final = "recallscope.recall.cancelled"

RECALL_STARTED: Final = counter("recallscope.recall.started", "{recall}", "Recalls begun.", POLICY)
RECALL_CEILING_IN_FORCE: Final = gauge(
    "recallscope.recall.ceiling", "s", "The effective ceiling of the last recall, 0 where nothing waits.", POLICY
)
RECALL_ACTIVE: Final = up_down("recallscope.recall.active", "{recall}", "Recalls under way.")
RECALL_WAIT_DURATION: Final = histogram(
    "recallscope.recall.wait.duration",
    "How long one send was held for memory.",
    *(POLICY, POINT, ENDED_BY),
    buckets=BUCKETS_R,
)
RECALL_READY_DURATION: Final = histogram(
    "recallscope.recall.ready.duration",
    "Time from the first send's question for memory until notes were there, 0 if they were; none if they never came.",
    POLICY,
    buckets=BUCKETS_R,
)
RECALL_WAIT_OVERRUNS: Final = counter(
    "recallscope.recall.wait.overruns", "{wait}", "Initial waits longer than their ceiling and 5 ms.", POLICY
)
RECALL_DURATION: Final = histogram(
    "recallscope.recall.duration",
    "Time from begin to the fast result, and to the refined one.",
    *(POLICY, PHASE, OUTCOME),
    buckets=BUCKETS_R,
)
RECALL_DELIVERY_DURATION: Final = histogram(
    "recallscope.recall.delivery.duration",
    "Time from begin to a delivery that the model accepted.",
    *(POLICY, PHASE, POINT),
    buckets=BUCKETS_R,
)
RECALL_DELIVERIES: Final = counter(
    "recallscope.recall.deliveries",
    "{delivery}",
    "Deliveries that the model accepted.",
    *(POLICY, PHASE, POINT, STRATEGY),
)
RECALL_SKIPPED_DELIVERIES: Final = counter(
    "recallscope.recall.skipped_deliveries",
    "{delivery}",
    "Deliveries that did not happen, once per recall, point and reason.",
    *(POLICY, POINT, REASON),
)
RECALL_OUTCOMES: Final = counter(
    "recallscope.recall.outcomes", "{recall}", "Recalls by their one outcome.", POLICY, OUTCOME, REASON
)
RECALL_ROLLED_BACK: Final = counter(
    "recallscope.recall.rollbacks", "{delivery}", "Deliveries that did not reach the model.", POLICY, POINT, CAUSE
)
RECALL_REFINEMENTS_SKIPPED: Final = counter(
    "recallscope.recall.refinements.skipped",
    "{recall}",
    "Recalls whose selector was not asked, since it could not have helped.",
    *(POLICY, REASON),
)
RECALL_REFINEMENTS_FAILED: Final = counter(
    "recallscope.recall.refinements.failed",
    "{recall}",
    "Recalls whose selection failed, whatever stood in for it.",
    *(POLICY, REASON),
)
RECALL_LATE_RESULTS: Final = counter(
    "recallscope.recall.late_results", "{result}", "Results that came after their recall had closed.", POLICY
)
RECALL_TURNS: Final = counter(
    "recallscope.recall.turns",
    "{turn}",
    "Turns with a recall, by their row in the comparison table and by what they received.",
    *(POLICY, SCENARIO, DELIVERED, REASON),
)
RECALL_TURN_WAIT_DURATION: Final = histogram(
    "recallscope.recall.turn.wait.duration",
    "All waits for memory of one turn, added.",
    *(POLICY, SCENARIO),
    buckets=BUCKETS_R,
)

# Model

PURPOSE: Final = "recallscope.purpose"
STATUS: Final = "recallscope.status"
STATUS_CAUSE: Final = "recallscope.cause"
SEND_INDEX: Final = "recallscope.send.index"
SEND_POINT: Final = "recallscope.send.point"
SEND_ATTEMPTS: Final = "recallscope.send.attempts"
SEND_NOTES: Final = "recallscope.send.notes"
SEND_ATTEMPT: Final = "recallscope.send.attempt"
SEND_RETRY_IN: Final = "recallscope.send.retry_in.seconds"
EVENT_ATTEMPT_FAILED: Final = "recallscope.send.attempt_failed"

_CALL = (OPERATION_NAME, PROVIDER_NAME, REQUEST_MODEL, SERVER_ADDRESS, SERVER_PORT, PURPOSE)
INFERENCE_DURATION: Final = histogram(
    "gen_ai.client.inference.duration",
    "Duration of one request to a model, its attempts included.",
    *(*_CALL, STATUS, ERROR_TYPE),
    buckets=BUCKETS_INFERENCE,
)
INFERENCE_FIRST_CHUNK: Final = histogram(
    "gen_ai.client.inference.time_to_first_chunk",
    "Time from a streamed request to its first chunk.",
    *_CALL,
    buckets=BUCKETS_INFERENCE,
)
INFERENCE_INPUT_TOKENS: Final = counter(
    "gen_ai.client.inference.usage.input_tokens",
    "{token}",
    "Input tokens, cached ones included.",
    *_CALL,
    TOKEN_MODALITY,
)
INFERENCE_OUTPUT_TOKENS: Final = counter(
    "gen_ai.client.inference.usage.output_tokens", "{token}", "Output tokens.", *_CALL, TOKEN_MODALITY
)
INFERENCE_CACHE_READ_TOKENS: Final = counter(
    "gen_ai.client.inference.usage.cache_read.input_tokens",
    "{token}",
    "Input tokens that the provider served from its cache.",
    *(*_CALL, TOKEN_MODALITY),
)
INVOKE_AGENT_DURATION: Final = histogram(
    "gen_ai.invoke_agent.duration",
    "Whole wall time of a turn.",
    *(OPERATION_NAME, AGENT_NAME, ERROR_TYPE),
    buckets=BUCKETS_INVOKE_AGENT,
)

# Tool

TOOL_CHARACTERS: Final = "recallscope.tool.characters"
TOOL_IS_ERROR: Final = "recallscope.tool.is_error"

EXECUTE_TOOL_DURATION: Final = histogram(
    "gen_ai.execute_tool.duration",
    "Duration of one tool call.",
    *(OPERATION_NAME, TOOL_NAME, STATUS, ERROR_TYPE),
    buckets=BUCKETS_INFERENCE,
)

# Memory

CATALOG_NOTES: Final = gauge("recallscope.memory.catalog.notes", "{note}", "Notes in the catalog.", SCOPE_LABEL)
CATALOG_SYNC_DURATION: Final = histogram(
    "recallscope.memory.catalog.sync.duration", "Duration of one catalog sync.", SCOPE_LABEL, buckets=BUCKETS_R
)
CATALOG_LAST_SYNC: Final = gauge(
    "recallscope.memory.catalog.last_sync.timestamp", "s", "When the catalog last caught up, since 1970.", SCOPE_LABEL
)

# The process

PROCESS_START: Final = gauge("recallscope.process.start.timestamp", "s", "When the process started, since 1970.")

# Telemetry itself

TRACES: Final = "traces"
METRICS_SIGNAL: Final = "metrics"
LOGS: Final = "logs"
JOURNAL: Final = "journal"
EVENTS: Final = "events"

LOST_QUEUE_FULL: Final = "queue_full"
LOST_EXPORT_FAILED: Final = "export_failed"
LOST_WRITE_FAILED: Final = "write_failed"
LOST_SHUTDOWN: Final = "shutdown"
LOST_TOO_MANY_OPEN: Final = "too_many_open"

LOOP_LAG: Final = histogram(
    "recallscope.loop.lag", "The longest that ready work was held up by the event loop, per 100 ms.", buckets=BUCKETS_R
)
DOCTOR_SPAN: Final = "recallscope.doctor"
"""What `recallscope doctor` sends to find out whether an endpoint takes spans; it is below no turn."""

TELEMETRY_DROPPED: Final = counter(
    "recallscope.telemetry.dropped", "{item}", "Spans, metric points, log records, journal lines lost.", SIGNAL, REASON
)
TELEMETRY_EXPORTED: Final = counter(
    "recallscope.telemetry.exported", "{item}", "Spans, metric points, log records, journal lines passed on.", SIGNAL
)
TELEMETRY_UNCLOSED: Final = counter(
    "recallscope.telemetry.unclosed_spans", "{span}", "Spans that were ended because their parent ended."
)
OBSERVER_FAILURES: Final = counter(
    "recallscope.telemetry.observer.failures", "{event}", "Events that an observer failed on and lost.", OBSERVER
)

METRICS: Final = tuple(value for value in list(globals().values()) if isinstance(value, Metric))
"""Every metric, in the order of this file."""

SPAN_EVENTS: Final = tuple(value for key, value in list(globals().items()) if key.startswith("EVENT_"))
"""Every span event."""

SPANS: Final = (
    *(INVOKE_AGENT, SEARCH_MEMORY, CHAT, EMBEDDINGS, EXECUTE_TOOL),
    *(CREATE_MEMORY, UPDATE_MEMORY, DELETE_MEMORY, TURN_MARK),
)
"""Every span, by the first word of its name."""
