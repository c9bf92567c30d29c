"""Every fact that the engine states: the whole vocabulary that observers see.

An event is a frozen, comparable value. `op` names the operation it belongs to, `at` is seconds of the process's
monotonic clock (`ProcessStarted` ties that clock to the wall). Pieces of work come as a pair: a `Started` with its
`parent`, and the `Finished` that it makes. Events hold values, never live objects, and no prompt or memory text.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Generic, NewType, TypeVar

from recallscope.runtime.terms import (
    Cause,
    Delivered,
    EndedBy,
    NotAsked,
    Outcome,
    Phase,
    Point,
    PolicyName,
    Purpose,
    Reason,
    RecallPhase,
    RollbackCause,
    Scenario,
    ScopeName,
    Status,
    Strategy,
    TurnOrigin,
    TurnOutcome,
    TurnPhase,
)

__all__ = [
    "CatalogSynced",
    "Cause",
    "Delivered",
    "Ended",
    "EndedBy",
    "Event",
    "Finished",
    "FinishedT",
    "MemoryWriteFinished",
    "MemoryWriteStarted",
    "ModelAttemptFailed",
    "ModelCallFinished",
    "ModelCallStarted",
    "ModelFirstChunk",
    "NotAsked",
    "OpId",
    "Outcome",
    "Phase",
    "Point",
    "PolicyName",
    "PostTurnFailed",
    "ProcessStarted",
    "Purpose",
    "Reason",
    "RecallBegun",
    "RecallClosed",
    "RecallDelivered",
    "RecallFastResult",
    "RecallLate",
    "RecallPhase",
    "RecallRolledBack",
    "RecallSettled",
    "RecallSkipped",
    "RecallWaited",
    "RecallWithdrawn",
    "RollbackCause",
    "Scenario",
    "ScopeName",
    "SessionClosed",
    "SessionOpened",
    "Started",
    "Status",
    "Strategy",
    "ToolFinished",
    "ToolStarted",
    "TurnFinished",
    "TurnFirstToken",
    "TurnOrigin",
    "TurnOutcome",
    "TurnPhase",
    "TurnStarted",
]

OpId = NewType("OpId", str)
"""Names one operation, unique across processes; printable, no meaning inside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One fact about the operation `op` at `at` (seconds, monotonic)."""

    op: OpId
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How and when a piece of work ended; `error_type` only when it failed, `cause` only when it was cancelled."""

    at: float
    status: Status
    cause: Cause | None = None
    error_type: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished(Event):
    """A piece of work ended."""

    status: Status
    cause: Cause | None = None
    error_type: str | None = None


FinishedT = TypeVar("FinishedT", bound=Finished)


@dataclass(frozen=True, slots=True, kw_only=True)
class Started(Event, Generic[FinishedT]):
    """A piece of work began under `parent`."""

    parent: OpId | None = None

    @abstractmethod
    def finished(self, ended: Ended) -> FinishedT:
        """Make the finish event of this piece of work."""


# Process and session


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessStarted(Event):
    """The anchor of the monotonic clock: at `at` the wall clock showed `wall` (seconds since 1970)."""

    wall: float
    pid: int
    version: str
    front_end: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOpened(Event):
    """A conversation began, under one policy arm."""

    session: str
    agent: str
    policy: PolicyName


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionClosed(Event):
    """A conversation ended; `op` is that of its opening."""

    session: str
    cause: Cause


# The turn


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFinished(Finished):
    """A logical turn ended; `phases` (seconds) add up to its wall time. The recall fields are None without a recall."""

    outcome: TurnOutcome
    sends: int
    phases: tuple[tuple[TurnPhase, float], ...]
    scenario: Scenario | None = None
    delivered: Delivered | None = None
    recall_reason: Reason | None = None
    recall_waited: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStarted(Started[TurnFinished]):
    """A prompt arrived (`at` is the arrival, before admission); `turn` is `<session>.<n>`."""

    session: str
    turn: str
    agent: str
    origin: TurnOrigin
    policy: PolicyName
    traceparent: str | None = None

    def finished(self, ended: Ended) -> TurnFinished:
        """Make the bare finish; the turn notes outcome, sends and phases before it ends."""
        return TurnFinished(
            op=self.op,
            at=ended.at,
            status=ended.status,
            cause=ended.cause,
            error_type=ended.error_type,
            outcome=TurnOutcome.FAILED,
            sends=0,
            phases=(),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFirstToken(Event):
    """The first visible text of the turn's answer came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PostTurnFailed(Event):
    """Scheduling the work after a turn failed; the turn itself is not touched."""

    error_type: str


# The recall handle: `op` is the handle in all of them


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallBegun(Event):
    """A recall began; `ceiling` is the effective limit of the initial wait in seconds (0: no wait)."""

    parent: OpId
    session: str
    turn: str
    policy: PolicyName
    ceiling: float
    catalog_notes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallFastResult(Event):
    """The deterministic search answered after `elapsed` seconds; `notes` may be empty, `partial`: interrupted.

    `sources` are those that answered in time: `words`, `vectors`.
    """

    policy: PolicyName
    notes: tuple[str, ...]
    elapsed: float
    partial: bool
    sources: tuple[str, ...] = ("words",)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallSettled(Event):
    """The refined result stands after `elapsed` seconds; an error is an empty result with its cause.

    `not_asked`: the selector was passed over, and why.
    """

    policy: PolicyName
    notes: tuple[str, ...]
    strategy: Strategy
    elapsed: float
    error_type: Reason | None = None
    not_asked: NotAsked | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallWaited(Event):
    """A send was held for memory for `waited` seconds, from the call of consume to its return."""

    policy: PolicyName
    point: Point
    waited: float
    ended_by: EndedBy
    ceiling: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallWithdrawn(Event):
    """Selected notes are gone or changed on disk, so they are left out of this recall."""

    policy: PolicyName
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallDelivered(Event):
    """A delivery was committed: the model accepted the request that carried it. `elapsed` counts from begin."""

    policy: PolicyName
    phase: RecallPhase
    point: Point
    strategy: Strategy
    notes: tuple[str, ...]
    characters: int
    elapsed: float
    waited: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallRolledBack(Event):
    """A prepared delivery did not reach the model; its notes may be offered again."""

    policy: PolicyName
    point: Point
    notes: tuple[str, ...]
    cause: RollbackCause


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallSkipped(Event):
    """No memory went at `point`, stated once per handle, point and reason."""

    policy: PolicyName
    point: Point
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallLate(Event):
    """A result or an acceptance came after the handle was closed and changed nothing."""

    policy: PolicyName
    move: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallClosed(Event):
    """The handle ended with its one outcome; the seconds are since begin, None for what never happened.

    `reason` is why nothing (or, when delivered, the refined part) was not delivered, `Reason.NONE` if all was.
    `scenario`, `delivered` and `waited` are the turn's row in the comparison table. `ready_seconds` are those from the
    first send's question until notes were there (0: before it), None if it did not ask or they never came.
    """

    policy: PolicyName
    outcome: Outcome
    reason: Reason
    close_reason: Reason
    cause: Cause
    phases: Phase
    strategy: Strategy
    points: tuple[Point, ...]
    ceiling: float
    fast_seconds: float | None
    settled_seconds: float | None
    delivered_seconds: float | None
    ready_seconds: float | None
    waited: float
    notes_selected: int
    notes_delivered: int
    skips: int
    rollbacks: int
    partial: bool
    scenario: Scenario
    delivered: Delivered


# Model and tools


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCallFinished(Finished):
    """A request to a model ended, its attempts included. `first_chunk` is seconds since the call began."""

    attempts: int = 0
    first_chunk: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    finish_reason: str | None = None
    response_model: str | None = None
    response_id: str | None = None
    notes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCallStarted(Started[ModelCallFinished]):
    """A request to a model began; `send` and `point` only for the sends of a turn, `send` counting from 1."""

    purpose: Purpose
    model: str
    provider: str
    address: str
    port: int
    streamed: bool
    send: int | None = None
    point: Point | None = None

    def finished(self, ended: Ended) -> ModelCallFinished:
        """Make the bare finish; what the answer told is noted on the way."""
        return ModelCallFinished(
            op=self.op, at=ended.at, status=ended.status, cause=ended.cause, error_type=ended.error_type
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAttemptFailed(Event):
    """One attempt of a model call failed; `retry_in` seconds pass before the next one, None if there is none."""

    attempt: int
    error_type: str
    status_code: int | None
    retry_in: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFirstChunk(Event):
    """The model accepted the request: its first chunk with a choice came."""

    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFinished(Finished):
    """A tool call was answered with `characters` of text; `is_error`: the tool reported a failure to the model."""

    characters: int = 0
    is_error: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStarted(Started[ToolFinished]):
    """A tool call began; `tool` is a registered name or `_other`."""

    tool: str
    call_id: str

    def finished(self, ended: Ended) -> ToolFinished:
        """Make the bare finish; the size of the answer is noted on the way."""
        return ToolFinished(
            op=self.op, at=ended.at, status=ended.status, cause=ended.cause, error_type=ended.error_type
        )


# Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogSynced(Event):
    """The catalog caught up with a scope's files: `notes` now stand in it, `skipped` files could not be read."""

    scope: ScopeName
    notes: int
    changed: int
    skipped: int
    seconds: float
    rebuilt: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryWriteFinished(Finished):
    """A write to memory ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryWriteStarted(Started[MemoryWriteFinished]):
    """A note is being created, updated or deleted (`operation` is `create`, `update` or `delete`)."""

    operation: str
    scope: ScopeName
    note: str

    def finished(self, ended: Ended) -> MemoryWriteFinished:
        """Make the finish."""
        return MemoryWriteFinished(
            op=self.op, at=ended.at, status=ended.status, cause=ended.cause, error_type=ended.error_type
        )
