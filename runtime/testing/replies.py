"""A step in the words of the wire: what leaves the server, and when, encoded once and used for every request.

Only the response id differs from answer to answer. It stands in the encoded bytes as an escaped NUL, which no script
contains (the parser refuses it), and `with_id` puts it in.
"""

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto, unique
from typing import Any

from recallscope.runtime.testing.script import ScriptedToolCall, ScriptedUsage, Step

__all__ = [
    "DONE",
    "Ending",
    "Frame",
    "Head",
    "Reply",
    "error_body",
    "make_embeddings",
    "make_reply",
    "refusal",
    "with_id",
]

DONE = b"data: [DONE]\n\n"

_ID = "\x00"
_ID_IN_JSON = b"\\u0000"

_encode_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


@unique
class Ending(Enum):
    """How an answer ends: whole, by a closed connection, never (or after `repeats`), or without having begun."""

    WHOLE = auto()
    CUT = auto()
    ENDLESS = auto()
    HANG = auto()


@dataclass(frozen=True, slots=True)
class Frame:
    """Bytes that leave `at` seconds after the headers, together."""

    at: float
    data: bytes


@dataclass(frozen=True, slots=True)
class Head:
    """Status and headers of an answer; `length` None means that it is sent in pieces."""

    status: int
    content_type: str
    length: int | None = None
    extra: tuple[tuple[str, str], ...] = ()

    @property
    def headers(self) -> list[tuple[str, str]]:
        """The headers as they are sent."""
        length = [] if self.length is None else [("content-length", str(self.length))]
        return [("content-type", self.content_type), *self.extra, *length]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """All that is sent for one step. After the frames an endless reply repeats `again` every `interval` seconds."""

    delay: float = 0.0
    head: Head = Head(200, "application/json")
    frames: tuple[Frame, ...] = ()
    ending: Ending = Ending.WHOLE
    again: bytes = b""
    interval: float = 0.0
    repeats: int | None = None
    last: bytes = b""

    @property
    def instant(self) -> bool:
        """Whether nothing in it waits."""
        return (
            self.delay == 0 and self.ending in {Ending.WHOLE, Ending.CUT} and not any(frame.at for frame in self.frames)
        )


def make_reply(step: Step, *, answer: str, model: str, stream: bool, include_usage: bool) -> Reply:
    """Encode `step`, with `answer` as its text; the placeholder of the response id is left in the bytes."""
    if step.hang:
        return Reply(ending=Ending.HANG)
    if step.status is not None:
        return _refused(step)
    if not stream:
        return _whole(step, answer, model)
    return _streamed(step, answer, _Chunks(model, include_usage))


def make_embeddings(step: Step, vectors: Sequence[Sequence[float]], *, model: str) -> Reply:
    """Encode `vectors` as the answer of `step` to a request for embeddings, or what goes wrong instead."""
    if step.hang:
        return Reply(ending=Ending.HANG)
    if step.status is not None:
        return _refused(step)
    data = [
        {"object": "embedding", "index": index, "embedding": [round(number, 6) for number in vector]}
        for index, vector in enumerate(vectors)
    ]
    tokens = step.usage.input
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return _body_of(step, _bytes({"object": "list", "data": data, "model": model, "usage": usage}))


def refusal(status: int, message: str, kind: str = "invalid_request_error") -> Reply:
    """Make the answer to a request that the server itself refuses."""
    return _json_reply(Head(status, "application/json"), error_body(message, kind), 0.0)


def error_body(message: str, kind: str, code: str | None = None) -> bytes:
    """Encode an error object as the wire has it."""
    return _bytes({"error": {"message": message, "type": kind, "param": None, "code": code}})


def with_id(data: bytes, response_id: str) -> bytes:
    """Put the response id where the placeholder stands."""
    return data.replace(_ID_IN_JSON, response_id.encode())


@dataclass(frozen=True, slots=True)
class _Chunks:
    """Makes the events of one stream."""

    model: str
    include_usage: bool

    def event(self, choices: list[dict[str, Any]], **fields: Any) -> bytes:
        chunk: dict[str, Any] = {
            "id": f"chatcmpl-{_ID}",
            "object": "chat.completion.chunk",
            "created": 0,
            "model": self.model,
            "choices": choices,
        }
        if self.include_usage:
            chunk["usage"] = None
        return b"data: " + _bytes({**chunk, **fields}) + b"\n\n"

    def choice(self, delta: dict[str, Any], finish_reason: str | None = None) -> bytes:
        return self.event([{"index": 0, "delta": delta, "finish_reason": finish_reason}])

    def usage(self, usage: ScriptedUsage) -> bytes:
        return self.event([], usage=_usage(usage)) if self.include_usage else b""


def _streamed(step: Step, answer: str, chunks: _Chunks) -> Reply:
    head = Head(200, "text/event-stream")
    before = b": this line is a comment\n\n" + chunks.event([]) if step.comment_first else b""
    finish = chunks.choice({}, _finish_reason(step)) + chunks.usage(step.usage) + DONE
    if step.endless:
        first = chunks.choice({"role": "assistant", "content": ""})
        again = chunks.choice({"content": answer})
        return Reply(
            delay=step.delay,
            head=head,
            frames=(Frame(0.0, before + first),),
            ending=Ending.ENDLESS,
            again=again,
            interval=step.chunk_delay,
            repeats=step.max_chunks,
            last=finish,
        )
    deltas = list(_deltas(step, answer))
    if deltas:
        deltas[0] = {"role": "assistant", **deltas[0]}
    else:
        finish = chunks.choice({"role": "assistant"}, _finish_reason(step)) + chunks.usage(step.usage) + DONE
    timeline = _Timeline(step.chunk_delay, before)
    ending = Ending.WHOLE
    for number in range(len(deltas) + 1):
        if step.malformed and number == min(step.malformed.after, len(deltas)):
            timeline.now(f"data: {step.malformed.line}\n\n".encode())
        if step.cut_after is not None and number == min(step.cut_after, len(deltas)):
            ending = Ending.CUT
            break
        if step.error_chunk and number == min(step.error_chunk.after, len(deltas)):
            error = step.error_chunk
            timeline.now(b"data: " + error_body(error.message, error.type, error.code) + b"\n\n")
            break
        if number < len(deltas):
            timeline.later(chunks.choice(deltas[number]))
        else:
            timeline.now(finish)
    return Reply(delay=step.delay, head=head, frames=timeline.frames(), ending=ending)


class _Timeline:
    """Collects bytes by the time at which they leave; what leaves at the same time leaves together."""

    def __init__(self, interval: float, first: bytes) -> None:
        self._interval = interval
        self._steps = 0
        self._parts: dict[int, list[bytes]] = {0: [first]}

    def now(self, data: bytes) -> None:
        self._parts.setdefault(self._steps, []).append(data)

    def later(self, data: bytes) -> None:
        if self._interval:
            self._steps += 1
        self.now(data)

    def frames(self) -> tuple[Frame, ...]:
        joined = ((steps * self._interval, b"".join(parts)) for steps, parts in self._parts.items())
        return tuple(Frame(at, data) for at, data in joined if data)


def _deltas(step: Step, answer: str) -> Iterator[dict[str, Any]]:
    for piece in _pieces(answer, step.chunks):
        yield {"content": piece}
    for index, call in enumerate(step.tool_calls):
        identity = {"id": call_id} if (call_id := _call_id(call, index)) else {}
        yield {
            "tool_calls": [
                {"index": index, **identity, "type": "function", "function": {"name": call.name, "arguments": ""}}
            ]
        }
        for piece in _pieces(call.arguments, call.fragments):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _pieces(text: str, count: int) -> Sequence[str]:
    """Split `text` into `count` pieces of nearly equal length, fewer when it has fewer characters."""
    count = min(count, len(text))
    edges = [len(text) * number // count for number in range(count + 1)] if count else []
    return [text[start:end] for start, end in itertools.pairwise(edges)]


def _whole(step: Step, answer: str, model: str) -> Reply:
    message: dict[str, Any] = {"role": "assistant", "content": answer or None}
    if step.tool_calls:
        message["tool_calls"] = [
            {
                "id": _call_id(call, index),
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for index, call in enumerate(step.tool_calls)
        ]
    body = _bytes(
        {
            "id": f"chatcmpl-{_ID}",
            "object": "chat.completion",
            "created": 0,
            "model": model,
            "choices": [{"index": 0, "message": message, "finish_reason": _finish_reason(step)}],
            "usage": _usage(step.usage),
        }
    )
    return _body_of(step, body)


def _body_of(step: Step, body: bytes) -> Reply:
    """Send `body` in one piece, or what goes wrong with it."""
    head = Head(200, "application/json")
    delay = step.delay + step.chunk_delay * step.chunks
    if step.endless:
        # A body that is not streamed has no chunks: an answer without end is one that never comes.
        return Reply(ending=Ending.HANG)
    if step.error_chunk is not None:
        error = step.error_chunk
        return _json_reply(head, error_body(error.message, error.type, error.code), delay)
    if step.malformed is not None:
        return _json_reply(head, step.malformed.line.encode(), delay)
    if step.cut_after is not None:
        half = body[: len(body) // 2]
        return Reply(
            delay=delay, head=Head(200, "application/json", len(body)), frames=(Frame(0.0, half),), ending=Ending.CUT
        )
    return _json_reply(head, body, delay)


def _refused(step: Step) -> Reply:
    status = step.status or 500
    if isinstance(step.body, Mapping):
        body = _bytes(step.body)
    else:
        body = error_body(step.body or "the script refuses this request", _ERROR_TYPES.get(status, "server_error"))
    after = step.retry_after
    text = f"{after:g}" if isinstance(after, float | int) else after
    extra = (("retry-after", text),) if text is not None else ()
    return _json_reply(Head(status, "application/json", extra=extra), body, step.delay)


def _json_reply(head: Head, body: bytes, delay: float) -> Reply:
    return Reply(delay=delay, head=head, frames=(Frame(0.0, body),))


def _finish_reason(step: Step) -> str:
    return step.finish_reason or ("tool_calls" if step.tool_calls else "stop")


def _call_id(call: ScriptedToolCall, index: int) -> str:
    return f"call_{_ID}_{index}" if call.id is None else call.id


def _usage(usage: ScriptedUsage) -> dict[str, Any]:
    counted: dict[str, Any] = {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
    }
    if usage.cached is not None:
        counted["prompt_tokens_details"] = {"cached_tokens": usage.cached}
    return counted


def _bytes(value: Any) -> bytes:
    return _encode_json(value).encode("utf-8", "replace")


_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}
