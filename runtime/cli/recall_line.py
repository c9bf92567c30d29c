"""What a recall did, as one line for a person."""

from recallscope.runtime.events import Outcome, Phase, Point, Reason, RecallClosed

__all__ = ["recall_line"]

_WHERE = {Point.INITIAL: "with the first request", Point.TOOL_RESULT: "behind tool results", Point.NONE: "nowhere"}

_WHY = {
    Reason.NOT_SETTLED: "the selection was still running",
    Reason.NOTHING_FOUND: "nothing was found",
    Reason.ALREADY_DELIVERED: "all of it stands in the conversation already",
    Reason.OVER_BUDGET: "it did not fit the turn's budget",
    Reason.STORE_UNAVAILABLE: "memory could not be read",
    Reason.SELECTOR_UNAVAILABLE: "the selector failed",
    Reason.SELECTOR_TIMEOUT: "the selector took too long",
    Reason.NO_RELEVANT_RESULTS: "nothing relevant was found",
    Reason.ABORT: "the turn was cancelled",
    Reason.NEW_QUERY: "a new prompt came",
    Reason.RESET: "the conversation was reset",
    Reason.SHUTDOWN: "the process is shutting down",
    Reason.NO_SAFE_DELIVERY_POINT: "the turn ended before there was a place for it",
}


def recall_line(closed: RecallClosed) -> str:
    """Say what was delivered, where and when, or why not; and how long the turn was held for it."""
    held = f"held the turn {_milliseconds(closed.waited)}"
    match closed.outcome:
        case Outcome.DELIVERED:
            notes = f"{closed.notes_delivered} note{'s' if closed.notes_delivered != 1 else ''}"
            where = " and ".join(_WHERE[point] for point in closed.points)
            phases = "fast and refined" if closed.phases is Phase.BOTH else closed.phases.value
            rest = "" if closed.reason is Reason.NONE else f"; the refined part was left out: {_why(closed.reason)}"
            return f"memory: {notes} {where} ({phases}), {held}{rest}"
        case Outcome.FAILED:
            return f"memory: failed, {_why(closed.reason)}; {held}"
        case Outcome.EMPTY | Outcome.ALREADY_DELIVERED | Outcome.DISCARDED:
            return f"memory: nothing delivered, {_why(closed.reason)}; {held}"


def _why(reason: Reason) -> str:
    return f"{_WHY.get(reason, reason.value)} ({reason.value})"


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"
