"""Answers from the wire."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallscope.runtime.errors import ModelStreamError
from recallscope.runtime.messages import ToolCall
from recallscope.runtime.model.answer import AnswerDecoder, well_formed
from recallscope.runtime.model.seam import Answer, Chunk, ToolCallDelta, Usage


def chunks(*values: object) -> list[Chunk]:
    """Decode `values` as the events of one stream."""
    decoder = AnswerDecoder(url="http://server")
    return [decoder.chunk(json.dumps(value).encode()) for value in values]


def choice(**fields: Any) -> dict[str, Any]:
    """Make a chunk with one choice."""
    return {"choices": [{"index": 0, **fields}]}


def test_acceptance_begins_with_the_first_choice() -> None:
    """Chunks without a choice are no acceptance before it and stay accepted after it."""
    got = chunks(
        {"choices": []},
        {"object": "ping"},
        choice(delta={"content": "a"}),
        {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1}},
    )
    assert got == [
        Chunk(accepted=False),
        Chunk(accepted=False),
        Chunk(text="a"),
        Chunk(usage=Usage(3, 1)),
    ]


def test_a_chunk_gives_all_that_it_says() -> None:
    """Text, finish reason, usage, model and id."""
    value = choice(delta={"content": "hi"}, finish_reason="stop")
    value |= {"id": "r1", "model": "m-1"}
    value |= {"usage": {"prompt_tokens": 5, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}}
    assert chunks(value) == [
        Chunk(text="hi", finish_reason="stop", usage=Usage(5, 2, 4), model="m-1", response_id="r1")
    ]


def test_tool_calls_come_in_fragments() -> None:
    """Fragments keep their index; a server that leaves it out means the position; an object is taken as its text."""
    got = chunks(
        choice(delta={"tool_calls": [{"index": 1, "id": "c", "function": {"name": "grep", "arguments": ""}}]}),
        choice(delta={"tool_calls": [{"index": 1, "function": {"arguments": '{"a'}}]}),
        choice(delta={"tool_calls": [{"id": "d", "function": {"name": "glob", "arguments": {"a": 1}}}]}),
    )
    assert [chunk.tool_calls for chunk in got] == [
        (ToolCallDelta(1, "c", "grep", ""),),
        (ToolCallDelta(1, None, None, '{"a'),),
        (ToolCallDelta(0, "d", "glob", '{"a": 1}'),),
    ]


def test_a_refusal_is_text() -> None:
    """What the model says instead of an answer is shown."""
    assert chunks(choice(delta={"content": None, "refusal": "no"})) == [Chunk(text="no")]


@pytest.mark.parametrize(
    ("error", "text", "status", "retryable"),
    [
        ({"error": {"message": "overloaded", "code": 503}}, "overloaded", 503, True),
        ({"error": {"message": "too long", "code": "400"}}, "too long", 400, False),
        ({"error": {"message": "x", "code": "context_length_exceeded"}}, "x", None, True),
        ({"error": "plain"}, "plain", None, True),
    ],
)
def test_an_error_chunk_is_an_error(error: object, text: str, status: int | None, *, retryable: bool) -> None:
    """Its text is told, and its status, if it carries one, decides whether a retry can help."""
    with pytest.raises(ModelStreamError, match=f"reports an error: {text}") as caught:
        chunks(error)
    assert (caught.value.status_code, caught.value.retryable) == (status, retryable)


def test_an_error_event_without_error_key_is_an_error() -> None:
    """The name of the event alone says that it is one."""
    with pytest.raises(ModelStreamError, match="reports an error"):
        AnswerDecoder(url="u").chunk(b'{"message": "x"}', event="error")


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"{", "it is no JSON: {"),
        (b"", "it is no JSON: nothing"),
        (b"[" * 100_000, "it is no JSON"),
        (b"[]", "it is no JSON object"),
        (b'{"choices": {}}', "its choices are no list"),
        (b'{"choices": [1]}', "its choice is no object"),
        (b'{"choices": [{"delta": 1}]}', "the delta of its choice is no object"),
        (b'{"choices": [{"delta": {"content": 1}}]}', "its content is no text"),
        (b'{"choices": [{"delta": {"tool_calls": 1}}]}', "its tool calls are no list"),
        (b'{"choices": [{"delta": {"tool_calls": [1]}}]}', "a tool call is no object"),
        (b'{"choices": [{"delta": {"tool_calls": [{"function": {"arguments": 1}}]}}]}', "arguments of a tool call"),
    ],
)
def test_a_chunk_of_another_shape_is_named(data: bytes, problem: str) -> None:
    """What decides the turn must have its shape; the error says what has not."""
    with pytest.raises(ModelStreamError, match="is broken") as caught:
        AnswerDecoder(url="u").chunk(data)
    assert problem in str(caught.value)
    assert len(str(caught.value)) < 500


def test_usage_of_another_shape_is_left_out() -> None:
    """What only informs never fails a turn."""
    value = choice(delta={"content": "a"}) | {"usage": {"prompt_tokens": "many"}, "model": 7, "id": None}
    assert chunks(value) == [Chunk(text="a")]


def test_a_whole_answer() -> None:
    """The body of a response that was not streamed."""
    data = {
        "id": "r",
        "model": "m",
        "choices": [
            {
                "message": {"content": None, "tool_calls": [{"id": "1", "function": {"name": "a", "arguments": "{}"}}]},
                "finish_reason": "tool_calls",
            }
        ],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2},
    }
    assert AnswerDecoder(url="u").answer(json.dumps(data).encode()) == Answer(
        text="",
        tool_calls=(ToolCall("1", "a", "{}"),),
        finish_reason="tool_calls",
        usage=Usage(1, 2),
        model="m",
        response_id="r",
    )


def test_an_answer_without_choice_is_none() -> None:
    """A body with an empty list of choices is broken, not empty."""
    with pytest.raises(ModelStreamError, match="holds no choice"):
        AnswerDecoder(url="u").answer(b'{"choices": []}')


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "choices",
                    "delta",
                    "message",
                    "content",
                    "tool_calls",
                    "function",
                    "arguments",
                    "usage",
                    "error",
                    "index",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(JSON)
def test_any_json_is_a_chunk_or_a_stream_error(value: object) -> None:
    """No shape of JSON raises anything but `ModelStreamError`."""
    for decode in (AnswerDecoder(url="u").chunk, AnswerDecoder(url="u").answer):
        try:
            decode(json.dumps(value).encode())
        except ModelStreamError as error:
            assert "is broken" in str(error)  # noqa: PT017 - both ways are right, and the error is one of them


def test_a_character_cut_into_two_chunks_is_whole_again() -> None:
    """Some servers cut between the two halves of a character; the halves are joined, a lone one is replaced."""
    decoder = AnswerDecoder(url="http://127.0.0.1")
    pieces = ['"a\\ud83d"', '"\\ude00b\\ud83d"', '"c"', '"\\udc00"', '"\\ud83d"']

    chunks = [decoder.chunk(f'{{"choices": [{{"delta": {{"content": {piece}}}}}]}}'.encode()) for piece in pieces]
    last = decoder.chunk(b'{"choices": [{"delta": {"content": ""}, "finish_reason": "stop"}]}')

    assert [chunk.text for chunk in (*chunks, last)] == ["a", "\U0001f600b", "\ufffdc", "\ufffd", "", "\ufffd"]


@given(st.lists(st.text(st.characters(codec=None), max_size=5), max_size=6))
def test_any_text_comes_out_as_text_that_can_be_written(pieces: list[str]) -> None:
    """Whatever the pieces hold, what comes out is UTF-8, and nothing well-formed is lost."""
    decoder = AnswerDecoder(url="http://127.0.0.1")
    chunks = [json.dumps({"choices": [{"delta": {"content": piece}}]}).encode() for piece in pieces]
    end = b'{"choices": [{"delta": {}, "finish_reason": "stop"}]}'

    text = "".join(decoder.chunk(chunk).text for chunk in (*chunks, end))

    assert text.encode() == well_formed("".join(pieces)).encode()
