"""The waterfall of a recorded turn as values: rows with their time, and the moments of recall that stand on them.

How it is drawn, in a terminal or on a page, is decided elsewhere; here it is decided what is drawn.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum, unique

from recallscope.runtime.events import EndedBy, Purpose, RecallPhase, Strategy
from recallscope.telemetry.explain.words import count, duration
from recallscope.telemetry.read.recorded import ModelCall, RecordedRecall, RecordedTurn, ToolCall

__all__ = ["Kind", "Mark", "Moment", "Row", "waterfall"]


@unique
class Kind(StrEnum):
    """What a row shows."""

    TURN = "turn"
    RECALL = "recall"
    WAIT = "wait"
    SELECTOR = "selector"
    MODEL = "model"
    TOOL = "tool"
    BACKOFF = "backoff"


@unique
class Mark(StrEnum):
    """What happened at a moment of recall."""

    BEGIN = "begin"
    FAST = "fast"
    SETTLED = "settled"
    DELIVERED = "delivered"
    ROLLED_BACK = "rolled back"
    SKIPPED = "skipped"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that happened `at` seconds after the turn's start."""

    at: float
    mark: Mark
    text: str


@dataclass(frozen=True, slots=True)
class Row:
    """One piece of work, `depth` levels below the turn; `ended` None: no end is recorded. Moments only on recall."""

    kind: Kind
    label: str
    depth: int
    started: float
    ended: float | None
    note: str = ""
    moments: tuple[Moment, ...] = ()


def waterfall(turn: RecordedTurn) -> tuple[Row, ...]:
    """Return the rows: the turn, its recall with the selector below it, then sends and tools by their start."""
    note = str(turn.outcome) if turn.outcome is not None else "no end recorded"
    rows = [Row(Kind.TURN, f"turn {turn.turn}", 0, 0.0, turn.seconds, note)]
    if turn.recall is not None:
        rows.extend(_recall_rows(turn, turn.recall))
    work = [*(row for call in turn.sent for row in _call_rows(call)), *(_tool_row(tool) for tool in turn.tools)]
    rows.extend(sorted(work, key=lambda row: (row.started, row.depth)))
    return tuple(rows)


def _recall_rows(turn: RecordedTurn, recall: RecordedRecall) -> Iterator[Row]:
    closed = recall.closed
    outcome = str(closed.outcome) if closed is not None else "no end recorded"
    moments = tuple(sorted(_moments(recall), key=lambda moment: moment.at))
    ended = closed.at if closed is not None else None
    yield Row(Kind.RECALL, f"recall ({recall.policy})", 1, recall.begun, ended, outcome, moments)
    for call in turn.calls:
        if call.purpose is not Purpose.MAIN:
            label = "selector" if call.purpose is Purpose.SELECTOR else str(call.purpose)
            kind = Kind.SELECTOR
            yield Row(kind, f"{label} {call.model}", 2, call.started, call.ended, _call_note(call))
    for wait in recall.waits:
        if wait.ended_by is not EndedBy.ALREADY_SETTLED and wait.waited > 0:
            note = f"held for memory, ended by {wait.ended_by}" if wait.ended_by is not None else "held for memory"
            yield Row(Kind.WAIT, f"wait at {wait.point}", 1, wait.asked_at, wait.ended_at, note)


def _moments(recall: RecordedRecall) -> Iterator[Moment]:
    yield Moment(recall.begun, Mark.BEGIN, _begin_text(recall))
    if recall.fast is not None:
        found = _notes(recall.fast.notes)
        partial = ", interrupted" if recall.fast.partial else ""
        yield Moment(recall.fast.at, Mark.FAST, f"the words found {found}{partial}")
    if recall.settled is not None:
        settled = recall.settled
        why = f" ({settled.error})" if settled.error is not None else ""
        chosen = f"{_notes(settled.notes)} chosen" if settled.notes != 0 else "nothing chosen"
        who = f" by {_CHOSEN_BY[settled.strategy]}" if settled.strategy in _CHOSEN_BY else ""
        yield Moment(settled.at, Mark.SETTLED, f"{chosen}{who}{why}")
    for delivery in recall.deliveries:
        which = "word matches" if delivery.phase is RecallPhase.FAST else "the chosen ones"
        yield Moment(delivery.at, Mark.DELIVERED, f"{_notes(delivery.notes)} at {delivery.point}: {which}")
    for rollback in recall.rollbacks:
        text = f"{_notes(rollback.notes)} at {rollback.point}: {rollback.cause}"
        yield Moment(rollback.at, Mark.ROLLED_BACK, text)
    for skip in recall.skips:
        yield Moment(skip.at, Mark.SKIPPED, f"nothing at {skip.point}: {skip.reason}")
    if recall.closed is not None:
        closed = recall.closed
        yield Moment(closed.at, Mark.CLOSED, f"{closed.outcome} ({closed.cause})")


_CHOSEN_BY: Mapping[Strategy | None, str] = {Strategy.MODEL: "the selector", Strategy.LEXICAL: "the words"}


def _begin_text(recall: RecordedRecall) -> str:
    catalog = f", {count(recall.catalog_notes, 'note')} in the catalog" if recall.catalog_notes is not None else ""
    return f"recall began, ceiling {duration(recall.ceiling)}{catalog}"


def _notes(number: int | None) -> str:
    return "notes" if number is None else count(number, "note")


def _call_rows(call: ModelCall) -> Iterator[Row]:
    number = f"send {call.send}" if call.send is not None else "send"
    yield Row(Kind.MODEL, f"{number} {call.model}", 1, call.started, call.ended, _call_note(call))
    for failed in call.failed:
        if failed.retry_in is not None:
            note = f"attempt {failed.attempt} failed ({failed.error_type})"
            yield Row(Kind.BACKOFF, "pause", 2, failed.at, failed.at + failed.retry_in, note)


def _call_note(call: ModelCall) -> str:
    parts: list[str] = []
    if call.first_chunk is not None:
        parts.append(f"first chunk {duration(call.first_chunk - call.started)}")
    if call.notes:
        parts.append(count(call.notes, "note"))
    if call.attempts > 1:
        parts.append(f"{call.attempts} attempts")
    if call.cause is not None:
        parts.append(f"cancelled ({call.cause})")
    elif call.error_type is not None:
        parts.append(f"failed ({call.error_type})")
    elif call.ended is None:
        parts.append("no end recorded")
    return ", ".join(parts)


def _tool_row(tool: ToolCall) -> Row:
    note = ""
    if tool.cause is not None:
        note = f"cancelled ({tool.cause})"
    elif tool.is_error:
        note = "reported an error"
    elif tool.ended is None:
        note = "no end recorded"
    return Row(Kind.TOOL, f"tool {tool.tool}", 1, tool.started, tool.ended, note)
