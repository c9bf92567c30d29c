"""Makes a turn of the journal lines that belong to it.

Nothing here fails on any line: what a line does not say, or says in a way that this version does not know, is left out.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

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
from recallscope.telemetry.read.lenient import mapping, member, members, number, text, texts, truth, whole
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

__all__ = ["Line", "turn_of"]

Line = Mapping[str, Any]

_TELLING: Final = frozenset({"TurnStarted", "TurnFinished", "RecallBegun", "RecallClosed"})
_TRACEPARENT_PARTS: Final = 4


def turn_of(lines: Sequence[Line]) -> RecordedTurn | None:
    """Return the turn that `lines` tell of, in their order; None if they tell too little to name one."""
    turn = next((name for line in lines if (name := text(line.get("turn"))) is not None), None)
    if turn is None or not any(text(line.get("event")) in _TELLING for line in lines):
        return None
    timed = [line for line in lines if number(line.get("at")) is not None and number(line.get("wall")) is not None]
    return _Turn(turn, timed).value() if timed else None


class _Turn:
    """The timed lines of one turn, by event; times are told from the turn's start."""

    def __init__(self, turn: str, lines: Sequence[Line]) -> None:
        self._turn = turn
        self._lines = lines
        self._by_event: dict[str, list[Line]] = {}
        for line in lines:
            self._by_event.setdefault(str(line.get("event")), []).append(line)
        self._started = self._first("TurnStarted")
        self._finished = self._first("TurnFinished")
        self._start = self._start_at()

    def value(self) -> RecordedTurn:
        started, finished = self._started, self._finished
        base = started or self._lines[0]
        wall = float(base["wall"]) - (float(base["at"]) - self._start)
        phases = _phases(finished)
        return RecordedTurn(
            record=Record.JOURNAL,
            turn=self._turn,
            session=text(self._any("session")) or self._turn.rpartition(".")[0],
            wall=wall,
            last_seen=max(0.0, *(self._at(line) for line in self._lines)),
            whole=bool(started) and bool(finished),
            agent=text(started.get("agent")),
            origin=member(TurnOrigin, started.get("origin")),
            policy=member(PolicyName, started.get("policy")) or member(PolicyName, self._any("policy")),
            trace_id=_trace_id(started),
            seconds=max(0.0, self._at(finished)) if finished else None,
            outcome=member(TurnOutcome, finished.get("outcome")),
            status=member(Status, finished.get("status")),
            cause=member(Cause, finished.get("cause")),
            error_type=text(finished.get("error_type")),
            sends=whole(finished.get("sends")),
            first_token=self._at_or_none(self._first("TurnFirstToken")),
            phases=phases,
            recall=self._recall(),
            calls=self._calls(),
            tools=self._tools(),
        )

    # Lines and times

    def _start_at(self) -> float:
        """Return when the turn began, on its process's clock; a lost begin is told by the phases."""
        if self._started:
            return float(self._started["at"])
        phases = _phases(self._finished)
        if phases:
            return float(self._finished["at"]) - sum(phases.values())
        return min(float(line["at"]) for line in self._lines)

    def _first(self, event: str) -> Line:
        found = self._by_event.get(event)
        return found[0] if found else {}

    def _all(self, event: str) -> list[Line]:
        return self._by_event.get(event, [])

    def _any(self, key: str) -> object:
        return next((line[key] for line in self._lines if line.get(key) is not None), None)

    def _at(self, line: Line) -> float:
        return float(line["at"]) - self._start

    def _at_or_none(self, line: Line) -> float | None:
        return self._at(line) if line else None

    # The recall

    def _recall(self) -> RecordedRecall | None:
        begun, closed = self._first("RecallBegun"), self._first("RecallClosed")
        if not begun and not closed:
            return None
        policy = member(PolicyName, (begun or closed).get("policy"))
        ceiling = number((begun or closed).get("ceiling"))
        if policy is None or ceiling is None:
            return None
        return RecordedRecall(
            begun=self._at(begun) if begun else min(self._at(line) for line in self._lines),
            policy=policy,
            ceiling=ceiling,
            catalog_notes=whole(begun.get("catalog_notes")),
            fast=self._fast(),
            settled=self._settled(),
            waits=tuple(wait for line in self._all("RecallWaited") if (wait := self._wait(line)) is not None),
            deliveries=tuple(one for line in self._all("RecallDelivered") if (one := self._delivery(line)) is not None),
            rollbacks=tuple(
                back for line in self._all("RecallRolledBack") if (back := self._rollback(line)) is not None
            ),
            skips=tuple(skip for line in self._all("RecallSkipped") if (skip := self._skip(line)) is not None),
            withdrawn=sum(_count(line) or 0 for line in self._all("RecallWithdrawn")),
            withdrawn_ids=tuple(
                name for line in self._all("RecallWithdrawn") for name in texts(line.get("notes")) or ()
            ),
            late=len(self._all("RecallLate")),
            closed=self._close(closed),
        )

    def _fast(self) -> FastResult | None:
        line = self._first("RecallFastResult")
        elapsed = number(line.get("elapsed"))
        if elapsed is None:
            return None
        return FastResult(
            at=self._at(line),
            elapsed=elapsed,
            notes=_count(line),
            ids=texts(line.get("notes")),
            partial=truth(line.get("partial")),
            sources=texts(line.get("sources")) or (),
        )

    def _settled(self) -> SettledResult | None:
        line = self._first("RecallSettled")
        elapsed = number(line.get("elapsed"))
        if elapsed is None:
            return None
        return SettledResult(
            at=self._at(line),
            elapsed=elapsed,
            notes=_count(line),
            ids=texts(line.get("notes")),
            strategy=member(Strategy, line.get("strategy")),
            error=member(Reason, line.get("error_type")),
            not_asked=member(NotAsked, line.get("not_asked")),
        )

    def _wait(self, line: Line) -> Wait | None:
        point, waited = member(Point, line.get("point")), number(line.get("waited"))
        if point is None or waited is None:
            return None
        return Wait(
            point=point,
            asked_at=self._at(line) - waited,
            waited=waited,
            ended_by=member(EndedBy, line.get("ended_by")),
            ceiling=number(line.get("ceiling")) or 0.0,
        )

    def _delivery(self, line: Line) -> Delivery | None:
        point, phase = member(Point, line.get("point")), member(RecallPhase, line.get("phase"))
        elapsed = number(line.get("elapsed"))
        if point is None or phase is None or elapsed is None:
            return None
        return Delivery(
            at=self._at(line),
            point=point,
            phase=phase,
            elapsed=elapsed,
            notes=_count(line),
            ids=texts(line.get("notes")),
            strategy=member(Strategy, line.get("strategy")),
            characters=whole(line.get("characters")),
            waited=number(line.get("waited")),
        )

    def _rollback(self, line: Line) -> Rollback | None:
        point, cause = member(Point, line.get("point")), member(RollbackCause, line.get("cause"))
        if point is None or cause is None:
            return None
        notes = texts(line.get("notes"))
        return Rollback(at=self._at(line), point=point, cause=cause, notes=_count(line), ids=notes)

    def _skip(self, line: Line) -> Skip | None:
        point, reason = member(Point, line.get("point")), member(Reason, line.get("reason"))
        return Skip(at=self._at(line), point=point, reason=reason) if point is not None and reason is not None else None

    def _close(self, line: Line) -> Close | None:
        outcome, reason = member(Outcome, line.get("outcome")), member(Reason, line.get("reason"))
        cause, scenario = member(Cause, line.get("cause")), member(Scenario, line.get("scenario"))
        if outcome is None or reason is None or cause is None or scenario is None:
            return None
        return Close(
            at=self._at(line),
            outcome=outcome,
            reason=reason,
            cause=cause,
            phases=member(Phase, line.get("phases")) or Phase.NONE,
            strategy=member(Strategy, line.get("strategy")) or Strategy.NONE,
            points=members(Point, line.get("points")),
            scenario=scenario,
            delivered=member(Delivered, line.get("delivered")) or Delivered.NONE,
            waited=number(line.get("waited")) or 0.0,
            notes_selected=whole(line.get("notes_selected")) or 0,
            notes_delivered=whole(line.get("notes_delivered")) or 0,
            skips=whole(line.get("skips")) or 0,
            rollbacks=whole(line.get("rollbacks")) or 0,
            partial=truth(line.get("partial")) or False,
            fast_seconds=number(line.get("fast_seconds")),
            settled_seconds=number(line.get("settled_seconds")),
            delivered_seconds=number(line.get("delivered_seconds")),
        )

    # Model and tools

    def _calls(self) -> tuple[ModelCall, ...]:
        finished = _by_op(self._all("ModelCallFinished"))
        chunks = _by_op(reversed(self._all("ModelFirstChunk")))
        failed: dict[str, list[FailedAttempt]] = {}
        for line in self._all("ModelAttemptFailed"):
            attempt, error_type = whole(line.get("attempt")), text(line.get("error_type"))
            if attempt is not None and error_type is not None:
                failed.setdefault(str(line.get("op")), []).append(
                    FailedAttempt(
                        at=self._at(line),
                        attempt=attempt,
                        error_type=error_type,
                        status_code=whole(line.get("status_code")),
                        retry_in=number(line.get("retry_in")),
                    )
                )
        calls: list[ModelCall] = []
        for line in self._all("ModelCallStarted"):
            op = str(line.get("op"))
            purpose = member(Purpose, line.get("purpose"))
            if purpose is not None:
                calls.append(self._call(line, purpose, finished.get(op, {}), chunks.get(op, {}), failed.get(op, [])))
        return tuple(sorted(calls, key=lambda call: call.started))

    def _call(
        self, started: Line, purpose: Purpose, finished: Line, chunk: Line, failed: Sequence[FailedAttempt]
    ) -> ModelCall:
        return ModelCall(
            purpose=purpose,
            model=text(started.get("model")) or "unknown",
            started=self._at(started),
            ended=self._at_or_none(finished),
            first_chunk=self._at_or_none(chunk),
            send=whole(started.get("send")),
            point=member(Point, started.get("point")),
            status=member(Status, finished.get("status")) or Status.OK,
            cause=member(Cause, finished.get("cause")),
            error_type=text(finished.get("error_type")),
            attempts=whole(finished.get("attempts")) or (1 + len(failed)),
            failed=tuple(failed),
            notes=whole(finished.get("notes")) or 0,
            input_tokens=whole(finished.get("input_tokens")),
            output_tokens=whole(finished.get("output_tokens")),
            finish_reason=text(finished.get("finish_reason")),
        )

    def _tools(self) -> tuple[ToolCall, ...]:
        finished = _by_op(self._all("ToolFinished"))
        tools: list[ToolCall] = []
        for line in self._all("ToolStarted"):
            end = finished.get(str(line.get("op")), {})
            tools.append(
                ToolCall(
                    tool=text(line.get("tool")) or "unknown",
                    started=self._at(line),
                    ended=self._at_or_none(end),
                    status=member(Status, end.get("status")) or Status.OK,
                    cause=member(Cause, end.get("cause")),
                    is_error=truth(end.get("is_error")) or False,
                    characters=whole(end.get("characters")),
                )
            )
        return tuple(sorted(tools, key=lambda tool: tool.started))


def _by_op(lines: Iterable[Line]) -> dict[str, Line]:
    return {str(line.get("op")): line for line in lines}


def _count(line: Line) -> int | None:
    notes = texts(line.get("notes"))
    return len(notes) if notes is not None else None


def _phases(finished: Line) -> dict[TurnPhase, float] | None:
    """Return the seconds of each phase; None of a turn without an end."""
    if not finished:
        return None
    said = mapping(finished.get("phases"))
    found = {phase: number(said.get(phase.value)) for phase in TurnPhase}
    return {phase: seconds for phase, seconds in found.items() if seconds is not None and seconds >= 0}


def _trace_id(started: Line) -> str | None:
    """Return the trace that the turn belongs to: stated, or told by what called it."""
    stated = text(started.get("trace"))
    if stated:
        return stated
    parts = (text(started.get("traceparent")) or "").split("-")
    return parts[1] if len(parts) >= _TRACEPARENT_PARTS else None
