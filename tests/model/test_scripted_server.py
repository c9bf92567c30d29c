"""The model client and the scripted model server, which was written from the same wire and not from this client."""

from contextlib import aclosing

import anyio
import pytest

from recallscope.runtime.errors import ModelError, ModelStatusError, ModelStreamError
from recallscope.runtime.events import OpId
from recallscope.runtime.messages import AssistantMessage, TextPart, ToolCall, ToolResultPart, UserMessage
from recallscope.runtime.model.openai_compat import OpenAICompatModel
from recallscope.runtime.model.seam import Chunk, ModelRequest, ResponseSchema, Usage
from recallscope.runtime.testing.model_server import serve
from recallscope.runtime.testing.script import (
    ErrorChunk,
    Malformed,
    Script,
    ScriptedToolCall,
    ScriptedUsage,
    Step,
)

pytestmark = pytest.mark.anyio

PROMPT = UserMessage((TextPart("hi"),))
ARGUMENTS = '{"pattern": "x"}'


def ask(*messages: UserMessage | AssistantMessage, schema: str | None = None) -> ModelRequest:
    """Make a request."""
    return ModelRequest(
        op=OpId("1"),
        system="be brief",
        messages=messages or (PROMPT,),
        response_schema=ResponseSchema(schema, {"type": "object"}) if schema else None,
    )


async def read(model: OpenAICompatModel, request: ModelRequest) -> list[Chunk]:
    """Read a stream to its end."""
    async with aclosing(model.stream(request)) as chunks:
        return [chunk async for chunk in chunks]


async def test_a_tool_round() -> None:
    """Tool calls come in fragments, their results go back, the answer and its usage follow."""
    usage = ScriptedUsage(input=7, output=3, cached=2)
    script = Script.of(
        Step(tool_calls=(ScriptedToolCall(name="grep", arguments=ARGUMENTS, id="c1"),)),
        Step(answer="found it", chunks=2, comment_first=True, usage=usage),
    )
    async with serve(script) as server, OpenAICompatModel(name="scripted", base_url=server.url) as model:
        first = await read(model, ask())
        deltas = [delta for chunk in first for delta in chunk.tool_calls]
        call = ToolCall(
            next(delta.call_id for delta in deltas if delta.call_id),
            next(delta.tool for delta in deltas if delta.tool),
            "".join(delta.arguments for delta in deltas),
        )
        assert call == ToolCall("c1", "grep", ARGUMENTS)
        results = UserMessage((ToolResultPart("c1", "grep", "a.py:1: x"),))
        second = await read(model, ask(PROMPT, AssistantMessage("", (call,)), results))
    assert "".join(chunk.text for chunk in second) == "found it"
    assert [chunk.finish_reason for chunk in first + second if chunk.finish_reason] == ["tool_calls", "stop"]
    assert [chunk.usage for chunk in second if chunk.usage] == [Usage(7, 3, 2)]


async def test_a_structured_call_is_told_by_its_purpose() -> None:
    """The server answers the purpose that the schema names."""
    script = Script.of(Step(answer="main"), memory_selection=Step(answer='{"ids": []}'))
    async with serve(script) as server, OpenAICompatModel(name="scripted", base_url=server.url) as model:
        assert (await model.complete(ask(schema="memory_selection"))).text == '{"ids": []}'
        assert (await model.complete(ask())).text == "main"


@pytest.mark.parametrize(
    ("step", "kind", "problem"),
    [
        (Step(status=429, retry_after=2), ModelStatusError, "answered 429"),
        (Step(answer="one two", chunks=2, cut_after=1), ModelStreamError, "stopped early"),
        (
            Step(answer="one two", chunks=2, malformed=Malformed(line="data: {oops", after=1)),
            ModelStreamError,
            "no JSON",
        ),
        (Step(error_chunk=ErrorChunk(message="overloaded")), ModelStreamError, "reports an error: overloaded"),
    ],
)
async def test_what_goes_wrong_is_told(step: Step, kind: type[ModelError], problem: str) -> None:
    """Refusals, cut and malformed streams and error chunks of the server are the errors of the client."""
    async with serve(Script.of(step)) as server, OpenAICompatModel(name="scripted", base_url=server.url) as model:
        with pytest.raises(kind, match=problem):
            await read(model, ask())


@pytest.mark.parametrize("step", [Step(hang=True), Step(answer="x", endless=True, chunk_delay=0.01)])
async def test_a_cancelled_call_is_seen_by_the_server(step: Step) -> None:
    """The server learns that the client has gone, before and in the middle of an answer."""
    async with serve(Script.of(step)) as server, OpenAICompatModel(name="scripted", base_url=server.url) as model:
        async with anyio.create_task_group() as group:
            group.start_soon(read, model, ask())
            await server.wait_for(lambda request: step.hang or request.answer_began is not None)
            group.cancel_scope.cancel()
        with anyio.fail_after(5):
            seen = await server.wait_for(lambda request: request.client_closed)
    assert seen.path == "/v1/chat/completions"
