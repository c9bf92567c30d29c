"""A model client for every server that speaks the OpenAI chat-completions wire.

Connection, authentication and status errors are the `openai` library's (`connection`). The body is ours, encoded once
per message (`wire`), and the answer is read as raw bytes (`sse`, `answer`): walking every message and building an
object per chunk is what costs the usual client its time.
"""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING

import anyio

from recallscope.runtime.errors import ModelConnectionError, ModelStatusError, ModelStreamError
from recallscope.runtime.model.answer import AnswerDecoder
from recallscope.runtime.model.seam import Answer, Chunk, ModelRequest
from recallscope.runtime.model.served import ServedModel, TraceHeaders
from recallscope.runtime.model.sse import SseDecoder
from recallscope.runtime.model.wire import Dialect, RequestEncoder

if TYPE_CHECKING:
    from recallscope.runtime.model.connection import Reply

__all__ = ["OpenAICompatModel", "TraceHeaders"]

BODY_LIMIT = 16 * 1024 * 1024
DRAIN_SECONDS = 0.02
PATH = "/chat/completions"
REFUSALS_TO_LEARN_FROM = frozenset({400, 422})


class OpenAICompatModel(ServedModel):
    """A client of one chat model; any number of sessions may share it; `base_url` ends before `/chat/completions`.

    Some servers refuse some options. What a 400 names (`stream_options`, `response_format`, `max_tokens`) is left out
    or replaced once and remembered, inside the same attempt.
    """

    @cached_property
    def _dialect(self) -> Dialect:
        """What this server has refused so far."""
        return Dialect()

    @cached_property
    def _encoder(self) -> RequestEncoder:
        """Knows the messages that were encoded before."""
        return RequestEncoder(self.endpoint.model)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        """Ask and yield chunks as they come; the caller owns the total time, `request.timeout` is not applied.

        The stream ends at `[DONE]`, or where the server ends it after a finish reason.

        Raises:
            ModelConnectionError: no answer, or silence for longer than the read timeout.
            ModelStatusError: the server refused.
            ModelStreamError: the stream is malformed, reports an error, or stopped early.
        """
        decoder = AnswerDecoder(url=self._url, mask=self._connection.mask)
        async with self._reply(request, stream=True) as reply, aclosing(self._events(reply)) as events:
            async for event, data in events:
                if data.startswith(b"[DONE]"):
                    decoder.finished = True
                    await _drain(reply.pieces)
                    break
                yield decoder.chunk(data, event=event)
            self._check_end(decoder, reply)

    async def complete(self, request: ModelRequest) -> Answer:
        """Ask and return the whole answer, within `request.timeout` seconds if it is set.

        Raises:
            ModelConnectionError: no answer, or none in time.
            ModelStatusError: the server refused.
            ModelStreamError: the body is no answer with a choice, or it was cut off.
        """
        if request.timeout is None:
            return await self._complete(request)
        with anyio.move_on_after(request.timeout):
            return await self._complete(request)
        problem = f"no whole answer within {request.timeout:g} seconds"
        raise ModelConnectionError(url=self._url, problem=problem, timed_out=True)

    async def _complete(self, request: ModelRequest) -> Answer:
        body = bytearray()
        async with self._reply(request, stream=False) as reply:
            async for piece in reply.pieces:
                body += piece
                if len(body) > BODY_LIMIT:
                    raise ModelStreamError(url=self._url, problem=f"it has more than {BODY_LIMIT} bytes")
        return AnswerDecoder(url=self._url, mask=self._connection.mask).answer(bytes(body))

    @asynccontextmanager
    async def _reply(self, request: ModelRequest, *, stream: bool) -> "AsyncGenerator[Reply]":
        headers = self._headers(request, stream=stream)
        async with AsyncExitStack() as stack:
            while True:
                spoken = self._dialect
                body = self._encoder.encode(request, spoken, stream=stream)
                try:
                    reply = await stack.enter_async_context(self._connection.post(PATH, body, headers))
                except ModelStatusError as error:
                    if error.status_code not in REFUSALS_TO_LEARN_FROM:
                        raise
                    if spoken.after(str(error), request, stream=stream) == spoken:
                        raise
                    # Another call may have learnt something else meanwhile: both are kept.
                    self._dialect = self._dialect.after(str(error), request, stream=stream)
                else:
                    break
            yield reply

    def _headers(self, request: ModelRequest, *, stream: bool) -> dict[str, str]:
        headers = {**self._trace_headers(request.op), "Accept": "text/event-stream" if stream else "application/json"}
        if stream:
            headers["Accept-Encoding"] = "identity"  # a compressing proxy would hold chunks back
        if request.response_schema is not None:
            headers["x-recallscope-purpose"] = request.response_schema.name
        return headers

    async def _events(self, reply: "Reply") -> AsyncGenerator[tuple[str, bytes], None]:
        events = SseDecoder(url=self._url)
        async for piece in reply.pieces:
            for event in events.feed(piece):
                yield event
        for event in events.flush():
            yield event

    def _check_end(self, decoder: AnswerDecoder, reply: "Reply") -> None:
        if decoder.accepted and decoder.finished:
            return
        where = "in the middle of the answer" if decoder.accepted else f"without an answer ({reply.content_type})"
        raise ModelStreamError(url=self._url, problem=f"it stopped early, {where}")


async def _drain(pieces: AsyncGenerator[bytes, None]) -> None:
    """Read what follows `[DONE]`, normally nothing: only a response that was read to its end leaves its connection."""
    with anyio.move_on_after(DRAIN_SECONDS):
        async for _ in pieces:
            pass
