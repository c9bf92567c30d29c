"""Messages on the wire."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from recallscope.runtime.events import OpId
from recallscope.runtime.messages import (
    AssistantMessage,
    MemoryPart,
    Message,
    NoteVersion,
    Part,
    ReminderPart,
    TextPart,
    ToolCall,
    ToolResultPart,
    UserMessage,
)
from recallscope.runtime.model.seam import ModelRequest, ResponseSchema, ToolSpec
from recallscope.runtime.model.wire import Dialect, FragmentCache, RequestEncoder, message_to_wire

SCHEMA = ResponseSchema("memory_selection", {"type": "object"})


def body(request: ModelRequest, dialect: Dialect | None = None, *, stream: bool = True) -> dict[str, Any]:
    """Encode `request` and read it as a server does."""
    return json.loads(RequestEncoder("m").encode(request, dialect or Dialect(), stream=stream))


def request(*messages: Message, **fields: Any) -> ModelRequest:
    """Make a request of `messages`."""
    return ModelRequest(op=OpId("1"), system=fields.pop("system", None), messages=messages, **fields)


def test_a_user_message_is_its_tool_results_and_then_one_text() -> None:
    """Each tool result becomes a message of its own, in order; memory, reminders and text become one after them."""
    message = UserMessage(
        (
            ToolResultPart("1", "a", "first"),
            ToolResultPart("2", "b", "second"),
            MemoryPart("memory", (NoteVersion("n", "v"),)),
            ReminderPart("reminder", "todo"),
            TextPart("text"),
        )
    )
    assert message_to_wire(message) == [
        {"role": "tool", "tool_call_id": "1", "content": "first"},
        {"role": "tool", "tool_call_id": "2", "content": "second"},
        {"role": "user", "content": "memory\n\nreminder\n\ntext"},
    ]


def test_tool_results_alone_make_no_user_message() -> None:
    """A message of tool results alone is exactly those."""
    assert message_to_wire(UserMessage((ToolResultPart("1", "a", "x"),))) == [
        {"role": "tool", "tool_call_id": "1", "content": "x"}
    ]


def test_an_empty_user_message_is_still_one() -> None:
    """A message without parts is an empty user message, so that roles keep alternating."""
    assert message_to_wire(UserMessage(())) == [{"role": "user", "content": ""}]


def test_an_assistant_message_carries_its_tool_calls() -> None:
    """Tool calls go with their id, name and arguments as the model wrote them."""
    assert message_to_wire(AssistantMessage("", (ToolCall("1", "grep", '{"pattern": "x"}'),))) == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "grep", "arguments": '{"pattern": "x"}'}}
            ],
        }
    ]


def test_arguments_that_are_no_object_do_not_spoil_the_history() -> None:
    """Unreadable arguments are wrapped, empty ones become an empty object."""
    wire = message_to_wire(AssistantMessage("x", (ToolCall("1", "a", '{"cut'), ToolCall("2", "b", ""))))
    arguments = [call["function"]["arguments"] for call in wire[0]["tool_calls"]]
    assert [json.loads(text) for text in arguments] == [{"unreadable_arguments": '{"cut'}, {}]


PARTS: st.SearchStrategy[Part] = st.one_of(
    st.builds(TextPart, st.text()),
    st.builds(MemoryPart, st.text(), st.just(())),
    st.builds(ReminderPart, st.text(), st.just("s")),
    st.builds(ToolResultPart, st.text(), st.just("t"), st.text()),
)


@given(st.lists(PARTS))
def test_no_tool_result_follows_memory_on_the_wire(parts: list[Part]) -> None:
    """Whatever the order of parts, all tool results come first, in their order, and all texts in one message."""
    wire = message_to_wire(UserMessage(tuple(parts)))
    results = [part for part in parts if isinstance(part, ToolResultPart)]
    texts = [part.text for part in parts if not isinstance(part, ToolResultPart)]
    expected = [{"role": "tool", "tool_call_id": part.call_id, "content": part.text} for part in results]
    if texts or not results:
        expected.append({"role": "user", "content": "\n\n".join(texts)})
    assert wire == expected


@given(st.lists(st.text(), min_size=1, max_size=6))
def test_the_body_says_what_the_messages_say(texts: list[str]) -> None:
    """The joined fragments are the JSON of the wire messages, for any text."""
    messages = [UserMessage((TextPart(text),)) for text in texts]
    wire = [message for one in messages for message in message_to_wire(one)]
    assert body(request(*messages))["messages"] == wire


def test_a_lone_surrogate_is_no_error() -> None:
    """Text that cannot be UTF-8 becomes a question mark."""
    assert body(request(UserMessage((TextPart("a\ud800"),))))["messages"][0]["content"] == "a?"


def test_a_streamed_request_names_everything() -> None:
    """Model, stream options, limit, system text, tools: as the wire has them."""
    tool = ToolSpec("grep", "search", {"type": "object"})
    assert body(request(system="be brief", tools=[tool], max_tokens=9)) == {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 9,
        "messages": [{"role": "system", "content": "be brief"}],
        "tools": [
            {
                "type": "function",
                "function": {"name": "grep", "description": "search", "parameters": {"type": "object"}},
            }
        ],
    }


def test_a_structured_request_names_its_purpose() -> None:
    """The schema goes strict and under its name."""
    assert body(request(response_schema=SCHEMA), stream=False) == {
        "model": "m",
        "stream": False,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "memory_selection", "schema": {"type": "object"}, "strict": True},
        },
        "messages": [],
    }


def test_without_schemas_the_schema_is_said_in_words() -> None:
    """A server that knows only `json_object` is told the schema in the system text."""
    got = body(request(system="choose", response_schema=SCHEMA), Dialect(json_schema=False), stream=False)
    assert got["response_format"] == {"type": "json_object"}
    assert got["messages"][0]["content"] == (
        'choose\n\nAnswer with one JSON object that follows this JSON schema:\n{"type":"object"}'
    )


def test_a_complaint_changes_what_was_asked_and_nothing_else() -> None:
    """A 400 that names an option of the request is worth one more try; the second time it changes nothing."""
    plain, structured = request(max_tokens=5), request(response_schema=SCHEMA)
    assert Dialect().after("unknown field stream_options", plain, stream=False) == Dialect()
    assert Dialect().after("unknown field stream_options", plain, stream=True) == Dialect(stream_usage=False)
    assert Dialect().after("response_format is unknown", plain, stream=False) == Dialect()
    assert Dialect().after("response_format is unknown", structured, stream=False) == Dialect(json_schema=False)
    newer = Dialect(tokens_key="max_completion_tokens")
    assert Dialect().after("use max_completion_tokens instead", plain, stream=True) == newer
    assert newer.after("use max_completion_tokens instead", plain, stream=True) == newer


def test_a_kept_message_is_encoded_once() -> None:
    """The same object gives the same bytes without being encoded again."""
    seen: list[str] = []

    def encode(text: str) -> bytes:
        seen.append(text)
        return text.encode()

    cache = FragmentCache(encode)
    text = "ab"
    assert [cache(text), cache(text)] == [b"ab", b"ab"]
    assert seen == ["ab"]


@given(st.lists(st.integers(0, 40), max_size=40), st.integers(1, 100))
def test_the_cache_is_bounded_and_right(sizes: list[int], limit: int) -> None:
    """Whatever comes in whichever order, the bytes are right and no more than the limit is kept."""
    cache: FragmentCache[tuple[int, int]] = FragmentCache(lambda value: b"x" * value[1], limit=limit)
    values = list(enumerate(sizes))
    for value in values + values[::-1]:
        assert cache(value) == b"x" * value[1]
        assert cache.size <= limit
