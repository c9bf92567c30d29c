"""One logical turn, from a prompt to its final answer: the main path of the runtime, in its order.

admit → begin recall (fresh user turns only, with the text as the person wrote it) → reminders, whose time is free for
the recall → send loop (`send.py`), with the tools between the sends → finish, on every way out → work after the turn.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
from anyio.abc import TaskGroup

from recallscope.runtime.agent.assemble import Outgoing
from recallscope.runtime.agent.history import History
from recallscope.runtime.agent.recent_tools import RecentTools
from recallscope.runtime.agent.reminders import ReminderSource, build_reminders
from recallscope.runtime.agent.send import Sender
from recallscope.runtime.agent.tool_batch import ToolBatch
from recallscope.runtime.agent.turn_state import TurnResult, TurnState, TurnStopped
from recallscope.runtime.errors import ModelError
from recallscope.runtime.events import PostTurnFailed, TurnFinished
from recallscope.runtime.messages import Message, TextPart
from recallscope.runtime.observe import Observers, Operation
from recallscope.runtime.recall.pending import RecallTurn, RecallVerdict
from recallscope.runtime.recall.recaller import Recaller
from recallscope.runtime.terms import Cause, Status, TurnOutcome, TurnPhase

__all__ = ["PostTurn", "TurnEnding", "TurnRunner"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnding:
    """How a turn came to its end: what it is called, why its recall is closed, and the error if there was one."""

    outcome: TurnOutcome
    cause: Cause
    error: ModelError | None = None


PostTurn = Callable[[TurnResult, Sequence[Message]], None]
"""Schedules the work after a fresh, successful turn with its final history; returns at once, nobody awaits the work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRunner:
    """Runs the turns of one session, one at a time."""

    observers: Observers
    recaller: Recaller
    sender: Sender
    tools: ToolBatch
    history: History
    recent_tools: RecentTools
    reminders: Sequence[ReminderSource]
    post_turn: PostTurn

    async def run(self, state: TurnState, operation: Operation[TurnFinished]) -> TurnResult:
        """Run an admitted turn to its end and say how it ended; a model's failure is a result, not an exception."""
        ending, verdict = await self._to_the_end(state, operation)
        result = TurnResult(
            turn=state.turn,
            outcome=ending.outcome,
            text=state.answer,
            sends=state.sends,
            cause=ending.cause if ending.outcome is TurnOutcome.CANCELLED else None,
            error=_sentence(ending.error),
            recall=verdict,
        )
        if state.request.fresh and ending.outcome in {TurnOutcome.END_TURN, TurnOutcome.REJECTED}:
            self._schedule(state, result)
        _note_ending(operation, ending)
        return result

    async def _to_the_end(
        self, state: TurnState, operation: Operation[TurnFinished]
    ) -> tuple[TurnEnding, RecallVerdict | None]:
        verdict: RecallVerdict | None = None
        ending: TurnEnding | None = None
        with state.scope.scope:
            async with _turn_tasks() as tasks:
                cause = Cause.TURN_END
                try:
                    ending = await self._converse(state, tasks)
                    cause = ending.cause
                except anyio.get_cancelled_exc_class():
                    # Nobody stated a cause: the host itself is ending the task that this turn runs in.
                    cause = state.scope.cause or Cause.SESSION_DISPOSE
                    raise
                finally:
                    state.phases.enter(TurnPhase.OTHER)
                    verdict = await self.recaller.finish(cause)
                    _note_recall(operation, verdict)
        if ending is None:
            ending = TurnEnding(outcome=TurnOutcome.CANCELLED, cause=state.scope.cause or Cause.SESSION_DISPOSE)
        return ending, verdict

    async def _converse(self, state: TurnState, tasks: TaskGroup) -> TurnEnding:
        try:
            self._begin_recall(state, tasks)
            state.phases.enter(TurnPhase.PREPARE)
            reminders = await build_reminders(self.reminders, self.history.snapshot())
            state.phases.enter(TurnPhase.OTHER)
            outgoing = Outgoing(reminders=reminders, text=(TextPart(state.request.text),))
            point = outgoing.point(first=state.request.fresh)
            while (answer := await self.sender.send(state, outgoing, point)).tool_calls:
                outgoing = Outgoing(results=await self.tools.run(state, answer.tool_calls))
                point = outgoing.point(first=False)
        except TurnStopped as stop:
            return TurnEnding(outcome=stop.outcome, cause=stop.cause)
        except ModelError as error:
            return TurnEnding(outcome=TurnOutcome.FAILED, cause=Cause.PROVIDER_ERROR, error=error)
        return TurnEnding(outcome=state.outcome, cause=Cause.TURN_END)

    def _begin_recall(self, state: TurnState, tasks: TaskGroup) -> None:
        if not state.request.fresh:
            return
        turn = RecallTurn(
            op=state.op, session=state.session, turn=state.turn, tasks=tasks, cause=lambda: state.scope.cause
        )
        self.recaller.begin(
            turn, state.request.text, surfaced=self.history.surfaced(), recent_tools=self.recent_tools.names()
        )

    def _schedule(self, state: TurnState, result: TurnResult) -> None:
        try:
            self.post_turn(result, self.history.snapshot())
        except Exception as error:  # noqa: BLE001 - the answer is given: nothing after it may become the turn's error
            self.observers.emit(PostTurnFailed(op=state.op, at=self.observers.now(), error_type=type(error).__name__))


@asynccontextmanager
async def _turn_tasks() -> AsyncGenerator[TaskGroup, None]:
    """Own the tasks of a turn; a single failure leaves as itself and not inside a group."""
    try:
        async with anyio.create_task_group() as tasks:
            yield tasks
    except BaseExceptionGroup as group:
        if len(group.exceptions) == 1:
            raise group.exceptions[0] from None
        raise


def _note_ending(operation: Operation[TurnFinished], ending: TurnEnding) -> None:
    operation.note(outcome=ending.outcome)
    match ending.outcome:
        case TurnOutcome.FAILED:
            operation.note(
                status=Status.FAILED, error_type=ending.error.error_type if ending.error is not None else None
            )
        case TurnOutcome.CANCELLED:
            operation.note(status=Status.CANCELLED, cause=ending.cause)
        case _:
            pass


def _note_recall(operation: Operation[TurnFinished], verdict: RecallVerdict | None) -> None:
    if verdict is not None:
        operation.note(
            scenario=verdict.scenario,
            delivered=verdict.delivered,
            recall_reason=verdict.reason,
            recall_waited=verdict.waited,
        )


def _sentence(error: ModelError | None) -> str | None:
    if error is None:
        return None
    notes = ", ".join(getattr(error, "__notes__", ()))
    return f"{error} ({notes})" if notes else str(error)
