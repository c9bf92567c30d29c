"""The ways in which a recorded recall may have gone on under other settings, where its record does not tell.

Most turns have one: everything that counts was recorded. A recall that was closed before it settled, a search that was
interrupted, a selector that was cut off have several. They are enumerated rather than guessed: a result that had not
come by some moment may have come before each later send or never, with nothing, with what the words had found, or with
something new. Between two sends it makes no difference when.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf

from recallscope.runtime.lab.course import TICK, Choice, Course, Search, note_named
from recallscope.runtime.lab.replay import Habits, Held, Replayed, Settling, World, replay
from recallscope.runtime.recall.handle import Settled
from recallscope.runtime.recall.policy import Policy
from recallscope.runtime.terms import NotAsked, Reason, Strategy

__all__ = ["Speed", "possible"]

UNNAMED = "a note that the record does not name"


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """How quick the selector is: `factor` times the recorded seconds of its call, or `delay` seconds for every call."""

    factor: float = 1.0
    delay: float | None = None

    def of(self, seconds: float) -> float:
        """Return how long a call takes that took `seconds`."""
        return self.factor * seconds if self.delay is None else self.delay


def possible(course: Course, policy: Policy, speed: Speed, habits: Habits, recorded: Sequence[Held]) -> list[Replayed]:
    """Return what came of `course` under `policy` and `speed` in each way that its record allows; at least one."""
    return list(_Possible(course, policy, speed, habits, recorded).replayed())


class _Possible:
    """Enumerates the ways of one turn."""

    def __init__(self, course: Course, policy: Policy, speed: Speed, habits: Habits, recorded: Sequence[Held]) -> None:
        self._course = course
        self._policy = policy
        self._speed = speed
        self._habits = habits
        self._recorded = recorded

    def replayed(self) -> Iterator[Replayed]:
        for world in self._worlds():
            here = self._replay(world)
            yield here
            if here.gained:
                yield self._replay(replace(world, goes_on=True))

    def _replay(self, world: World) -> Replayed:
        return replay(self._course, self._policy, world, self._habits, self._recorded)

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
        found, then, now = self._course.search, self._course.policy.search_limit, self._policy.search_limit
        if found is None:
            yield from self._unrecorded_searches(self._course.unsettled, ((), (UNNAMED,)))
        elif _same_end(found, then, now):
            yield found
        elif now is not None and (then is None or now < then):
            # Interrupted earlier, at the new limit, with what was found, or less, or weaker matches. Where a whole
            # search found nothing good enough, less of one finds nothing.
            nothing = not found.notes and not found.partial
            for notes in ((),) if nothing else dict.fromkeys(((), found.notes, (UNNAMED,))):
                yield Search(at=min(now, found.at), notes=notes, partial=True)
        else:
            longest = inf if now is None else now
            more = (*found.notes[:1], UNNAMED)
            yield from self._unrecorded_searches(found.at, ((), found.notes, more), until=longest)

    def _unrecorded_searches(
        self, after: float, contents: Iterable[tuple[str, ...]], *, until: float = inf
    ) -> Iterator[Search | None]:
        yield None
        never = self._replay(World(search=None, settling=None))
        times = _moments(never, after)
        if until < inf:
            times = [at for at in times if at < until] + [until]
        for at in times:
            for notes in dict.fromkeys(contents):
                yield Search(at=at, notes=notes)

    # What is chosen

    def _settlings(self, search: Search | None) -> Iterator[Settling | None]:
        choice = self._course.choice
        if search is None:
            yield None
        elif choice is None:
            yield None
            yield from self._later(search, 0.0, _contents(search))
        elif self._policy == self._course.policy and self._speed == Speed():
            yield from self._as_recorded(search, choice)
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

    def _as_recorded(self, search: Search, choice: Choice) -> Iterator[Settling | None]:
        if choice.result is not None:
            yield Settling(after=choice.seconds, result=choice.result)
        else:
            yield None
            yield from self._later(search, choice.seconds, _contents(search))

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
            for notes in _contents(search):
                yield _settling(least, notes, Strategy.MODEL if notes else Strategy.NONE)
        else:
            yield from self._later(search, least, _contents(search), until=limit)
            if limit < inf:
                yield from self._cut(search)

    def _later(
        self, search: Search, least: float, contents: Iterable[tuple[str, ...]], *, until: float = inf
    ) -> Iterator[Settling | None]:
        """Yield a result that takes more than `least` seconds: it comes before each later ask, or never."""
        yield None
        never = self._replay(World(search=search, settling=None))
        for at in _moments(never, search.at + least):
            if at - search.at < until:
                for notes in contents:
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
        return (search.notes, (*search.notes, UNNAMED))


def _same_end(found: Search, then: float | None, now: float | None) -> bool:
    """Tell whether a search that had `then` seconds ends with the same with `now` (None: no limit)."""
    if then == now:
        return True
    if found.partial:
        return False
    return now is None or found.at <= now or (then is not None and now >= then)


def _contents(search: Search) -> Sequence[tuple[str, ...]]:
    """Return what a selector may have chosen: nothing, what the words had found already, or something new."""
    if not search.notes:
        return ((), (UNNAMED,))
    return ((), search.notes, (*search.notes, UNNAMED))


def _moments(never: Replayed, after: float) -> list[float]:
    """Return when what had not come `after` so many seconds may come: right then, or before a later ask, if any."""
    later = [at for at in dict.fromkeys(never.moments) if at > after + TICK]
    return [after + TICK, *later] if later else []


def _settling(after: float, notes: Iterable[str], strategy: Strategy, *, error: Reason | None = None) -> Settling:
    result = Settled(notes=tuple(note_named(name) for name in notes), strategy=strategy, error=error)
    return Settling(after=after, result=result)
