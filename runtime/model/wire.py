"""Messages to the wire: the body of a chat-completions request, as bytes.

A frozen message always gives the same bytes, so each one is encoded once and kept, and a request with a long history
costs one join: with 440 messages about a quarter of what encoding kept dictionaries costs, a tenth of encoding anew.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from recallscope.runtime.messages import AssistantMessage, Message, ToolCall, ToolResultPart, UserMessage
from recallscope.runtime.model.seam import ModelRequest, ResponseSchema, ToolSpec

__all__ = ["Dialect", "FragmentCache", "RequestEncoder", "message_to_wire"]

CACHE_LIMIT = 16 * 1024 * 1024

ValueT = TypeVar("ValueT")

_encode_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def _to_bytes(value: Any) -> bytes:
    # A lone surrogate cannot be UTF-8; it becomes a question mark instead of an error in the middle of a turn.
    return _encode_json(value).encode("utf-8", "replace")


def message_to_wire(message: Message) -> list[dict[str, Any]]:
    """Return `message` as the wire's messages: one per tool result, in order and first, then one with the texts.

    Memory, reminders and the person's text keep their order and are joined by empty lines: every server takes a
    plain string. Arguments of a tool call that are no JSON object are wrapped into one, because servers that fill
    a prompt template parse them and would refuse the whole history from then on.
    """
    match message:
        case UserMessage(parts=parts):
            wire: list[dict[str, Any]] = [
                {"role": "tool", "tool_call_id": part.call_id, "content": part.text}
                for part in parts
                if isinstance(part, ToolResultPart)
            ]
            texts = [part.text for part in parts if not isinstance(part, ToolResultPart)]
            if texts or not wire:
                wire.append({"role": "user", "content": "\n\n".join(texts)})
            return wire
        case AssistantMessage(text=text, tool_calls=()):
            return [{"role": "assistant", "content": text}]
        case AssistantMessage(text=text, tool_calls=calls):
            return [
                {"role": "assistant", "content": text or None, "tool_calls": [_call_to_wire(call) for call in calls]}
            ]


def _call_to_wire(call: ToolCall) -> dict[str, Any]:
    return {
        "id": call.call_id,
        "type": "function",
        "function": {"name": call.tool, "arguments": _object_text(call.arguments)},
    }


def _object_text(arguments: str) -> str:
    if not arguments.strip():
        return "{}"
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        value = None
    return arguments if isinstance(value, dict) else _encode_json({"unreadable_arguments": arguments})


def _tool_to_wire(tool: ToolSpec) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)},
    }


class FragmentCache(Generic[ValueT]):
    """The bytes of frozen values by identity, at most `limit` bytes of them; the oldest half goes when it is full.

    It holds the values themselves, so that an identity in it cannot pass to another value.
    """

    def __init__(self, encode: Callable[[ValueT], bytes], *, limit: int = CACHE_LIMIT) -> None:
        self._encode = encode
        self._limit = limit
        self._size = 0
        self._entries: dict[int, tuple[ValueT, bytes]] = {}

    def __call__(self, value: ValueT) -> bytes:
        """Return the bytes of `value`, encoding it at most once while it is kept."""
        entry = self._entries.get(id(value))
        if entry is not None:
            return entry[1]
        fragment = self._encode(value)
        self._entries[id(value)] = (value, fragment)
        self._size += len(fragment)
        if self._size > self._limit:
            self._shrink()
        return fragment

    @property
    def size(self) -> int:
        """Bytes kept now."""
        return self._size

    def _shrink(self) -> None:
        while self._size > self._limit // 2:
            _, fragment = self._entries.pop(next(iter(self._entries)))
            self._size -= len(fragment)


@dataclass(frozen=True, slots=True)
class Dialect:
    """What one endpoint is known to refuse, learnt from its 400s."""

    stream_usage: bool = True
    json_schema: bool = True
    tokens_key: str = "max_tokens"

    def after(self, complaint: str, request: ModelRequest, *, stream: bool) -> "Dialect":
        """Return what to speak after a 400 to `request` in this dialect; the same if its text names nothing of it."""
        if stream and ("stream_options" in complaint or "include_usage" in complaint):
            return replace(self, stream_usage=False)
        if request.response_schema and ("response_format" in complaint or "json_schema" in complaint):
            return replace(self, json_schema=False)
        if request.max_tokens and "max_completion_tokens" in complaint:
            return replace(self, tokens_key="max_completion_tokens")
        return self


class RequestEncoder:
    """Makes request bodies for one model; keeps the bytes of messages and tools that it has seen."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._messages: FragmentCache[Message] = FragmentCache(_message_fragment)
        self._tools: FragmentCache[ToolSpec] = FragmentCache(lambda tool: _to_bytes(_tool_to_wire(tool)))

    def encode(self, request: ModelRequest, dialect: Dialect, *, stream: bool) -> bytes:
        """Return the JSON body of `request`, in the dialect of its endpoint."""
        options: dict[str, Any] = {"model": self._model, "stream": stream}
        if stream and dialect.stream_usage:
            options["stream_options"] = {"include_usage": True}
        if request.max_tokens is not None:
            options[dialect.tokens_key] = request.max_tokens
        system = request.system or ""
        if request.response_schema is not None:
            options["response_format"] = _response_format(request.response_schema, dialect)
            if not dialect.json_schema:
                system = f"{system}\n\n{_schema_in_words(request.response_schema)}".strip()
        fragments = [_to_bytes({"role": "system", "content": system})] if system else []
        fragments += map(self._messages, request.messages)
        body = [_to_bytes(options)[:-1], b',"messages":[', b",".join(fragments), b"]"]
        if request.tools:
            body += [b',"tools":[', b",".join(map(self._tools, request.tools)), b"]"]
        body.append(b"}")
        return b"".join(body)


def _message_fragment(message: Message) -> bytes:
    return b",".join(map(_to_bytes, message_to_wire(message)))


def _response_format(schema: ResponseSchema, dialect: Dialect) -> Mapping[str, Any]:
    if not dialect.json_schema:
        return {"type": "json_object"}
    return {"type": "json_schema", "json_schema": {"name": schema.name, "schema": dict(schema.schema), "strict": True}}


def _schema_in_words(schema: ResponseSchema) -> str:
    return f"Answer with one JSON object that follows this JSON schema:\n{_encode_json(dict(schema.schema))}"
