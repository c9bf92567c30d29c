"""The ways in which a recorded recall may have gone on under other settings, where its record does not tell.

Most turns have one: everything that counts was recorded. A recall that was closed before it settled, a search that was
interrupted, a selector that was cut off have several. They are enumerated rather than guessed: a result that had not
come by some moment may have come before each later send or never, with nothing, with what the words had found, or with
something new. Between two sends it makes no difference when. Where two ways come to the same, one of them is tried.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum, unique
from math import inf

from recallscope.runtime.lab.course import TICK, Choice, Course, Search, note_named
from recallscope.runtime.lab.replay import Habits, Held, Replayed, Settling, World, replay
from recallscope.runtime.recall.handle import Settled
from recallscope.runtime.recall.policy import Policy
from recallscope.runtime.terms import Cause, Delivered, NotAsked, Reason, Strategy

__all__ = ["Doubt", "Possible", "Speed", "possible"]

UNNAMED = "a note that the record does not name"
ANOTHER = "another note that the record does not name"


@unique
class Doubt(StrEnum):
    """Why the end of a turn is not known under other settings; where there are several reasons, the first in time.

    `SEARCH_WOULD_GO_ON`: the search was interrupted, and would have had more time. `SEARCH_CUT_SHORT`: it would have
    been interrupted, and what it had by then is not recorded. `SEARCH_NOT_RECORDED`: the recall was closed before the
    search had answered. `CANCELLED_BEFORE_SETTLED`, `ENDED_BEFORE_SETTLED`, `GIVEN_UP_BEFORE_SETTLED`: the selector had
    not answered when somebody ended the turn, when it ended by itself, when the policy closed the recall.
    `SELECTOR_CUT_OFF`: a limit ended the selector's call, or would have. `SELECTOR_NOT_ASKED`: this policy asks it, the
    recorded one did not. `SELECTOR_FAILED`: word matches stand in, of which the best alone are recorded.
    `MORE_TIME`: the turn was ended from outside, and would have had more time until then. `FILES_NOT_SEEN`: the look
    at the notes' files did not end in time. `BUDGET`: what did not fit might have, in another order.
    """

    SEARCH_WOULD_GO_ON = "search_would_go_on"
    SEARCH_CUT_SHORT = "search_cut_short"
    SEARCH_NOT_RECORDED = "search_not_recorded"
    CANCELLED_BEFORE_SETTLED = "cancelled_before_settled"
    ENDED_BEFORE_SETTLED = "ended_before_settled"
    GIVEN_UP_BEFORE_SETTLED = "given_up_before_settled"
    SELECTOR_CUT_OFF = "selector_cut_off"
    SELECTOR_NOT_ASKED = "selector_not_asked"
    SELECTOR_FAILED = "selector_failed"
    MORE_TIME = "more_time"
    FILES_NOT_SEEN = "files_not_seen"
    BUDGET = "budget"


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """How quick the selector is: `factor` times the recorded seconds of its call, or `delay` seconds for every call."""

    factor: float = 1.0
    delay: float | None = None

    def of(self, seconds: float) -> float:
        """Return how long a call takes that took `seconds`."""
        return self.factor * seconds if self.delay is None else self.delay


@dataclass(frozen=True, slots=True)
class Possible:
    """What came of a turn in each way that its record allows, one at least; `doubt`: why they differ, if so."""

    ways: tuple[Replayed, ...]
    doubt: Doubt | None


def possible(course: Course, policy: Policy, speed: Speed, habits: Habits, recorded: Sequence[Held]) -> Possible:
    """Return what came of `course` under `policy` and `speed` in each way that its record allows."""
    return _Ways(course, policy, speed, habits, recorded).all()


class _Ways:
    """Enumerates the ways of one turn."""

    def __init__(self, course: Course, policy: Policy, speed: Speed, habits: Habits, recorded: Sequence[Held]) -> None:
        self._course = course
        self._policy = policy
        self._speed = speed
        self._habits = habits
        self._recorded = recorded
        self._never: dict[Search | None, Replayed] = {}

    def all(self) -> Possible:
        """Replay all of them."""
        found = list(self._replayed())
        ways = tuple(way for _, way in found)
        known = len({way.delivered for way in ways}) == 1
        return Possible(ways, None if known else self._doubt(found))

    def _replayed(self) -> Iterator[tuple[World, Replayed]]:
        for world in self._worlds():
            here = self._replay(world)
            yield world, here
            if here.gained:
                yield (further := replace(world, goes_on=True)), self._replay(further)

    def _replay(self, world: World) -> Replayed:
        return replay(self._course, self._policy, world, self._habits, self._recorded)

    def _without(self, search: Search | None) -> Replayed:
        """Replay the turn as it goes when nothing comes after `search`; the holds are the longest, then."""
        if search not in self._never:
            self._never[search] = self._replay(World(search=search, settling=None))
        return self._never[search]

    def _worlds(self) -> Iterator[World]:
        course = self._course
        slow = (False, True) if any(held.behind for held in self._recorded) else (False,)
        fits = (False, True) if course.cut else (False,)
        for search, settling in self._results():
            for slow_looks_end in slow:
                for cut_fits in fits:
                    yield World(search=search, settling=settling, slow_looks_end=slow_looks_end, cut_fits=cut_fits)

    def _results(self) -> Iterator[tuple[Search | None, Settling | None]]:
        course = self._course
        if course.search is None and course.choice is not None and course.choice.result is not None:
            # Memory could not be searched: that comes when it came, whatever the setting.
            yield None, Settling(after=course.choice.seconds, result=course.choice.result)
            return
        for search in self._searches():
            for settling in self._settlings(search):
                yield search, settling

    # What the words find

    def _searches(self) -> Iterator[Search | None]:
        found, now = self._course.search, self._policy.search_limit
        match self._doubt_of_search():
            case None:
                yield found
            case Doubt.SEARCH_CUT_SHORT if found is not None and now is not None:
                # With what was found, or less, or weaker matches. Where a whole search found nothing good enough, less
                # of one finds nothing.
                nothing = not found.notes and not found.partial
                for notes in ((),) if nothing else dict.fromkeys(((), found.notes, (UNNAMED,))):
                    yield Search(at=min(now, found.at), notes=notes, partial=True)
            case _ if found is not None:
                yield from self._later_searches(found.at, found.notes, until=inf if now is None else now)
            case _:
                yield from self._later_searches(self._course.unsettled, (), until=inf)

    def _doubt_of_search(self) -> Doubt | None:
        """Say why it is not known what the words find under this policy; None if it is."""
        found, then, now = self._course.search, self._course.policy.search_limit, self._policy.search_limit
        if found is None:
            return Doubt.SEARCH_NOT_RECORDED
        if _same_end(found, then, now):
            return None
        earlier = now is not None and (then is None or now < then)
        return Doubt.SEARCH_CUT_SHORT if earlier else Doubt.SEARCH_WOULD_GO_ON

    def _later_searches(self, after: float, found: tuple[str, ...], *, until: float) -> Iterator[Search]:
        """Yield a search that goes on `after` that many seconds and had found something by then, or nothing.

        Scores only grow while words are read: what had matches keeps some, though perhaps others. When a search ends
        counts only while a send can take its matches, since the selector that it lets ask may take any time after it.
        """
        never = self._without(None)
        moments = [at for at in _moments(never, after) if at < until]
        first_send = never.first_send if self._policy.fast else 0.0
        behind = min(until, max(after, first_send) + TICK)
        times = [*(at for at in moments if at <= first_send), behind]
        if self._time_counts(never, after):
            times = [*moments, until] if until < inf else (moments or times)
        if not found:
            for at in times if self._time_counts(never, after) else [min(until, after + TICK)]:
                yield Search(at=at, notes=())
        others = not found or bool(self._course.cut) or not self._course.withdrawn.isdisjoint(found)
        for at in times:
            for notes in (found, (UNNAMED,)) if found and others else (found or (UNNAMED,),):
                yield Search(at=at, notes=notes)

    def _time_counts(self, never: Replayed, after: float) -> bool:
        """Tell whether the selector's answer has its own moment: a time for every call, or a limit within the turn."""
        limit = self._policy.limit_selection(self._habits.safety).seconds
        return self._speed.delay is not None or after + limit <= never.ended

    # What is chosen

    def _settlings(self, search: Search | None) -> Iterator[Settling | None]:
        choice = self._course.choice
        if search is None:
            yield None
        elif choice is None:
            yield None
            yield from self._later(search, 0.0)
        elif search is not self._course.search:
            # Another search has other candidates: what was chosen may be chosen again, or anything else.
            if choice.result is not None and not choice.cut:
                yield from self._recorded_choice(search, choice, choice.result)
            yield from self._not_recorded(search, Choice(seconds=0.0, call=0.0, result=None))
        elif choice.result is None or choice.cut:
            yield from self._not_recorded(search, choice)
        elif choice.not_asked is NotAsked.EXACT_TITLE and not self._policy.lexical_fallback:
            # This policy asks the selector all the same; what it would have said, and when, was never recorded.
            yield from self._not_recorded(search, Choice(seconds=0.0, call=0.0, result=None))
        else:
            yield from self._recorded_choice(search, choice, choice.result)

    def _recorded_choice(self, search: Search, choice: Choice, result: Settled) -> Iterator[Settling]:
        if choice.call is None:
            yield Settling(after=choice.seconds, result=result)
            return
        seconds = max(choice.seconds - choice.call, 0.0) + self._speed.of(choice.call)
        if seconds > self._policy.limit_selection(self._habits.safety).seconds:
            yield from self._cut(search)
        elif result.error is Reason.SELECTOR_UNAVAILABLE:
            for notes in self._stand_ins(search, result):
                strategy = Strategy.LEXICAL if notes else Strategy.NONE
                yield _settling(seconds, notes, strategy, error=result.error)
        else:
            yield Settling(after=seconds, result=result)

    def _not_recorded(self, search: Search, choice: Choice) -> Iterator[Settling | None]:
        """Yield the ways of a selector whose answer was not waited for, or was never asked for."""
        call = choice.call or 0.0
        before = max(choice.seconds - call, 0.0)
        least, limit = before + self._speed.of(call), self._policy.limit_selection(self._habits.safety).seconds
        if least >= limit - TICK:
            yield from self._cut(search)
        elif self._speed.delay is not None:
            for notes in self._contents(search):
                yield _settling(least, notes, Strategy.MODEL if notes else Strategy.NONE)
        else:
            yield from self._later(search, least, until=limit)
            if search.at + limit <= self._without(search).ended:
                yield from self._cut(search)

    def _later(self, search: Search, least: float, *, until: float = inf) -> Iterator[Settling | None]:
        """Yield a result that takes more than `least` seconds: it comes before each later ask, or never."""
        yield None
        never = self._without(search)
        for at in _moments(never, search.at + least):
            if at - search.at < until:
                # Nothing chosen ends the hold of the first send; after that it is as if no answer came.
                for notes in self._contents(search)[at > never.first_send :]:
                    settling = _settling(least, notes, Strategy.MODEL if notes else Strategy.NONE)
                    yield replace(settling, not_before=at)

    def _cut(self, search: Search) -> Iterator[Settling]:
        """Yield what stands when a time limit ends the selector's call."""
        limit = self._policy.limit_selection(self._habits.safety)
        for notes in self._stand_ins(search, None):
            strategy = Strategy.LEXICAL if notes else Strategy.NONE
            settling = _settling(limit.seconds, notes, strategy, error=Reason.SELECTOR_TIMEOUT)
            yield replace(settling, result=replace(settling.result, cut_by_policy=limit.own))

    def _stand_ins(self, search: Search, recorded: Settled | None) -> Sequence[tuple[str, ...]]:
        """Return what may stand in for a selector that failed: the word matches, of which the best are known."""
        if not self._policy.lexical_fallback or not search.notes:
            return ((),)
        if recorded is not None and recorded.notes:
            return (tuple(note.version.note for note in recorded.notes),)
        return (search.notes, (*search.notes, ANOTHER))

    def _contents(self, search: Search) -> Sequence[tuple[str, ...]]:
        """Return what a selector may have chosen: nothing, or something new besides what the words had found.

        The latter alone comes to what one of these two does.
        """
        return ((), (*search.notes, ANOTHER))

    # Why it is not known

    def _doubt(self, ways: Sequence[tuple[World, Replayed]]) -> Doubt:
        """Say why the ways come to different ends: the first thing in time by which they are told apart."""
        choice, search = self._course.choice, self._doubt_of_search()
        tests: list[tuple[Doubt | None, Callable[[World], object]]] = [
            (search, lambda world: world.search),
            (search if choice and choice.result else None, lambda world: world.settling),
            (self._doubt_of_choice(), lambda world: world.settling),
            (Doubt.MORE_TIME, lambda world: world.goes_on),
            (Doubt.FILES_NOT_SEEN, lambda world: world.slow_looks_end),
            (Doubt.BUDGET, lambda world: world.cut_fits),
        ]
        several = [
            (doubt, of) for doubt, of in tests if doubt is not None and len({of(world) for world, _ in ways}) > 1
        ]
        return next((doubt for doubt, of in several if _tells_apart(ways, of)), several[0][0])

    def _doubt_of_choice(self) -> Doubt:
        """Say why it is not known what the selector chooses, or when."""
        choice = self._course.choice
        if choice is None or choice.result is None:
            if self._course.closed.cause is Cause.POLICY_LIMIT:
                return Doubt.GIVEN_UP_BEFORE_SETTLED
            outside = self._course.ended_from_outside
            return Doubt.CANCELLED_BEFORE_SETTLED if outside else Doubt.ENDED_BEFORE_SETTLED
        if choice.not_asked is NotAsked.EXACT_TITLE and not self._policy.lexical_fallback:
            return Doubt.SELECTOR_NOT_ASKED
        failed = choice.result.error is Reason.SELECTOR_UNAVAILABLE
        return Doubt.SELECTOR_FAILED if failed else Doubt.SELECTOR_CUT_OFF


def _tells_apart(ways: Sequence[tuple[World, Replayed]], of: Callable[[World], object]) -> bool:
    """Tell whether the ends differ between the ways that differ in this."""
    ends: dict[object, set[Delivered]] = {}
    for world, way in ways:
        ends.setdefault(of(world), set()).add(way.delivered)
    return len({frozenset(each) for each in ends.values()}) > 1


def _same_end(found: Search, then: float | None, now: float | None) -> bool:
    """Tell whether a search that had `then` seconds ends with the same with `now` (None: no limit)."""
    if then == now:
        return True
    if found.partial:
        return False
    return now is None or found.at <= now or (then is not None and now >= then)


def _moments(never: Replayed, after: float) -> list[float]:
    """Return when what had not come `after` so many seconds may come: right then, or before a later ask, if any."""
    later = [at for at in dict.fromkeys(never.moments) if at > after + TICK]
    return [after + TICK, *later] if later else []


def _settling(after: float, notes: Iterable[str], strategy: Strategy, *, error: Reason | None = None) -> Settling:
    result = Settled(notes=tuple(note_named(name) for name in notes), strategy=strategy, error=error)
    return Settling(after=after, result=result)
