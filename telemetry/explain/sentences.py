"""The verdict on a recorded turn in words, for the person on call: four sentences and the facts that they rest on."""

from collections.abc import Mapping
from dataclasses import dataclass

from recallscope.runtime.events import (
    Cause,
    EndedBy,
    NotAsked,
    Outcome,
    Phase,
    Point,
    PolicyName,
    Reason,
    Scenario,
    Strategy,
    TurnPhase,
)
from recallscope.telemetry.explain.verdict import Hold, Memory, Verdict
from recallscope.telemetry.explain.words import count, duration, percent
from recallscope.telemetry.read.recorded import Close, ModelCall, RecordedRecall, RecordedTurn, ToolCall

__all__ = ["Sentences", "sentences", "setting_line"]


@dataclass(frozen=True, slots=True)
class Sentences:
    """What held the turn; whether memory did; why memory came or did not; which setting would have changed it."""

    held: str
    memory: str
    why: str
    setting: str

    @property
    def labelled(self) -> tuple[tuple[str, str], ...]:
        """The sentences with what each is about."""
        return (("Held by", self.held), ("Memory", self.memory), ("Why", self.why), ("Setting", self.setting))


def sentences(turn: RecordedTurn, verdict: Verdict) -> Sentences:
    """Put `verdict`, which is on `turn`, into words."""
    return Sentences(
        held=_held(turn, verdict),
        memory=_memory_held(turn, verdict.hold),
        why=_why(turn, verdict),
        setting=setting_line(verdict),
    )


def setting_line(verdict: Verdict) -> str:
    """Say which setting would have changed what memory did: keys with values, or none, and why."""
    settings = ", ".join(f"{one.key}={one.value}" for one in verdict.advice.settings) or "none"
    return f"{settings}: {verdict.advice.why}."


# What held the turn

_PHASE_WORDS = {
    TurnPhase.QUEUE: "Waiting for an earlier prompt of the session to end",
    TurnPhase.PREPARE: "Preparing the reminders",
    TurnPhase.RECALL_WAIT: "Waiting for memory",
    TurnPhase.MODEL: "The main model",
    TurnPhase.BACKOFF: "The pauses between attempts to reach the model",
    TurnPhase.TOOL: "Tools",
    TurnPhase.PERMISSION: "Waiting for a person's permission",
    TurnPhase.HOOK: "Hooks",
    TurnPhase.COMPACTION: "Compacting the conversation",
    TurnPhase.OTHER: "What no phase accounts for",
}


def _held(turn: RecordedTurn, verdict: Verdict) -> str:
    biggest = verdict.biggest
    if biggest is None:
        return "Nothing: the turn took no time that was measured."
    words = _PHASE_WORDS[biggest.phase]
    took = f"{words} took {duration(biggest.seconds)} of {duration(turn.length)} ({percent(biggest.share)})"
    piece = _piece(turn, verdict.longest)
    running = "" if turn.seconds is not None else "; the turn's end is not in the record"
    return f"{took}{piece}{running}."


def _piece(turn: RecordedTurn, longest: ModelCall | ToolCall | None) -> str:
    match longest:
        case ToolCall():
            return f": {longest.tool} took {_took(longest, turn)}{_ending(longest)}"
        case ModelCall():
            number = f"send {longest.send}" if longest.send is not None else "a send"
            of = f" of {turn.sends}" if turn.sends is not None and turn.sends > 1 else ""
            first = ""
            if longest.first_chunk is not None:
                first = f", its first chunk after {duration(longest.first_chunk - longest.started)}"
            attempts = f", in {longest.attempts} attempts" if longest.attempts > 1 else ""
            return f": {number}{of} took {_took(longest, turn)}{first}{attempts}{_ending(longest)}"
        case None:
            return ""


def _took(piece: ModelCall | ToolCall, turn: RecordedTurn) -> str:
    return duration((piece.ended if piece.ended is not None else turn.length) - piece.started)


def _ending(piece: ModelCall | ToolCall) -> str:
    if piece.cause is not None:
        return f", cancelled ({piece.cause})"
    if isinstance(piece, ModelCall) and piece.error_type is not None:
        return f", failed ({piece.error_type})"
    return ", which reported an error" if isinstance(piece, ToolCall) and piece.is_error else ""


# Whether memory held it

_ENDED_BY = {
    EndedBy.ALREADY_SETTLED: "the result stood already",
    EndedBy.FAST: "the word matches ended the wait",
    EndedBy.REFINED: "the selector's answer ended the wait",
    EndedBy.CEILING: "the ceiling ended the wait",
    EndedBy.CANCELLED: "the end of the turn ended the wait",
    EndedBy.NOTHING_TO_WAIT_FOR: "nothing was waited for",
}


def _memory_held(turn: RecordedTurn, hold: Hold | None) -> str:
    if hold is None:
        return "Did not hold the turn: no recall began."
    ended = f"; {_ended(turn, hold.ended_by)}" if hold.ended_by is not None else ""
    if hold.waited < 0.001:  # noqa: PLR2004 - a millisecond
        return f"Did not hold the turn{ended}."
    over = f", {duration(hold.over)} over the ceiling of {duration(hold.ceiling)}" if hold.over else ""
    return f"Held the turn for {duration(hold.waited)} ({percent(hold.share)}){over}{ended}."


def _ended(turn: RecordedTurn, ended_by: EndedBy) -> str:
    recall = turn.recall
    if ended_by is EndedBy.CEILING and recall is not None:
        return f"the ceiling of {duration(recall.ceiling)} ended the wait"
    error = recall.settled.error if recall is not None and recall.settled is not None else None
    if ended_by is EndedBy.REFINED and error in _FAILURE_ENDED:
        return _FAILURE_ENDED[error]
    return _ENDED_BY[ended_by]


_FAILURE_ENDED: Mapping[Reason | None, str] = {
    Reason.SELECTOR_TIMEOUT: "the selector was cut off",
    Reason.SELECTOR_UNAVAILABLE: "the selector's failure ended the wait",
    Reason.STORE_UNAVAILABLE: "the store's failure ended the wait",
}


# Why memory came or did not


def _why(turn: RecordedTurn, verdict: Verdict) -> str:
    recall = turn.recall
    if recall is None:
        return _no_recall(turn)
    closed = recall.closed
    if closed is None:
        return f"Not known: the recall has no end in the record ({_progress(recall)})."
    match verdict.memory:
        case Memory.WHOLE:
            return f"{_came(recall, closed)}."
        case Memory.PARTLY:
            return f"{_came(recall, closed)}; {_rest(turn, recall, closed)}."
        case _:
            return f"Nothing came: {_reason(turn, recall, closed)}."


def _no_recall(turn: RecordedTurn) -> str:
    if turn.policy is PolicyName.OFF:
        return "Nothing came: the policy is off."
    return "Nothing came: no recall began in this turn."


def _came(recall: RecordedRecall, closed: Close) -> str:
    notes = count(closed.notes_delivered, "note")
    match closed.phases:
        case Phase.BOTH:
            return (
                f"{notes} came: word matches with the first send{_words_at(recall)}, the selector's choice behind tool "
                f"results{_settled_at(recall)}"
            )
        case Phase.FAST:
            return f"{notes} came with the first send: word matches{_words_at(recall)}"
        case _:
            where = " and ".join(_WHERE[point] for point in closed.points)
            chosen = "what the words found" if closed.strategy is Strategy.LEXICAL else "the selector's choice"
            return f"{notes} came {where}: {chosen}{_settled_at(recall)}"


def _rest(turn: RecordedTurn, recall: RecordedRecall, closed: Close) -> str:
    """Say why the selector's choice did not come, too."""
    settled = recall.settled
    if settled is not None and settled.error is not None:
        return f"the selector failed{_after_settled(recall)}"
    if closed.reason is Reason.ALREADY_DELIVERED:
        return "the selector chose nothing else"
    return f"the selector's choice did not: {_reason(turn, recall, closed)}"


_WHERE = {
    Point.INITIAL: "with the first send",
    Point.TOOL_RESULT: "behind tool results",
    Point.NONE: "nowhere",
}


def _words_at(recall: RecordedRecall) -> str:
    return f" (found after {duration(recall.fast.elapsed)})" if recall.fast is not None else ""


def _settled_at(recall: RecordedRecall) -> str:
    settled = recall.settled
    if settled is None:
        return ""
    failed = _SELECTOR_FAILED.get(settled.error or Reason.NONE, "")
    return f" (it stood after {duration(settled.elapsed)}{failed})"


_SELECTOR_FAILED = {
    Reason.SELECTOR_UNAVAILABLE: "; the selector had failed",
    Reason.SELECTOR_TIMEOUT: "; the selector had taken too long",
}


def _reason(turn: RecordedTurn, recall: RecordedRecall, closed: Close) -> str:
    if closed.scenario is Scenario.NOT_SENT and closed.outcome is not Outcome.DELIVERED:
        return f"no send was accepted ({closed.cause})"
    match closed.reason:
        case Reason.SELECTOR_UNAVAILABLE | Reason.SELECTOR_TIMEOUT as reason:
            what = "failed" if reason is Reason.SELECTOR_UNAVAILABLE else "was cut off"
            return f"the selector {what}{_after_settled(recall)}{_unused_words(recall, closed)}"
        case Reason.NO_RELEVANT_RESULTS:
            return _nothing_relevant(turn, recall)
        case reason:
            return _PLAIN_REASONS.get(reason) or _too_late(recall, closed)


_PLAIN_REASONS = {
    Reason.STORE_UNAVAILABLE: "memory could not be read",
    Reason.ALREADY_DELIVERED: "the notes stand in the conversation already",
    Reason.OVER_BUDGET: "they did not fit the turn's budget",
}


def _nothing_relevant(turn: RecordedTurn, recall: RecordedRecall) -> str:
    settled = recall.settled
    if recall.withdrawn:
        return f"{count(recall.withdrawn, 'chosen note')} had changed or gone on disk"
    if settled is not None and settled.not_asked is NotAsked.NO_CANDIDATES:
        return f"there was no note to choose from (searched in {duration(settled.elapsed)})"
    if turn.selector is None:
        return "no note matches the words"
    return f"the selector chose none{_after_settled(recall)}"


def _too_late(recall: RecordedRecall, closed: Close) -> str:
    ended = _ENDED_BECAUSE.get(closed.cause, f"the turn ended ({closed.cause})")
    settled = recall.settled
    if settled is None:
        when = duration(closed.at - recall.begun)
        return (
            f"the selector had not answered when {ended}, {when} after the recall began{_unused_words(recall, closed)}"
        )
    asked = recall.asked_at
    late = f", {duration(settled.at - asked)} after the first send had asked" if asked is not None else ""
    return (
        f"the selector's choice stood after {duration(settled.elapsed)}{late}, and no tool results followed that it "
        f"could go behind before {ended}{_unused_words(recall, closed)}"
    )


_ENDED_BECAUSE = {
    Cause.USER_CANCEL: "the person cancelled",
    Cause.SESSION_DISPOSE: "the session was closed",
    Cause.CONTROL_STOP: "the host stopped the session",
    Cause.SUPERSEDED: "the next prompt came",
    Cause.SESSION_RESET: "the conversation was reset",
    Cause.PROCESS_SHUTDOWN: "the process shut down",
    Cause.TURN_END: "the turn ended",
    Cause.MAX_TURNS: "the session had had its turns",
    Cause.TURN_BUDGET: "the turn had made its sends",
    Cause.TOKEN_LIMIT: "the session had used its tokens",
    Cause.PROVIDER_ERROR: "the model failed",
    Cause.LOOP_STOP: "the loop protection stopped the turn",
    Cause.POLICY_LIMIT: "the policy's limit was reached",
}


def _after_settled(recall: RecordedRecall) -> str:
    return f" after {duration(recall.settled.elapsed)}" if recall.settled is not None else ""


def _unused_words(recall: RecordedRecall, closed: Close) -> str:
    """Tell of word matches that the policy does not deliver."""
    fast = recall.fast
    if fast is None or not fast.notes or recall.policy is PolicyName.TIERED or closed.outcome is Outcome.DELIVERED:
        return ""
    found = f"{count(fast.notes, 'note')} that the words had found after {duration(fast.elapsed)}"
    return f"; the policy {recall.policy} does not deliver the {found}"


def _progress(recall: RecordedRecall) -> str:
    if recall.settled is not None:
        return f"it settled after {duration(recall.settled.elapsed)}"
    if recall.fast is not None:
        return f"the words had found {count(recall.fast.notes or 0, 'note')}, the selector had not answered"
    return "it was still searching"
