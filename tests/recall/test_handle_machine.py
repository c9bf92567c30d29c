"""The recall handle under any order of moves, against an oracle written from docs/recall.md and not from the code."""

from collections.abc import Callable
from dataclasses import fields
from typing import NamedTuple, TypeVar, cast

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from recallscope.runtime.errors import IllegalMoveError
from recallscope.runtime.messages import NoteVersion
from recallscope.runtime.recall.handle import (
    TRANSITIONS,
    Budget,
    Delivery,
    Move,
    RecalledNote,
    RecallHandle,
    Settled,
    Skip,
    State,
)
from recallscope.runtime.terms import Cause, Outcome, Phase, Point, Reason, RecallPhase, RollbackCause, Strategy

POOL = tuple(
    RecalledNote(NoteVersion(name, version), "x" * characters)
    for name, version, characters in [
        ("a", "1", 1),
        ("a", "2", 4),
        ("b", "1", 3),
        ("c", "1", 5),
        ("d", "1", 8),
        ("e", "1", 2),
    ]
)
VERSIONS = tuple(note.version for note in POOL)
SELECTIONS = st.lists(st.sampled_from(POOL), max_size=5).map(tuple)
SETS = st.frozensets(st.sampled_from(VERSIONS), max_size=3)
ERRORS = st.sampled_from([None, None, Reason.STORE_UNAVAILABLE, Reason.SELECTOR_UNAVAILABLE, Reason.SELECTOR_TIMEOUT])
POINTS = st.sampled_from([Point.INITIAL, Point.TOOL_RESULT])
RESULT = TypeVar("RESULT")


class Sent(NamedTuple):
    """A delivery as the oracle remembers it."""

    phase: RecallPhase
    point: Point
    notes: tuple[RecalledNote, ...]


class Oracle:
    """What the text of docs/recall.md says, as plain lists of what happened."""

    def __init__(self, *, tiered: bool, surfaced: frozenset[NoteVersion], budget: Budget) -> None:
        self.tiered = tiered
        self.surfaced = surfaced
        self.budget = budget
        self.fast: tuple[RecalledNote, ...] | None = None
        self.refined: Settled | None = None
        self.gone: set[NoteVersion] = set()
        self.committed: list[Sent] = []
        self.out: Sent | None = None
        self.first_cause: Cause | None = None
        self.late = 0
        self.rolled_back = 0

    @property
    def standing(self) -> list[RecalledNote]:
        """What of the refined result still exists."""
        return [note for note in self.refined.notes if note.version not in self.gone] if self.refined else []

    def unseen(self, notes: tuple[RecalledNote, ...]) -> list[RecalledNote]:
        """Return the notes less those surfaced, committed or gone, each once, in order."""
        seen = self.surfaced | self.gone | {note.version for sent in self.committed for note in sent.notes}
        return list({note.version: note for note in notes if note.version not in seen}.values())

    def that_fit(self, notes: list[RecalledNote]) -> tuple[RecalledNote, ...]:
        """Return what fits the budget that committed deliveries have left, one note after the other."""
        used = [note for sent in self.committed for note in sent.notes]
        taken: list[RecalledNote] = []
        for note in notes:
            together = [*used, *taken, note]
            if (
                len(together) <= self.budget.notes
                and sum(len(each.text) for each in together) <= self.budget.characters
            ):
                taken.append(note)
        return tuple(taken)

    def due(self, point: Point, held_back: frozenset[NoteVersion]) -> Sent | Skip:
        """Say what `prepare` must answer."""
        if self.refined is not None:
            phase, source = RecallPhase.REFINED, self.refined.notes
        elif (
            point is Point.INITIAL and self.fast and not any(sent.phase is RecallPhase.FAST for sent in self.committed)
        ):
            phase, source = RecallPhase.FAST, self.fast
        else:
            return Skip(point, Reason.NOT_SETTLED)
        if all(note.version in self.gone for note in source):
            return Skip(point, Reason.NOTHING_FOUND)
        unseen = self.unseen(source)
        if not unseen:
            return Skip(point, Reason.ALREADY_DELIVERED)
        checked = [note for note in unseen if note.version not in held_back]
        if not checked:
            return Skip(point, Reason.NOT_SETTLED)
        fitting = self.that_fit(checked)
        return Sent(phase, point, fitting) if fitting else Skip(point, Reason.OVER_BUDGET)

    def outcome(self) -> tuple[Outcome, Reason | None]:
        """Apply the six rules, first match wins; no reason: the rule states none that is the handle's alone."""
        assert self.first_cause is not None
        if self.committed:
            return Outcome.DELIVERED, None
        if self.refined is not None and self.refined.error is not None and not self.standing:
            return Outcome.FAILED, self.refined.error
        if self.refined is not None and not self.standing:
            return Outcome.EMPTY, Reason.NO_RELEVANT_RESULTS
        if self.refined is not None and all(note.version in self.surfaced for note in self.standing):
            return Outcome.ALREADY_DELIVERED, Reason.ALREADY_DELIVERED
        if self.refined is not None and not self.that_fit(self.unseen(self.refined.notes)):
            return Outcome.DISCARDED, Reason.OVER_BUDGET
        return Outcome.DISCARDED, self.first_cause.reason


def snapshot(handle: RecallHandle) -> list[object]:
    """Copy every fact of a handle; deliveries stay themselves, since they are compared by identity."""
    facts: list[object] = [getattr(handle, each.name) for each in fields(handle)]
    return [set(cast("set[object]", fact)) if isinstance(fact, set) else _copied(fact) for fact in facts]


def _copied(fact: object) -> object:
    return list(cast("list[object]", fact)) if isinstance(fact, list) else fact


class HandleMachine(RuleBasedStateMachine):
    """Any move at any time: legal ones do what the oracle says, the others raise and change nothing."""

    @initialize(
        tiered=st.booleans(),
        surfaced=SETS,
        budget=st.builds(Budget, notes=st.sampled_from([4, 2, 1, 0]), characters=st.sampled_from([20, 9, 4, 0])),
    )
    def begin(self, *, tiered: bool, surfaced: frozenset[NoteVersion], budget: Budget) -> None:
        """Begin a handle."""
        self.handle = RecallHandle(fast_allowed=tiered, surfaced=surfaced, budget=budget)
        self.oracle = Oracle(tiered=tiered, surfaced=surfaced, budget=budget)
        self.delivery: Delivery | None = None
        self.past: list[Delivery] = []
        self.ended: tuple[Outcome, Reason] | None = None
        self.moves = 0

    def move(self, move: Move, call: Callable[[], RESULT], *, legal: bool) -> RESULT | None:
        """Make a move; the table must know it, and an illegal one must change nothing."""
        self.moves += 1
        before, facts = self.handle.state, snapshot(self.handle)
        if not legal:
            with pytest.raises(IllegalMoveError):
                call()
            assert snapshot(self.handle) == facts
            return None
        answer = call()
        assert self.handle.state in TRANSITIONS[before][move]
        return answer

    def late(self, call: Callable[[], bool], move: Move) -> None:
        """Make a move after the close: it changes nothing but the count."""
        facts = snapshot(self.handle)
        assert self.move(move, call, legal=True) is False
        self.oracle.late += 1
        assert self.handle.late == self.oracle.late
        self.handle.late -= 1
        assert snapshot(self.handle) == facts
        self.handle.late += 1

    @property
    def closed(self) -> bool:
        """The handle has been closed."""
        return self.oracle.first_cause is not None

    @rule(notes=SELECTIONS)
    def publish_fast(self, notes: tuple[RecalledNote, ...]) -> None:
        """Publish a fast result."""
        if self.closed:
            self.late(lambda: self.handle.publish_fast(notes), Move.PUBLISH_FAST)
            return
        legal = self.oracle.tiered and bool(notes) and self.oracle.fast is None and self.oracle.refined is None
        if self.move(Move.PUBLISH_FAST, lambda: self.handle.publish_fast(notes), legal=legal):
            self.oracle.fast = notes

    @rule(notes=SELECTIONS, error=ERRORS)
    def settle(self, notes: tuple[RecalledNote, ...], error: Reason | None) -> None:
        """Settle, perhaps with an error and perhaps with word matches beside it."""
        result = Settled(notes=notes, strategy=Strategy.MODEL if notes else Strategy.NONE, error=error)
        if self.closed:
            self.late(lambda: self.handle.settle(result, at=2.0), Move.SETTLE)
        elif self.move(Move.SETTLE, lambda: self.handle.settle(result, at=2.0), legal=self.oracle.refined is None):
            self.oracle.refined = result

    @precondition(lambda self: self.moves % 3 == 2)
    @rule(versions=SETS)
    def withdraw(self, versions: frozenset[NoteVersion]) -> None:
        """Withdraw some versions."""
        if self.closed:
            self.late(lambda: self.handle.withdraw(versions), Move.WITHDRAW)
        elif self.oracle.out is None and self.move(Move.WITHDRAW, lambda: self.handle.withdraw(versions), legal=True):
            self.oracle.gone |= versions

    @rule(point=POINTS, held_back=SETS)
    def prepare(self, point: Point, held_back: frozenset[NoteVersion]) -> None:
        """Ask what goes with a send."""
        legal = not self.closed and self.oracle.out is None
        answer = self.move(Move.PREPARE, lambda: self.handle.prepare(point, hold_back=held_back), legal=legal)
        if not legal:
            return
        due = self.oracle.due(point, held_back)
        if isinstance(answer, Delivery):
            assert Sent(answer.phase, answer.point, answer.notes) == due
            self.delivery = answer
            self.oracle.out = due if isinstance(due, Sent) else None
        else:
            assert answer == due

    @precondition(lambda self: self.moves % 5 == 4)
    @rule()
    def prepare_nowhere(self) -> None:
        """Ask at no point, which is never legal."""
        self.move(Move.PREPARE, lambda: self.handle.prepare(Point.NONE), legal=False)

    @precondition(lambda self: self.delivery is not None)
    @rule()
    def commit(self) -> None:
        """Commit what was prepared last."""
        delivery = self.delivery
        assert delivery is not None
        if self.closed:
            self.late(lambda: self.handle.commit(delivery, at=3.0), Move.COMMIT)
            return
        assert self.move(Move.COMMIT, lambda: self.handle.commit(delivery, at=3.0), legal=True)
        assert self.oracle.out is not None
        self.oracle.committed.append(self.oracle.out)
        self.delivery_ended(delivery)

    @precondition(lambda self: self.delivery is not None)
    @rule(cause=st.sampled_from(RollbackCause))
    def roll_back(self, cause: RollbackCause) -> None:
        """Roll back what was prepared last; asking again offers it again."""
        delivery = self.delivery
        assert delivery is not None
        if self.closed:
            self.late(lambda: self.handle.roll_back(delivery, cause), Move.ROLL_BACK)
            return
        assert self.move(Move.ROLL_BACK, lambda: self.handle.roll_back(delivery, cause), legal=True)
        self.oracle.rolled_back += 1
        self.delivery_ended(delivery)
        assert delivery.versions == tuple(note.version for note in self.oracle.that_fit(list(delivery.notes)))

    @precondition(lambda self: self.past)
    @rule(data=st.data(), commit=st.booleans())
    def end_an_ended_delivery(self, data: st.DataObject, *, commit: bool) -> None:
        """Commit or roll back a delivery that has ended."""
        old = data.draw(st.sampled_from(self.past))
        if self.closed and commit:
            self.late(lambda: self.handle.commit(old, at=4.0), Move.COMMIT)
        elif self.closed:
            self.late(lambda: self.handle.roll_back(old, RollbackCause.CONNECTION), Move.ROLL_BACK)
        elif commit:
            self.move(Move.COMMIT, lambda: self.handle.commit(old, at=4.0), legal=False)
        else:
            self.move(Move.ROLL_BACK, lambda: self.handle.roll_back(old, RollbackCause.CONNECTION), legal=False)

    @precondition(lambda self: self.worth_closing())
    @rule(cause=st.sampled_from(Cause))
    def close(self, cause: Cause) -> None:
        """Close, perhaps again: the first cause wins."""
        was_closed = self.closed
        facts = snapshot(self.handle)
        answer = self.move(Move.CLOSE, lambda: self.handle.close(cause), legal=True)
        assert answer is not was_closed
        if was_closed:
            assert snapshot(self.handle) == facts
            return
        self.oracle.first_cause = cause
        if self.oracle.out is not None:
            self.oracle.out = None
            self.oracle.rolled_back += 1
        self.ended = (self.handle.outcome, self.handle.reason)

    def worth_closing(self) -> bool:
        """Let something happen first, so that most runs see more than the end."""
        return self.moves > 10

    def delivery_ended(self, delivery: Delivery) -> None:
        """Remember that a delivery was accepted or refused."""
        self.oracle.out = self.delivery = None
        self.past.append(delivery)

    @invariant()
    def the_state_is_what_the_facts_say(self) -> None:
        """The computed state follows from what happened."""
        oracle = self.oracle
        match oracle.first_cause, oracle.refined, oracle.fast, oracle.out:
            case Cause(), _, _, _:
                expected = State.CLOSED
            case _, Settled(), _, out:
                expected = State.SETTLED_OUT if out else State.SETTLED
            case _, _, (_, *_), out:
                expected = State.FAST_OUT if out else State.FAST
            case _:
                expected = State.SEARCHING
        assert self.handle.state is expected

    @invariant()
    def a_version_is_surfaced_once(self) -> None:
        """No version goes twice, and none that stood in the conversation before."""
        went = [version for delivery in self.handle.committed for version in delivery.versions]
        assert len(went) == len(set(went))
        assert not self.oracle.surfaced & set(went)

    @invariant()
    def the_budget_is_kept(self) -> None:
        """Committed and outstanding together never pass the budget."""
        deliveries = [*self.handle.committed, *([self.handle.outstanding] if self.handle.outstanding else [])]
        assert sum(len(delivery.notes) for delivery in deliveries) <= self.oracle.budget.notes
        assert sum(delivery.characters for delivery in deliveries) <= self.oracle.budget.characters

    @invariant()
    def there_is_one_outcome(self) -> None:
        """A closed handle has the outcome that the six rules give, and keeps it."""
        assert len(self.handle.rollbacks) == self.oracle.rolled_back
        if self.ended is None:
            return
        outcome, reason = self.oracle.outcome()
        assert (self.handle.outcome, self.handle.reason) == self.ended
        assert self.handle.outcome is outcome
        assert reason is None or self.handle.reason is reason
        assert self.handle.cause is self.oracle.first_cause

    @invariant()
    def what_went_is_told(self) -> None:
        """Phases and points are those of the accepted deliveries."""
        phases = {sent.phase for sent in self.oracle.committed}
        expected = Phase.BOTH if len(phases) > 1 else Phase(next(iter(phases)).value) if phases else Phase.NONE
        assert self.handle.phases is expected
        assert set(self.handle.points) == {sent.point for sent in self.oracle.committed}


TestHandle = HandleMachine.TestCase
TestHandle.settings = settings(max_examples=80, stateful_step_count=20, deadline=None)
