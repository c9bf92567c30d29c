"""The events of one golden turn, and of a process around it: every kind of event, with values that are easy to check.

Times are seconds of a clock that starts at 1,000; the wall clock shows 1,800,000,000 then. `tool_free` is the same
turn without a tool and with the refined result in time.
"""

from recallscope.runtime.events import (
    CatalogSynced,
    Cause,
    Delivered,
    EndedBy,
    Event,
    MemoryWriteFinished,
    MemoryWriteStarted,
    ModelAttemptFailed,
    ModelCallFinished,
    ModelCallStarted,
    ModelFirstChunk,
    NotAsked,
    OpId,
    Outcome,
    Phase,
    Point,
    PolicyName,
    PostTurnFailed,
    ProcessStarted,
    Purpose,
    Reason,
    RecallBegun,
    RecallClosed,
    RecallDelivered,
    RecallFastResult,
    RecallLate,
    RecallPhase,
    RecallRolledBack,
    RecallSettled,
    RecallSkipped,
    RecallWaited,
    RecallWithdrawn,
    RollbackCause,
    Scenario,
    ScopeName,
    SessionClosed,
    SessionOpened,
    Status,
    Strategy,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnFirstToken,
    TurnOrigin,
    TurnOutcome,
    TurnPhase,
    TurnStarted,
)

__all__ = ["AT", "WALL", "golden_process", "golden_turn", "lexical_turn", "tool_free_turn", "unlucky_turn"]

AT = 1_000.0
WALL = 1_800_000_000.0

_TIERED = PolicyName.TIERED


def golden_turn(*, number: int = 1, at: float = AT, session: str = "s", policy: PolicyName = _TIERED) -> list[Event]:
    """Return the events of a turn with one tool, whose fast notes go at `initial` and refined ones with the tool.

    `number` makes ids unique; the turn lasts 3 s.
    """
    turn, recall, selector, first, second, tool = (
        OpId(f"{session}-{number}-{name}") for name in ("turn", "recall", "selector", "send1", "send2", "tool")
    )
    return [
        TurnStarted(
            op=turn, at=at, session=session, turn=f"{session}.{number}", agent="main", origin=TurnOrigin.PROMPT,
            policy=policy, traceparent=None,
        ),
        RecallBegun(
            op=recall, at=at + 0.01, parent=turn, session=session, turn=f"{session}.{number}", policy=policy,
            ceiling=0.1, catalog_notes=42,
        ),
        RecallFastResult(op=recall, at=at + 0.014, policy=policy, notes=("n1", "n2"), elapsed=0.004, partial=False),
        _call(selector, at + 0.015, recall, Purpose.SELECTOR, streamed=False),
        RecallWaited(
            op=recall, at=at + 0.052, policy=policy, point=Point.INITIAL, waited=0.002, ended_by=EndedBy.FAST,
            ceiling=0.1,
        ),
        _call(first, at + 0.06, turn, Purpose.MAIN, send=1, point=Point.INITIAL),
        ModelFirstChunk(op=first, at=at + 0.36, attempt=1),
        RecallDelivered(
            op=recall, at=at + 0.36, policy=policy, phase=RecallPhase.FAST, point=Point.INITIAL,
            strategy=Strategy.LEXICAL, notes=("n1", "n2"), characters=900, elapsed=0.35, waited=0.002,
        ),
        TurnFirstToken(op=turn, at=at + 0.37),
        _answer(first, at + 0.86, first_chunk=0.3, finish_reason="tool_calls", notes=2, tokens=(120, 12, 40)),
        ToolStarted(op=tool, at=at + 0.87, parent=turn, tool="read_file", call_id="call_1"),
        _answer(selector, at + 0.9, tokens=(800, 9, None)),
        RecallSettled(
            op=recall, at=at + 0.918, policy=policy, notes=("n1", "n2", "n3"), strategy=Strategy.MODEL, elapsed=0.908,
        ),
        ToolFinished(op=tool, at=at + 1.37, status=Status.OK, characters=64),
        RecallWaited(
            op=recall, at=at + 1.38, policy=policy, point=Point.TOOL_RESULT, waited=0.0,
            ended_by=EndedBy.ALREADY_SETTLED, ceiling=0.0,
        ),
        _call(second, at + 1.39, turn, Purpose.MAIN, send=2, point=Point.TOOL_RESULT),
        ModelFirstChunk(op=second, at=at + 1.89, attempt=1),
        RecallDelivered(
            op=recall, at=at + 1.89, policy=policy, phase=RecallPhase.REFINED, point=Point.TOOL_RESULT,
            strategy=Strategy.MODEL, notes=("n3",), characters=500, elapsed=1.88, waited=0.0,
        ),
        _answer(second, at + 2.99, first_chunk=0.5, finish_reason="stop", notes=1, tokens=(300, 40, 0)),
        RecallClosed(
            op=recall, at=at + 2.995, policy=policy, outcome=Outcome.DELIVERED, reason=Reason.NONE,
            close_reason=Reason.NO_SAFE_DELIVERY_POINT, cause=Cause.TURN_END, phases=Phase.BOTH,
            strategy=Strategy.MODEL, points=(Point.INITIAL, Point.TOOL_RESULT), ceiling=0.1, fast_seconds=0.004,
            settled_seconds=0.908, delivered_seconds=0.35, ready_seconds=0.0, waited=0.002, notes_selected=3,
            notes_delivered=3, skips=0, rollbacks=0, partial=False, scenario=Scenario.SLOW_WITH_TOOLS,
            delivered=Delivered.BOTH,
        ),
        TurnFinished(
            op=turn, at=at + 3.0, status=Status.OK, outcome=TurnOutcome.END_TURN, sends=2,
            phases=(
                (TurnPhase.QUEUE, 0.005), (TurnPhase.PREPARE, 0.055), (TurnPhase.RECALL_WAIT, 0.002),
                (TurnPhase.MODEL, 2.4), (TurnPhase.TOOL, 0.5), (TurnPhase.OTHER, 0.038),
            ),
            scenario=Scenario.SLOW_WITH_TOOLS, delivered=Delivered.BOTH, recall_reason=Reason.NONE,
            recall_waited=0.002,
        ),
    ]  # fmt: skip


def tool_free_turn(*, number: int = 1, at: float = AT, session: str = "s", policy: PolicyName = _TIERED) -> list[Event]:
    """Return the events of a turn without a tool: one send, the refined notes at `initial`."""
    turn, recall, selector, send = (
        OpId(f"{session}-{number}-{name}") for name in ("turn", "recall", "selector", "send1")
    )
    return [
        TurnStarted(
            op=turn, at=at, session=session, turn=f"{session}.{number}", agent="main", origin=TurnOrigin.PROMPT,
            policy=policy, traceparent=None,
        ),
        RecallBegun(
            op=recall, at=at + 0.01, parent=turn, session=session, turn=f"{session}.{number}", policy=policy,
            ceiling=0.1, catalog_notes=42,
        ),
        RecallFastResult(op=recall, at=at + 0.014, policy=policy, notes=(), elapsed=0.004, partial=False),
        _call(selector, at + 0.015, recall, Purpose.SELECTOR, streamed=False),
        _answer(selector, at + 0.07, tokens=(800, 9, None)),
        RecallSettled(op=recall, at=at + 0.07, policy=policy, notes=("n3",), strategy=Strategy.MODEL, elapsed=0.06),
        RecallWaited(
            op=recall, at=at + 0.072, policy=policy, point=Point.INITIAL, waited=0.05, ended_by=EndedBy.REFINED,
            ceiling=0.1,
        ),
        _call(send, at + 0.08, turn, Purpose.MAIN, send=1, point=Point.INITIAL),
        ModelFirstChunk(op=send, at=at + 0.4, attempt=1),
        RecallDelivered(
            op=recall, at=at + 0.4, policy=policy, phase=RecallPhase.REFINED, point=Point.INITIAL,
            strategy=Strategy.MODEL, notes=("n3",), characters=500, elapsed=0.39, waited=0.05,
        ),
        TurnFirstToken(op=turn, at=at + 0.41),
        _answer(send, at + 0.9, first_chunk=0.32, finish_reason="stop", notes=1, tokens=(300, 40, 0)),
        RecallClosed(
            op=recall, at=at + 0.95, policy=policy, outcome=Outcome.DELIVERED, reason=Reason.NONE,
            close_reason=Reason.NO_SAFE_DELIVERY_POINT, cause=Cause.TURN_END, phases=Phase.REFINED,
            strategy=Strategy.MODEL, points=(Point.INITIAL,), ceiling=0.1, fast_seconds=0.004, settled_seconds=0.06,
            delivered_seconds=0.39, ready_seconds=0.048, waited=0.05, notes_selected=1, notes_delivered=1, skips=0,
            rollbacks=0, partial=False, scenario=Scenario.SETTLED_BEFORE_SEND, delivered=Delivered.INITIAL,
        ),
        TurnFinished(
            op=turn, at=at + 1.0, status=Status.OK, outcome=TurnOutcome.END_TURN, sends=1,
            phases=(
                (TurnPhase.PREPARE, 0.03), (TurnPhase.RECALL_WAIT, 0.05), (TurnPhase.MODEL, 0.82),
                (TurnPhase.OTHER, 0.1),
            ),
            scenario=Scenario.SETTLED_BEFORE_SEND, delivered=Delivered.INITIAL, recall_reason=Reason.NONE,
            recall_waited=0.05,
        ),
    ]  # fmt: skip


def unlucky_turn(*, number: int = 2, at: float = AT + 10, session: str = "s") -> list[Event]:
    """Return the events of a turn that shows the rest: retries, a rollback, skips, a miss, an overrun, a failure."""
    turn, recall, send = (OpId(f"{session}-{number}-{name}") for name in ("turn", "recall", "send1"))
    return [
        TurnStarted(
            op=turn, at=at, session=session, turn=f"{session}.{number}", agent="main", origin=TurnOrigin.PROMPT,
            policy=_TIERED, traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ),
        RecallBegun(
            op=recall, at=at, parent=turn, session=session, turn=f"{session}.{number}", policy=_TIERED, ceiling=0.1,
            catalog_notes=42,
        ),
        RecallFastResult(op=recall, at=at + 0.05, policy=_TIERED, notes=("n1",), elapsed=0.05, partial=True),
        RecallWaited(
            op=recall, at=at + 0.2, policy=_TIERED, point=Point.INITIAL, waited=0.2, ended_by=EndedBy.CEILING,
            ceiling=0.1,
        ),
        _call(send, at + 0.2, turn, Purpose.MAIN, send=1, point=Point.INITIAL),
        ModelAttemptFailed(op=send, at=at + 0.3, attempt=1, error_type="429", status_code=429, retry_in=1.5),
        RecallRolledBack(
            op=recall, at=at + 0.3, policy=_TIERED, point=Point.INITIAL, notes=("n1",), cause=RollbackCause.REFUSED
        ),
        RecallWithdrawn(op=recall, at=at + 0.3, policy=_TIERED, notes=("n1",)),
        RecallSkipped(
            op=recall, at=at + 1.8, policy=_TIERED, point=Point.INITIAL, reason=Reason.NOT_SETTLED
        ),
        ModelCallFinished(
            op=send, at=at + 2.0, status=Status.FAILED, error_type="connection_error", attempts=2
        ),
        RecallClosed(
            op=recall, at=at + 2.0, policy=_TIERED, outcome=Outcome.DISCARDED, reason=Reason.NO_SAFE_DELIVERY_POINT,
            close_reason=Reason.NO_SAFE_DELIVERY_POINT, cause=Cause.PROVIDER_ERROR, phases=Phase.NONE,
            strategy=Strategy.NONE, points=(), ceiling=0.1, fast_seconds=0.05, settled_seconds=None,
            delivered_seconds=None, ready_seconds=0.05, waited=0.2, notes_selected=1, notes_delivered=0, skips=1,
            rollbacks=1, partial=True, scenario=Scenario.NOT_SENT, delivered=Delivered.NONE,
        ),
        RecallLate(op=recall, at=at + 2.0, policy=_TIERED, move="settle"),
        PostTurnFailed(op=turn, at=at + 2.0, error_type="OSError"),
        TurnFinished(
            op=turn, at=at + 2.1, status=Status.FAILED, error_type="connection_error", cause=Cause.PROVIDER_ERROR,
            outcome=TurnOutcome.FAILED, sends=1,
            phases=((TurnPhase.RECALL_WAIT, 0.2), (TurnPhase.MODEL, 0.3), (TurnPhase.BACKOFF, 1.6)),
            scenario=Scenario.NOT_SENT, delivered=Delivered.NONE, recall_reason=Reason.NO_SAFE_DELIVERY_POINT,
            recall_waited=0.2,
        ),
    ]  # fmt: skip


def lexical_turn(
    *,
    number: int,
    at: float,
    session: str = "s",
    not_asked: NotAsked | None = None,
    error: Reason | None = None,
) -> list[Event]:
    """Return the events of a turn whose refined result is what the words found: no selector was asked, or it failed.

    The vector of its query was asked for beside the words.
    """
    turn, recall, vector = (OpId(f"{session}-{number}-{name}") for name in ("turn", "recall", "vector"))
    return [
        TurnStarted(
            op=turn, at=at, session=session, turn=f"{session}.{number}", agent="main", origin=TurnOrigin.PROMPT,
            policy=_TIERED, traceparent=None,
        ),
        RecallBegun(
            op=recall, at=at, parent=turn, session=session, turn=f"{session}.{number}", policy=_TIERED, ceiling=0.1,
            catalog_notes=42,
        ),
        _call(vector, at + 0.001, recall, Purpose.EMBEDDING, streamed=False),
        ModelCallFinished(
            op=vector, at=at + 0.003, status=Status.OK, attempts=1, input_tokens=7, response_model="vectors-1"
        ),
        RecallFastResult(op=recall, at=at + 0.004, policy=_TIERED, notes=("n1",), elapsed=0.004, partial=False),
        RecallSettled(
            op=recall, at=at + 0.005, policy=_TIERED, notes=("n1",), strategy=Strategy.LEXICAL, elapsed=0.005,
            error_type=error, not_asked=not_asked,
        ),
        RecallClosed(
            op=recall, at=at + 0.9, policy=_TIERED, outcome=Outcome.DISCARDED, reason=Reason.ABORT,
            close_reason=Reason.ABORT, cause=Cause.USER_CANCEL, phases=Phase.NONE, strategy=Strategy.LEXICAL,
            points=(), ceiling=0.1, fast_seconds=0.004, settled_seconds=0.005, delivered_seconds=None,
            ready_seconds=None, waited=0.0, notes_selected=1, notes_delivered=0, skips=0, rollbacks=0, partial=False,
            scenario=Scenario.NOT_SENT, delivered=Delivered.NONE,
        ),
        TurnFinished(
            op=turn, at=at + 1.0, status=Status.CANCELLED, cause=Cause.USER_CANCEL, outcome=TurnOutcome.CANCELLED,
            sends=0, phases=((TurnPhase.OTHER, 1.0),), scenario=Scenario.NOT_SENT, delivered=Delivered.NONE,
            recall_reason=Reason.ABORT, recall_waited=0.0,
        ),
    ]  # fmt: skip


def golden_process() -> list[Event]:
    """Return a process's events: a golden turn, an unlucky one, memory writes, syncs, sessions."""
    create, update, delete = OpId("w1"), OpId("w2"), OpId("w3")
    ok = Status.OK
    return [
        ProcessStarted(op=OpId("p"), at=AT, wall=WALL, pid=1, version="0.1.0", front_end="compare"),
        CatalogSynced(
            op=OpId("c"), at=AT, scope=ScopeName.PROJECT, notes=42, changed=2, skipped=1, seconds=0.02, rebuilt=False
        ),
        SessionOpened(op=OpId("o"), at=AT, session="s", agent="main", policy=_TIERED),
        *golden_turn(),
        *unlucky_turn(),
        *lexical_turn(number=3, at=AT + 14, not_asked=NotAsked.EXACT_TITLE),
        *lexical_turn(number=4, at=AT + 16, error=Reason.SELECTOR_UNAVAILABLE),
        MemoryWriteStarted(op=create, at=AT + 20, operation="create", scope=ScopeName.PROJECT, note="n4"),
        MemoryWriteFinished(op=create, at=AT + 20.01, status=ok),
        MemoryWriteStarted(op=update, at=AT + 21, operation="update", scope=ScopeName.USER, note="n5"),
        MemoryWriteFinished(op=update, at=AT + 21.01, status=ok),
        MemoryWriteStarted(op=delete, at=AT + 22, operation="delete", scope=ScopeName.USER, note="n5"),
        MemoryWriteFinished(op=delete, at=AT + 22.01, status=Status.CANCELLED, cause=Cause.USER_CANCEL),
        SessionClosed(op=OpId("o"), at=AT + 30, session="s", cause=Cause.SESSION_DISPOSE),
    ]


def _call(
    op: OpId,
    at: float,
    parent: OpId,
    purpose: Purpose,
    *,
    streamed: bool = True,
    send: int | None = None,
    point: Point | None = None,
) -> ModelCallStarted:
    return ModelCallStarted(
        op=op,
        at=at,
        parent=parent,
        purpose=purpose,
        model="big" if purpose is Purpose.MAIN else "small",
        provider="openai",
        address="127.0.0.1",
        port=8080,
        streamed=streamed,
        send=send,
        point=point,
    )


def _answer(
    op: OpId,
    at: float,
    *,
    tokens: tuple[int, int, int | None],
    first_chunk: float | None = None,
    finish_reason: str = "stop",
    notes: int = 0,
) -> ModelCallFinished:
    return ModelCallFinished(
        op=op,
        at=at,
        status=Status.OK,
        attempts=1,
        first_chunk=first_chunk,
        input_tokens=tokens[0],
        output_tokens=tokens[1],
        cached_tokens=tokens[2],
        finish_reason=finish_reason,
        response_model="big-1",
        response_id=f"resp-{op}",
        notes=notes,
    )
