"""An answer as it comes in, chunk by chunk."""

from hypothesis import given
from hypothesis import strategies as st

from recallscope.runtime.agent.reply import Reply
from recallscope.runtime.messages import AssistantMessage, ToolCall
from recallscope.runtime.model.seam import Chunk, ToolCallDelta, Usage


def taken(*chunks: Chunk) -> Reply:
    """Take these chunks."""
    reply = Reply()
    for chunk in chunks:
        reply.add(chunk)
    return reply


@given(st.lists(st.tuples(st.text(max_size=4), st.text(max_size=4)), min_size=1, max_size=6), st.text(max_size=8))
def test_pieces_are_put_together(pieces: list[tuple[str, str]], text: str) -> None:
    """Text and the arguments of calls that come interleaved in pieces are whole in the end."""
    first, second = (ToolCallDelta(index, f"c{index}", f"t{index}", "") for index in (0, 1))
    deltas = [
        Chunk(tool_calls=(ToolCallDelta(1, None, None, right), ToolCallDelta(0, None, None, left)))
        for left, right in pieces
    ]
    reply = taken(*(Chunk(char) for char in text), Chunk(tool_calls=(second, first)), *deltas)
    calls = (
        ToolCall("c0", "t0", "".join(left for left, _ in pieces)),
        ToolCall("c1", "t1", "".join(right for _, right in pieces)),
    )

    assert reply.message() == AssistantMessage(text, calls)


def test_the_last_word_wins() -> None:
    """Finish reason, usage, model and response id are those that came last; empty ones change nothing."""
    reply = taken(
        Chunk(finish_reason="stop", model="m", response_id="r"), Chunk(usage=Usage(3, 4), accepted=False), Chunk()
    )

    assert (reply.finish_reason, reply.usage, reply.model, reply.response_id) == ("stop", Usage(3, 4), "m", "r")


def test_an_answer_begins_with_text_or_a_call() -> None:
    """A chunk that holds neither can be asked for again without saying anything twice."""
    assert [
        taken(Chunk()).begun,
        taken(Chunk("a")).begun,
        taken(Chunk(tool_calls=(ToolCallDelta(0, "c", "t", ""),))).begun,
    ] == [False, True, True]


def test_a_fragment_has_no_calls() -> None:
    """Of an answer that broke off the text is kept and marked; its calls are never made."""
    call = Chunk(tool_calls=(ToolCallDelta(0, "c", "t", "{"),))

    assert taken(Chunk("so"), call).fragment() == AssistantMessage("so", complete=False)
    assert taken(call).fragment() is None


def test_a_call_without_an_id_gets_one() -> None:
    """Some servers send no ids; the answer to a call must be able to name it."""
    reply = taken(Chunk(tool_calls=(ToolCallDelta(0, None, "t", "{}"), ToolCallDelta(1, None, "t", "{}"))))

    assert [call.call_id for call in reply.message().tool_calls] == ["call_0", "call_1"]
