"""A turn as it was recorded: one frozen value, whether it was read from a journal or from spans.

All times are seconds since the turn's start (`wall` says when that was), None for what is not known or never happened.
Spans tell less than the journal: how many notes there were but not which, and of a trace without its span events only
what stands in `Close`, the fast and the settled result, the first wait and the calls.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum, unique

from recallscope.runtime.events import (
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
    Status,
    Strategy,
    TurnOrigin,
    TurnOutcome,
    TurnPhase,
)

__all__ = [
    "Close",
    "Delivery",
    "FailedAttempt",
    "FastResult",
    "ModelCall",
    "Record",
    "RecordedRecall",
    "RecordedTurn",
    "Rollback",
    "SettledResult",
    "Skip",
    "ToolCall",
    "Wait",
]


@unique
class Record(StrEnum):
    """What a turn was read from."""

    JOURNAL = "journal"
    SPANS = "spans"


@dataclass(frozen=True, slots=True, kw_only=True)
class FastResult:
    """The deterministic search answered `elapsed` seconds after begin; `ids` are those of its `notes` notes."""

    at: float
    elapsed: float
    notes: int | None
    ids: tuple[str, ...] | None = None
    partial: bool | None = None
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledResult:
    """The refined result stood `elapsed` seconds after begin; `error`: the selector or the store failed.

    `not_asked`: the selector was passed over, and why.
    """

    at: float
    elapsed: float
    notes: int | None
    ids: tuple[str, ...] | None = None
    strategy: Strategy | None = None
    error: Reason | None = None
    not_asked: NotAsked | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """A send asked for memory at `asked_at` and was held `waited` seconds; `ceiling` was its limit."""

    point: Point
    asked_at: float
    waited: float
    ended_by: EndedBy | None
    ceiling: float

    @property
    def ended_at(self) -> float:
        """When the send went on: what it carries was prepared then."""
        return self.asked_at + self.waited


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """The model accepted at `at` the request that carried these notes; the send was held `waited` seconds for them.

    They were prepared when the wait of that send ended (`RecordedRecall.prepared_at`).
    """

    at: float
    point: Point
    phase: RecallPhase
    elapsed: float
    notes: int | None
    ids: tuple[str, ...] | None = None
    strategy: Strategy | None = None
    characters: int | None = None
    waited: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollback:
    """A prepared delivery did not reach the model."""

    at: float
    point: Point
    cause: RollbackCause
    notes: int | None
    ids: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Skip:
    """No memory went at `point`, and why."""

    at: float
    point: Point
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Close:
    """How the recall ended; the fields are those of `RecallClosed` (runtime/events.py)."""

    at: float
    outcome: Outcome
    reason: Reason
    cause: Cause
    phases: Phase
    strategy: Strategy
    points: tuple[Point, ...]
    scenario: Scenario
    delivered: Delivered
    waited: float
    notes_selected: int
    notes_delivered: int
    skips: int
    rollbacks: int
    partial: bool
    fast_seconds: float | None
    settled_seconds: float | None
    delivered_seconds: float | None

    @property
    def close_reason(self) -> Reason:
        """The reason that the cause stands for, whatever the recall's own reason is."""
        return self.cause.reason


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRecall:
    """The recall of a turn; `closed` is None while it is under way, or where its end was lost."""

    begun: float
    policy: PolicyName
    ceiling: float
    catalog_notes: int | None = None
    fast: FastResult | None = None
    settled: SettledResult | None = None
    waits: tuple[Wait, ...] = ()
    deliveries: tuple[Delivery, ...] = ()
    rollbacks: tuple[Rollback, ...] = ()
    skips: tuple[Skip, ...] = ()
    withdrawn: int = 0
    withdrawn_ids: tuple[str, ...] = ()
    late: int = 0
    closed: Close | None = None

    @property
    def first_wait(self) -> Wait | None:
        """The wait of the first send that asked for memory."""
        return self.waits[0] if self.waits else None

    @property
    def asked_at(self) -> float | None:
        """When memory was asked for the first send (t0 of docs/comparison.md)."""
        return self.waits[0].asked_at if self.waits else None

    @property
    def waited(self) -> float:
        """All waits of the turn, added."""
        return self.closed.waited if self.closed is not None else sum(wait.waited for wait in self.waits)

    def prepared_at(self, delivery: Delivery) -> float | None:
        """When `delivery` was prepared: the end of the last wait at its point before it was accepted."""
        ends = [wait.ended_at for wait in self.waits if wait.point is delivery.point and wait.ended_at <= delivery.at]
        return ends[-1] if ends else None


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedAttempt:
    """One attempt of a call failed at `at`; `retry_in` seconds passed before the next, None if there was none."""

    at: float
    attempt: int
    error_type: str
    status_code: int | None = None
    retry_in: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """A request to a model, its attempts included; `send` counts the turn's own from 1. `ended` None: under way."""

    purpose: Purpose
    model: str
    started: float
    ended: float | None = None
    first_chunk: float | None = None
    send: int | None = None
    point: Point | None = None
    status: Status = Status.OK
    cause: Cause | None = None
    error_type: str | None = None
    attempts: int = 0
    failed: tuple[FailedAttempt, ...] = ()
    notes: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    finish_reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A tool call; `is_error`: the tool reported a failure to the model. `ended` None: under way."""

    tool: str
    started: float
    ended: float | None = None
    status: Status = Status.OK
    cause: Cause | None = None
    is_error: bool = False
    characters: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedTurn:
    """One turn as far as its record tells.

    `seconds` (wall time) and `outcome` are None while it runs, or where its end was lost; `last_seen` is the latest
    moment of it that was recorded. `whole`: its begin and its end were read. `phases` (seconds) add up to `seconds`.
    """

    record: Record
    turn: str
    session: str
    wall: float
    last_seen: float
    whole: bool
    agent: str | None = None
    origin: TurnOrigin | None = None
    policy: PolicyName | None = None
    trace_id: str | None = None
    seconds: float | None = None
    outcome: TurnOutcome | None = None
    status: Status | None = None
    cause: Cause | None = None
    error_type: str | None = None
    sends: int | None = None
    first_token: float | None = None
    phases: Mapping[TurnPhase, float] | None = None
    recall: RecordedRecall | None = None
    calls: tuple[ModelCall, ...] = ()
    tools: tuple[ToolCall, ...] = ()

    @property
    def length(self) -> float:
        """The wall time, or of a turn without an end what is known of it."""
        return self.seconds if self.seconds is not None else self.last_seen

    @property
    def sent(self) -> tuple[ModelCall, ...]:
        """The turn's own requests to the main model, in order."""
        return tuple(call for call in self.calls if call.purpose is Purpose.MAIN)

    @property
    def selector(self) -> ModelCall | None:
        """The request that selected notes."""
        return next((call for call in self.calls if call.purpose is Purpose.SELECTOR), None)
