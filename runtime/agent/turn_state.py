"""What one turn carries through its steps: its operation, its cancellation with cause, its counts and its listener."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import anyio

from recallscope.runtime.agent.phases import PhaseClock
from recallscope.runtime.events import OpId, TurnFirstToken
from recallscope.runtime.observe import Observers
from recallscope.runtime.recall.pending import RecallVerdict
from recallscope.runtime.terms import Cause, TurnOrigin, TurnOutcome

__all__ = [
    "AnswerText",
    "Listener",
    "ToolCallEnded",
    "ToolCallStarted",
    "TurnRequest",
    "TurnResult",
    "TurnScope",
    "TurnState",
    "TurnStopped",
    "Update",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRequest:
    """What is asked of the agent. `max_sends` (0 allowed) limits this turn's requests to the main model."""

    text: str
    origin: TurnOrigin = TurnOrigin.PROMPT
    max_sends: int | None = None
    traceparent: str | None = None

    @property
    def fresh(self) -> bool:
        """A new prompt of a person: the only kind of turn that recalls, and after which memory is kept current."""
        return self.origin is TurnOrigin.PROMPT


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnResult:
    """How a turn ended. `text` is the last answer (what of it came); `error` a sentence when it failed."""

    turn: str
    outcome: TurnOutcome
    text: str
    sends: int
    cause: Cause | None = None
    error: str | None = None
    recall: RecallVerdict | None = None


@dataclass(frozen=True, slots=True)
class AnswerText:
    """A piece of the model's answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallStarted:
    """A tool call began; `arguments` is the JSON text as the model wrote it."""

    call_id: str
    tool: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolCallEnded:
    """A tool call was answered."""

    call_id: str
    tool: str
    is_error: bool


Update = AnswerText | ToolCallStarted | ToolCallEnded

Listener = Callable[[Update], Awaitable[None]]
"""The front end that shows a turn while it runs; awaited, so a slow reader slows the turn and nothing piles up."""


class TurnStopped(Exception):  # noqa: N818 - a decision that ends the turn, not an error
    """A gate ended the turn before a send."""

    def __init__(self, outcome: TurnOutcome, cause: Cause) -> None:
        super().__init__(f"{outcome}: {cause}")
        self.outcome = outcome
        self.cause = cause


class TurnScope:
    """The cancellation of one turn: it carries its cause, and the first cause wins."""

    def __init__(self) -> None:
        self.scope = anyio.CancelScope()
        self._cause: Cause | None = None

    @property
    def cause(self) -> Cause | None:
        """Why the turn is cancelled; None while it is not."""
        return self._cause

    def cancel(self, cause: Cause) -> None:
        """Cancel the turn; a later call changes nothing."""
        if self._cause is None:
            self._cause = cause
            self.scope.cancel()


@dataclass(slots=True, kw_only=True, eq=False)
class TurnState:
    """A turn under way."""

    op: OpId
    session: str
    turn: str
    number: int
    request: TurnRequest
    scope: TurnScope
    phases: PhaseClock
    observers: Observers
    listener: Listener
    sends: int = 0
    session_tokens: int = 0
    answer: str = ""
    outcome: TurnOutcome = TurnOutcome.END_TURN
    spoke: bool = field(default=False, init=False)

    async def say(self, text: str) -> None:
        """Pass a piece of the answer on; the first one is stated as a fact."""
        if not self.spoke:
            self.spoke = True
            self.observers.emit(TurnFirstToken(op=self.op, at=self.observers.now()))
        await self.listener(AnswerText(text))
