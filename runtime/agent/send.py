"""The send boundary: gates, memory, message, stream, and what became of it. Every request of a turn goes through here.

A delivery is committed by the first chunk with a choice and rolled back by whatever comes instead. The model client
makes single attempts; how many there are, how long they wait and how long all may take is decided here, and each
attempt asks for memory anew, without waiting again. History holds what the model accepted and nothing else, but for
tool results, which must answer their calls.
"""

import math
import random
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

import anyio

from recallscope.runtime.agent.assemble import Outgoing, assemble
from recallscope.runtime.agent.gates import GATES, Gate, Limits
from recallscope.runtime.agent.history import History
from recallscope.runtime.agent.reply import Reply
from recallscope.runtime.agent.turn_state import TurnState
from recallscope.runtime.errors import ModelConnectionError, ModelError, ModelStatusError, ModelStreamError
from recallscope.runtime.events import ModelAttemptFailed, ModelCallFinished, ModelCallStarted, ModelFirstChunk
from recallscope.runtime.messages import AssistantMessage, UserMessage
from recallscope.runtime.model.seam import Chunk, Model, ModelRequest, ToolCallDelta, ToolSpec
from recallscope.runtime.observe import Observers, Operation
from recallscope.runtime.recall.pending import NO_MEMORY, Handover
from recallscope.runtime.recall.recaller import Recaller
from recallscope.runtime.terms import Point, Purpose, RollbackCause, TurnPhase

__all__ = ["Attempts", "SendSettings", "Sender"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempts:
    """How often and how long a send is tried: `total` seconds from its begin until the model accepts it."""

    number: int = 4
    total: float = 120.0
    first_backoff: float = 0.5
    longest_backoff: float = 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SendSettings:
    """What is the same for all sends of a session."""

    system: str | None = None
    tools: Sequence[ToolSpec] = ()
    limits: Limits = field(default_factory=Limits)
    attempts: Attempts = field(default_factory=Attempts)
    streamed: bool = True
    max_tokens: int | None = None
    gates: Sequence[Gate] = GATES
    jitter: Callable[[], float] = random.random


class Sender:
    """Sends for one session."""

    def __init__(
        self, *, model: Model, recaller: Recaller, observers: Observers, history: History, settings: SendSettings
    ) -> None:
        self.model = model
        self.observers = observers
        self.history = history
        self.settings = settings
        self._recaller = recaller

    async def send(self, state: TurnState, outgoing: Outgoing, point: Point) -> AssistantMessage:
        """Pass the gates, send `outgoing` with the memory that is due at `point`, and return the model's answer.

        The answer's `outcome` stands in `state`.

        Raises:
            TurnStopped: a gate ended the turn; memory was not asked.
            ModelError: no attempt was accepted, or the answer broke off; its notes say how often and how long.
        """
        length = len(self.history)
        try:
            for gate in self.settings.gates:
                await gate(state, self.settings.limits)
            state.sends += 1
            memory = await self.memory(state, point, retry=False)
            return await _Send(self, state, outgoing, point, memory).answer()
        except BaseException:
            if outgoing.results and len(self.history) == length:
                # Not accepted: no memory is marked as surfaced, but the calls that stand in history have answers.
                self.history.sent(UserMessage(tuple(outgoing.results)))
            raise

    async def memory(self, state: TurnState, point: Point, *, retry: bool) -> Handover:
        """Ask the recaller, and count the time as a wait for memory."""
        with state.phases.during(TurnPhase.RECALL_WAIT):
            return await self._recaller.consume(point, retry=retry)


class _Send:
    """One send over its attempts; once a message was accepted, it is that message that is sent again."""

    def __init__(self, sender: Sender, state: TurnState, outgoing: Outgoing, point: Point, memory: Handover) -> None:
        self._sender = sender
        self._state = state
        self._outgoing = outgoing
        self._point = point
        self._memory = memory
        self._accepted: UserMessage | None = None
        self._reply = Reply()
        self._started = self._call_started()

    async def answer(self) -> AssistantMessage:
        observers, history = self._sender.observers, self._sender.history
        with observers.operation(self._started, cause=lambda: self._state.scope.cause) as operation:
            try:
                with self._state.phases.during(TurnPhase.MODEL):
                    await self._until_answered(operation)
            except BaseException:
                if (fragment := self._reply.fragment()) is not None:
                    history.answered(fragment)
                    self._state.answer = fragment.text
                raise
            finally:
                self._note(operation)
        message = self._reply.message()
        history.answered(message)
        self._state.answer, self._state.outcome = message.text, self._reply.outcome
        if self._reply.usage is not None:
            self._state.session_tokens += self._reply.usage.input_tokens + self._reply.usage.output_tokens
        return message

    async def _until_answered(self, operation: Operation[ModelCallFinished]) -> None:
        attempt = 1
        while True:
            operation.note(attempts=attempt)
            try:
                await self._attempt(attempt, operation)
            except ModelError as error:
                retry_in = self._retry_in(error, attempt)
                self._failed(error, attempt, retry_in)
                if retry_in is None:
                    raise
                with self._state.phases.during(TurnPhase.BACKOFF):
                    await anyio.sleep(retry_in)
                attempt += 1
                if self._accepted is None:
                    self._memory = await self._sender.memory(self._state, self._point, retry=True)
            else:
                return

    async def _attempt(self, attempt: int, operation: Operation[ModelCallFinished]) -> None:
        message = self._accepted or assemble(self._outgoing, self._memory.part)
        try:
            await self._read(message, attempt, operation)
        except ModelError as error:
            self._drop(_rollback_cause(error))
            raise
        except BaseException:
            self._drop(RollbackCause.CANCELLED)
            raise

    async def _read(self, message: UserMessage, attempt: int, operation: Operation[ModelCallFinished]) -> None:
        accepted = False
        with anyio.move_on_after(self._time_left()) as acceptance:
            async with aclosing(self._chunks(message)) as chunks:
                async for chunk in chunks:
                    if chunk.accepted and not accepted:
                        # From the acceptance on, the time between chunks is the model client's to bound.
                        accepted, acceptance.deadline = True, math.inf
                        self._accept(message, attempt, operation)
                    self._reply.add(chunk)
                    if chunk.text:
                        await self._state.say(chunk.text)
        if acceptance.cancelled_caught:
            total = self._sender.settings.attempts.total
            raise ModelConnectionError(url=self._url, problem=f"not accepted within {total:g} s in all", timed_out=True)
        if not accepted:
            raise ModelStreamError(url=self._url, problem="it ended before its first choice")

    def _chunks(self, message: UserMessage) -> AsyncGenerator[Chunk, None]:
        history = self._sender.history.snapshot()
        settings = self._sender.settings
        request = ModelRequest(
            op=self._started.op,
            system=settings.system,
            messages=history if self._accepted else (*history, message),
            tools=settings.tools,
            max_tokens=settings.max_tokens,
        )
        return self._sender.model.stream(request) if settings.streamed else _whole(self._sender.model, request)

    def _accept(self, message: UserMessage, attempt: int, operation: Operation[ModelCallFinished]) -> None:
        at = self._sender.observers.now()
        if self._accepted is None:
            self._accepted = message
            self._sender.history.sent(message)
            notes = len(self._memory.delivery.notes) if self._memory.delivery is not None else 0
            operation.note(first_chunk=at - self._started.at, notes=notes)
        self._sender.observers.emit(ModelFirstChunk(op=self._started.op, at=at, attempt=attempt))
        self._memory.accepted()
        self._memory = NO_MEMORY

    def _drop(self, cause: RollbackCause) -> None:
        if self._accepted is None:
            memory, self._memory = self._memory, NO_MEMORY
            memory.dropped(cause)

    def _retry_in(self, error: ModelError, attempt: int) -> float | None:
        attempts = self._sender.settings.attempts
        if not error.retryable or attempt >= attempts.number or self._reply.begun:
            return None
        backoff = min(attempts.first_backoff * 2 ** (attempt - 1), attempts.longest_backoff)
        wait = backoff * (0.5 + self._sender.settings.jitter() / 2) if error.retry_after is None else error.retry_after
        return wait if wait < self._time_left() else None

    def _failed(self, error: ModelError, attempt: int, retry_in: float | None) -> None:
        at = self._sender.observers.now()
        if retry_in is None:
            error.add_note(f"{attempt} attempt{'s' if attempt > 1 else ''} in {at - self._started.at:.1f} s")
        self._sender.observers.emit(
            ModelAttemptFailed(
                op=self._started.op,
                at=at,
                attempt=attempt,
                error_type=error.error_type,
                status_code=error.status_code,
                retry_in=retry_in,
            )
        )

    def _time_left(self) -> float:
        return self._started.at + self._sender.settings.attempts.total - self._sender.observers.now()

    @property
    def _url(self) -> str:
        return f"{self._started.address}:{self._started.port}"

    def _call_started(self) -> ModelCallStarted:
        observers, endpoint = self._sender.observers, self._sender.model.endpoint
        return ModelCallStarted(
            op=observers.new_op(),
            at=observers.now(),
            parent=self._state.op,
            purpose=Purpose.MAIN,
            model=endpoint.model,
            provider=endpoint.provider,
            address=endpoint.address,
            port=endpoint.port,
            streamed=self._sender.settings.streamed,
            send=self._state.sends,
            point=self._point,
        )

    def _note(self, operation: Operation[ModelCallFinished]) -> None:
        reply = self._reply
        operation.note(finish_reason=reply.finish_reason, response_model=reply.model, response_id=reply.response_id)
        if reply.usage is not None:
            operation.note(
                input_tokens=reply.usage.input_tokens,
                output_tokens=reply.usage.output_tokens,
                cached_tokens=reply.usage.cached_tokens,
            )


async def _whole(model: Model, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
    """Ask without streaming and give the answer as one chunk."""
    answer = await model.complete(request)
    deltas = (
        ToolCallDelta(index, call.call_id, call.tool, call.arguments) for index, call in enumerate(answer.tool_calls)
    )
    yield Chunk(answer.text, tuple(deltas), answer.finish_reason, answer.usage, answer.model, answer.response_id)


def _rollback_cause(error: ModelError) -> RollbackCause:
    match error:
        case ModelStatusError():
            return RollbackCause.REFUSED
        case ModelConnectionError():
            return RollbackCause.CONNECTION
        case _:
            return RollbackCause.STREAM_ERROR
