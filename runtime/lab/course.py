"""The course of a recorded recall: the moments of one turn that decide which notes went with which send.

Made from a `RecordedTurn` of the journal; all times are seconds since the recall began. Nothing is decided here:
`replay.py` feeds these moments through the rules of `recall`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum, unique

from recallscope.runtime.messages import NoteVersion
from recallscope.runtime.recall import hold
from recallscope.runtime.recall.handle import RecalledNote, RecallHandle, Settled
from recallscope.runtime.recall.policy import Policy, policy_named
from recallscope.runtime.terms import Cause, EndedBy, NotAsked, Point, Reason, Strategy, TurnOutcome
from recallscope.telemetry.read.recorded import Close, ModelCall, Record, RecordedRecall, RecordedTurn, Wait

__all__ = ["Ask", "Choice", "Course", "LeftOut", "Search", "course_of", "note_named"]

TICK = 1e-5
"""Times in the journal are rounded to microseconds: what is closer than this may have come in either order."""

_FROM_OUTSIDE = frozenset({Reason.ABORT, Reason.NEW_QUERY, Reason.RESET, Reason.SHUTDOWN})


@unique
class LeftOut(StrEnum):
    """Why a recorded turn says nothing about other settings.

    `ONLY_SPANS`: it was read from spans, which do not name the notes. `NO_RECALL`: it had none (no fresh turn, no
    memory, policy `off`). `NOT_WHOLE`: its begin or its end is not in the
    record. `NOT_SENT`: no send of it was accepted, so that no policy could have delivered. `NOT_REPRODUCED`: its
    moments, fed through the rules as they were in force, give another delivery than was recorded.
    """

    ONLY_SPANS = "only_spans"
    NO_RECALL = "no_recall"
    NOT_WHOLE = "not_whole"
    NOT_SENT = "not_sent"
    NOT_REPRODUCED = "not_reproduced"


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """The words answered at `at` with these notes (ids, perhaps none); `partial`: the search was interrupted."""

    at: float
    notes: tuple[str, ...]
    partial: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The refined result and how long it took from the moment at which its request could be built.

    `call`: how much of `seconds` passed in the selector's call, None if it was not asked. `result` None: it had not
    come when the recall was closed; `seconds` and `call` are what had passed by then.
    """

    seconds: float
    call: float | None
    result: Settled | None
    not_asked: NotAsked | None = None

    @property
    def cut(self) -> bool:
        """A time limit ended the selector's call: how long it would have taken is not known."""
        return self.result is not None and self.result.error is Reason.SELECTOR_TIMEOUT


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One attempt of a send asked for memory at `at` and was held `held` seconds.

    `late`: how long after the ceiling the wait ended, None if it ended before. `extra`: what came after the wait, a
    look at the notes' files, or where none were due the lateness of the loop; None if it is not known. `again`: how
    long a second look took, None if there was none; `extra` is the first, then. `empty`: no
    notes went with it; if any were due, the look did not end within `most` seconds. The attempt was accepted or
    dropped, or neither: it was under way when the turn ended.
    """

    point: Point
    at: float
    held: float = 0.0
    late: float | None = None
    extra: float | None = None
    again: float | None = None
    empty: bool = False
    most: float = hold.CHECK_SECONDS
    retry: bool = False
    accepted: float | None = None
    dropped: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What one turn's record says of its recall, under the `policy` that was in force.

    `ended`: when the turn ended, by `cause`. `unsettled`: until when the refined result is known not to have come
    (meaningless if it came). `withdrawn`: notes whose files were gone or changed. `sizes`: characters by note, as far
    as deliveries told; `cut`: what the budget left out.
    """

    turn: str
    policy: Policy
    search: Search | None
    choice: Choice | None
    asks: tuple[Ask, ...]
    ended: float
    cause: Cause
    unsettled: float
    closed: Close
    withdrawn: frozenset[str] = frozenset()
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    cut: frozenset[str] = frozenset()

    @property
    def ended_from_outside(self) -> bool:
        """Somebody ended the turn at a moment of his own, which no wait would have moved."""
        return self.cause.reason in _FROM_OUTSIDE


def note_named(name: str, characters: int = 0) -> RecalledNote:
    """Return a note of which only the id is known, and how many characters it takes."""
    return RecalledNote(NoteVersion(name, ""), " " * characters)


def course_of(turn: RecordedTurn) -> Course | LeftOut:
    """Return the course of `turn`, or why it has none."""
    recall = turn.recall
    if turn.record is Record.SPANS:
        return LeftOut.ONLY_SPANS
    if recall is None:
        return LeftOut.NO_RECALL if turn.whole else LeftOut.NOT_WHOLE
    if not turn.whole or recall.closed is None:
        return LeftOut.NOT_WHOLE
    if not any(call.first_chunk is not None for call in turn.sent):
        return LeftOut.NOT_SENT
    return _Reading(turn, recall, recall.closed).course()


class _Reading:
    """Reads the course of one turn."""

    def __init__(self, turn: RecordedTurn, recall: RecordedRecall, closed: Close) -> None:
        self._turn = turn
        self._recall = recall
        self._closed = closed
        self._policy = policy_named(recall.policy, ceiling=recall.ceiling)

    def course(self) -> Course:
        recall, search = self._recall, self._search()
        return Course(
            turn=self._turn.turn,
            policy=self._policy,
            search=search,
            choice=self._choice(search),
            asks=tuple(self._asks()),
            ended=self._since(self._closed.at),
            cause=self._cause(),
            unsettled=self._unsettled(),
            closed=self._closed,
            withdrawn=frozenset(recall.withdrawn_ids),
            sizes=self._sizes(),
            cut=self._cut(),
        )

    def _since(self, at: float) -> float:
        return at - self._recall.begun

    def _cause(self) -> Cause:
        """Say why the turn ended; the policy's own limit closes the recall, and the turn goes on."""
        if self._closed.cause is not Cause.POLICY_LIMIT:
            return self._closed.cause
        return (self._turn.cause if self._turn.outcome is TurnOutcome.CANCELLED else None) or Cause.TURN_END

    def _unsettled(self) -> float:
        """Return until when nothing had settled; closing a recall takes a moment, so the end itself is too late."""
        first = self._recall.first_wait
        if self._closed.cause is Cause.POLICY_LIMIT and first is not None:
            return self._since(first.ended_at)
        ends = [call.ended for call in self._turn.sent if call.ended is not None]
        selector = self._turn.selector
        if self._cause().reason in _FROM_OUTSIDE and selector is not None and selector.ended is not None:
            ends = [selector.ended]
        return self._since(min(max(ends, default=self._closed.at), self._closed.at))

    # What came

    def _search(self) -> Search | None:
        fast = self._recall.fast
        if fast is None:
            return None
        return Search(at=fast.elapsed, notes=fast.ids or (), partial=bool(fast.partial))

    def _choice(self, search: Search | None) -> Choice | None:
        settled, selector = self._recall.settled, self._turn.selector
        begins = 0.0 if search is None else self._could_refine(search)
        call = None if selector is None else self._length(selector)
        if settled is None:
            return (
                None if search is None else Choice(seconds=max(self._unsettled() - begins, 0.0), call=call, result=None)
            )
        error = settled.error
        result = Settled(
            notes=tuple(note_named(name) for name in settled.ids or ()),
            strategy=settled.strategy or Strategy.NONE,
            error=error,
            cut_by_policy=error is Reason.SELECTOR_TIMEOUT and self._policy.selector_limit is not None,
        )
        return Choice(seconds=max(settled.elapsed - begins, 0.0), call=call, result=result, not_asked=settled.not_asked)

    def _could_refine(self, search: Search) -> float:
        """Return when the selector's request could be built: after the search, behind a send that was held for it."""
        handle = RecallHandle(fast_allowed=self._policy.fast)
        if self._policy.fast and search.notes:
            handle.publish_fast(note_named(name) for name in search.notes)
        for wait in self._recall.waits:
            held = self._since(wait.asked_at) <= search.at <= self._since(wait.ended_at)
            if hold.refines_behind(handle, held=held):
                return self._since(wait.ended_at)
        return search.at

    def _length(self, call: ModelCall) -> float:
        ended = call.ended if call.ended is not None else self._turn.last_seen
        return max(min(ended, self._closed.at) - call.started, 0.0)

    # The sends

    def _asks(self) -> Iterator[Ask]:
        waits = list(self._recall.waits)
        for call in self._turn.sent:
            point = call.point
            if point is None or point is Point.NONE:
                continue
            own = waits and waits[0].point is point and waits[0].ended_at <= call.started + TICK
            yield from self._attempts(call, point, waits.pop(0) if own else None)
        for wait in waits:  # the turn was ended while this send was held
            yield self._held(wait)

    def _attempts(self, call: ModelCall, point: Point, wait: Wait | None) -> Iterator[Ask]:
        """Yield the attempts of one send until one was accepted; a later one sends the same message again."""
        accepted = call.first_chunk
        ask = Ask(point=point, at=self._since(call.started)) if wait is None else self._held(wait)
        for failed in call.failed:
            if accepted is not None and failed.at >= accepted:
                break
            again = None if failed.retry_in is None else failed.at + failed.retry_in
            taken = self._rolled_back(ask, until=again)
            yield self._looked(replace(ask, dropped=self._since(failed.at)), wait, empty=not taken)
            if again is None:
                return
            wait, ask = None, Ask(point=point, at=self._since(again), retry=True)
        if accepted is None:
            yield self._looked(ask, wait, empty=not self._rolled_back(ask, until=None))
        else:
            yield self._looked(replace(ask, accepted=self._since(accepted)), wait, empty=not call.notes)

    def _held(self, wait: Wait) -> Ask:
        """Tell how much of a hold was the wait itself, and what came after it."""
        asked_at = self._since(wait.asked_at)
        came = self._came(wait, asked_at)
        if came is None:
            return Ask(point=wait.point, at=asked_at, held=wait.waited)
        waited = max(came - asked_at, 0.0)
        if wait.ended_by is EndedBy.CEILING:
            return Ask(point=wait.point, at=asked_at, held=wait.waited, late=max(wait.waited - waited, 0.0), extra=0.0)
        # A busy loop notices the ceiling late, and what has come by then counts as come.
        late = waited - wait.ceiling if waited > wait.ceiling > 0 else None
        return Ask(point=wait.point, at=asked_at, held=wait.waited, late=late, extra=max(wait.waited - waited, 0.0))

    def _looked_twice(self, wait: Wait, began: float, extra: float) -> bool:
        """Tell whether more notes settled during the look at the fast ones, so that they were looked at as well."""
        settled, fast = self._recall.settled, self._recall.fast
        if settled is None or fast is None or not self._policy.fast or wait.point is not Point.INITIAL:
            return False
        more = frozenset(settled.ids or ()) - frozenset(fast.ids or ())
        return bool(fast.ids and more) and fast.elapsed <= began < settled.elapsed < began + extra

    def _came(self, wait: Wait, asked_at: float) -> float | None:
        """Return when that came which ended a wait."""
        settled, fast = self._recall.settled, self._recall.fast
        match wait.ended_by:
            case EndedBy.FAST:
                return None if fast is None else fast.elapsed
            case EndedBy.REFINED:
                return None if settled is None else settled.elapsed
            case EndedBy.CEILING:
                return asked_at + wait.ceiling
            case EndedBy.ALREADY_SETTLED | EndedBy.NOTHING_TO_WAIT_FOR:
                return asked_at
            case EndedBy.CANCELLED | None:
                return None

    def _looked(self, ask: Ask, wait: Wait | None, *, empty: bool) -> Ask:
        """Tell of an ask whether notes may have stayed behind because their files could not be looked at in time.

        `empty`: no notes went with it.
        """
        if wait is None:
            return replace(ask, empty=empty and ask.retry)  # of a further attempt no hold is told
        if ask.extra is None:
            return ask
        began = ask.held - ask.extra
        most = hold.time_to_check(wait.ceiling, now=began)
        if empty:
            return replace(ask, empty=ask.extra >= most - TICK, most=most)
        if not self._looked_twice(wait, ask.at + began, ask.extra) or self._recall.settled is None:
            return replace(ask, most=most)
        # How long each look took is not recorded; the first ended after the result came that the second was for.
        came = self._recall.settled.elapsed - (ask.at + began)
        first = min(max(ask.extra / 2, came + TICK), ask.extra)
        return replace(ask, extra=first, again=ask.extra - first, most=most)

    def _rolled_back(self, ask: Ask, *, until: float | None) -> bool:
        """Tell whether notes went with an attempt that was not accepted; `until` the next one, if there was any."""
        return any(
            told.point is ask.point and self._since(told.at) >= ask.at and (until is None or told.at <= until)
            for told in self._recall.rollbacks
        )

    # What the budget saw

    def _sizes(self) -> dict[str, int]:
        sizes: dict[str, int] = {}
        for delivery in self._recall.deliveries:
            for name in delivery.ids or ():
                sizes[name] = (delivery.characters or 0) // len(delivery.ids or (name,))
        return sizes

    def _cut(self) -> frozenset[str]:
        settled = self._recall.settled
        over = any(skip.reason is Reason.OVER_BUDGET for skip in self._recall.skips)
        return frozenset(settled.ids or ()) - frozenset(self._sizes()) if over and settled is not None else frozenset()
