"""Feeds the moments of a recorded recall through the rules of `recall`, under any policy: what would have gone where.

The handle decides what goes with a send (`recall/handle`), the policy how long it is held (`recall/policy`,
`recall/hold`); no rule of delivery stands here. What stands here is time: each moment after a hold comes as much later
or earlier as the hold is longer or shorter than the recorded one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import inf

from recallscope.runtime.lab.course import TICK, Ask, Course, Search, note_named
from recallscope.runtime.messages import NoteVersion
from recallscope.runtime.recall import hold
from recallscope.runtime.recall.handle import Budget, Delivery, RecalledNote, RecallHandle, Settled
from recallscope.runtime.recall.policy import Policy
from recallscope.runtime.recall.recaller import SELECTOR_SAFETY_SECONDS
from recallscope.runtime.recall.scenario import delivered_at
from recallscope.runtime.terms import Cause, Delivered, EndedBy, Outcome, Phase, Point, Reason, RollbackCause

__all__ = ["Habits", "Held", "Replayed", "Settling", "World", "replay"]

SAME_MOMENT = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """What is the same for all turns of a record, or typical of them.

    `check`: seconds that the look at the notes' files takes. `late`: how late a wait ends that reaches its ceiling.
    `lag`: how late a send goes on that does not wait and for which nothing is due. `safety`: the seconds after which a
    selector's call is given up.
    """

    check: float = 0.0
    late: float = 0.0
    lag: float = 0.0
    budget: Budget = field(default_factory=Budget)
    safety: float = SELECTOR_SAFETY_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Settling:
    """The refined result comes `after` seconds from when its request can be built, and not before `not_before`."""

    after: float
    result: Settled
    not_before: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """One way in which a turn may have gone where its record does not tell.

    `search` None: the words never answer. `settling` None: the refined result never comes. `slow_looks_end`: looks at
    files that did not end in time end right after it (else never). `goes_on`: in time that the turn would have gained
    before it was ended from outside, its request is accepted, or another one with tool results is sent.
    `cut_fits`: what the budget left out would fit in another order.
    """

    search: Search | None
    settling: Settling | None
    slow_looks_end: bool = False
    goes_on: bool = False
    cut_fits: bool = False


@dataclass(frozen=True, slots=True)
class Held:
    """How long one ask was held, whether files were looked at, and whether notes stayed behind since that took long."""

    seconds: float
    looked: bool = False
    behind: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What came of a replay: where memory went; the closed `handle` says what a recall tells when it is closed.

    `waited`: all holds added. `holds`: one for each ask that came. `moments`: when notes that came could still have
    gone with a send; `first_send`: the last of them at which word matches could. `gained`: the turn had time, before it
    was ended from outside, that was not recorded. `ended`: when the turn was over.
    """

    delivered: Delivered
    handle: RecallHandle
    waited: float
    holds: tuple[Held, ...]
    moments: tuple[float, ...]
    first_send: float
    gained: bool
    ended: float

    @property
    def phases(self) -> Phase:
        """Which results were delivered."""
        return self.handle.phases

    @property
    def outcome(self) -> Outcome:
        """The outcome of the recall."""
        return self.handle.outcome

    @property
    def reason(self) -> Reason:
        """Why nothing came, or why the refined notes did not."""
        return self.handle.reason


def replay(course: Course, policy: Policy, world: World, habits: Habits, recorded: Sequence[Held] | None) -> Replayed:
    """Replay `course` under `policy` in `world`; `recorded` are the holds as they were.

    None: nothing is changed, so that each moment comes exactly when it was recorded.
    """
    return _Replay(course, policy, world, habits, recorded).run()


class _Replay:
    """A replay under way."""

    def __init__(
        self, course: Course, policy: Policy, world: World, habits: Habits, recorded: Sequence[Held] | None
    ) -> None:
        self._course = course
        self._policy = policy
        self._world = world
        self._habits = habits
        self._recorded = recorded
        self._handle = RecallHandle(fast_allowed=policy.fast, budget=habits.budget)
        self._until = course.ended if course.ended_from_outside else inf
        self._shift = 0.0
        self._waited = 0.0
        self._holds: list[Held] = []
        self._moments: list[float] = []
        self._first_send = 0.0
        self._searched = False
        self._holding = False
        self._could_refine: float | None = None if world.search is not None else 0.0
        self._refines_after_hold = False
        self._settled = False

    def run(self) -> Replayed:
        """Let everything happen in its order."""
        under_way: Delivery | None = None
        still_asking = False
        for number, ask in enumerate(self._course.asks):
            at = ask.at + self._shift
            if at >= self._until or still_asking:
                break
            delivery, left = self._ask(number, ask, at)
            if not left:
                still_asking = True
                break
            if ask.accepted is not None and ask.accepted + self._shift < self._until:
                self._advance(ask.accepted + self._shift)
                if delivery is not None:
                    self._handle.commit(delivery, at=ask.accepted + self._shift)
            elif ask.dropped is not None and ask.dropped + self._shift < self._until:
                self._advance(ask.dropped + self._shift)
                if delivery is not None:
                    self._handle.roll_back(delivery, RollbackCause.CONNECTION)
            else:
                under_way, still_asking = delivery, True
        gained = self._course.ended_from_outside and self._shift < -TICK
        if gained:
            self._moments.append(self._until)
        if gained and self._world.goes_on:
            self._go_on(under_way, still_asking=still_asking)
        ended = min(self._course.ended + self._shift, self._until)
        self._advance(ended)
        self._handle.close(self._course.cause)
        return Replayed(
            delivered=delivered_at(self._handle.points),
            handle=self._handle,
            waited=self._waited,
            holds=tuple(self._holds),
            moments=tuple(self._moments),
            first_send=self._first_send,
            gained=gained,
            ended=ended,
        )

    def _go_on(self, under_way: Delivery | None, *, still_asking: bool) -> None:
        """Let the request under way be accepted; where there is none, let one with tool results be sent and accepted.

        All of it at the last moment before the turn was ended.
        """
        self._advance(self._until)
        if not still_asking and hold.may_take(self._policy, self._handle, Point.TOOL_RESULT):
            answer = self._handle.prepare(Point.TOOL_RESULT)
            under_way = answer if isinstance(answer, Delivery) else None
            self._waited += self._habits.check if under_way is not None else self._habits.lag
        if under_way is not None:
            self._handle.commit(under_way, at=self._until)

    # One ask

    def _ask(self, number: int, ask: Ask, at: float) -> tuple[Delivery | None, bool]:
        """Let a send ask; say what it takes, and whether it left before the turn was ended."""
        self._advance(at)
        if not hold.may_take(self._policy, self._handle, ask.point):
            self._held(number, ask, Held(0.0))
            return None, True
        limit = hold.limit_of(self._policy, ask.point, retry=ask.retry)
        self._holding = True
        now, until = at, at + limit
        waits = hold.ended_at_once(self._handle, limit) is None
        if waits:
            now = self._wait(ask, at, until)
            self._moments.append(min(until, self._until))
        elif not self._handle.offered(ask.point):
            now += self._lateness(number, ask)
            self._advance(now)
        now, hold_back, looked = self._look(number, ask, now, until)
        self._moments.append(now)
        if ask.point is Point.INITIAL:
            self._first_send = now
        now = min(now, self._until)
        self._held(number, ask, Held(now - at, looked=looked, behind=bool(hold_back)))
        if not ask.retry:
            self._waited += now - at
        if now >= self._until:
            return None, False
        answer = self._handle.prepare(ask.point, hold_back=hold_back)
        self._release(now)
        if hold.gives_up(self._policy, self._handle):
            self._handle.close(Cause.POLICY_LIMIT)
        return (answer if isinstance(answer, Delivery) else None), True

    def _wait(self, ask: Ask, at: float, until: float) -> float:
        """Wait as the recaller does; return when it goes on."""
        late = 0.0 if self._recorded is None else self._habits.late
        now, last = at, min(until + (late if ask.late is None else ask.late), self._until)
        while hold.ended_by(self._handle) is EndedBy.CEILING:
            now = self._next()
            if now > last + SAME_MOMENT:
                return last
            self._happen(now)
        return now

    def _look(self, number: int, ask: Ask, now: float, until: float) -> tuple[float, frozenset[NoteVersion], bool]:
        """Look at the files of what is due; return when that ended, what stays behind, and whether anything was due."""
        due = self._due(ask.point)
        if not due:
            return now, frozenset(), False
        end = now + hold.time_to_check(until, now=now)
        looked: set[NoteVersion] = set()
        while unseen := due - looked:
            seconds, late = self._look_seconds(number, ask, unseen, again=bool(looked))
            slow = now + seconds > end + SAME_MOMENT
            now = max(now, end + late) if slow else now + seconds + late
            self._advance(now)
            if not slow:
                self._handle.withdraw(version for version in unseen if version.note in self._course.withdrawn)
                looked |= unseen
            due = self._due(ask.point)
            if slow:
                break
        return now, frozenset(due - looked), True

    def _due(self, point: Point) -> set[NoteVersion]:
        return {note.version for note in self._handle.offered(point)}

    def _look_seconds(
        self, number: int, ask: Ask, unseen: Iterable[NoteVersion], *, again: bool
    ) -> tuple[float, float]:
        """Return how long a look takes, as then or as it usually does, and how late a busy loop notices its end."""
        then = self._then(number)
        if then is not None:
            behind = then.behind
        else:
            # What is gone or does not fit did not go for that reason.
            elsewhere = self._course.withdrawn | self._course.cut
            behind = self._recorded is None and ask.empty and any(version.note not in elsewhere for version in unseen)
        if behind:
            return ask.most + TICK if self._world.slow_looks_end else inf, max((ask.extra or 0.0) - ask.most, 0.0)
        as_then = self._recorded is None or (then is not None and then.looked)
        took = ask.again if again and ask.again is not None else ask.extra
        if took is not None and as_then:
            seconds = min(took, ask.most)
            return seconds, took - seconds
        return self._habits.check, 0.0

    def _lateness(self, number: int, ask: Ask) -> float:
        """Return how late a send goes on for which nothing is due: as late as then, if nothing was, or as usual."""
        then = self._then(number)
        as_then = self._recorded is None or (then is not None and not then.looked)
        return ask.extra if ask.extra is not None and as_then else self._habits.lag

    def _then(self, number: int) -> Held | None:
        return self._recorded[number] if self._recorded is not None and number < len(self._recorded) else None

    def _held(self, number: int, ask: Ask, held: Held) -> None:
        """Note a hold; what comes later moves by as much as it differs from the recorded one."""
        self._holds.append(held)
        if self._recorded is not None:
            then = self._then(number)
            self._shift += held.seconds - (then.seconds if then is not None and ask.retry else ask.held)

    def _release(self, at: float) -> None:
        self._holding = False
        if self._refines_after_hold:
            self._refines_after_hold = False
            self._could_refine = at

    # What comes by itself

    def _advance(self, to: float) -> None:
        """Let happen what comes until `to`."""
        while (at := self._next()) <= to:
            self._happen(at)

    def _next(self) -> float:
        """Return when the next thing comes by itself."""
        world = self._world
        if world.search is not None and not self._searched:
            return world.search.at
        if world.settling is None or self._settled or self._could_refine is None:
            return inf
        return max(self._could_refine + world.settling.after, world.settling.not_before)

    def _happen(self, at: float) -> None:
        world = self._world
        if world.search is not None and not self._searched:
            self._searched = True
            if self._policy.fast and world.search.notes:
                self._handle.publish_fast(self._note(name) for name in world.search.notes)
            self._refines_after_hold = hold.refines_behind(self._handle, held=self._holding)
            self._could_refine = None if self._refines_after_hold else at
        elif world.settling is not None:
            self._settled = True
            result = world.settling.result
            notes = tuple(self._note(note.version.note) for note in result.notes)
            self._handle.settle(
                Settled(notes=notes, strategy=result.strategy, error=result.error, cut_by_policy=result.cut_by_policy),
                at=at,
            )

    def _note(self, name: str) -> RecalledNote:
        if name in self._course.cut and not self._world.cut_fits:
            return note_named(name, self._habits.budget.characters + 1)
        return note_named(name, self._course.sizes.get(name, 0))
