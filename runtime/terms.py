"""The closed vocabularies of the domain: every enum that an event, a span or a metric label may carry.

Values are the strings of the telemetry contract, so a member can be used as a label as it stands.
Telemetry reaches these through `runtime.events`, which re-exports them.
"""

from enum import StrEnum, unique

__all__ = [
    "Cause",
    "Delivered",
    "EndedBy",
    "NotAsked",
    "NoteSource",
    "NoteType",
    "Outcome",
    "Phase",
    "Point",
    "PolicyName",
    "Purpose",
    "Reason",
    "RecallPhase",
    "RollbackCause",
    "Scenario",
    "ScopeName",
    "Status",
    "Strategy",
    "TurnOrigin",
    "TurnOutcome",
    "TurnPhase",
]


@unique
class PolicyName(StrEnum):
    """How recall meets the turn."""

    OFF = "off"
    DEADLINE = "deadline"
    PREFETCH = "prefetch"
    TIERED = "tiered"


@unique
class Point(StrEnum):
    """Where memory may enter a send; `NONE` labels what no send could take."""

    INITIAL = "initial"
    TOOL_RESULT = "tool_result"
    NONE = "none"


@unique
class RecallPhase(StrEnum):
    """Which of the two results of a recall is meant."""

    FAST = "fast"
    REFINED = "refined"


@unique
class Phase(StrEnum):
    """Which results of a recall were delivered."""

    NONE = "none"
    FAST = "fast"
    REFINED = "refined"
    BOTH = "both"


@unique
class Delivered(StrEnum):
    """At which points a turn received memory."""

    INITIAL = "initial"
    TOOL_RESULT = "tool_result"
    BOTH = "both"
    NONE = "none"


@unique
class Strategy(StrEnum):
    """Who chose the refined notes."""

    MODEL = "model"
    LEXICAL = "lexical"
    NONE = "none"


@unique
class NotAsked(StrEnum):
    """Why the selector was not asked, since it could not have helped.

    `NO_CANDIDATES`: there is nothing to choose from. `EXACT_TITLE`: the query names the whole title of one note, and
    every other note is far behind it.
    """

    NO_CANDIDATES = "no_candidates"
    EXACT_TITLE = "exact_title"


@unique
class EndedBy(StrEnum):
    """What ended a wait for memory."""

    ALREADY_SETTLED = "already_settled"
    FAST = "fast"
    REFINED = "refined"
    CEILING = "ceiling"
    CANCELLED = "cancelled"
    NOTHING_TO_WAIT_FOR = "nothing_to_wait_for"


@unique
class Outcome(StrEnum):
    """The one terminal outcome of a recall handle."""

    DELIVERED = "delivered"
    FAILED = "failed"
    EMPTY = "empty"
    ALREADY_DELIVERED = "already_delivered"
    DISCARDED = "discarded"


@unique
class Reason(StrEnum):
    """Why memory was not delivered: skips at a point, close reasons and terminal outcomes."""

    NONE = "none"
    NOT_SETTLED = "not_settled"
    NOTHING_FOUND = "nothing_found"
    ALREADY_DELIVERED = "already_delivered"
    OVER_BUDGET = "over_budget"
    STORE_UNAVAILABLE = "store_unavailable"
    SELECTOR_UNAVAILABLE = "selector_unavailable"
    SELECTOR_TIMEOUT = "selector_timeout"
    NO_RELEVANT_RESULTS = "no_relevant_results"
    ABORT = "abort"
    NEW_QUERY = "new_query"
    RESET = "reset"
    SHUTDOWN = "shutdown"
    NO_SAFE_DELIVERY_POINT = "no_safe_delivery_point"


@unique
class Cause(StrEnum):
    """Who ended a turn or a recall, as stated by the one who did it."""

    USER_CANCEL = "user_cancel"
    SESSION_DISPOSE = "session_dispose"
    CONTROL_STOP = "control_stop"
    SUPERSEDED = "superseded"
    SESSION_RESET = "session_reset"
    PROCESS_SHUTDOWN = "process_shutdown"
    TURN_END = "turn_end"
    MAX_TURNS = "max_turns"
    TURN_BUDGET = "turn_budget"
    TOKEN_LIMIT = "token_limit"  # noqa: S105 - a cause, not a credential
    PROVIDER_ERROR = "provider_error"
    LOOP_STOP = "loop_stop"
    POLICY_LIMIT = "policy_limit"

    @property
    def reason(self) -> Reason:
        """The close reason that this cause stands for (docs/recall.md, the cause table)."""
        return _REASON_OF[self]


_REASON_OF = {
    Cause.USER_CANCEL: Reason.ABORT,
    Cause.SESSION_DISPOSE: Reason.ABORT,
    Cause.CONTROL_STOP: Reason.ABORT,
    Cause.SUPERSEDED: Reason.NEW_QUERY,
    Cause.SESSION_RESET: Reason.RESET,
    Cause.PROCESS_SHUTDOWN: Reason.SHUTDOWN,
    Cause.TURN_END: Reason.NO_SAFE_DELIVERY_POINT,
    Cause.MAX_TURNS: Reason.NO_SAFE_DELIVERY_POINT,
    Cause.TURN_BUDGET: Reason.NO_SAFE_DELIVERY_POINT,
    Cause.TOKEN_LIMIT: Reason.NO_SAFE_DELIVERY_POINT,
    Cause.PROVIDER_ERROR: Reason.NO_SAFE_DELIVERY_POINT,
    Cause.LOOP_STOP: Reason.NO_SAFE_DELIVERY_POINT,
    # The `deadline` policy's outer limit: the send that could have taken the notes has left.
    Cause.POLICY_LIMIT: Reason.NO_SAFE_DELIVERY_POINT,
}


@unique
class RollbackCause(StrEnum):
    """Why a prepared delivery did not reach the model."""

    REFUSED = "refused"
    CONNECTION = "connection"
    STREAM_ERROR = "stream_error"
    CANCELLED = "cancelled"
    CLOSED = "closed"


@unique
class Scenario(StrEnum):
    """The row of the comparison table that a turn belongs to (docs/comparison.md)."""

    SUPERSEDED = "superseded"
    INTERRUPTED = "interrupted"
    NOT_SENT = "not_sent"
    UNAVAILABLE = "unavailable"
    NOTHING_FOUND = "nothing_found"
    SETTLED_BEFORE_SEND = "settled_before_send"
    SLOW_WITHOUT_TOOLS = "slow_without_tools"
    TIMED_OUT = "timed_out"
    SLOW_WITH_TOOLS = "slow_with_tools"


@unique
class Status(StrEnum):
    """How an operation ended."""

    OK = "ok"
    FAILED = "failed"
    CANCELLED = "cancelled"


@unique
class TurnOrigin(StrEnum):
    """Where a turn comes from; only `PROMPT` makes a fresh user turn."""

    PROMPT = "prompt"
    RETRY = "retry"
    CONTINUE = "continue"
    RESTORE = "restore"
    CRON = "cron"
    NOTIFICATION = "notification"
    GOAL = "goal"


@unique
class TurnOutcome(StrEnum):
    """How a turn ended."""

    END_TURN = "end_turn"
    MAX_TOKENS = "max_tokens"
    MAX_TURN_REQUESTS = "max_turn_requests"
    REFUSAL = "refusal"
    CANCELLED = "cancelled"
    FAILED = "failed"
    BLOCKED = "blocked"
    REJECTED = "rejected"
    LOOP_STOPPED = "loop_stopped"


@unique
class TurnPhase(StrEnum):
    """The parts into which a turn's wall time is divided without gap or overlap."""

    QUEUE = "queue"
    PREPARE = "prepare"
    RECALL_WAIT = "recall_wait"
    MODEL = "model"
    BACKOFF = "backoff"
    TOOL = "tool"
    PERMISSION = "permission"
    HOOK = "hook"
    COMPACTION = "compaction"
    OTHER = "other"


@unique
class Purpose(StrEnum):
    """What a model is called for."""

    MAIN = "main"
    SELECTOR = "selector"
    EXTRACT = "extract"
    DREAM = "dream"
    COMPACTION = "compaction"
    ENRICH = "enrich"
    EMBEDDING = "embedding"


@unique
class ScopeName(StrEnum):
    """Where a note lives."""

    PROJECT = "project"
    TEAM = "team"
    USER = "user"


@unique
class NoteType(StrEnum):
    """What a note is about."""

    USER = "user"
    FEEDBACK = "feedback"
    PROJECT = "project"
    REFERENCE = "reference"


@unique
class NoteSource(StrEnum):
    """Who wrote a note."""

    PERSON = "person"
    EXTRACT = "extract"
    DREAM = "dream"
    AGENT = "agent"
