"""What other settings would have given: recorded turns, replayed under another ceiling, policy, limit or selector.

    record = Record.of(turns, budget=Budget())
    rows = [record.under(Setting(policy=PolicyName.TIERED, ceiling=seconds)) for seconds in (0.025, 0.1, 0.2)]

Exact for the first send; later moments move with the hold, with the recorded times of the model and the tools. Where
the record allows several ends (`worlds.py`), a turn counts as unknown.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from recallscope.runtime.lab.course import Course, LeftOut, course_of
from recallscope.runtime.lab.intervals import Interval, quantile, quantile_interval, wilson
from recallscope.runtime.lab.replay import Habits, Held, Replayed, Settling, World, replay
from recallscope.runtime.lab.worlds import Doubt, Possible, Speed, possible
from recallscope.runtime.recall.handle import Budget
from recallscope.runtime.recall.policy import Policy, policy_named
from recallscope.runtime.recall.recaller import SELECTOR_SAFETY_SECONDS
from recallscope.runtime.terms import Delivered, PolicyName
from recallscope.telemetry.read.recorded import RecordedTurn

__all__ = ["Differing", "Prediction", "Record", "Setting", "Shares", "Waits", "WhatIf"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What is to be otherwise; None means as it was recorded.

    `ceiling` (seconds) is that of `tiered`. `search_limit`: seconds after which the search returns what it has. `speed`
    is the selector's.
    """

    policy: PolicyName | None = None
    ceiling: float | None = None
    search_limit: float | None = None
    speed: Speed = field(default_factory=Speed)

    def of(self, recorded: Policy) -> Policy:
        """Return the policy that a turn has which was recorded under `recorded`."""
        name = self.policy or recorded.name
        policy = recorded
        if name is not recorded.name or self.ceiling is not None:
            ceilings = {} if self.ceiling is None else {"ceiling": self.ceiling}
            policy = policy_named(name, **ceilings)
        return policy if self.search_limit is None else replace(policy, search_limit=self.search_limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What one turn would have received: one place, or those between which its record does not decide.

    `waited`: all its holds added, in seconds, at least and at most. `doubt`: why it is not known which place it is.
    """

    turn: str
    delivered: frozenset[Delivered]
    waited: tuple[float, float]
    doubt: Doubt | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """How many turns are known to be of a kind, how many may be, and the interval of their share.

    The interval holds both: what the turns that may be are, and that other turns would have come.
    """

    known: int
    possible: int
    total: int

    @property
    def share(self) -> float:
        """The share of the turns that are known to be of the kind."""
        return self.known / self.total if self.total else 0.0

    @property
    def interval(self) -> Interval:
        """The interval of the share."""
        return Interval(wilson(self.known, self.total).low, wilson(self.possible, self.total).high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """A quantile of the turns' holds in seconds, `least` and `most` as the record allows, and its interval."""

    least: float | None
    most: float | None
    interval: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """What a setting would have given; `predictions` has one for each turn."""

    setting: Setting | None
    predictions: tuple[Prediction, ...]

    @property
    def turns(self) -> int:
        """How many turns are behind the figures."""
        return len(self.predictions)

    @property
    def unknown(self) -> int:
        """How many turns have no known end under this setting."""
        return sum(len(each.delivered) > 1 for each in self.predictions)

    @property
    def doubts(self) -> Mapping[Doubt, int]:
        """How many turns have no known end, by the reason, the most frequent first."""
        return dict(Counter(each.doubt for each in self.predictions if each.doubt is not None).most_common())

    def at(self, *places: Delivered) -> Shares:
        """Return the share of the turns that receive memory at one of `places`."""
        wanted = frozenset(places)
        return Shares(
            known=sum(each.delivered <= wanted for each in self.predictions),
            possible=sum(bool(each.delivered & wanted) for each in self.predictions),
            total=self.turns,
        )

    @property
    def delivered(self) -> Shares:
        """The share of the turns that receive memory anywhere."""
        return self.at(Delivered.INITIAL, Delivered.BOTH, Delivered.TOOL_RESULT)

    def wait(self, q: float) -> Waits:
        """Return the `q` quantile of the holds."""
        least = [each.waited[0] for each in self.predictions]
        most = [each.waited[1] for each in self.predictions]
        return Waits(
            least=quantile(least, q),
            most=quantile(most, q),
            interval=Interval(quantile_interval(least, q).low, quantile_interval(most, q).high),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Differing:
    """A turn whose moments, fed through the rules that were in force, give another end than was recorded."""

    turn: str
    recorded: str
    replayed: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Recorded turns that can be replayed, those that cannot by the reason, and what is typical of them."""

    courses: tuple[Course, ...]
    holds: tuple[tuple[Held, ...], ...]
    habits: Habits
    left_out: Mapping[LeftOut, int]
    differing: tuple[Differing, ...]

    @classmethod
    def of(
        cls, turns: Iterable[RecordedTurn], *, budget: Budget | None = None, safety: float = SELECTOR_SAFETY_SECONDS
    ) -> "Record":
        """Take what can be replayed of `turns`: what gives the recorded end when it is replayed as it was in force.

        `budget` and `safety` (seconds) were in force; the record does not say them.
        """
        habits = Habits(budget=budget or Budget(), safety=safety)
        left_out: Counter[LeftOut] = Counter()
        courses: list[Course] = []
        holds: list[tuple[Held, ...]] = []
        differing: list[Differing] = []
        for turn in turns:
            course = course_of(turn)
            if isinstance(course, LeftOut):
                left_out[course] += 1
                continue
            again = _as_recorded(course, habits)
            if (told := _told(course)) != (replayed := _said(again)):
                left_out[LeftOut.NOT_REPRODUCED] += 1
                differing.append(Differing(turn=course.turn, recorded=told, replayed=replayed))
                continue
            courses.append(course)
            holds.append(again.holds)
        return cls(
            courses=tuple(courses),
            holds=tuple(holds),
            habits=_typical(courses, holds, habits),
            left_out=left_out,
            differing=tuple(differing),
        )

    @property
    def policies(self) -> Mapping[PolicyName, int]:
        """How many of the turns were recorded under which policy, the most frequent first."""
        return dict(Counter(course.policy.name for course in self.courses).most_common())

    @property
    def recorded(self) -> WhatIf:
        """What the turns received, as it was recorded."""
        return WhatIf(setting=None, predictions=tuple(_recorded(course) for course in self.courses))

    def under(self, setting: Setting) -> WhatIf:
        """Return what the turns would have received under `setting`; as recorded where nothing is otherwise."""
        predictions: list[Prediction] = []
        for course, holds in zip(self.courses, self.holds, strict=True):
            policy = setting.of(course.policy)
            if policy == course.policy and setting.speed == Speed():
                predictions.append(_recorded(course))
            else:
                predictions.append(_prediction(course, possible(course, policy, setting.speed, self.habits, holds)))
        return WhatIf(setting=setting, predictions=tuple(predictions))


def _recorded(course: Course) -> Prediction:
    closed = course.closed
    return Prediction(turn=course.turn, delivered=frozenset({closed.delivered}), waited=(closed.waited, closed.waited))


def _prediction(course: Course, found: Possible) -> Prediction:
    waits = [way.waited for way in found.ways]
    return Prediction(
        turn=course.turn,
        delivered=frozenset(way.delivered for way in found.ways),
        waited=(min(waits), max(waits)),
        doubt=found.doubt,
    )


def _as_recorded(course: Course, habits: Habits) -> Replayed:
    """Replay a turn with nothing changed: what had not come by its end never came."""
    settling = None
    if course.choice is not None and course.choice.result is not None:
        settling = Settling(after=course.choice.seconds, result=course.choice.result)
    return replay(course, course.policy, World(search=course.search, settling=settling), habits, None)


def _typical(courses: Sequence[Course], holds: Sequence[Sequence[Held]], habits: Habits) -> Habits:
    """Return the habits with the usual length of a look at files, and the usual lateness without one."""
    checks: list[float] = []
    lates: list[float] = []
    lags: list[float] = []
    for course, of_turn in zip(courses, holds, strict=True):
        for ask, held in zip(course.asks, of_turn, strict=False):
            if ask.late is not None:
                lates.append(ask.late)
            elif ask.extra is not None and not held.behind:
                (checks if held.looked else lags).append(ask.extra)
    check, late, lag = (median(seconds) if seconds else 0.0 for seconds in (checks, lates, lags))
    return replace(habits, check=check, late=late, lag=lag)


def _told(course: Course) -> str:
    closed = course.closed
    return f"{closed.delivered} ({closed.phases}), {closed.outcome}, {closed.reason}"


def _said(replayed: Replayed) -> str:
    return f"{replayed.delivered} ({replayed.phases}), {replayed.outcome}, {replayed.reason}"
