"""Counts and measures events: every metric of the turn, the recall, the model, tools and the memory catalog.

The observer runs in the thread that states the events; collection may run in any other, and reads copies.
"""

import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from opentelemetry.context import Context
from opentelemetry.metrics import Meter

from recallscope.runtime.events import (
    CatalogSynced,
    Delivered,
    Event,
    ModelCallFinished,
    ModelCallStarted,
    OpId,
    Point,
    PolicyName,
    PostTurnFailed,
    ProcessStarted,
    Reason,
    RecallBegun,
    RecallClosed,
    RecallDelivered,
    RecallLate,
    RecallPhase,
    RecallRolledBack,
    RecallSettled,
    RecallSkipped,
    RecallWaited,
    Scenario,
    SessionClosed,
    SessionOpened,
    Status,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnFirstToken,
    TurnPhase,
    TurnStarted,
)
from recallscope.telemetry import names
from recallscope.telemetry.anchor import Anchor
from recallscope.telemetry.histograms import Histograms
from recallscope.telemetry.instruments import (
    ExemplarCounter,
    Labels,
    Tally,
    observe_gauge,
    observe_up_down,
)
from recallscope.telemetry.span_attributes import call_operation
from recallscope.telemetry.span_table import NO_SPAN
from recallscope.telemetry.spans import WAIT_TOLERANCE_SECONDS

__all__ = ["MetricObserver"]

MAX_OPEN: Final = 10_000
TEXT: Final = "text"
"""The modality of all tokens: this runtime sends and reads text only."""

_NOT_WORK = frozenset({TurnPhase.QUEUE, TurnPhase.PERMISSION})

_UNDELIVERED: Final = {
    Scenario.SUPERSEDED: (Reason.NEW_QUERY,),
    Scenario.INTERRUPTED: (Reason.ABORT, Reason.RESET, Reason.SHUTDOWN),
    Scenario.NOT_SENT: (Reason.NO_SAFE_DELIVERY_POINT,),
    Scenario.UNAVAILABLE: (Reason.STORE_UNAVAILABLE, Reason.SELECTOR_UNAVAILABLE),
    Scenario.NOTHING_FOUND: (Reason.NO_RELEVANT_RESULTS,),
    Scenario.SETTLED_BEFORE_SEND: (Reason.ALREADY_DELIVERED, Reason.OVER_BUDGET),
    Scenario.SLOW_WITHOUT_TOOLS: (Reason.NO_SAFE_DELIVERY_POINT, Reason.SELECTOR_TIMEOUT),
    Scenario.TIMED_OUT: (Reason.NO_SAFE_DELIVERY_POINT, Reason.SELECTOR_TIMEOUT),
    Scenario.SLOW_WITH_TOOLS: (Reason.NO_SAFE_DELIVERY_POINT,),
}
"""Why a turn of each scenario usually gets nothing: the series that exist from the start."""


def _no_context(_op: OpId) -> Context:
    return NO_SPAN


class MetricObserver:
    """Turns events into metrics.

    Args:
        meter: makes the counters and gauges.
        histograms: makes the histograms.
        context_of: the span that an operation belongs to, for exemplars (`SpanObserver.context_of`).
        policies: the policies in force; their counters start at 0, so that `increase()` sees their first event.
        now: the clock that events carry.
        anchor: ties that clock to the wall until a `ProcessStarted` event states its own.
    """

    name = "metrics"

    def __init__(
        self,
        meter: Meter,
        histograms: Histograms,
        *,
        context_of: Callable[[OpId], Context] = _no_context,
        policies: Iterable[PolicyName] = (),
        now: Callable[[], float] = time.monotonic,
        anchor: Anchor | None = None,
    ) -> None:
        self._context_of = context_of
        self._now = now
        self._anchor = anchor or Anchor.now()
        self._turns: dict[OpId, TurnStarted] = {}
        self._calls: dict[OpId, ModelCallStarted] = {}
        self._tools: dict[OpId, ToolStarted] = {}
        self._recalls: set[OpId] = set()
        self._sessions: set[OpId] = set()
        self._ceilings: dict[Labels, float] = {}
        self._catalog_notes: dict[Labels, float] = {}
        self._last_sync: dict[Labels, float] = {}
        self._make_turn_instruments(meter, histograms)
        self._make_recall_instruments(meter, histograms)
        self._make_call_instruments(meter, histograms)
        self._catalog_sync = histograms.make(names.CATALOG_SYNC_DURATION)
        self._process_start = self._anchor.wall(now())
        observe_gauge(meter, names.PROCESS_START, lambda: {(): self._process_start})
        observe_gauge(meter, names.RECALL_CEILING_IN_FORCE, self._ceilings.copy)
        observe_gauge(meter, names.CATALOG_NOTES, self._catalog_notes.copy)
        observe_gauge(meter, names.CATALOG_LAST_SYNC, self._last_sync.copy)
        for policy in policies:
            self._start_at_zero(policy)
        self._handlers: dict[type[Event], Callable[[Any], None]] = {
            ProcessStarted: self._process_started,
            SessionOpened: lambda event: _remember(self._sessions, event.op),
            SessionClosed: lambda event: self._sessions.discard(event.op),
            TurnStarted: self._turn_started,
            TurnFirstToken: self._first_token,
            TurnFinished: self._turn_finished,
            PostTurnFailed: lambda _event: self._post_failures.add(1, ()),
            RecallBegun: self._recall_begun,
            RecallSettled: self._settled,
            RecallWaited: self._waited,
            RecallDelivered: self._delivered,
            RecallRolledBack: self._rolled_back,
            RecallSkipped: self._skipped,
            RecallLate: lambda event: self._late.add(1, (event.policy.value,)),
            RecallClosed: self._recall_closed,
            ModelCallStarted: self._call_started,
            ModelCallFinished: self._call_finished,
            ToolStarted: self._tool_started,
            ToolFinished: self._tool_finished,
            CatalogSynced: self._synced,
        }

    def __call__(self, event: Event, /) -> None:
        """Take one event; kinds that no metric counts are ignored."""
        handler = self._handlers.get(type(event))
        if handler is not None:
            handler(event)

    def _make_turn_instruments(self, meter: Meter, histograms: Histograms) -> None:
        self._turn_duration = histograms.make(names.TURN_DURATION)
        self._turn_phase = histograms.make(names.TURN_PHASE_DURATION)
        self._turn_first_token = histograms.make(names.TURN_TIME_TO_FIRST_TOKEN)
        self._invoke_agent = histograms.make(names.INVOKE_AGENT_DURATION)
        self._post_failures = Tally(meter, names.TURN_POST_FAILURES)
        self._post_failures.add(0, ())
        observe_up_down(meter, names.TURN_ACTIVE, lambda: len(self._turns))
        observe_up_down(meter, names.SESSION_ACTIVE, lambda: len(self._sessions))
        observe_gauge(meter, names.TURN_OLDEST_AGE, lambda: {(): self._oldest_age()})

    def _make_recall_instruments(self, meter: Meter, histograms: Histograms) -> None:
        self._started = Tally(meter, names.RECALL_STARTED)
        self._wait = histograms.make(names.RECALL_WAIT_DURATION)
        self._ready = histograms.make(names.RECALL_READY_DURATION)
        self._overruns = ExemplarCounter(meter, names.RECALL_WAIT_OVERRUNS)
        self._recall_duration = histograms.make(names.RECALL_DURATION)
        self._delivery_duration = histograms.make(names.RECALL_DELIVERY_DURATION)
        self._deliveries = Tally(meter, names.RECALL_DELIVERIES)
        self._skips = ExemplarCounter(meter, names.RECALL_SKIPPED_DELIVERIES)
        self._outcomes = Tally(meter, names.RECALL_OUTCOMES)
        self._rollbacks = ExemplarCounter(meter, names.RECALL_ROLLED_BACK)
        self._late = Tally(meter, names.RECALL_LATE_RESULTS)
        self._not_asked = Tally(meter, names.RECALL_REFINEMENTS_SKIPPED)
        self._not_refined = ExemplarCounter(meter, names.RECALL_REFINEMENTS_FAILED)
        self._recall_turns = ExemplarCounter(meter, names.RECALL_TURNS)
        self._turn_wait = histograms.make(names.RECALL_TURN_WAIT_DURATION)
        observe_up_down(meter, names.RECALL_ACTIVE, lambda: len(self._recalls))

    def _make_call_instruments(self, meter: Meter, histograms: Histograms) -> None:
        self._inference = histograms.make(names.INFERENCE_DURATION)
        self._first_chunk = histograms.make(names.INFERENCE_FIRST_CHUNK)
        self._tokens = (
            Tally(meter, names.INFERENCE_INPUT_TOKENS),
            Tally(meter, names.INFERENCE_OUTPUT_TOKENS),
            Tally(meter, names.INFERENCE_CACHE_READ_TOKENS),
        )
        self._tool = histograms.make(names.EXECUTE_TOOL_DURATION)

    def _start_at_zero(self, policy: PolicyName) -> None:
        label = policy.value
        if policy is PolicyName.OFF:
            return
        self._started.add(0, (label,))
        self._late.add(0, (label,))
        self._overruns.add(0, (label,), NO_SPAN)
        for scenario, reasons in _UNDELIVERED.items():
            for delivered in (Delivered.INITIAL, Delivered.TOOL_RESULT, Delivered.BOTH):
                self._recall_turns.add(0, (label, scenario.value, delivered.value, Reason.NONE.value), NO_SPAN)
            for reason in reasons:
                self._recall_turns.add(0, (label, scenario.value, Delivered.NONE.value, reason.value), NO_SPAN)

    # The process, sessions and turns

    def _process_started(self, event: ProcessStarted) -> None:
        self._anchor = Anchor.stated(at=event.at, wall=event.wall)
        self._process_start = event.wall

    def _turn_started(self, event: TurnStarted) -> None:
        if len(self._turns) < MAX_OPEN:
            self._turns[event.op] = event

    def _first_token(self, event: TurnFirstToken) -> None:
        turn = self._turns.get(event.op)
        if turn is not None:
            context = self._context_of(event.op)
            self._turn_first_token.record(event.at - turn.at, (turn.agent, turn.policy.value), context)

    def _turn_finished(self, event: TurnFinished) -> None:
        turn = self._turns.pop(event.op, None)
        if turn is None:
            return
        context = self._context_of(event.op)
        wall = event.at - turn.at
        waiting = 0.0
        for phase, seconds in event.phases:
            self._turn_phase.record(seconds, (turn.agent, phase.value), context)
            if phase in _NOT_WORK:
                waiting += seconds
        labels = (turn.agent, turn.policy.value, event.outcome.value)
        self._turn_duration.record(wall - waiting, labels, context)
        self._invoke_agent.record(wall, (names.INVOKE_AGENT, turn.agent, _error_type(event)), context)

    def _oldest_age(self) -> float:
        started = [turn.at for turn in self._turns.copy().values()]
        return max(self._now() - min(started), 0.0) if started else 0.0

    # The recall

    def _recall_begun(self, event: RecallBegun) -> None:
        self._started.add(1, (event.policy.value,))
        self._ceilings[event.policy.value,] = event.ceiling
        _remember(self._recalls, event.op)

    def _settled(self, event: RecallSettled) -> None:
        if event.not_asked is not None:
            self._not_asked.add(1, (event.policy.value, event.not_asked.value))
        if event.error_type is not None:
            labels = (event.policy.value, event.error_type.value)
            self._not_refined.add(1, labels, self._context_of(event.op))

    def _waited(self, event: RecallWaited) -> None:
        context = self._context_of(event.op)
        policy = event.policy.value
        self._wait.record(event.waited, (policy, event.point.value, event.ended_by.value), context)
        if event.point is Point.INITIAL and event.waited > event.ceiling + WAIT_TOLERANCE_SECONDS:
            self._overruns.add(1, (policy,), context)

    def _delivered(self, event: RecallDelivered) -> None:
        policy, phase, point = event.policy.value, event.phase.value, event.point.value
        self._deliveries.add(1, (policy, phase, point, event.strategy.value))
        self._delivery_duration.record(event.elapsed, (policy, phase, point), self._context_of(event.op))

    def _rolled_back(self, event: RecallRolledBack) -> None:
        labels = (event.policy.value, event.point.value, event.cause.value)
        self._rollbacks.add(1, labels, self._context_of(event.op))

    def _skipped(self, event: RecallSkipped) -> None:
        labels = (event.policy.value, event.point.value, event.reason.value)
        self._skips.add(1, labels, self._context_of(event.op))

    def _recall_closed(self, event: RecallClosed) -> None:
        self._recalls.discard(event.op)
        context = self._context_of(event.op)
        policy, outcome, scenario = event.policy.value, event.outcome.value, event.scenario.value
        self._outcomes.add(1, (policy, outcome, event.reason.value))
        if event.ready_seconds is not None:
            self._ready.record(event.ready_seconds, (policy,), context)
        if event.fast_seconds is not None:
            self._recall_duration.record(event.fast_seconds, (policy, RecallPhase.FAST.value, outcome), context)
        if event.settled_seconds is not None:
            self._recall_duration.record(event.settled_seconds, (policy, RecallPhase.REFINED.value, outcome), context)
        self._recall_turns.add(1, (policy, scenario, event.delivered.value, event.reason.value), context)
        self._turn_wait.record(event.waited, (policy, scenario), context)

    # Model, tools, memory

    def _call_started(self, event: ModelCallStarted) -> None:
        if len(self._calls) < MAX_OPEN:
            self._calls[event.op] = event

    def _call_finished(self, event: ModelCallFinished) -> None:
        call = self._calls.pop(event.op, None)
        if call is None:
            return
        context = self._context_of(event.op)
        labels = (call_operation(call), call.provider, call.model, call.address, call.port, call.purpose.value)
        self._inference.record(event.at - call.at, (*labels, event.status.value, _error_type(event)), context)
        if call.streamed and event.first_chunk is not None:
            self._first_chunk.record(event.first_chunk, labels, context)
        used = (event.input_tokens, event.output_tokens, event.cached_tokens)
        for tally, tokens in zip(self._tokens, used, strict=True):
            if tokens is not None:
                tally.add(max(tokens, 0), (*labels, TEXT))

    def _tool_started(self, event: ToolStarted) -> None:
        if len(self._tools) < MAX_OPEN:
            self._tools[event.op] = event

    def _tool_finished(self, event: ToolFinished) -> None:
        started = self._tools.pop(event.op, None)
        if started is not None:
            labels = (names.EXECUTE_TOOL, started.tool, event.status.value, _error_type(event))
            self._tool.record(event.at - started.at, labels, self._context_of(event.op))

    def _synced(self, event: CatalogSynced) -> None:
        labels = (event.scope.value,)
        self._catalog_notes[labels] = event.notes
        self._last_sync[labels] = self._anchor.wall(event.at)
        self._catalog_sync.record(event.seconds, labels, NO_SPAN)


def _error_type(event: TurnFinished | ModelCallFinished | ToolFinished) -> str:
    """Return the label of a failure, an empty one for whatever did not fail."""
    return (event.error_type or names.ERROR_OTHER) if event.status is Status.FAILED else ""


def _remember(ops: set[OpId], op: OpId) -> None:
    if len(ops) < MAX_OPEN:
        ops.add(op)
