"""The question of a what-if and its answer as values: one row for each setting, in the order of the question."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum, unique
from typing import Any

from recallscope.runtime.lab.intervals import CONFIDENCE, Interval
from recallscope.runtime.lab.whatif import Record, Setting, Shares, Waits, WhatIf
from recallscope.runtime.lab.wording import two_digits
from recallscope.runtime.lab.worlds import Doubt, Speed
from recallscope.runtime.terms import Delivered, PolicyName

__all__ = [
    "QUANTILES",
    "Answer",
    "Axis",
    "Question",
    "Row",
    "from_to",
    "in_words",
    "milliseconds",
    "percent",
    "percent_between",
]

SCHEMA = 1

QUANTILES = (0.5, 0.95)

_DOUBTS: Mapping[Doubt, str] = {
    Doubt.SEARCH_WOULD_GO_ON: "the search was interrupted, and would have had more time",
    Doubt.SEARCH_CUT_SHORT: "the search would have been interrupted earlier than it answered",
    Doubt.SEARCH_NOT_RECORDED: "the recall was closed before the search had answered",
    Doubt.CANCELLED_BEFORE_SETTLED: "cancelled before the selector had answered",
    Doubt.ENDED_BEFORE_SETTLED: "the turn ended before the selector had answered",
    Doubt.GIVEN_UP_BEFORE_SETTLED: "the policy gave up before the selector had answered",
    Doubt.SELECTOR_CUT_OFF: "a time limit ended the selector's call, or would have",
    Doubt.SELECTOR_NOT_ASKED: "the selector was not asked, and would have been",
    Doubt.SELECTOR_FAILED: "the selector failed, and not all word matches are recorded",
    Doubt.MORE_TIME: "cancelled at a moment that another hold would have left more time for",
    Doubt.FILES_NOT_SEEN: "the look at the notes' files did not end in time",
    Doubt.BUDGET: "notes did not fit the budget, and might have in another order",
}


@unique
class Axis(StrEnum):
    """What the settings of a question differ in."""

    CEILING = "ceiling"
    SEARCH_LIMIT = "fast limit"
    SELECTOR_SPEED = "selector speed"
    SELECTOR_DELAY = "selector delay"

    def text(self, value: float) -> str:
        """Return a value of this axis for people."""
        return f"{value:g} x" if self is Axis.SELECTOR_SPEED else milliseconds(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Which settings are asked for: each of `policies` (none: as recorded) with each of `values` on the `axis`.

    `base` is what all of them share. The ceiling is that of `tiered`: the other policies have one row without it.
    """

    axis: Axis
    values: tuple[float, ...]
    policies: tuple[PolicyName | None, ...] = (None,)
    base: Setting = Setting()  # noqa: RUF009 - frozen

    def settings(self) -> Iterator[tuple[float | None, Setting]]:
        """Yield each setting with its value on the axis, None for a policy that the axis does not concern."""
        for policy in self.policies:
            concerned = self.axis is not Axis.CEILING or policy in {None, PolicyName.TIERED}
            for value in (self.values if concerned else ()) or (None,):
                yield value, self._setting(policy, value)

    def _setting(self, policy: PolicyName | None, value: float | None) -> Setting:
        base = self.base
        ceiling, limit, speed = base.ceiling, base.search_limit, base.speed
        match self.axis:
            case Axis.CEILING:
                ceiling = value
            case Axis.SEARCH_LIMIT:
                limit = value
            case Axis.SELECTOR_SPEED:
                speed = Speed(factor=1.0 if value is None else value)
            case Axis.SELECTOR_DELAY:
                speed = Speed(delay=value)
        return Setting(policy=policy, ceiling=ceiling, search_limit=limit, speed=speed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What one setting would have given; `value` is its place on the axis."""

    policy: PolicyName | None
    value: float | None
    whatif: WhatIf


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to a question over a record."""

    question: Question
    record: Record
    recorded: WhatIf
    rows: tuple[Row, ...]

    @classmethod
    def of(cls, question: Question, record: Record) -> "Answer":
        """Replay the record under each setting of the question."""
        rows = tuple(
            Row(policy=setting.policy, value=value, whatif=record.under(setting))
            for value, setting in question.settings()
        )
        return cls(question=question, record=record, recorded=record.recorded, rows=rows)

    def label(self, row: Row) -> str:
        """Return what a row is called."""
        alone = len(self.question.policies) == 1 and row.value is not None
        parts = [] if row.policy is None or alone else [row.policy.value]
        if row.value is not None:
            parts.append(self.question.axis.text(row.value))
        return " ".join(parts)

    def series(self) -> list[tuple[str, list[Row]]]:
        """Return the rows that have a place on the axis, policy by policy, by value."""
        found: list[tuple[str, list[Row]]] = []
        for policy in self.question.policies:
            rows = [row for row in self.rows if row.policy is policy and row.value is not None]
            if rows:
                found.append(("" if policy is None else policy.value, sorted(rows, key=lambda row: row.value or 0.0)))
        return found

    def told(self) -> list[str]:
        """Say what was replayed as what, and what was left out, a sentence each."""
        first, *others = in_words(self.record)
        return [first, *self._replayed_as(), *others]

    def _replayed_as(self) -> Iterator[str]:
        under, asked = self.record.policies, [policy for policy in self.question.policies if policy is not None]
        if not asked:
            if len(under) > 1:
                yield "Each keeps the policy that it was recorded under."
        elif len(asked) > 1:
            yield f"All are replayed as {', '.join(asked[:-1])} and {asked[-1]}, whatever they were recorded under."
        elif others := sum(number for policy, number in under.items() if policy is not asked[0]):
            which = "All" if others == len(self.record.courses) > 1 else f"{others} of them"
            were = f"{which} were recorded under another policy and are"
            if others == 1:
                alone = "It" if len(self.record.courses) == 1 else which
                were = f"{alone} was recorded under another policy and is"
            yield f"{were} replayed as {asked[0]}."

    def doubts(self) -> list[str]:
        """Say why turns are unknown: for each reason, how many under which setting; the most frequent first."""
        found: dict[Doubt, list[tuple[int, str]]] = {}
        for row in self.rows:
            for doubt, number in row.whatif.doubts.items():
                found.setdefault(doubt, []).append((number, self.label(row)))
        most = sorted(found.items(), key=lambda each: -sum(number for number, _ in each[1]))
        return [f"{_DOUBTS[doubt]}: {_counted(rows)}" for doubt, rows in most]

    def as_data(self) -> dict[str, Any]:
        """Return plain data: the object of `recallscope whatif --json`."""
        record, base = self.record, self.question.base
        return {
            "schema": SCHEMA,
            "confidence": CONFIDENCE,
            "turns": len(record.courses),
            "recorded_under": {policy.value: number for policy, number in record.policies.items()},
            "left_out": {reason.value: number for reason, number in sorted(record.left_out.items())},
            "differing": [
                {"turn": each.turn, "recorded": each.recorded, "replayed": each.replayed} for each in record.differing
            ],
            "axis": self.question.axis.value.replace(" ", "_"),
            "same_for_all": {
                "ceiling_seconds": base.ceiling,
                "search_limit_seconds": base.search_limit,
                "selector_speed": base.speed.factor,
                "selector_delay_seconds": base.speed.delay,
            },
            "recorded": _figures(self.recorded),
            "rows": [
                {"policy": row.policy and row.policy.value, "value": row.value, **_figures(row.whatif)}
                for row in self.rows
            ],
        }


def in_words(record: Record) -> list[str]:
    """Say which turns these are and what was left out, a sentence each."""
    number, under = len(record.courses), record.policies
    by_policy = ", ".join(f"{turns} under {policy}" for policy, turns in under.items())
    which = f": {by_policy}" if len(under) > 1 else "".join(f" under {policy}" for policy in under)
    sentences = [f"{number} recorded turn{'' if number == 1 else 's'}{which}."]
    left_out = [f"{count} {reason.replace('_', ' ')}" for reason, count in sorted(record.left_out.items()) if count]
    if left_out:
        sentences.append(f"Left out: {', '.join(left_out)}.")
    return sentences


def milliseconds(seconds: float | None) -> str:
    """Return a time for people, as short as it says something; `-` where there is none."""
    if seconds is None:
        return "-"
    return f"{seconds:.3g} s" if seconds >= 1 else f"{two_digits(seconds * 1000)} ms"


def from_to(low: float | None, high: float | None) -> str:
    """Return a range of times for people, a single time where both ends read alike."""
    first, last = milliseconds(low), milliseconds(high)
    if first == last:
        return first
    return f"{first.removesuffix(' ms') if last.endswith(' ms') else first} to {last}"


def percent(share: float) -> str:
    """Return a share for people."""
    return f"{100 * share:.0f} %"


def percent_between(interval: Interval) -> str:
    """Return the interval of a share for people."""
    low, high = interval.low or 0.0, 1.0 if interval.high is None else interval.high
    return f"{100 * low:.0f} to {100 * high:.0f} %"


def _counted(rows: Sequence[tuple[int, str]]) -> str:
    """Return counts with what they are of, the label left out where a row has none."""
    return ", ".join(f"{number} at {label}" if label else str(number) for number, label in rows)


def _figures(whatif: WhatIf) -> dict[str, Any]:
    return {
        "turns": whatif.turns,
        "unknown": whatif.unknown,
        "unknown_by": {doubt.value: number for doubt, number in whatif.doubts.items()},
        "delivered": {
            **{place.value: _shares(whatif.at(place)) for place in Delivered},
            "first_send": _shares(whatif.at(Delivered.INITIAL, Delivered.BOTH)),
            "anywhere": _shares(whatif.delivered),
        },
        "wait_seconds": {f"p{100 * q:g}": _waits(whatif.wait(q)) for q in QUANTILES},
    }


def _shares(shares: Shares) -> dict[str, Any]:
    return {
        "known": shares.known,
        "possible": shares.possible,
        "share": round(shares.share, 6),
        "interval": _rounded([shares.interval.low, shares.interval.high]),
    }


def _waits(waits: Waits) -> dict[str, Any]:
    least, most = _rounded([waits.least, waits.most])
    return {"least": least, "most": most, "interval": _rounded([waits.interval.low, waits.interval.high])}


def _rounded(values: Sequence[float | None]) -> list[float | None]:
    return [None if value is None else round(value, 6) for value in values]
