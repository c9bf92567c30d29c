"""A model for tests that need no wire: it answers from a list, after stated times."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field

import anyio

from recallscope.runtime.errors import ModelError
from recallscope.runtime.model.seam import Answer, Chunk, Endpoint, ModelRequest

__all__ = ["FakeModel", "Turnout"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turnout:
    """What one request gets: chunks (or a whole answer), `delay` seconds before them, and perhaps an error.

    `error` comes after the chunks; without chunks it is a refusal.
    """

    chunks: Sequence[Chunk] = ()
    delay: float = 0.0
    between: float = 0.0
    error: ModelError | None = None


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
