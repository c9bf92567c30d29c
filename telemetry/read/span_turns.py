"""Makes turns of spans: the same value as from a journal, as far as spans tell.

What a verdict needs stands in attributes, so a turn can be explained when its span events are missing. A turn whose own
span is missing (it still runs, or the span was lost) is put together from what stands below it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from recallscope.runtime.events import (
    Cause,
    Delivered,
    EndedBy,
    NotAsked,
    Outcome,
    Phase,
    Point,
    PolicyName,
    Purpose,
    Reason,
    RecallPhase,
    RollbackCause,
    Scenario,
    Status,
    Strategy,
    TurnOrigin,
    TurnOutcome,
    TurnPhase,
)
from recallscope.telemetry import names
from recallscope.telemetry.read.lenient import member, members, number, text, texts, truth, whole
from recallscope.telemetry.read.recorded import (
    Close,
    Delivery,
    FailedAttempt,
    FastResult,
    ModelCall,
    Record,
    RecordedRecall,
    RecordedTurn,
    Rollback,
    SettledResult,
    Skip,
    ToolCall,
    Wait,
)
from recallscope.telemetry.read.span_json import Span, SpanEvent

__all__ = ["turns_of"]

NANO: Final = 1e9

_OF_OUTCOME: Final = {TurnOutcome.FAILED: Status.FAILED, TurnOutcome.CANCELLED: Status.CANCELLED}


def turns_of(spans: Iterable[Span]) -> Iterator[RecordedTurn]:
    """Yield the turns that `spans` tell of, by their start; spans that came twice count once."""
    known: dict[tuple[str, str], Span] = {(span.trace_id, span.span_id): span for span in spans}
    groups: dict[tuple[str, str], list[Span]] = {}
    for span in known.values():
        root = _root_of(span, known)
        if root is not None:
            groups.setdefault(root, []).append(span)
    turns = (_turn(known.get(root), group) for root, group in groups.items())
    yield from sorted((turn for turn in turns if turn is not None), key=lambda turn: turn.wall)


def _root_of(span: Span, known: Mapping[tuple[str, str], Span]) -> tuple[str, str] | None:
    """Return the ids of the turn's span that `span` stands below, also if that one is missing; None without one."""
    seen: set[str] = set()
    while not _is(span, names.INVOKE_AGENT):
        if span.parent_id is None or span.span_id in seen:
            return None
        seen.add(span.span_id)
        above = known.get((span.trace_id, span.parent_id))
        if above is None:
            return span.trace_id, span.parent_id
        span = above
    return span.trace_id, span.span_id


def _attributes(said: Span | SpanEvent | None) -> Mapping[str, object]:
    return said.attributes if said is not None else dict[str, object]()


def _is(span: Span, operation: str) -> bool:
    return span.attributes.get(names.OPERATION_NAME) == operation


def _turn(root: Span | None, spans: Sequence[Span]) -> RecordedTurn | None:
    """Return the turn of `root`, whose spans are `spans`; None if none of them names it."""
    start_ns = root.start_ns if root is not None else min(span.start_ns for span in spans)
    said = _attributes(root)
    named = next((name for span in spans if (name := text(span.attributes.get(names.TURN_ID))) is not None), None)
    if named is None:
        return None
    search = next((span for span in spans if _is(span, names.SEARCH_MEMORY)), None)
    recall = _Recall(search, start_ns).value() if search is not None else None
    outcome = member(TurnOutcome, said.get(names.TURN_OUTCOME))
    seconds = (root.end_ns - root.start_ns) / NANO if root is not None else None
    sessions = (text(span.attributes.get(names.CONVERSATION_ID)) for span in spans)
    return RecordedTurn(
        record=Record.SPANS,
        turn=named,
        session=next((session for session in sessions if session), named.rpartition(".")[0]),
        wall=start_ns / NANO,
        last_seen=max((max(span.end_ns for span in spans) - start_ns) / NANO, seconds or 0.0),
        whole=root is not None and outcome is not None,
        agent=text(said.get(names.AGENT_NAME)),
        origin=member(TurnOrigin, said.get(names.TURN_ORIGIN)),
        policy=member(PolicyName, said.get(names.TURN_POLICY)) or (recall.policy if recall is not None else None),
        trace_id=spans[0].trace_id,
        seconds=seconds if outcome is not None else None,
        outcome=outcome,
        status=_OF_OUTCOME.get(outcome, Status.OK) if outcome is not None else None,
        cause=member(Cause, said.get(names.TURN_CAUSE)),
        error_type=text(said.get(names.ERROR_TYPE)),
        sends=whole(said.get(names.TURN_SENDS)),
        first_token=number(said.get(names.TURN_FIRST_TOKEN)),
        phases=_phases(said) if outcome is not None else None,
        recall=recall,
        calls=_in_order(_call(span, start_ns) for span in spans),
        tools=tuple(
            sorted(
                (_tool(span, start_ns) for span in spans if _is(span, names.EXECUTE_TOOL)),
                key=lambda tool: tool.started,
            )
        ),
    )


def _phases(said: Mapping[str, object]) -> dict[TurnPhase, float]:
    found = {phase: number(said.get(names.turn_phase(phase.value))) for phase in TurnPhase}
    return {phase: seconds for phase, seconds in found.items() if seconds is not None and seconds >= 0}


class _Recall:
    """One `search_memory` span, with times from the turn's start."""

    def __init__(self, span: Span, start_ns: int) -> None:
        self._span = span
        self._said = span.attributes
        self._start_ns = start_ns
        self._begun = self._at(span.start_ns)

    def value(self) -> RecordedRecall | None:
        policy = member(PolicyName, self._said.get(names.RECALL_POLICY))
        ceiling = number(self._said.get(names.RECALL_CEILING))
        if policy is None or ceiling is None:
            return None
        begin = self._first(names.EVENT_BEGIN)
        return RecordedRecall(
            begun=self._begun,
            policy=policy,
            ceiling=ceiling,
            catalog_notes=whole(_attributes(begin).get(names.RECALL_CATALOG)),
            fast=self._fast(),
            settled=self._settled(),
            waits=self._waits(ceiling),
            deliveries=self._deliveries(),
            rollbacks=tuple(one for event in self._all(names.EVENT_ROLLED_BACK) if (one := self._rollback(event))),
            skips=tuple(skip for event in self._all(names.EVENT_SKIPPED) if (skip := self._skip(event))),
            withdrawn=whole(self._said.get(names.RECALL_NOTES_WITHDRAWN)) or 0,
            closed=self._close(),
        )

    def _at(self, ns: int) -> float:
        return (ns - self._start_ns) / NANO

    def _all(self, name: str) -> list[SpanEvent]:
        return [event for event in self._span.events if event.name == name]

    def _first(self, name: str) -> SpanEvent | None:
        return next(iter(self._all(name)), None)

    def _fast(self) -> FastResult | None:
        event = self._first(names.EVENT_FAST_RESULT)
        told = _attributes(event)
        elapsed = number(told.get(names.RECALL_ELAPSED, self._said.get(names.RECALL_FAST)))
        if elapsed is None:
            return None
        return FastResult(
            at=self._begun + elapsed,
            elapsed=elapsed,
            notes=whole(self._said.get(names.RECALL_FAST_NOTES, told.get(names.RECALL_NOTES))),
            partial=truth(self._said.get(names.RECALL_PARTIAL, told.get(names.RECALL_PARTIAL))),
            sources=texts(told.get(names.RECALL_SOURCES)) or (),
        )

    def _settled(self) -> SettledResult | None:
        event = self._first(names.EVENT_SETTLED)
        told = _attributes(event)
        elapsed = number(told.get(names.RECALL_ELAPSED, self._said.get(names.RECALL_SETTLED)))
        if elapsed is None:
            return None
        return SettledResult(
            at=self._begun + elapsed,
            elapsed=elapsed,
            notes=whole(told.get(names.RECALL_NOTES, self._said.get(names.MEMORY_RECORD_COUNT))),
            strategy=member(Strategy, self._said.get(names.RECALL_STRATEGY, told.get(names.RECALL_STRATEGY))),
            error=member(Reason, self._said.get(names.RECALL_SELECTOR_ERROR, told.get(names.ERROR_TYPE))),
            not_asked=member(NotAsked, self._said.get(names.RECALL_NOT_ASKED, told.get(names.RECALL_NOT_ASKED))),
        )

    def _waits(self, ceiling: float) -> tuple[Wait, ...]:
        """Return the first send's wait, the only one that a span tells apart."""
        asked, waited = number(self._said.get(names.RECALL_ASKED)), number(self._said.get(names.RECALL_FIRST_WAIT))
        if asked is None or waited is None:
            return ()
        ended_by = member(EndedBy, self._said.get(names.RECALL_ENDED_BY))
        return (
            Wait(point=Point.INITIAL, asked_at=self._begun + asked, waited=waited, ended_by=ended_by, ceiling=ceiling),
        )

    def _deliveries(self) -> tuple[Delivery, ...]:
        told = tuple(one for event in self._all(names.EVENT_DELIVERED) if (one := self._delivery(event)) is not None)
        return told or self._first_delivery()

    def _delivery(self, event: SpanEvent) -> Delivery | None:
        point = member(Point, event.attributes.get(names.RECALL_POINT))
        phase = member(RecallPhase, event.attributes.get(names.RECALL_PHASE))
        elapsed = number(event.attributes.get(names.RECALL_ELAPSED))
        if point is None or phase is None or elapsed is None:
            return None
        return Delivery(
            at=self._at(event.at_ns),
            point=point,
            phase=phase,
            elapsed=elapsed,
            notes=whole(event.attributes.get(names.RECALL_NOTES)),
            waited=number(event.attributes.get(names.RECALL_WAITED)),
        )

    def _first_delivery(self) -> tuple[Delivery, ...]:
        """Return what the attributes tell of the first delivery, for a span without events."""
        points = members(Point, self._said.get(names.RECALL_POINTS))
        phases = member(Phase, self._said.get(names.RECALL_PHASES))
        elapsed = number(self._said.get(names.RECALL_DELIVERED))
        if not points or phases is None or elapsed is None:
            return ()
        phase = RecallPhase.REFINED if phases is Phase.REFINED else RecallPhase.FAST
        return (Delivery(at=self._begun + elapsed, point=points[0], phase=phase, elapsed=elapsed, notes=None),)

    def _rollback(self, event: SpanEvent) -> Rollback | None:
        point = member(Point, event.attributes.get(names.RECALL_POINT))
        cause = member(RollbackCause, event.attributes.get(names.RECALL_CAUSE))
        if point is None or cause is None:
            return None
        notes = whole(event.attributes.get(names.RECALL_NOTES))
        return Rollback(at=self._at(event.at_ns), point=point, cause=cause, notes=notes)

    def _skip(self, event: SpanEvent) -> Skip | None:
        point = member(Point, event.attributes.get(names.RECALL_POINT))
        reason = member(Reason, event.attributes.get(names.RECALL_REASON))
        return Skip(at=self._at(event.at_ns), point=point, reason=reason) if point and reason else None

    def _close(self) -> Close | None:
        said = self._said
        outcome, reason = member(Outcome, said.get(names.RECALL_OUTCOME)), member(Reason, said.get(names.RECALL_REASON))
        cause, scenario = member(Cause, said.get(names.RECALL_CAUSE)), member(Scenario, said.get(names.TURN_SCENARIO))
        if outcome is None or reason is None or cause is None or scenario is None:
            return None
        return Close(
            at=self._at(self._span.end_ns),
            outcome=outcome,
            reason=reason,
            cause=cause,
            phases=member(Phase, said.get(names.RECALL_PHASES)) or Phase.NONE,
            strategy=member(Strategy, said.get(names.RECALL_STRATEGY)) or Strategy.NONE,
            points=members(Point, said.get(names.RECALL_POINTS)),
            scenario=scenario,
            delivered=member(Delivered, said.get(names.TURN_DELIVERED)) or Delivered.NONE,
            waited=number(said.get(names.RECALL_WAITED)) or 0.0,
            notes_selected=whole(said.get(names.MEMORY_RECORD_COUNT)) or 0,
            notes_delivered=whole(said.get(names.RECALL_NOTES_DELIVERED)) or 0,
            skips=whole(said.get(names.RECALL_SKIPS)) or 0,
            rollbacks=whole(said.get(names.RECALL_ROLLBACKS)) or 0,
            partial=truth(said.get(names.RECALL_PARTIAL)) or False,
            fast_seconds=number(said.get(names.RECALL_FAST)),
            settled_seconds=number(said.get(names.RECALL_SETTLED)),
            delivered_seconds=number(said.get(names.RECALL_DELIVERED)),
        )


def _in_order(calls: Iterable[ModelCall | None]) -> tuple[ModelCall, ...]:
    return tuple(sorted((call for call in calls if call is not None), key=lambda call: call.started))


def _call(span: Span, start_ns: int) -> ModelCall | None:
    """Return the model call that a span is; None if it is none."""
    said = span.attributes
    purpose = member(Purpose, said.get(names.PURPOSE))
    if purpose is None:
        return None
    started = (span.start_ns - start_ns) / NANO
    first_chunk = number(said.get(names.RESPONSE_FIRST_CHUNK))
    reasons = texts(said.get(names.RESPONSE_FINISH_REASONS)) or ()
    return ModelCall(
        purpose=purpose,
        model=text(said.get(names.REQUEST_MODEL)) or "unknown",
        started=started,
        ended=(span.end_ns - start_ns) / NANO,
        first_chunk=started + first_chunk if first_chunk is not None else None,
        send=whole(said.get(names.SEND_INDEX)),
        point=member(Point, said.get(names.SEND_POINT)),
        status=member(Status, said.get(names.STATUS)) or Status.OK,
        cause=member(Cause, said.get(names.STATUS_CAUSE)),
        error_type=text(said.get(names.ERROR_TYPE)),
        attempts=whole(said.get(names.SEND_ATTEMPTS)) or 0,
        failed=tuple(one for event in span.events if (one := _failed(event, start_ns)) is not None),
        notes=whole(said.get(names.SEND_NOTES)) or 0,
        input_tokens=whole(said.get(names.USAGE_INPUT)),
        output_tokens=whole(said.get(names.USAGE_OUTPUT)),
        finish_reason=reasons[0] if reasons else None,
    )


def _failed(event: SpanEvent, start_ns: int) -> FailedAttempt | None:
    attempt = whole(event.attributes.get(names.SEND_ATTEMPT))
    error_type = text(event.attributes.get(names.ERROR_TYPE))
    if event.name != names.EVENT_ATTEMPT_FAILED or attempt is None or error_type is None:
        return None
    return FailedAttempt(
        at=(event.at_ns - start_ns) / NANO,
        attempt=attempt,
        error_type=error_type,
        status_code=whole(event.attributes.get(names.STATUS_CODE)),
        retry_in=number(event.attributes.get(names.SEND_RETRY_IN)),
    )


def _tool(span: Span, start_ns: int) -> ToolCall:
    said = span.attributes
    return ToolCall(
        tool=text(said.get(names.TOOL_NAME)) or "unknown",
        started=(span.start_ns - start_ns) / NANO,
        ended=(span.end_ns - start_ns) / NANO,
        status=member(Status, said.get(names.STATUS)) or Status.OK,
        cause=member(Cause, said.get(names.STATUS_CAUSE)),
        is_error=truth(said.get(names.TOOL_IS_ERROR)) or False,
        characters=whole(said.get(names.TOOL_CHARACTERS)),
    )
