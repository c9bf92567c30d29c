"""The embeddings client: what it sends, which vectors it takes, and what it says of what is none."""

import base64
import json
from array import array
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import pytest

from recallscope.runtime.errors import ConfigError, ModelConnectionError, ModelStatusError, ModelStreamError
from recallscope.runtime.events import OpId
from recallscope.runtime.model.embeddings import EmbeddingModel
from recallscope.runtime.testing.model_server import serve as serve_script
from recallscope.runtime.testing.script import Embed, Script, Step

pytestmark = pytest.mark.anyio

Serve = Callable[..., AbstractAsyncContextManager[Any]]

OP = OpId("op")


@pytest.fixture
def anyio_backend() -> str:
    """Sockets are real, so time is, too."""
    return "asyncio"


def answer(*vectors: Any, **more: Any) -> bytes:
    """Return a body with these vectors."""
    data = [{"index": index, "embedding": vector} for index, vector in enumerate(vectors)]
    return json.dumps({"data": data, "model": "v1", "usage": {"prompt_tokens": 7}} | more).encode()


async def embedded(serve: Serve, reply: Any, *texts: str) -> Any:
    """Ask for the vectors of `texts` at a server that gives `reply`."""
    async with serve(reply) as server, EmbeddingModel(name="v", base_url=server.url) as model:
        return await model.embed(texts or ("a",), op=OP)


async def refused(serve: Serve, reply: Any, *texts: str) -> str:
    """Ask for the vectors of `texts` at a server whose reply cannot be used, and return what the error says."""
    async with serve(reply) as server, EmbeddingModel(name="v", base_url=server.url) as model:
        with pytest.raises(ModelStreamError) as failed:
            await model.embed(texts or ("a",), op=OP)
        return str(failed.value)


async def test_texts_become_vectors_in_their_order(serve: Serve, reply_whole: Callable[..., Any]) -> None:
    """The request names model and texts and carries the trace; the answer's order is that of the indexes."""
    data = [{"index": 1, "embedding": [3, 4.5]}, {"index": 0, "embedding": [1, 2]}]
    async with (
        serve(reply_whole(answer(data=data))) as server,
        EmbeddingModel(
            name="v", base_url=server.url, api_key="k", trace_headers=lambda op: {"traceparent": op}
        ) as model,
    ):
        got = await model.embed(["a", "ü"], op=OP)

    assert [list(vector) for vector in got.vectors] == [[1, 2], [3, 4.5]]
    assert (got.tokens, got.model) == (7, "v1")
    assert server.bodies == [{"model": "v", "input": ["a", "ü"], "encoding_format": "float"}]
    assert (server.headers[0]["authorization"], server.headers[0]["traceparent"]) == ("bearer k", "op")
    assert (model.endpoint.model, model.endpoint.address) == ("v", "127.0.0.1")


async def test_base64_is_read_too(serve: Serve, reply_whole: Callable[..., Any]) -> None:
    """Some servers send the bytes of the numbers, whatever they are asked for."""
    packed = base64.b64encode(array("f", [0.5, -2.0]).tobytes()).decode()

    assert list((await embedded(serve, reply_whole(answer(packed)))).vectors[0]) == [0.5, -2.0]


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"{", "it is no JSON"),
        (b"[]", "it is no JSON object"),
        (b'{"error": {"message": "sk-secret123 is wrong"}}', "the server reports an error"),
        (b'{"data": {}}', "it has no list of vectors"),
        (answer([1.0], [2.0]), "it has 2 vectors for 1 texts"),
        (answer(data=[7]), "an entry is no object"),
        (answer(data=[{"index": 1, "embedding": [1]}]), "an entry has no index of its own"),
        (answer([]), "a vector has 0 numbers"),
        (answer(None), "a vector has 0 numbers"),
        (answer([1.0] * 16_385), "a vector has 16385 numbers"),
        (answer(["x"]), "a vector holds what is no number"),
        (answer([1e300]), "a vector holds what is no"),
        (answer("?"), "a vector holds what is no number"),
        (b'{"data": [{"embedding": [NaN]}]}', "a vector holds what is no finite number"),
    ],
)
async def test_what_is_no_vector_is_an_error(
    serve: Serve, reply_whole: Callable[..., Any], body: bytes, problem: str
) -> None:
    """The error says what is wrong, and shows no credential."""
    said = await refused(serve, reply_whole(body))

    assert problem in said
    assert "secret123" not in said


async def test_vectors_of_several_lengths_are_an_error(serve: Serve, reply_whole: Callable[..., Any]) -> None:
    """They could not be compared."""
    assert "differ in length" in await refused(serve, reply_whole(answer([1.0], [1.0, 2.0])), "a", "b")


async def test_a_refusal_and_a_silence_are_told_apart() -> None:
    """A status is a status error; what does not come within the given time is a connection error that timed out."""
    async with (
        serve_script(Script.of(embedding=Step(status=401, body="who?"))) as server,
        EmbeddingModel(name="v", base_url=server.url) as model,
    ):
        with pytest.raises(ModelStatusError, match="who"):
            await model.embed(["a"], op=OP)
    async with (
        serve_script(Script.of(embedding=Step(hang=True))) as server,
        EmbeddingModel(name="v", base_url=server.url) as model,
    ):
        with pytest.raises(ModelConnectionError) as late:
            await model.embed(["a"], op=OP, timeout=0.05)

    assert late.value.error_type == "timeout"


async def test_cancelling_closes_the_connection() -> None:
    """Nobody computes vectors that nobody waits for."""
    async with (
        serve_script(Script.of(embedding=Step(hang=True, embed=Embed()))) as server,
        EmbeddingModel(name="v", base_url=server.url) as model,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(lambda: model.embed(["a"], op=OP))
        await server.wait_for(lambda request: request.purpose == "embedding")
        tasks.cancel_scope.cancel()
    with anyio.fail_after(10):
        request = await server.wait_for(lambda request: request.answer_ended is not None)

    assert request.client_closed


def test_a_wrong_address_or_key_is_told_at_once() -> None:
    """The constructor refuses what cannot be used."""
    with pytest.raises(ConfigError, match="base_url"):
        EmbeddingModel(name="v", base_url="localhost")
    with pytest.raises(ConfigError, match="api_key"):
        EmbeddingModel(name="v", base_url="http://localhost/v1", api_key="a b")
