"""A session: one conversation with its history, its recent tools and its recaller; it admits one turn at a time."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import anyio

from recallscope.runtime.agent.history import History
from recallscope.runtime.agent.phases import PhaseClock
from recallscope.runtime.agent.recent_tools import RecentTools
from recallscope.runtime.agent.reminders import ReminderSource
from recallscope.runtime.agent.send import Sender, SendSettings
from recallscope.runtime.agent.tool_batch import ToolBatch
from recallscope.runtime.agent.tools.registry import Toolbox
from recallscope.runtime.agent.turn import PostTurn, TurnRunner
from recallscope.runtime.agent.turn_state import Listener, TurnRequest, TurnResult, TurnScope, TurnState, Update
from recallscope.runtime.errors import SessionClosedError
from recallscope.runtime.events import SessionClosed, SessionOpened, TurnFinished, TurnStarted
from recallscope.runtime.model.seam import Model
from recallscope.runtime.observe import Observers, Operation
from recallscope.runtime.recall.recaller import Recaller
from recallscope.runtime.terms import Cause, TurnOutcome, TurnPhase

__all__ = ["Session", "SessionParts"]


async def _silent(_: Update) -> None:
    """Show nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionParts:
    """What a session works with. `recaller` belongs to this session alone."""

    agent: str
    model: Model
    recaller: Recaller
    observers: Observers
    toolbox: Toolbox
    settings: SendSettings
    reminders: Sequence[ReminderSource]
    post_turn: PostTurn


@dataclass(slots=True, eq=False)
class _Ticket:
    """A prompt in the session: waiting for admission or running."""

    scope: TurnScope = field(default_factory=TurnScope)


class Session:
    """One conversation. Prompts are answered in order; a new one cancels those before it, waits, and runs."""

    def __init__(self, session: str, parts: SessionParts) -> None:
        self.id = session
        self.history = History()
        self.recent_tools = RecentTools()
        self._parts = parts
        self._observers = parts.observers
        self._admission = anyio.Lock()
        self._open: list[_Ticket] = []
        self._turns = 0
        self._tokens = 0
        self._closed = False
        self._op = self._observers.new_op()
        sender = Sender(
            model=parts.model,
            recaller=parts.recaller,
            observers=parts.observers,
            history=self.history,
            settings=parts.settings,
        )
        tools = ToolBatch(
            toolbox=parts.toolbox, observers=parts.observers, history=self.history, recent_tools=self.recent_tools
        )
        self._runner = TurnRunner(
            observers=parts.observers,
            recaller=parts.recaller,
            sender=sender,
            tools=tools,
            history=self.history,
            recent_tools=self.recent_tools,
            reminders=parts.reminders,
            post_turn=parts.post_turn,
        )
        self._observers.emit(
            SessionOpened(
                op=self._op,
                at=self._observers.now(),
                session=session,
                agent=parts.agent,
                policy=parts.recaller.policy.name,
            )
        )

    async def prompt(self, request: TurnRequest, listener: Listener = _silent) -> TurnResult:
        """Run a turn and return how it ended; turns that are under way are cancelled first (`superseded`).

        Raises:
            SessionClosedError: the session was closed.
        """
        if self._closed:
            raise SessionClosedError(self.id)
        for ticket in self._open:
            ticket.scope.cancel(Cause.SUPERSEDED)
        ticket = _Ticket()
        self._open.append(ticket)
        self._turns += 1
        try:
            return await self._turn(request, listener, ticket, self._turns)
        finally:
            self._open.remove(ticket)

    def cancel(self, cause: Cause = Cause.USER_CANCEL) -> bool:
        """Cancel the turns under way and return at once; False if there is none."""
        for ticket in self._open:
            ticket.scope.cancel(cause)
        return bool(self._open)

    async def stop(self) -> None:
        """Stop the turns under way for the embedding host, and wait until they have ended."""
        await self._stopped(Cause.CONTROL_STOP)

    async def reset(self) -> None:
        """Stop the turns under way, wait until they have ended, and begin with an empty history."""
        self.cancel(Cause.SESSION_RESET)
        async with self._admission:
            self.history.replace()
            self.recent_tools.clear()
            self._tokens = 0

    async def close(self, cause: Cause = Cause.SESSION_DISPOSE) -> None:
        """Stop the turns under way, wait until they have ended, and take no more prompts; idempotent."""
        already, self._closed = self._closed, True
        await self._stopped(cause)
        if not already:
            self._observers.emit(SessionClosed(op=self._op, at=self._observers.now(), session=self.id, cause=cause))

    async def _stopped(self, cause: Cause) -> None:
        self.cancel(cause)
        async with self._admission:
            pass

    async def _turn(self, request: TurnRequest, listener: Listener, ticket: _Ticket, number: int) -> TurnResult:
        started = TurnStarted(
            op=self._observers.new_op(),
            at=self._observers.now(),
            session=self.id,
            turn=f"{self.id}.{number}",
            agent=self._parts.agent,
            origin=request.origin,
            policy=self._parts.recaller.policy.name,
            traceparent=request.traceparent,
        )
        state = TurnState(
            op=started.op,
            session=self.id,
            turn=started.turn,
            number=number,
            request=request,
            scope=ticket.scope,
            phases=PhaseClock(self._observers.now, started_at=started.at, first=TurnPhase.QUEUE),
            observers=self._observers,
            listener=listener,
        )
        with self._observers.operation(started, cause=lambda: ticket.scope.cause) as operation:
            try:
                async with self._admission:
                    return await self._admitted(state, operation)
            except anyio.get_cancelled_exc_class():
                # Nobody stated a cause: the host itself is ending the task that this turn runs in.
                cause = ticket.scope.cause or Cause.SESSION_DISPOSE
                operation.note(outcome=TurnOutcome.CANCELLED, cause=cause)
                raise
            finally:
                # The phases end when the turn does, so that they add up to its wall time.
                at = self._observers.now()
                operation.note(at=at, sends=state.sends, phases=state.phases.seconds(at=at))

    async def _admitted(self, state: TurnState, operation: Operation[TurnFinished]) -> TurnResult:
        state.phases.enter(TurnPhase.OTHER)
        state.session_tokens = self._tokens
        try:
            return await self._runner.run(state, operation)
        finally:
            self._tokens = state.session_tokens
