"""A recall under way: its handle, what its task and its sends have told, and the facts stated of each move.

The handle decides; this makes the moves, with their times, and tells the observers what came of them. A `Handover` is
what one send gets: it knows the recall that it came from, so a late word about it can never reach another one.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import anyio
from anyio.abc import TaskGroup

from recallscope.runtime.events import (
    Delivered,
    EndedBy,
    OpId,
    RecallBegun,
    RecallClosed,
    RecallDelivered,
    RecallFastResult,
    RecallLate,
    RecallRolledBack,
    RecallSettled,
    RecallSkipped,
    RecallWaited,
    RecallWithdrawn,
    Scenario,
)
from recallscope.runtime.memory.note import Note
from recallscope.runtime.memory.search import Source
from recallscope.runtime.messages import MemoryPart, NoteVersion
from recallscope.runtime.observe import Observers
from recallscope.runtime.recall.fence import fence, render
from recallscope.runtime.recall.handle import Delivery, Move, RecalledNote, RecallHandle, Settled, Skip
from recallscope.runtime.recall.policy import Policy
from recallscope.runtime.recall.scenario import TurnFacts, delivered_at, scenario_of
from recallscope.runtime.terms import Cause, NotAsked, Outcome, Point, Reason, RollbackCause, Strategy

__all__ = ["NO_MEMORY", "Handover", "PendingRecall", "RecallTurn", "RecallVerdict"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallTurn:
    """What a recall must know of its turn: whose child it is, where its task runs, and why the turn was cancelled."""

    op: OpId
    session: str
    turn: str
    tasks: TaskGroup
    cause: Callable[[], Cause | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallVerdict:
    """What a turn's recall came to."""

    outcome: Outcome
    reason: Reason
    scenario: Scenario
    delivered: Delivered
    waited: float


@dataclass(slots=True, kw_only=True, eq=False)
class PendingRecall:
    """One handle, its task's scope and events, and the facts that the handle does not need."""

    turn: RecallTurn
    policy: Policy
    handle: RecallHandle
    observers: Observers
    wall: Callable[[], float]
    op: OpId = field(init=False)
    begun_at: float = field(init=False)
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope, init=False)
    deliverable: anyio.Event = field(default_factory=anyio.Event, init=False)
    holding: anyio.Event | None = field(default=None, init=False)
    done: anyio.Event = field(default_factory=anyio.Event, init=False)
    notes: dict[NoteVersion, Note] = field(default_factory=dict[NoteVersion, Note], init=False)
    fast_at: float | None = field(default=None, init=False)
    found: bool = field(default=False, init=False)
    partial: bool = field(default=False, init=False)
    waited: float = field(default=0.0, init=False)
    first_send_at: float | None = field(default=None, init=False)
    first_hold_at: float | None = field(default=None, init=False)
    last_tool_send_at: float | None = field(default=None, init=False)
    accepted: bool = field(default=False, init=False)
    skips: set[Skip] = field(default_factory=set[Skip], init=False)
    verdict: RecallVerdict | None = field(default=None, init=False)

    def closed_by(self) -> Cause | None:
        """Say why the recall, or the turn that it belongs to, was ended; None while neither was."""
        return self.handle.cause or self.turn.cause()

    def begun(self, *, catalog_notes: int) -> None:
        """State the begin; nothing else may be stated before."""
        self.op = self.observers.new_op()
        self.begun_at = self.observers.now()
        self.observers.emit(
            RecallBegun(
                op=self.op,
                at=self.begun_at,
                parent=self.turn.op,
                session=self.turn.session,
                turn=self.turn.turn,
                policy=self.policy.name,
                ceiling=self.policy.ceiling,
                catalog_notes=catalog_notes,
            )
        )

    # What the task finds

    def render(self, notes: Iterable[Note]) -> tuple[RecalledNote, ...]:
        """Render `notes` for delivery and remember them for the check of their files."""
        now = self.wall()
        rendered: list[RecalledNote] = []
        for note in notes:
            self.notes[note.note_version] = note
            rendered.append(render(note, now=now, known=self.handle.surfaced))
        return tuple(rendered)

    def found_fast(self, notes: Sequence[Note], *, partial: bool, sources: Sequence[Source]) -> None:
        """State the fast result and publish it where the policy delivers it; an empty one ends no wait."""
        at = self.fast_at = self.observers.now()
        self.found, self.partial = bool(notes), partial
        self.observers.emit(
            RecallFastResult(
                op=self.op,
                at=at,
                policy=self.policy.name,
                notes=tuple(note.id for note in notes),
                elapsed=at - self.begun_at,
                partial=partial,
                sources=tuple(source.value for source in sources),
            )
        )
        if not self.policy.fast or not notes:
            return
        if self.handle.publish_fast(self.render(notes)):
            self.deliverable.set()
        else:
            self._late(Move.PUBLISH_FAST)

    def settle(self, result: Settled, *, not_asked: NotAsked | None = None) -> None:
        """Take the refined result and state it; too late, it is only counted. `not_asked`: no model chose, and why."""
        at = self.observers.now()
        if not self.handle.settle(result, at=at):
            self._late(Move.SETTLE)
            return
        self.deliverable.set()
        self.observers.emit(
            RecallSettled(
                op=self.op,
                at=at,
                policy=self.policy.name,
                notes=tuple(note.version.note for note in result.notes),
                strategy=result.strategy,
                elapsed=at - self.begun_at,
                error_type=result.error,
                not_asked=not_asked,
            )
        )

    def withdraw(self, versions: frozenset[NoteVersion]) -> None:
        """Take back notes whose files are gone or changed."""
        if versions and self.handle.withdraw(versions):
            names = tuple(sorted(version.note for version in versions))
            self.observers.emit(
                RecallWithdrawn(op=self.op, at=self.observers.now(), policy=self.policy.name, notes=names)
            )

    # What the sends tell

    def asked(self, point: Point, at: float) -> None:
        """Note when a send asked for memory: the first of all, and the last that began with tool results."""
        if self.first_send_at is None:
            self.first_send_at = at
        if point is Point.TOOL_RESULT:
            self.last_tool_send_at = at

    def held(self, point: Point, seconds: float, ended_by: EndedBy) -> None:
        """State how long a send was held for memory, and what ended it."""
        at = self.observers.now()
        self.waited += seconds
        if point is Point.INITIAL and self.first_hold_at is None:
            self.first_hold_at = at - seconds
        self.observers.emit(
            RecallWaited(
                op=self.op,
                at=at,
                policy=self.policy.name,
                point=point,
                waited=seconds,
                ended_by=ended_by,
                ceiling=self.policy.ceiling if point is Point.INITIAL else 0.0,
            )
        )

    def prepare(self, point: Point, *, hold_back: frozenset[NoteVersion]) -> Delivery | None:
        """Ask the handle what goes at `point`; a skip is stated once per point and reason."""
        answer = self.handle.prepare(point, hold_back=hold_back)
        if isinstance(answer, Delivery):
            return answer
        self._skip(answer)
        return None

    def commit(self, delivery: Delivery, *, waited: float) -> None:
        """The model accepted the request that carried `delivery`."""
        at = self.observers.now()
        if not self.handle.commit(delivery, at=at):
            self._late(Move.COMMIT)
            return
        self.observers.emit(
            RecallDelivered(
                op=self.op,
                at=at,
                policy=self.policy.name,
                phase=delivery.phase,
                point=delivery.point,
                strategy=delivery.strategy,
                notes=tuple(version.note for version in delivery.versions),
                characters=delivery.characters,
                elapsed=at - self.begun_at,
                waited=waited,
            )
        )
        if delivery.cut:
            self._skip(Skip(delivery.point, Reason.OVER_BUDGET))

    def roll_back(self, delivery: Delivery, cause: RollbackCause) -> None:
        """The request that carried `delivery` did not reach the model."""
        if self.handle.roll_back(delivery, cause):
            self._rolled_back(delivery, cause)
        else:
            self._late(Move.ROLL_BACK)

    # The end

    def close(self, cause: Cause) -> None:
        """Close the handle and cancel its task; the first cause wins."""
        outstanding = self.handle.outstanding
        if not self.handle.close(cause):
            return
        if outstanding is not None:
            self._rolled_back(outstanding, RollbackCause.CLOSED)
        self.deliverable.set()
        self.scope.cancel()

    def conclude(self) -> RecallVerdict:
        """State the end, once, after the task has ended: nothing of a recall ends after the recall."""
        if self.verdict is not None:
            return self.verdict
        handle = self.handle
        if handle.cause is None:
            raise AssertionError("a handle is closed before it is concluded")
        outcome, reason = handle.outcome, handle.reason
        if outcome is Outcome.DELIVERED and reason is not Reason.NONE:
            self._skip(Skip(Point.NONE, reason))
        self.verdict = RecallVerdict(
            outcome=outcome,
            reason=reason,
            scenario=scenario_of(self._facts(handle.cause)),
            delivered=delivered_at(handle.points),
            waited=self.waited,
        )
        self.observers.emit(self._closed(handle.cause, self.verdict))
        return self.verdict

    def _facts(self, cause: Cause) -> TurnFacts:
        settled = self.handle.settled
        return TurnFacts(
            begun_at=self.begun_at,
            settled_at=self.handle.settled_at,
            error=settled.error if settled else None,
            cut_by_policy=settled.cut_by_policy if settled else False,
            selected=bool(settled and settled.notes),
            found=self.found,
            cause=cause,
            first_send_at=self.first_send_at,
            last_tool_send_at=self.last_tool_send_at,
            accepted=self.accepted,
        )

    def _closed(self, cause: Cause, verdict: RecallVerdict) -> RecallClosed:
        handle = self.handle

        def since_begin(at: float | None) -> float | None:
            return None if at is None else at - self.begun_at

        return RecallClosed(
            op=self.op,
            at=self.observers.now(),
            policy=self.policy.name,
            outcome=verdict.outcome,
            reason=verdict.reason,
            close_reason=cause.reason,
            cause=cause,
            phases=handle.phases,
            strategy=handle.settled.strategy if handle.settled else Strategy.NONE,
            points=handle.points,
            ceiling=self.policy.ceiling,
            fast_seconds=since_begin(self.fast_at),
            settled_seconds=since_begin(handle.settled_at),
            delivered_seconds=since_begin(handle.committed_at),
            ready_seconds=self._ready_seconds(),
            waited=self.waited,
            notes_selected=len(handle.settled.notes) if handle.settled else len(handle.fast),
            notes_delivered=sum(len(delivery.notes) for delivery in handle.committed),
            skips=len(self.skips),
            rollbacks=len(handle.rollbacks),
            partial=self.partial,
            scenario=verdict.scenario,
            delivered=verdict.delivered,
        )

    def _ready_seconds(self) -> float | None:
        """Say how long after the first send's question the first result with notes came, whether it went or not."""
        settled = self.handle.settled
        ready_at = self.fast_at
        if not self.found:
            ready_at = self.handle.settled_at if settled and settled.notes else None
        return None if self.first_hold_at is None or ready_at is None else max(ready_at - self.first_hold_at, 0.0)

    def _skip(self, skip: Skip) -> None:
        if skip in self.skips or (skip.reason is Reason.OVER_BUDGET and self._cut_before(skip)):
            return
        self.skips.add(skip)
        self.observers.emit(
            RecallSkipped(
                op=self.op, at=self.observers.now(), policy=self.policy.name, point=skip.point, reason=skip.reason
            )
        )

    def _cut_before(self, skip: Skip) -> bool:
        """Tell whether a send was told already that the budget is full: what was cut is counted once."""
        return skip.point is not Point.NONE and any(
            told.reason is Reason.OVER_BUDGET and told.point is not Point.NONE for told in self.skips
        )

    def _rolled_back(self, delivery: Delivery, cause: RollbackCause) -> None:
        self.observers.emit(
            RecallRolledBack(
                op=self.op,
                at=self.observers.now(),
                policy=self.policy.name,
                point=delivery.point,
                notes=tuple(version.note for version in delivery.versions),
                cause=cause,
            )
        )

    def _late(self, move: Move) -> None:
        self.observers.emit(RecallLate(op=self.op, at=self.observers.now(), policy=self.policy.name, move=move))


@dataclass(frozen=True, slots=True)
class Handover:
    """What one attempt of a send gets from memory: `part` to put into the message, or nothing.

    The send says exactly once what became of the attempt: `accepted` or `dropped`.
    """

    recall: PendingRecall | None = None
    delivery: Delivery | None = None
    waited: float = 0.0

    @property
    def part(self) -> MemoryPart | None:
        """The memory part of the message."""
        if self.delivery is None:
            return None
        return MemoryPart(fence(self.delivery.notes), self.delivery.versions)

    def accepted(self) -> None:
        """The model accepted the request."""
        if self.recall is None:
            return
        self.recall.accepted = True
        if self.delivery is not None:
            self.recall.commit(self.delivery, waited=self.waited)

    def dropped(self, cause: RollbackCause) -> None:
        """The request did not reach the model, and why."""
        if self.recall is not None and self.delivery is not None:
            self.recall.roll_back(self.delivery, cause)


NO_MEMORY = Handover()
"""What a send gets that is no delivery point, or whose turn has no recall."""
