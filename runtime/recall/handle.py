"""The recall handle: a pure state machine over facts, without input, output or a clock.

Everything that decides about a delivery is in this file. Facts go in with their times (seconds, from the caller's
clock), values come out; the state is computed from the facts and never stored. `TRANSITIONS` is the whole table: an
illegal move raises `IllegalMoveError` and changes nothing. After the close, results and acceptances that come late are
normal races: they change nothing and return False.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum, unique

from recallscope.runtime.errors import IllegalMoveError
from recallscope.runtime.messages import NoteVersion
from recallscope.runtime.terms import Cause, Outcome, Phase, Point, Reason, RecallPhase, RollbackCause, Strategy

__all__ = ["TRANSITIONS", "Budget", "Delivery", "Move", "RecallHandle", "RecalledNote", "Settled", "Skip", "State"]


@unique
class State(StrEnum):
    """Where a handle stands; `…_OUT` means that a delivery is outstanding."""

    SEARCHING = "searching"
    FAST = "fast"
    FAST_OUT = "fast_out"
    SETTLED = "settled"
    SETTLED_OUT = "settled_out"
    CLOSED = "closed"


@unique
class Move(StrEnum):
    """What can be done to a handle."""

    PUBLISH_FAST = "publish_fast"
    SETTLE = "settle"
    WITHDRAW = "withdraw"
    PREPARE = "prepare"
    COMMIT = "commit"
    ROLL_BACK = "roll_back"
    CLOSE = "close"


def _to(*states: State) -> frozenset[State]:
    return frozenset(states)


TRANSITIONS: Mapping[State, Mapping[Move, frozenset[State]]] = {
    State.SEARCHING: {
        Move.PUBLISH_FAST: _to(State.FAST),
        Move.SETTLE: _to(State.SETTLED),
        Move.WITHDRAW: _to(State.SEARCHING),
        Move.PREPARE: _to(State.SEARCHING),
        Move.CLOSE: _to(State.CLOSED),
    },
    State.FAST: {
        Move.SETTLE: _to(State.SETTLED),
        Move.WITHDRAW: _to(State.FAST),
        Move.PREPARE: _to(State.FAST, State.FAST_OUT),
        Move.CLOSE: _to(State.CLOSED),
    },
    State.FAST_OUT: {
        Move.SETTLE: _to(State.SETTLED_OUT),
        Move.WITHDRAW: _to(State.FAST_OUT),
        Move.COMMIT: _to(State.FAST),
        Move.ROLL_BACK: _to(State.FAST),
        Move.CLOSE: _to(State.CLOSED),
    },
    State.SETTLED: {
        Move.WITHDRAW: _to(State.SETTLED),
        Move.PREPARE: _to(State.SETTLED, State.SETTLED_OUT),
        Move.CLOSE: _to(State.CLOSED),
    },
    State.SETTLED_OUT: {
        Move.WITHDRAW: _to(State.SETTLED_OUT),
        Move.COMMIT: _to(State.SETTLED),
        Move.ROLL_BACK: _to(State.SETTLED),
        Move.CLOSE: _to(State.CLOSED),
    },
    State.CLOSED: {
        # Normal races: each changes nothing and returns False.
        Move.PUBLISH_FAST: _to(State.CLOSED),
        Move.SETTLE: _to(State.CLOSED),
        Move.WITHDRAW: _to(State.CLOSED),
        Move.COMMIT: _to(State.CLOSED),
        Move.ROLL_BACK: _to(State.CLOSED),
        Move.CLOSE: _to(State.CLOSED),
    },
}


@dataclass(frozen=True, slots=True)
class Budget:
    """How much memory one turn may receive: notes, and characters of rendered text."""

    notes: int = 5
    characters: int = 8_000


@dataclass(frozen=True, slots=True)
class RecalledNote:
    """One version of a note as it would be delivered: `text` is rendered and escaped."""

    version: NoteVersion
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """The refined result: notes in the selector's order; an error is an empty or fallen-back result with its cause.

    `cut_by_policy`: the policy's own selector limit ended the call, it did not end by itself.
    """

    notes: tuple[RecalledNote, ...]
    strategy: Strategy
    error: Reason | None = None
    cut_by_policy: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Delivery:
    """Notes handed to one send; compared by identity, since each attempt has its own. `cut`: did not fit the budget."""

    point: Point
    phase: RecallPhase
    strategy: Strategy
    notes: tuple[RecalledNote, ...]
    cut: int

    @property
    def characters(self) -> int:
        """How many characters of the turn's budget this takes."""
        return sum(len(note.text) for note in self.notes)

    @property
    def versions(self) -> tuple[NoteVersion, ...]:
        """Which versions this hands over."""
        return tuple(note.version for note in self.notes)


@dataclass(frozen=True, slots=True)
class Skip:
    """No memory for this send, and why."""

    point: Point
    reason: Reason


@dataclass(slots=True)
class RecallHandle:
    """The life of one recall, from begin to exactly one terminal outcome (docs/recall.md)."""

    fast_allowed: bool
    surfaced: frozenset[NoteVersion] = frozenset()
    budget: Budget = field(default_factory=Budget)
    fast: tuple[RecalledNote, ...] = field(default=(), init=False)
    settled: Settled | None = field(default=None, init=False)
    settled_at: float | None = field(default=None, init=False)
    committed: list[Delivery] = field(default_factory=list[Delivery], init=False)
    committed_at: float | None = field(default=None, init=False)
    outstanding: Delivery | None = field(default=None, init=False)
    rollbacks: list[RollbackCause] = field(default_factory=list[RollbackCause], init=False)
    withdrawn: set[NoteVersion] = field(default_factory=set[NoteVersion], init=False)
    cause: Cause | None = field(default=None, init=False)
    late: int = field(default=0, init=False)

    @property
    def state(self) -> State:
        """Where the handle stands, computed from the facts."""
        if self.cause is not None:
            return State.CLOSED
        if self.settled is not None:
            return State.SETTLED_OUT if self.outstanding else State.SETTLED
        if self.fast:
            return State.FAST_OUT if self.outstanding else State.FAST
        return State.SEARCHING

    # The moves

    def publish_fast(self, notes: Iterable[RecalledNote]) -> bool:
        """Take the fast result: once, not empty, and only under a policy that delivers it."""
        self._check(Move.PUBLISH_FAST)
        if self._is_late():
            return False
        offered = tuple(notes)
        if not self.fast_allowed or not offered:
            why = "an empty result" if self.fast_allowed else "under this policy"
            raise IllegalMoveError(move=f"{Move.PUBLISH_FAST} ({why})", state=self.state, allowed=self._allowed())
        self.fast = offered
        return True

    def settle(self, result: Settled, *, at: float) -> bool:
        """Take the refined result: once."""
        self._check(Move.SETTLE)
        if self._is_late():
            return False
        self.settled, self.settled_at = result, at
        return True

    def withdraw(self, versions: Iterable[NoteVersion]) -> bool:
        """Take back notes that are gone or changed on disk: they are offered no more."""
        self._check(Move.WITHDRAW)
        if self._is_late():
            return False
        self.withdrawn.update(versions)
        return True

    def prepare(self, point: Point, *, hold_back: frozenset[NoteVersion] = frozenset()) -> Delivery | Skip:
        """Say what goes with a send at `point`; notes in `hold_back` could not be checked in time and wait.

        A settled result goes before a fast one. A note that does not fit the budget is left out whole and the next is
        tried.
        """
        self._check(Move.PREPARE)
        if point is Point.NONE:
            raise IllegalMoveError(move=f"{Move.PREPARE} (at no point)", state=self.state, allowed=self._allowed())
        source = self._source(point)
        if source is None:
            return Skip(point, Reason.NOT_SETTLED)
        if not self._standing(source):
            return Skip(point, Reason.NOTHING_FOUND)
        still_open = self.offered(point)
        if not still_open:
            return Skip(point, Reason.ALREADY_DELIVERED)
        checked = [note for note in still_open if note.version not in hold_back]
        if not checked:
            return Skip(point, Reason.NOT_SETTLED)
        fitting, cut = self._fitting(checked)
        if not fitting:
            return Skip(point, Reason.OVER_BUDGET)
        phase, strategy = RecallPhase.FAST, Strategy.LEXICAL
        if self.settled is not None:
            phase, strategy = RecallPhase.REFINED, self.settled.strategy
        self.outstanding = Delivery(point=point, phase=phase, strategy=strategy, notes=fitting, cut=cut)
        return self.outstanding

    def commit(self, delivery: Delivery, *, at: float) -> bool:
        """The model accepted the request that carried `delivery`."""
        self._check(Move.COMMIT)
        if self._is_late():
            return False
        self._check_outstanding(delivery, Move.COMMIT)
        self.outstanding = None
        self.committed.append(delivery)
        self.committed_at = self.committed_at if self.committed_at is not None else at
        return True

    def roll_back(self, delivery: Delivery, cause: RollbackCause) -> bool:
        """The request that carried `delivery` did not reach the model; its notes and its budget come back."""
        self._check(Move.ROLL_BACK)
        if self._is_late():
            return False
        self._check_outstanding(delivery, Move.ROLL_BACK)
        self.outstanding = None
        self.rollbacks.append(cause)
        return True

    def close(self, cause: Cause) -> bool:
        """End the handle; the first cause wins, and an outstanding delivery is rolled back first."""
        self._check(Move.CLOSE)
        if self.cause is not None:
            return False
        if self.outstanding is not None:
            self.roll_back(self.outstanding, RollbackCause.CLOSED)
        self.cause = cause
        return True

    # What the facts say

    def offered(self, point: Point) -> tuple[RecalledNote, ...]:
        """Return the notes that `prepare` at `point` would choose from now, for the check against their files."""
        return tuple(note for note in self._source(point) or () if self._is_open(note))

    @property
    def phases(self) -> Phase:
        """Which results were delivered."""
        match {delivery.phase for delivery in self.committed}:
            case phases if len(phases) > 1:
                return Phase.BOTH
            case phases if RecallPhase.FAST in phases:
                return Phase.FAST
            case phases if RecallPhase.REFINED in phases:
                return Phase.REFINED
            case _:
                return Phase.NONE

    @property
    def points(self) -> tuple[Point, ...]:
        """Where notes were delivered, in order, each once."""
        return tuple(dict.fromkeys(delivery.point for delivery in self.committed))

    @property
    def outcome(self) -> Outcome:
        """The terminal outcome by the six rules of docs/recall.md; what it would be now, if not closed yet."""
        return self._verdict()[0]

    @property
    def reason(self) -> Reason:
        """Why nothing was delivered, or why the refined part was not; `Reason.NONE` if there is nothing to explain."""
        return self._verdict()[1]

    def _verdict(self) -> tuple[Outcome, Reason]:
        if self.committed:
            return Outcome.DELIVERED, self._undelivered_part()
        if self.settled is None:
            return Outcome.DISCARDED, self._close_reason()
        if self.settled.error is not None and not self._standing(self.settled.notes):
            return Outcome.FAILED, self.settled.error
        match self._why_not():
            case Reason.NO_RELEVANT_RESULTS as reason:
                return Outcome.EMPTY, reason
            case Reason.ALREADY_DELIVERED as reason:
                return Outcome.ALREADY_DELIVERED, reason
            case reason:
                return Outcome.DISCARDED, reason

    def _undelivered_part(self) -> Reason:
        if any(delivery.phase is RecallPhase.REFINED for delivery in self.committed):
            return Reason.NONE
        if self.settled is None:
            return self._close_reason()
        if self.settled.error is not None and not self._standing(self.settled.notes):
            return self.settled.error
        return self._why_not()

    def _why_not(self) -> Reason:
        """Say why no refined note of a settled handle went: the rules 3 to 6, in their order."""
        if self.settled is None or not self._standing(self.settled.notes):
            return Reason.NO_RELEVANT_RESULTS
        still_open = [note for note in self.settled.notes if self._is_open(note)]
        if not still_open:
            return Reason.ALREADY_DELIVERED
        if not self._fitting(still_open)[0]:
            return Reason.OVER_BUDGET
        return self._close_reason()

    def _close_reason(self) -> Reason:
        return self.cause.reason if self.cause is not None else Reason.NOT_SETTLED

    def _source(self, point: Point) -> tuple[RecalledNote, ...] | None:
        """Say which result is due at `point`, None while there is none."""
        if self.settled is not None:
            return self.settled.notes
        fast_taken = any(delivery.phase is RecallPhase.FAST for delivery in self.committed)
        return self.fast if point is Point.INITIAL and self.fast and not fast_taken else None

    def _standing(self, notes: Iterable[RecalledNote]) -> bool:
        return any(note.version not in self.withdrawn for note in notes)

    def _is_open(self, note: RecalledNote) -> bool:
        version = note.version
        return (
            version not in self.surfaced
            and version not in self.withdrawn
            and not any(version in delivery.versions for delivery in self.committed)
        )

    def _fitting(self, notes: Iterable[RecalledNote]) -> tuple[tuple[RecalledNote, ...], int]:
        places = self.budget.notes - sum(len(delivery.notes) for delivery in self.committed)
        room = self.budget.characters - sum(delivery.characters for delivery in self.committed)
        chosen: dict[NoteVersion, RecalledNote] = {}
        cut = 0
        for note in notes:
            if note.version in chosen:
                continue
            if places > 0 and len(note.text) <= room:
                chosen[note.version] = note
                places -= 1
                room -= len(note.text)
            else:
                cut += 1
        return tuple(chosen.values()), cut

    # Legality

    def _check(self, move: Move) -> None:
        if move not in TRANSITIONS[self.state]:
            raise IllegalMoveError(move=move, state=self.state, allowed=self._allowed())

    def _check_outstanding(self, delivery: Delivery, move: Move) -> None:
        if delivery is not self.outstanding:
            raise IllegalMoveError(
                move=f"{move} (of a delivery that is not outstanding)", state=self.state, allowed=self._allowed()
            )

    def _allowed(self) -> tuple[str, ...]:
        return tuple(TRANSITIONS[self.state])

    def _is_late(self) -> bool:
        if self.cause is None:
            return False
        self.late += 1
        return True
