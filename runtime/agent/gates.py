"""The gates before a send: each may end the turn, in this order, and only then is memory asked.

A later gate (compaction, its notice) takes its place in `GATES`; no send goes round them.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import anyio.lowlevel

from recallscope.runtime.agent.turn_state import TurnState, TurnStopped
from recallscope.runtime.terms import Cause, TurnOutcome

__all__ = ["GATES", "Gate", "Limits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Where a session stops by itself; None is no limit. Tokens are input and output as the model server counts."""

    max_sends: int | None = 100
    max_turns: int | None = None
    session_tokens: int | None = None


Gate = Callable[[TurnState, Limits], Awaitable[None]]


async def abort(state: TurnState, _: Limits) -> None:
    """Let a cancellation take effect before anything is sent."""
    await anyio.lowlevel.checkpoint()
    cause = state.scope.cause
    if cause is not None:
        raise TurnStopped(TurnOutcome.CANCELLED, cause)


async def session_turns(state: TurnState, limits: Limits) -> None:
    """Stop a session that has had its turns."""
    if limits.max_turns is not None and state.number > limits.max_turns:
        raise TurnStopped(TurnOutcome.MAX_TURN_REQUESTS, Cause.MAX_TURNS)


async def session_tokens(state: TurnState, limits: Limits) -> None:
    """Stop a session that has used its tokens."""
    if limits.session_tokens is not None and state.session_tokens >= limits.session_tokens:
        raise TurnStopped(TurnOutcome.MAX_TOKENS, Cause.TOKEN_LIMIT)


async def sends(state: TurnState, limits: Limits) -> None:
    """Stop a turn that has made its requests: the caller's limit, else the configured one."""
    limit = state.request.max_sends if state.request.max_sends is not None else limits.max_sends
    if limit is not None and state.sends >= limit:
        raise TurnStopped(TurnOutcome.MAX_TURN_REQUESTS, Cause.TURN_BUDGET)


GATES: tuple[Gate, ...] = (abort, session_turns, session_tokens, sends, abort)
