"""The recall handle: its table, its moves one by one, and the six rules of its outcome."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import fields

import pytest

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


def note(name: str, *, version: str = "1", characters: int = 10) -> RecalledNote:
    """Make a rendered note of so many characters."""
    return RecalledNote(NoteVersion(name, version), "x" * characters)


A, B, C = note("a"), note("b"), note("c")


def chosen(*notes: RecalledNote, error: Reason | None = None) -> Settled:
    """Make a result of the model's choice."""
    return Settled(notes=notes, strategy=Strategy.MODEL if notes else Strategy.NONE, error=error)


def handle(
    *, fast: tuple[RecalledNote, ...] = (), settled: Settled | None = None, surfaced: tuple[RecalledNote, ...] = ()
) -> RecallHandle:
    """Make a handle of the policy `tiered` with the results that are there."""
    made = RecallHandle(fast_allowed=True, surfaced=frozenset(each.version for each in surfaced))
    if fast:
        made.publish_fast(fast)
    if settled is not None:
        made.settle(settled, at=0.5)
    return made


def prepared(recall: RecallHandle, point: Point = Point.INITIAL) -> Delivery:
    """Prepare a delivery; there must be something to deliver."""
    delivery = recall.prepare(point)
    assert isinstance(delivery, Delivery)
    return delivery


def facts(recall: RecallHandle) -> dict[str, object]:
    """Return a copy of every fact of a handle, deliveries by identity."""
    return {
        each.name: value.copy() if isinstance(value := getattr(recall, each.name), list | set) else value
        for each in fields(recall)
    }


# The table


def test_every_state_has_a_row() -> None:
    """Each state stands in the table, and each row names legal moves only."""
    assert set(TRANSITIONS) == set(State)


def test_every_state_can_be_reached() -> None:
    """Following the table from the first state leads to every state."""
    reached = {State.SEARCHING}
    while more := {target for state in reached for targets in TRANSITIONS[state].values() for target in targets}:
        if more <= reached:
            break
        reached |= more

    assert reached == set(State)


def test_nothing_leads_out_of_the_end() -> None:
    """A closed handle stays closed, whatever is done to it."""
    assert set(TRANSITIONS[State.CLOSED].values()) == {frozenset({State.CLOSED})}


def _steps(recall: RecallHandle) -> Iterator[tuple[Move, Callable[[RecallHandle], object]]]:
    yield Move.PUBLISH_FAST, lambda it: it.publish_fast([A])
    for result in (chosen(B), chosen(), chosen(A)):
        yield Move.SETTLE, lambda it, result=result: it.settle(result, at=1.0)
    yield Move.WITHDRAW, lambda it: it.withdraw([A.version])
    for point in (Point.INITIAL, Point.TOOL_RESULT):
        yield Move.PREPARE, lambda it, point=point: it.prepare(point)
    foreign = Delivery(point=Point.INITIAL, phase=RecallPhase.FAST, strategy=Strategy.LEXICAL, notes=(A,), cut=0)
    if recall.outstanding is not None or recall.cause is not None:
        yield Move.COMMIT, lambda it: it.commit(it.outstanding or foreign, at=1.0)
        yield Move.ROLL_BACK, lambda it: it.roll_back(it.outstanding or foreign, RollbackCause.REFUSED)
    yield Move.CLOSE, lambda it: it.close(Cause.TURN_END)


def _fingerprint(recall: RecallHandle) -> object:
    outstanding = recall.outstanding and (recall.outstanding.phase, recall.outstanding.versions)
    taken = tuple((delivery.phase, delivery.versions) for delivery in recall.committed)
    return recall.fast, recall.settled, taken, outstanding, frozenset(recall.withdrawn), recall.cause


def test_the_table_is_what_the_handle_does() -> None:
    """Every handle that can be made moves as the table says, and every arrow of the table is gone by some handle."""
    first = RecallHandle(fast_allowed=True)
    open_handles, known = [first], {_fingerprint(first)}
    gone: set[tuple[State, Move, State]] = set()
    while open_handles:
        recall = open_handles.pop()
        for move, step in _steps(recall):
            moved = deepcopy(recall)
            if move not in TRANSITIONS[recall.state]:
                with pytest.raises(IllegalMoveError):
                    step(moved)
                continue
            step(moved)
            gone.add((recall.state, move, moved.state))
            if _fingerprint(moved) not in known:
                known.add(_fingerprint(moved))
                open_handles.append(moved)

    assert gone == {
        (state, move, target)
        for state, row in TRANSITIONS.items()
        for move, targets in row.items()
        for target in targets
    }


# Publishing and settling


def test_an_empty_fast_result_is_not_published() -> None:
    """The fast result is published only when it holds a note."""
    recall = handle()

    with pytest.raises(IllegalMoveError, match=r"publish_fast \(an empty result\) is illegal in state searching"):
        recall.publish_fast([])

    assert recall.state is State.SEARCHING


def test_the_fast_result_belongs_to_one_policy() -> None:
    """A handle whose policy delivers no fast result refuses one."""
    recall = RecallHandle(fast_allowed=False)

    with pytest.raises(IllegalMoveError, match="under this policy"):
        recall.publish_fast([A])

    assert recall.fast == ()


@pytest.mark.parametrize("settled", [None, chosen(B)])
def test_the_fast_result_comes_once(settled: Settled | None) -> None:
    """A second fast result, and one after the refined result, is illegal and changes nothing."""
    recall = handle(fast=(A,), settled=settled)
    before = facts(recall)

    with pytest.raises(IllegalMoveError):
        recall.publish_fast([B])

    assert facts(recall) == before


def test_the_refined_result_comes_once() -> None:
    """A second refined result is illegal and changes nothing."""
    recall = handle(settled=chosen(A))
    before = facts(recall)

    with pytest.raises(IllegalMoveError, match="settle is illegal in state settled; allowed there: withdraw, prepare"):
        recall.settle(chosen(B), at=2.0)

    assert facts(recall) == before


# Preparing


def test_nothing_goes_before_something_is_there() -> None:
    """A send that comes before any result is skipped as not settled."""
    assert handle().prepare(Point.INITIAL) == Skip(Point.INITIAL, Reason.NOT_SETTLED)


def test_the_fast_result_goes_with_the_first_send_only() -> None:
    """A fast result does not go behind tool results: only the refined one does."""
    assert handle(fast=(A,)).prepare(Point.TOOL_RESULT) == Skip(Point.TOOL_RESULT, Reason.NOT_SETTLED)


def test_the_fast_result_goes_and_the_handle_stays_open() -> None:
    """After the fast notes were accepted, the refined ones that are not among them go behind tool results."""
    recall = handle(fast=(A,))
    recall.commit(prepared(recall), at=0.1)
    recall.settle(chosen(B, A, C), at=0.9)
    late = prepared(recall, Point.TOOL_RESULT)

    assert (late.notes, late.phase, late.strategy) == ((B, C), RecallPhase.REFINED, Strategy.MODEL)


def test_a_fast_result_is_taken_once() -> None:
    """After the fast notes were accepted, a send before the refined result is skipped as not settled."""
    recall = handle(fast=(A,))
    recall.commit(prepared(recall), at=0.1)

    assert recall.prepare(Point.INITIAL) == Skip(Point.INITIAL, Reason.NOT_SETTLED)


def test_a_settled_result_goes_before_a_fast_one() -> None:
    """When both are there at the first send, the refined notes go."""
    delivery = prepared(handle(fast=(A,), settled=chosen(B)))

    assert (delivery.notes, delivery.phase) == ((B,), RecallPhase.REFINED)


def test_an_empty_choice_is_final() -> None:
    """When the model chose nothing, the fast notes do not go in its place."""
    assert handle(fast=(A,), settled=chosen()).prepare(Point.INITIAL) == Skip(Point.INITIAL, Reason.NOTHING_FOUND)


def test_what_stands_in_the_conversation_does_not_go_again() -> None:
    """Versions that were surfaced before the turn are left out; an edited note is another version."""
    edited = note("a", version="2")
    recall = handle(settled=chosen(A, edited, B), surfaced=(A,))

    assert prepared(recall).notes == (edited, B)


def test_only_surfaced_notes_are_a_skip() -> None:
    """When all chosen notes stand in the conversation, the send is skipped as already delivered."""
    recall = handle(settled=chosen(A), surfaced=(A,))

    assert recall.prepare(Point.INITIAL) == Skip(Point.INITIAL, Reason.ALREADY_DELIVERED)


def test_a_note_named_twice_goes_once() -> None:
    """The same version twice in one result is handed over once."""
    assert prepared(handle(settled=chosen(A, A))).notes == (A,)


def test_a_second_delivery_waits_for_the_first() -> None:
    """Preparing while a delivery is outstanding is illegal and changes nothing."""
    recall = handle(fast=(A,))
    prepared(recall)
    before = facts(recall)

    with pytest.raises(IllegalMoveError, match="prepare is illegal in state fast_out"):
        recall.prepare(Point.TOOL_RESULT)

    assert facts(recall) == before


def test_there_is_no_delivery_at_no_point() -> None:
    """A send that is no delivery point cannot ask."""
    recall = handle(settled=chosen(A))

    with pytest.raises(IllegalMoveError, match="at no point"):
        recall.prepare(Point.NONE)

    assert recall.outstanding is None


def test_an_unchecked_note_waits() -> None:
    """Notes that are held back are left out of this delivery and offered at the next one."""
    recall = handle(settled=chosen(A, B))
    first = recall.prepare(Point.INITIAL, hold_back=frozenset({A.version, B.version}))
    second = recall.prepare(Point.TOOL_RESULT, hold_back=frozenset({A.version}))

    assert first == Skip(Point.INITIAL, Reason.NOT_SETTLED)
    assert isinstance(second, Delivery)
    assert second.notes == (B,)


def test_a_withdrawn_note_goes_no_more() -> None:
    """Notes whose files are gone or changed are not offered; when none is left, nothing was found."""
    recall = handle(settled=chosen(A, B))
    recall.withdraw([A.version])

    assert prepared(recall).notes == (B,)


def test_a_result_of_withdrawn_notes_holds_nothing() -> None:
    """When every chosen note is gone from disk, the send is skipped as nothing found and the outcome is empty."""
    recall = handle(settled=chosen(A))
    recall.withdraw([A.version])

    assert recall.prepare(Point.INITIAL) == Skip(Point.INITIAL, Reason.NOTHING_FOUND)
    assert (recall.outcome, recall.reason) == (Outcome.EMPTY, Reason.NO_RELEVANT_RESULTS)


# The budget


def test_a_note_that_does_not_fit_is_left_out_whole() -> None:
    """The next note is tried when one is too long, and what was cut is counted."""
    recall = RecallHandle(fast_allowed=True, budget=Budget(notes=5, characters=25))
    recall.settle(chosen(note("a", characters=20), note("b", characters=10), note("c", characters=5)), at=1.0)
    delivery = prepared(recall)

    assert [each.version.note for each in delivery.notes] == ["a", "c"]
    assert (delivery.cut, delivery.characters) == (1, 25)


def test_the_budget_is_one_for_fast_and_refined() -> None:
    """Fast notes take places of the refined ones."""
    recall = RecallHandle(fast_allowed=True, budget=Budget(notes=2))
    recall.publish_fast([A])
    recall.commit(prepared(recall), at=0.2)
    recall.settle(chosen(B, C), at=0.3)

    assert prepared(recall, Point.TOOL_RESULT).notes == (B,)


def test_a_roll_back_gives_the_budget_back() -> None:
    """What did not reach the model takes no place, and its notes are offered again."""
    recall = RecallHandle(fast_allowed=True, budget=Budget(notes=1))
    recall.settle(chosen(A, B), at=0.1)
    recall.roll_back(prepared(recall), RollbackCause.REFUSED)
    again = prepared(recall)

    assert (again.notes, recall.rollbacks) == ((A,), [RollbackCause.REFUSED])


def test_a_full_budget_is_a_skip() -> None:
    """When nothing fits, the send is skipped as over budget."""
    recall = RecallHandle(fast_allowed=True, budget=Budget(characters=5))
    recall.settle(chosen(A), at=0.1)

    assert recall.prepare(Point.INITIAL) == Skip(Point.INITIAL, Reason.OVER_BUDGET)


# Committing and rolling back


@pytest.mark.parametrize("move", [Move.COMMIT, Move.ROLL_BACK])
def test_a_delivery_ends_once(move: Move) -> None:
    """A delivery that was committed or rolled back cannot be so again, also while another one is outstanding."""
    recall = handle(fast=(A,), settled=chosen(B, C))
    old = prepared(recall)
    recall.roll_back(old, RollbackCause.CONNECTION)
    prepared(recall)
    before = facts(recall)

    with pytest.raises(IllegalMoveError, match="of a delivery that is not outstanding"):
        recall.commit(old, at=1.0) if move is Move.COMMIT else recall.roll_back(old, RollbackCause.REFUSED)

    assert facts(recall) == before


def test_nothing_is_committed_when_nothing_is_outstanding() -> None:
    """A commit without a delivery is illegal and names what is allowed."""
    recall = handle(settled=chosen(A))
    delivery = prepared(recall)
    recall.commit(delivery, at=1.0)

    with pytest.raises(IllegalMoveError, match="commit is illegal in state settled; allowed there: withdraw, prepare"):
        recall.commit(delivery, at=2.0)


# The close


def test_the_first_cause_wins() -> None:
    """A second close changes nothing and says so."""
    recall = handle()

    assert recall.close(Cause.USER_CANCEL)
    assert not recall.close(Cause.TURN_END)
    assert (recall.cause, recall.reason) == (Cause.USER_CANCEL, Reason.ABORT)


def test_the_close_rolls_an_outstanding_delivery_back() -> None:
    """A delivery that nobody has accepted when the handle is closed did not happen."""
    recall = handle(settled=chosen(A))
    delivery = prepared(recall)
    recall.close(Cause.SUPERSEDED)

    assert not recall.commit(delivery, at=2.0)
    assert (recall.rollbacks, recall.committed, recall.outstanding) == ([RollbackCause.CLOSED], [], None)
    assert (recall.outcome, recall.reason) == (Outcome.DISCARDED, Reason.NEW_QUERY)


def test_what_comes_late_changes_nothing_and_is_counted() -> None:
    """After the close, results, acceptances and refusals are normal races: each returns False."""
    recall = handle(fast=(A,))
    delivery = prepared(recall)
    recall.close(Cause.TURN_END)
    before = facts(recall)
    answers = [
        recall.publish_fast([B]),
        recall.settle(chosen(B), at=3.0),
        recall.withdraw([A.version]),
        recall.commit(delivery, at=3.0),
        recall.roll_back(delivery, RollbackCause.REFUSED),
    ]

    assert answers == [False] * 5
    assert facts(recall) == before | {"late": 5}


def test_nothing_can_be_prepared_after_the_close() -> None:
    """A closed handle hands nothing out: asking is a fault of the caller, not a race."""
    recall = handle(settled=chosen(A))
    recall.close(Cause.TURN_END)

    with pytest.raises(IllegalMoveError, match="prepare is illegal in state closed"):
        recall.prepare(Point.TOOL_RESULT)


# The outcome: one test per rule of docs/recall.md, in its order


def test_rule_1_delivered() -> None:
    """A committed delivery decides, even if the selector failed or the turn was cancelled later."""
    recall = handle(settled=chosen(A, error=Reason.SELECTOR_UNAVAILABLE))
    recall.commit(prepared(recall), at=1.0)
    recall.close(Cause.USER_CANCEL)

    assert (recall.outcome, recall.reason, recall.phases) == (Outcome.DELIVERED, Reason.NONE, Phase.REFINED)


@pytest.mark.parametrize("error", [Reason.STORE_UNAVAILABLE, Reason.SELECTOR_UNAVAILABLE, Reason.SELECTOR_TIMEOUT])
def test_rule_2_failed(error: Reason) -> None:
    """Unavailable is not empty: a failure without notes is its own outcome."""
    recall = handle(settled=chosen(error=error))
    recall.close(Cause.TURN_END)

    assert (recall.outcome, recall.reason) == (Outcome.FAILED, error)


def test_rule_2_with_withdrawn_notes() -> None:
    """A failed selector whose word matches are all gone from disk has selected nothing, so it failed."""
    recall = handle(settled=chosen(A, error=Reason.SELECTOR_UNAVAILABLE))
    recall.withdraw([A.version])
    recall.close(Cause.TURN_END)

    assert (recall.outcome, recall.reason) == (Outcome.FAILED, Reason.SELECTOR_UNAVAILABLE)


def test_rule_3_empty() -> None:
    """Settled with nothing selected is empty, whatever the fast search had found."""
    recall = handle(fast=(A,), settled=chosen())
    recall.close(Cause.TURN_END)

    assert (recall.outcome, recall.reason) == (Outcome.EMPTY, Reason.NO_RELEVANT_RESULTS)


def test_rule_4_already_delivered() -> None:
    """Everything selected stands in the conversation from before the turn."""
    recall = handle(settled=chosen(A), surfaced=(A,))
    recall.close(Cause.TURN_END)

    assert (recall.outcome, recall.reason) == (Outcome.ALREADY_DELIVERED, Reason.ALREADY_DELIVERED)


def test_rule_5_over_budget() -> None:
    """Nothing selected fits the budget of a turn."""
    recall = RecallHandle(fast_allowed=True, budget=Budget(characters=5))
    recall.settle(chosen(A), at=0.1)
    recall.close(Cause.TURN_END)

    assert (recall.outcome, recall.reason) == (Outcome.DISCARDED, Reason.OVER_BUDGET)


@pytest.mark.parametrize("cause", list(Cause))
@pytest.mark.parametrize("settled", [None, chosen(A)])
def test_rule_6_discarded(cause: Cause, settled: Settled | None) -> None:
    """Otherwise the close reason says why nothing went, settled or not."""
    recall = handle(settled=settled)
    recall.close(cause)

    assert (recall.outcome, recall.reason) == (Outcome.DISCARDED, cause.reason)


@pytest.mark.parametrize(
    ("settled", "reason"),
    [
        (chosen(A), Reason.ALREADY_DELIVERED),
        (chosen(), Reason.NO_RELEVANT_RESULTS),
        (chosen(note("long", characters=9_000)), Reason.OVER_BUDGET),
        (chosen(B), Reason.NEW_QUERY),
        (None, Reason.NEW_QUERY),
        (chosen(error=Reason.SELECTOR_UNAVAILABLE), Reason.SELECTOR_UNAVAILABLE),
    ],
)
def test_a_refined_part_that_did_not_go_has_a_reason(settled: Settled | None, reason: Reason) -> None:
    """A handle that delivered its fast notes says why the refined part did not go."""
    recall = handle(fast=(A,))
    recall.commit(prepared(recall), at=0.1)
    if settled is not None:
        recall.settle(settled, at=0.5)
    recall.close(Cause.SUPERSEDED)

    assert (recall.outcome, recall.phases, recall.reason) == (Outcome.DELIVERED, Phase.FAST, reason)


def test_both_phases_and_points_are_told() -> None:
    """Fast at the first send and refined behind tool results: both phases, both points, nothing to explain."""
    recall = handle(fast=(A,))
    recall.commit(prepared(recall), at=0.1)
    recall.settle(chosen(A, B), at=0.5)
    recall.commit(prepared(recall, Point.TOOL_RESULT), at=0.7)
    recall.close(Cause.TURN_END)

    assert (recall.phases, recall.points) == (Phase.BOTH, (Point.INITIAL, Point.TOOL_RESULT))
    assert (recall.reason, recall.committed_at) == (Reason.NONE, 0.1)
