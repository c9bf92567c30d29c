"""Answers from the wire: one decoding per chunk or body and a check of its shape, no model objects.

What decides the turn (choices, text, tool calls, errors) must have its shape; what only informs (usage, ids) is left
out when it has not.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, cast

import orjson

from recallscope.runtime.errors import ModelStreamError
from recallscope.runtime.messages import ToolCall
from recallscope.runtime.model.seam import Answer, Chunk, ToolCallDelta, Usage

__all__ = ["AnswerDecoder", "well_formed"]

QUOTE_LENGTH = 300

_Object = Mapping[str, Any]


class AnswerDecoder:
    """Reads one answer of the server at `url`; a stream is read chunk by chunk and remembers how far it came.

    `mask` takes secrets out of what the server said before it becomes part of an error.
    """

    def __init__(self, *, url: str, mask: Callable[[str], str] = str) -> None:
        self._url = url
        self._mask = mask
        self.accepted = False
        self.finished = False
        self._half = ""

    def chunk(self, data: bytes, *, event: str = "message") -> Chunk:
        """Return the chunk that stands in `data`, one event of the stream.

        Raises:
            ModelStreamError: the server reports an error, or the chunk has not the shape of one.
        """
        body = self._object(data)
        self._raise_reported(body, reported=event == "error")
        choice = self._first_choice(body)
        if choice is not None:
            self.accepted = True
        usage, model, response_id = _usage(body.get("usage")), _text(body.get("model")), _text(body.get("id"))
        if choice is None:
            return Chunk(usage=usage, model=model, response_id=response_id, accepted=self.accepted)
        delta = self._part(choice, "delta")
        calls = delta.get("tool_calls")
        finish_reason = _text(choice.get("finish_reason"))
        self.finished = self.finished or finish_reason is not None
        return Chunk(
            text=self._joined(self._content(delta), last=finish_reason is not None),
            tool_calls=tuple(self._delta(call, position) for position, call in self._calls(calls)) if calls else (),
            finish_reason=finish_reason,
            usage=usage,
            model=model,
            response_id=response_id,
            accepted=True,
        )

    def answer(self, data: bytes) -> Answer:
        """Return the whole answer that stands in `data`, the body of a response that was not streamed.

        Raises:
            ModelStreamError: as `chunk`, and when there is no choice.
        """
        body = self._object(data)
        self._raise_reported(body, reported=False)
        choice = self._first_choice(body)
        if choice is None:
            self._fail("it holds no choice", data)
        message = self._part(choice, "message")
        calls = [self._delta(call, position) for position, call in self._calls(message.get("tool_calls") or [])]
        return Answer(
            text=well_formed(self._content(message)),
            tool_calls=tuple(ToolCall(call.call_id or "", call.tool or "", call.arguments) for call in calls),
            finish_reason=_text(choice.get("finish_reason")),
            usage=_usage(body.get("usage")),
            model=_text(body.get("model")),
            response_id=_text(body.get("id")),
        )

    def _joined(self, text: str, *, last: bool) -> str:
        """Return `text` as a whole: some servers cut a character outside the basic plane into two chunks."""
        text = self._half + text
        self._half = text[-1] if text and "\ud800" <= text[-1] <= "\udbff" and not last else ""
        return well_formed(text[: len(text) - len(self._half)])

    def _object(self, data: bytes) -> _Object:
        try:
            body: object = _decoded(data)
        except (ValueError, RecursionError):
            self._fail("it is no JSON", data)
        if not isinstance(body, dict):
            self._fail("it is no JSON object", data)
        return cast("_Object", body)

    def _raise_reported(self, body: _Object, *, reported: bool) -> None:
        error: object = body.get("error") or (body if reported else None)
        if not error:
            return
        text, code = error, None
        if isinstance(error, dict):
            fields = cast("_Object", error)
            text = fields.get("message") or fields
            code = _status(fields.get("code")) or _status(fields.get("status"))
        raise ModelStreamError(
            url=self._url, problem=f"the server reports an error: {self._quote(str(text))}", status_code=code
        )

    def _first_choice(self, body: _Object) -> _Object | None:
        choices: object = body.get("choices")
        if choices is None or choices == []:
            return None
        if not isinstance(choices, list):
            self._fail("its choices are no list", choices)
        choice: object = cast("list[object]", choices)[0]
        if not isinstance(choice, dict):
            self._fail("its choice is no object", choice)
        return cast("_Object", choice)

    def _part(self, choice: _Object, key: str) -> _Object:
        part: object = choice.get(key)
        if part is None:
            return {}
        if not isinstance(part, dict):
            self._fail(f"the {key} of its choice is no object", part)
        return cast("_Object", part)

    def _content(self, part: _Object) -> str:
        content: object = part.get("content") or part.get("refusal")
        if not content:
            return ""
        if not isinstance(content, str):
            self._fail("its content is no text", content)
        return content

    def _calls(self, calls: object) -> "enumerate[object]":
        if not isinstance(calls, list):
            self._fail("its tool calls are no list", calls)
        return enumerate(cast("list[object]", calls))

    def _delta(self, call: object, position: int) -> ToolCallDelta:
        if not isinstance(call, dict):
            self._fail("a tool call is no object", call)
        fields = cast("_Object", call)
        function = self._part(fields, "function")
        index, arguments = fields.get("index"), function.get("arguments")
        if isinstance(arguments, dict):  # some servers send the object itself instead of its text
            arguments = json.dumps(arguments, ensure_ascii=False)
        if arguments is not None and not isinstance(arguments, str):
            self._fail("the arguments of a tool call are no text", cast("object", arguments))
        return ToolCallDelta(
            index=index if isinstance(index, int) else position,
            call_id=_text(fields.get("id")),
            tool=_text(function.get("name")),
            arguments=arguments or "",
        )

    def _fail(self, problem: str, found: object) -> NoReturn:
        text = found.decode("utf-8", "replace") if isinstance(found, bytes) else repr(found)
        raise ModelStreamError(url=self._url, problem=f"{problem}: {self._quote(text) or 'nothing'}")

    def _quote(self, text: str) -> str:
        return self._mask(well_formed(text))[:QUOTE_LENGTH]


def _decoded(data: bytes) -> object:
    """Return the JSON in `data`; what only `json` takes (halves of a character, UTF-16) is rare and costs its time."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return json.loads(data)


def well_formed(text: str) -> str:
    """Return `text` with halves of one character joined and lone ones replaced; JSON can spell both, UTF-8 neither."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _text(value: object) -> str | None:
    return well_formed(value) if isinstance(value, str) and value else None


def _status(value: object) -> int | None:
    text = str(value)
    return int(text) if len(text) == 3 and text.isascii() and text.isdigit() and "400" <= text < "600" else None  # noqa: PLR2004 - an HTTP status


def _usage(value: object) -> Usage | None:
    if not isinstance(value, dict):
        return None
    fields = cast("_Object", value)
    read, written = fields.get("prompt_tokens"), fields.get("completion_tokens")
    details: object = fields.get("prompt_tokens_details")
    cached: object = cast("_Object", details).get("cached_tokens") if isinstance(details, dict) else None
    if not isinstance(read, int) or not isinstance(written, int):
        return None
    return Usage(read, written, cached if isinstance(cached, int) else None)
