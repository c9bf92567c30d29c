"""A client for every server that speaks the OpenAI embeddings wire: texts in, one vector for each of them out."""

import base64
import binascii
import json
import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, cast

import anyio

from recallscope.runtime.errors import ModelConnectionError, ModelStreamError
from recallscope.runtime.events import OpId
from recallscope.runtime.model.served import ServedModel

__all__ = ["MAX_DIMENSIONS", "MAX_TEXTS", "Embedded", "EmbeddingModel"]

PATH = "/embeddings"
BODY_LIMIT = 64 * 1024 * 1024
MAX_TEXTS = 256
"""Texts of one request; servers allow at least as many."""

MAX_DIMENSIONS = 16_384
"""Numbers of one vector; today's models have at most 4,096."""

QUOTE_LENGTH = 200


@dataclass(frozen=True, slots=True)
class Embedded:
    """The vectors of the texts of one request, in their order, all of one length; `tokens` as the server counts."""

    vectors: tuple["array[float]", ...]
    tokens: int | None = None
    model: str | None = None


class EmbeddingModel(ServedModel):
    """A client of one embedding model; any number of tasks may share it; `base_url` ends before `/embeddings`."""

    READ_TIMEOUT = 60.0

    async def embed(self, texts: Sequence[str], *, op: OpId, timeout: float | None = None) -> Embedded:  # noqa: ASYNC109 - a limit that is an error of its own
        """Return a vector for each of `texts` (1 to `MAX_TEXTS`); cancelling closes the connection.

        `op` is the operation whose trace context goes with the request; `timeout` bounds the whole of it, in seconds.

        Raises:
            ModelConnectionError: no answer, or none in time.
            ModelStatusError: the server refused.
            ModelStreamError: the body is no list of one vector for each text, or it was cut off.
        """
        if timeout is None:
            return await self._embed(texts, op)
        with anyio.move_on_after(timeout):
            return await self._embed(texts, op)
        problem = f"no whole answer within {timeout:g} seconds"
        raise ModelConnectionError(url=self._url, problem=problem, timed_out=True)

    async def _embed(self, texts: Sequence[str], op: OpId) -> Embedded:
        asked = {"model": self._endpoint.model, "input": list(texts), "encoding_format": "float"}
        body = bytearray()
        headers = {**self._trace_headers(op), "Accept": "application/json"}
        sent = json.dumps(asked, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        async with self._connection.post(PATH, sent, headers) as reply:
            async for piece in reply.pieces:
                body += piece
                if len(body) > BODY_LIMIT:
                    raise ModelStreamError(url=self._url, problem=f"it has more than {BODY_LIMIT} bytes")
        return self._read(bytes(body), len(texts))

    def _read(self, data: bytes, wanted: int) -> Embedded:
        try:
            body: object = json.loads(data)
        except (ValueError, RecursionError):
            self._fail("it is no JSON", data)
        if not isinstance(body, dict):
            self._fail("it is no JSON object", data)
        fields = cast("dict[str, Any]", body)
        if fields.get("error"):
            self._fail("the server reports an error", data)
        entries: object = fields.get("data")
        if not isinstance(entries, list):
            self._fail("it has no list of vectors", data)
        vectors = self._in_order(cast("list[object]", entries), wanted)
        usage: object = fields.get("usage")
        tokens: object = cast("dict[str, Any]", usage).get("prompt_tokens") if isinstance(usage, dict) else None
        model: object = fields.get("model")
        return Embedded(
            vectors,
            tokens if isinstance(tokens, int) and not isinstance(tokens, bool) else None,
            model if isinstance(model, str) and model else None,
        )

    def _in_order(self, entries: Sequence[object], wanted: int) -> tuple["array[float]", ...]:
        """Return the vectors in the order of the texts; a server may send them in any, each with its index."""
        if len(entries) != wanted:
            self._fail(f"it has {len(entries)} vectors for {wanted} texts", "")
        found: dict[int, array[float]] = {}
        for position, entry in enumerate(entries):
            if not isinstance(entry, dict):
                self._fail("an entry is no object", entry)
            fields = cast("dict[str, Any]", entry)
            index: object = fields.get("index", position)
            if not isinstance(index, int) or not 0 <= index < wanted or index in found:
                self._fail("an entry has no index of its own", index)
            found[index] = self._vector(fields.get("embedding"))
        if len({len(vector) for vector in found.values()}) > 1:
            self._fail("its vectors differ in length", "")
        return tuple(found[index] for index in range(wanted))

    def _vector(self, value: object) -> "array[float]":
        """Return the numbers of a vector; some servers send base64 whatever they are asked for."""
        vector = array("f")
        try:
            if isinstance(value, str):
                vector.frombytes(base64.b64decode(value, validate=True))
            elif isinstance(value, list):
                vector.extend(cast("list[float]", value))
        except (TypeError, ValueError, OverflowError, binascii.Error):
            self._fail("a vector holds what is no number", "")
        if not 0 < len(vector) <= MAX_DIMENSIONS:
            self._fail(f"a vector has {len(vector)} numbers, 1 to {MAX_DIMENSIONS} are read", "")
        if not all(map(math.isfinite, vector)):
            self._fail("a vector holds what is no finite number", "")
        return vector

    def _fail(self, problem: str, found: object) -> NoReturn:
        text = found.decode("utf-8", "replace") if isinstance(found, bytes) else str(found)
        quoted = self._connection.mask(text[:QUOTE_LENGTH].encode("utf-8", "replace").decode())
        raise ModelStreamError(url=self._url, problem=f"{problem}: {quoted}" if quoted else problem)
