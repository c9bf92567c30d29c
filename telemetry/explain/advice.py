"""Which setting would have changed what memory did in a recorded turn: a key with a value from its moments, or none.

Only what the record proves is advised: a ceiling is computed from when a result stood and when memory was asked for,
and a result that never came is no ground for a number.
"""

import math
from dataclasses import dataclass
from typing import Final

from recallscope.runtime.events import (
    Cause,
    Delivered,
    EndedBy,
    Outcome,
    Point,
    PolicyName,
    Reason,
    Scenario,
    TurnOrigin,
)
from recallscope.telemetry.explain.words import count, duration
from recallscope.telemetry.read.recorded import Close, RecordedRecall, RecordedTurn, Wait

__all__ = ["Advice", "Assignment", "advice_on"]

DEFAULT_CEILING_SECONDS: Final = 0.1
MOST_CEILING_SECONDS: Final = 10.0
"""What `recall.ceiling_seconds` takes at most."""

CHECK_SECONDS: Final = 0.005
"""What the check of the notes' files may add to a wait."""

NOTE_CHARACTERS: Final = 1_600
"""What one note takes of the budget at most: its body's 1,200 characters, and what stands around it."""

HELD_SECONDS: Final = DEFAULT_CEILING_SECONDS + CHECK_SECONDS
"""From here on a wait is worth a setting: the default ceiling, and what the check may add."""

_POLICY: Final = "recall.policy"
_CEILING: Final = "recall.ceiling_seconds"


@dataclass(frozen=True, slots=True)
class Assignment:
    """A key of the configuration and the value to give it, as it is written."""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class Advice:
    """What to set, nothing where no setting helps, and in one clause what it would have done, or why none helps."""

    settings: tuple[Assignment, ...]
    why: str

    @classmethod
    def none(cls, why: str) -> "Advice":
        """Advise no setting."""
        return cls((), why)


def advice_on(turn: RecordedTurn) -> Advice:
    """Return what would have changed `turn`, as far as its record proves it."""
    recall = turn.recall
    if recall is None:
        return _without_recall(turn)
    closed = recall.closed
    if closed is None:
        return Advice.none("the end of the recall is not in the record")
    if closed.scenario is Scenario.NOT_SENT:
        held = _held_too_long(turn, recall, closed) if recall.policy is PolicyName.DEADLINE else None
        return held or _not_sent(turn, closed)
    if closed.reason is Reason.OVER_BUDGET:
        return _budget(closed)
    return _held_too_long(turn, recall, closed) or _by_outcome(recall, closed)


def _without_recall(turn: RecordedTurn) -> Advice:
    if turn.policy is PolicyName.OFF:
        why = "recall is switched off; under tiered the first send waits 100 ms at most"
        return Advice((Assignment(_POLICY, PolicyName.TIERED.value),), why)
    if turn.origin is not None and turn.origin is not TurnOrigin.PROMPT:
        return Advice.none(f"a turn of origin {turn.origin} recalls nothing; only a person's prompt does")
    return Advice.none("no recall began: there is no usable memory, or the turn ended before; see recallscope doctor")


def _not_sent(turn: RecordedTurn, closed: Close) -> Advice:
    match closed.cause:
        case Cause.MAX_TURNS:
            number = turn.turn.rpartition(".")[2]
            value = number if number.isdigit() else "0"
            return Advice((Assignment("session.max_turns", value),), "the session had had its turns")
        case Cause.TURN_BUDGET:
            value = str((turn.sends or 0) + 1)
            return Advice((Assignment("agent.max_sends", value),), "the turn was allowed no more sends")
        case Cause.TOKEN_LIMIT:
            return Advice((Assignment("session.max_tokens", "0"),), "the session had used its tokens; 0 is no limit")
        case Cause.PROVIDER_ERROR:
            return Advice.none("no attempt reached the model, whatever recall did")
        case _:
            return Advice.none("the turn ended before a send was accepted")


def _budget(closed: Close) -> Advice:
    notes = max(closed.notes_selected, closed.notes_delivered + 1)
    settings = (
        Assignment("recall.budget_notes", str(notes)),
        Assignment("recall.budget_characters", str(notes * NOTE_CHARACTERS)),
    )
    return Advice(settings, f"{notes} notes would have fitted")


def _held_too_long(turn: RecordedTurn, recall: RecordedRecall, closed: Close) -> Advice | None:
    """Advise against a wait that was longer than the default ceiling; None if there was none."""
    first = recall.first_wait
    if first is None or first.waited <= HELD_SECONDS:
        return None
    if recall.policy is PolicyName.DEADLINE:
        return Advice(
            (Assignment(_POLICY, PolicyName.TIERED.value),), _under_tiered(turn, recall, first, closed.delivered)
        )
    if first.ceiling > DEFAULT_CEILING_SECONDS and closed.delivered is Delivered.NONE:
        value = _seconds_text(DEFAULT_CEILING_SECONDS)
        return Advice((Assignment(_CEILING, value),), f"the wait of {duration(first.waited)} brought nothing")
    if first.waited > first.ceiling + CHECK_SECONDS:
        return Advice.none(
            f"the wait passed its ceiling by {duration(first.waited - first.ceiling)}, which no setting does: the "
            "metric recallscope.loop.lag of then tells whether the event loop was held up"
        )
    return None


def _by_outcome(recall: RecordedRecall, closed: Close) -> Advice:
    match closed.outcome:
        case Outcome.DELIVERED:
            return _delivered(recall, closed)
        case Outcome.EMPTY:
            return Advice.none("no note was relevant")
        case Outcome.ALREADY_DELIVERED:
            return Advice.none("the notes stand in the conversation already")
        case Outcome.FAILED:
            return _failed(recall, closed)
        case Outcome.DISCARDED:
            return _missed(recall, closed)


def _delivered(recall: RecordedRecall, closed: Close) -> Advice:
    earlier = _earlier_with_words(recall, closed)
    if earlier is not None:
        return Advice((Assignment(_POLICY, PolicyName.TIERED.value),), earlier)
    if closed.reason is Reason.NONE:
        return Advice.none("memory came, and nothing waited for it longer than it may")
    first = recall.first_wait
    if first is not None and first.ended_by is EndedBy.FAST and closed.reason is Reason.NO_SAFE_DELIVERY_POINT:
        return Advice.none(
            "the word matches ended the wait, so a longer ceiling changes nothing; only a quicker selector "
            "(model.small) would"
        )
    if closed.reason is Reason.NO_SAFE_DELIVERY_POINT:
        return Advice.none("no moment of this turn could have taken the selector's choice")
    if closed.reason is closed.close_reason:
        return Advice.none("the turn was ended from outside before the selector's choice had a place")
    return Advice.none("the word matches came, and the selector had nothing to add")


def _failed(recall: RecordedRecall, closed: Close) -> Advice:
    if closed.reason is Reason.STORE_UNAVAILABLE:
        return Advice.none("memory could not be read; see recallscope doctor")
    words = _words_in_time(recall)
    if recall.policy is not PolicyName.TIERED and words is not None:
        return Advice((Assignment(_POLICY, PolicyName.TIERED.value),), words)
    if closed.reason is Reason.SELECTOR_TIMEOUT:
        return Advice.none(
            "the words matched nothing, and the selector took too long; a quicker one (model.small) helps"
        )
    return Advice.none("the words matched nothing, and the selector failed")


def _missed(recall: RecordedRecall, closed: Close) -> Advice:
    """Advise on notes that were found, or might have been, and found no place."""
    first = recall.first_wait
    words = _words_in_time(recall)
    if recall.policy in {PolicyName.PREFETCH, PolicyName.DEADLINE} and words is not None:
        return Advice((Assignment(_POLICY, PolicyName.TIERED.value),), words)
    stood = _stood_at(recall)
    if first is None or stood is None or closed.close_reason is not Reason.NO_SAFE_DELIVERY_POINT:
        return _none_for_a_miss(recall, closed)
    value = _ceiling_for(stood - first.asked_at)
    if value is None:
        return Advice.none(f"the notes stood {duration(stood - first.asked_at)} after the first send had asked")
    policy = () if recall.policy is PolicyName.TIERED else (Assignment(_POLICY, PolicyName.TIERED.value),)
    longer = max(0.0, stood - first.ended_at)
    why = f"the first send would have been held {duration(longer)} longer, and would have taken the notes along"
    return Advice((*policy, Assignment(_CEILING, value)), why)


def _none_for_a_miss(recall: RecordedRecall, closed: Close) -> Advice:
    if closed.close_reason is not Reason.NO_SAFE_DELIVERY_POINT:
        return Advice.none("the turn was ended from outside")
    first = recall.first_wait
    if recall.settled is None and first is not None:
        least = closed.at - first.asked_at
        return Advice.none(
            f"the selector had not answered when the turn ended, {duration(least)} after the first send had asked; a "
            "quicker one (model.small) would help"
        )
    return Advice.none("no moment of this turn could have taken the notes")


def _stood_at(recall: RecordedRecall) -> float | None:
    """Return when the first notes stood that a first send under `tiered` could have taken; None if none did."""
    stood: list[float] = []
    if recall.fast is not None and recall.fast.notes:
        stood.append(recall.fast.at)
    if recall.settled is not None and recall.settled.notes:
        stood.append(recall.settled.at)
    return min(stood, default=None)


def _words_in_time(recall: RecordedRecall) -> str | None:
    """Say what `tiered` would have delivered of the word matches; None if nothing for certain."""
    fast, first = recall.fast, recall.first_wait
    if fast is None or not fast.notes or first is None or fast.at > first.asked_at + DEFAULT_CEILING_SECONDS:
        return None
    found = f"the words had found {count(fast.notes, 'note')} {duration(fast.elapsed)} after the recall began"
    return f"{found}; tiered sends them along"


def _earlier_with_words(recall: RecordedRecall, closed: Close) -> str | None:
    """Say what `tiered` would have sent before the tools ran; None if nothing for certain, or if that was done."""
    fast, first = recall.fast, recall.first_wait
    missed = recall.policy is PolicyName.PREFETCH and Point.INITIAL not in closed.points and not recall.withdrawn
    if not missed or fast is None or first is None or _words_in_time(recall) is None:
        return None
    held = duration(max(0.0, fast.at - first.asked_at))
    return f"the first send would have been held {held}, and would have taken the word matches along"


def _under_tiered(turn: RecordedTurn, recall: RecordedRecall, first: Wait, delivered: Delivered) -> str:
    """Say how long `tiered` would have held the first send, with the moments of this one."""
    stood = _stood_at(recall)
    if stood is None or stood - first.asked_at > DEFAULT_CEILING_SECONDS:
        held = DEFAULT_CEILING_SECONDS
    else:
        held = max(0.0, stood - first.asked_at)
    words = recall.fast is not None and recall.fast.notes and held < DEFAULT_CEILING_SECONDS
    then = ""
    if words and delivered is not Delivered.NONE:
        behind_tools = any(call.point is Point.TOOL_RESULT for call in turn.sent)
        place = "could have come behind tool results only" if behind_tools else "would have found no place"
        then = f", and would have taken the word matches along; the selector's choice {place}"
    elif words:
        then = ", and would have taken the word matches along"
    elif stood is not None:
        then = ", and the notes would have come behind tool results only"
    return f"the first send would have been held {duration(held)} instead of {duration(first.waited)}{then}"


def _ceiling_for(needed: float) -> str | None:
    """Return the ceiling that a wait of `needed` seconds fits under, in hundredths; None beyond what is allowed."""
    ceiling = math.ceil((max(needed, 0.0) + CHECK_SECONDS) * 100) / 100
    return _seconds_text(ceiling) if ceiling <= MOST_CEILING_SECONDS else None


def _seconds_text(seconds: float) -> str:
    return f"{seconds:g}"
