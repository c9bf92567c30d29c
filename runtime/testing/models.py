"""A model for tests that need no wire: it answers from a list, after stated times."""

import json
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field

import anyio

from recallscope.runtime.errors import ModelError
from recallscope.runtime.model.seam import Answer, Chunk, Endpoint, ModelRequest, ToolCallDelta, Usage

__all__ = ["FakeModel", "Turnout", "calling", "choosing", "saying"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turnout:
    """What one request gets: chunks (or a whole answer), `delay` seconds before them, and perhaps an error.

    `error` comes after the chunks; without chunks it is a refusal.
    """

    chunks: Sequence[Chunk] = ()
    delay: float = 0.0
    between: float = 0.0
    error: ModelError | None = None


def saying(*texts: str, delay: float = 0.0, between: float = 0.0, usage: Usage | None = None) -> Turnout:
    """Make an answer of these pieces of text, `between` seconds after each of them."""
    chunks = [*(Chunk(text) for text in texts), Chunk(finish_reason="stop", usage=usage)]
    return Turnout(chunks=chunks, delay=delay, between=between)


def calling(*calls: tuple[str, str, str], delay: float = 0.0, text: str = "") -> Turnout:
    """Make an answer that calls tools: for each the id of the call, the tool's name, and the JSON of its arguments."""
    deltas = tuple(
        ToolCallDelta(index, call_id, tool, arguments) for index, (call_id, tool, arguments) in enumerate(calls)
    )
    return Turnout(chunks=[Chunk(text, deltas), Chunk(finish_reason="tool_calls")], delay=delay)


def choosing(*numbers: int, delay: float = 0.0) -> Turnout:
    """Make a selection of the candidates with these numbers, counted from 1 in the order of the question."""
    return Turnout(chunks=[Chunk(json.dumps({"selected": [f"n{number:02d}" for number in numbers]}))], delay=delay)


@dataclass(slots=True, kw_only=True)
class FakeModel:
    """Gives the n-th request the n-th turnout, the last one again and again."""

    turnouts: Sequence[Turnout]
    requests: list[ModelRequest] = field(default_factory=list[ModelRequest])
    closed_early: int = 0

    @property
    def endpoint(self) -> Endpoint:
        """Where this model claims to be."""
        return Endpoint("fake-model", "recallscope", "127.0.0.1", 1)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        """Answer in chunks."""
        turnout = self._next(request)
        whole = False
        try:
            await anyio.sleep(turnout.delay)
            for chunk in turnout.chunks:
                yield chunk
                await anyio.sleep(turnout.between)
            if turnout.error is not None:
                raise turnout.error
            whole = True
        finally:
            self.closed_early += not whole

    async def complete(self, request: ModelRequest) -> Answer:
        """Answer at once with the text of all chunks."""
        turnout = self._next(request)
        await anyio.sleep(turnout.delay)
        if turnout.error is not None:
            raise turnout.error
        return Answer(text="".join(chunk.text for chunk in turnout.chunks), finish_reason="stop")

    def _next(self, request: ModelRequest) -> Turnout:
        self.requests.append(request)
        return self.turnouts[min(len(self.requests), len(self.turnouts)) - 1]
