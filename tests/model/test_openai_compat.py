"""The model client against a server that sends exactly what a test says."""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Any, Protocol

import anyio
import pytest

from recallscope.runtime.errors import (
    ConfigError,
    ModelConnectionError,
    ModelError,
    ModelStatusError,
    ModelStreamError,
)
from recallscope.runtime.events import OpId
from recallscope.runtime.messages import TextPart, UserMessage
from recallscope.runtime.model.openai_compat import OpenAICompatModel
from recallscope.runtime.model.seam import Answer, Chunk, Endpoint, Model, ModelRequest, ResponseSchema, Usage

pytestmark = pytest.mark.anyio

REQUEST = ModelRequest(op=OpId("op1"), system="be brief", messages=[UserMessage((TextPart("hi"),))])
STRUCTURED = ModelRequest(
    op=OpId("op1"), system="choose", messages=[], response_schema=ResponseSchema("memory_selection", {"type": "object"})
)
HELLO = {"choices": [{"delta": {"content": "hello"}}]}
STOP: dict[str, Any] = {"choices": [{"delta": {}, "finish_reason": "stop"}]}
ANSWER = json.dumps({"choices": [{"message": {"content": "hello"}}]}).encode()
KEY = "sk-test-0123456789"


class Seen(Protocol):
    """What these tests read of the server."""

    url: str
    targets: list[str]
    headers: list[dict[str, str]]
    bodies: list[dict[str, Any]]
    connections: int
    client_closed: anyio.Event
    sent: anyio.Event


Serve = Callable[..., AbstractAsyncContextManager[Seen]]
MakeReply = Callable[..., Any]


def client(url: str, **options: Any) -> OpenAICompatModel:
    """Make a client of the server at `url`."""
    settings: dict[str, Any] = {"api_key": KEY, **options}
    return OpenAICompatModel(name="m", base_url=url, provider="test", **settings)


async def read(model: Model, request: ModelRequest = REQUEST) -> list[Chunk]:
    """Read a stream to its end."""
    async with aclosing(model.stream(request)) as chunks:
        return [chunk async for chunk in chunks]


async def collect(model: Model, chunks: list[Chunk]) -> None:
    """Read a stream into `chunks`, so that what came before a fault is kept."""
    async with aclosing(model.stream(REQUEST)) as stream:
        async for chunk in stream:
            chunks.append(chunk)  # noqa: PERF401 - a comprehension would lose them


async def test_a_stream_gives_its_chunks(serve: Serve, reply_sse: MakeReply) -> None:
    """Comments make no chunk, chunks without a choice are not acceptance, `[DONE]` ends."""
    usage: dict[str, Any] = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1}}
    events: list[Any] = [b": ping", {"choices": []}, HELLO, STOP, usage]
    async with serve(reply_sse(*events)) as server, client(server.url) as model:
        assert await read(model) == [
            Chunk(accepted=False),
            Chunk(text="hello"),
            Chunk(finish_reason="stop"),
            Chunk(usage=Usage(3, 1)),
        ]


async def test_a_request_carries_key_and_trace(serve: Serve, reply_sse: MakeReply, reply_whole: MakeReply) -> None:
    """The key, the headers of the request's operation and the purpose of a structured call go with each request."""

    def trace(op: OpId) -> Mapping[str, str]:
        return {"traceparent": f"of-{op}"}

    async with (
        serve(reply_whole(ANSWER), reply_sse(HELLO)) as server,
        client(server.url, trace_headers=trace) as model,
    ):
        await model.complete(STRUCTURED)
        await read(model)
    names = ("authorization", "traceparent", "x-recallscope-purpose", "accept")
    assert [{name: headers.get(name) for name in names} for headers in server.headers] == [
        {
            "authorization": f"bearer {KEY}",
            "traceparent": "of-op1",
            "x-recallscope-purpose": "memory_selection",
            "accept": "application/json",
        },
        {
            "authorization": f"bearer {KEY}",
            "traceparent": "of-op1",
            "x-recallscope-purpose": None,
            "accept": "text/event-stream",
        },
    ]


async def test_without_a_key_no_credentials_are_sent(
    serve: Serve, reply_whole: MakeReply, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key of the environment is the configuration's business, never taken behind its back."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-environment")
    async with serve(reply_whole(ANSWER)) as server, client(server.url, api_key=None) as model:
        await model.complete(REQUEST)
    assert "authorization" not in server.headers[0]


async def test_a_server_on_loopback_is_reached_without_a_proxy(
    serve: Serve, reply_whole: MakeReply, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy of the environment does not come between this machine and itself."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    async with serve(reply_whole(ANSWER)) as server, client(server.url) as model:
        assert await model.complete(REQUEST) == Answer(text="hello")


async def test_another_server_is_reached_through_the_proxy_of_the_environment(
    serve: Serve, reply_whole: MakeReply, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the proxy is asked for is the whole address; a host in `NO_PROXY` is asked itself."""
    elsewhere = "http://127.0.0.2:9/v1"
    async with serve(reply_whole(ANSWER)) as server:
        monkeypatch.setenv("http_proxy", server.url.removeprefix("http://").removesuffix("/v1"))
        async with client(elsewhere) as model:
            assert await model.complete(REQUEST) == Answer(text="hello")
        monkeypatch.setenv("no_proxy", "127.0.0.2")
        async with client(elsewhere) as model:
            with pytest.raises(ModelConnectionError, match="Connection refused"):
                await model.complete(REQUEST)

        assert server.targets == [f"{elsewhere}/chat/completions"]


async def test_a_stream_that_was_read_to_its_end_leaves_its_connection(serve: Serve, reply_whole: MakeReply) -> None:
    """The next request goes over the same connection."""
    stream = b"data: " + json.dumps(HELLO).encode() + b"\n\ndata: [DONE]\n\n"
    async with serve(reply_whole(stream), reply_whole(ANSWER)) as server, client(server.url) as model:
        await read(model)
        await model.complete(REQUEST)
        assert server.connections == 1


async def test_a_stream_may_end_at_a_finish_reason(serve: Serve, reply_sse: MakeReply) -> None:
    """A server that sends no `[DONE]` has still given a whole answer."""
    async with serve(reply_sse(HELLO, STOP, done=False)) as server, client(server.url) as model:
        assert await read(model) == [Chunk(text="hello"), Chunk(finish_reason="stop")]


@pytest.mark.parametrize(
    ("events", "done", "got", "problem"),
    [
        ([HELLO], False, [Chunk(text="hello")], "stopped early, in the middle of the answer"),
        ([], False, [], r"stopped early, without an answer \(text/event-stream\)"),
        ([], True, [], "stopped early, without an answer"),
        ([HELLO, b"data: {oops"], False, [Chunk(text="hello")], "it is no JSON"),
        ([HELLO, b"data: " + b"x" * (1 << 20)], False, [Chunk(text="hello")], "more than 1048576 bytes"),
        ([{"error": {"message": f"bad key {KEY}"}}], True, [], r"bad key \*\*\*"),
    ],
)
async def test_a_broken_stream_is_an_error_after_what_was_right(  # noqa: PLR0917 - a table of cases
    serve: Serve, reply_sse: MakeReply, events: list[object], done: bool, got: list[Chunk], problem: str
) -> None:
    """What came before the fault is given, then the fault is named, without the key."""
    chunks: list[Chunk] = []
    async with serve(reply_sse(*events, done=done)) as server, client(server.url) as model:
        with pytest.raises(ModelStreamError, match=problem):
            await collect(model, chunks)
    assert chunks == got


async def test_a_body_that_is_cut_off_is_a_stream_error(serve: Serve, reply_whole: MakeReply) -> None:
    """A connection that closes before the announced length says so."""
    reply = type(reply_whole(b""))([b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{"])
    async with serve(reply, reply) as server, client(server.url) as model:
        with pytest.raises(ModelStreamError, match="stopped early"):
            await model.complete(REQUEST)
        with pytest.raises(ModelStreamError, match="stopped early"):
            await read(model)


async def test_a_refusal_tells_status_text_and_when_to_retry(serve: Serve, reply_whole: MakeReply) -> None:
    """The text is one line without credentials, at most 300 characters; `Retry-After` is seconds."""
    body = f'{{"error": "slow\n down",\n "key": "{KEY}", "other": "Bearer abcdefgh"}}'.encode() + b"x" * 500
    reply = reply_whole(body, status="429 Too Many Requests", headers="retry-after: 7\r\n")
    async with serve(reply) as server, client(server.url) as model:
        with pytest.raises(ModelStatusError, match="answered 429") as caught:
            await read(model)
    text = str(caught.value)
    assert '{"error": "slow down", "key": "***", "other": "Bearer ***"}' in text
    assert len(text) < 450
    assert (caught.value.status_code, caught.value.retry_after, caught.value.retryable) == (429, 7.0, True)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("retry-after-ms: 250", 0.25),
        ("retry-after: 1.5", 1.5),
        ("retry-after: Thu, 01 Jan 1970 00:01:40 GMT", 40.0),
        ("retry-after: Thu, 01 Jan 1970 00:00:10 GMT", 0.0),
        ("retry-after: soon", None),
        ("retry-after: nan", None),
        ("retry-after: -3", 0.0),
        ("x-nothing: 1", None),
    ],
)
async def test_retry_after_in_every_form(
    serve: Serve, reply_whole: MakeReply, header: str, seconds: float | None
) -> None:
    """Milliseconds, seconds, a date against the wall clock; nonsense is no answer."""
    reply = reply_whole(b"", status="503 Busy", headers=header + "\r\n")
    async with serve(reply) as server, client(server.url, wall=lambda: 60.0) as model:
        with pytest.raises(ModelStatusError, match="answered 503: no text") as caught:
            await model.complete(REQUEST)
    assert caught.value.retry_after == seconds


@pytest.mark.parametrize(
    ("status", "retryable"),
    [("400 Bad", False), ("401 No", False), ("404 No", False), ("408 Late", True), ("500 Oops", True)],
)
async def test_a_status_says_whether_a_retry_can_help(
    serve: Serve, reply_whole: MakeReply, status: str, *, retryable: bool
) -> None:
    """A wrong key or address does not get better; a busy or failing server may."""
    async with serve(reply_whole(b"text", status=status)) as server, client(server.url) as model:
        with pytest.raises(ModelStatusError) as caught:
            await model.complete(REQUEST)
        assert server.connections == len(server.bodies) == 1
    assert (caught.value.retryable, caught.value.error_type) == (retryable, status[:3])


async def test_a_redirect_names_the_right_address(serve: Serve, reply_whole: MakeReply) -> None:
    """A redirect is not followed, because the POST would become a GET."""
    reply = reply_whole(b"", status="301 Moved", headers="location: https://elsewhere/v1\r\n")
    async with serve(reply) as server, client(server.url) as model:
        with pytest.raises(ModelStatusError, match="301: it redirects to https://elsewhere/v1; use that address"):
            await model.complete(REQUEST)


async def test_what_a_server_refuses_is_left_out_from_then_on(
    serve: Serve, reply_whole: MakeReply, reply_sse: MakeReply
) -> None:
    """A 400 that names `stream_options` or `response_format` costs one more request, once per endpoint."""
    no_usage = reply_whole(b"unknown field stream_options", status="400 Bad Request")
    no_schema = reply_whole(b"response_format json_schema is not supported", status="400 Bad Request")
    replies = [no_usage, reply_sse(HELLO), reply_sse(HELLO), no_schema, reply_whole(ANSWER), reply_whole(ANSWER)]
    async with serve(*replies) as server, client(server.url) as model:
        assert await read(model) == [Chunk(text="hello")]
        assert await read(model) == [Chunk(text="hello")]
        assert await model.complete(STRUCTURED) == Answer(text="hello")
        assert await model.complete(STRUCTURED) == Answer(text="hello")
    assert ["stream_options" in body for body in server.bodies] == [True, False, False, False, False, False]
    assert [body.get("response_format", {}).get("type") for body in server.bodies] == [
        None,
        None,
        None,
        "json_schema",
        "json_object",
        "json_object",
    ]


async def test_two_calls_that_learn_the_same_thing_at_once_both_succeed(serve: Serve, reply_whole: MakeReply) -> None:
    """A refusal that another call has already learnt from is tried again in the new dialect."""
    refusal = reply_whole(b"no response_format here", status="400 Bad Request")
    answers: list[Answer] = []
    async with serve(refusal, refusal, reply_whole(ANSWER), reply_whole(ANSWER)) as server, client(server.url) as model:

        async def ask() -> None:
            answers.append(await model.complete(STRUCTURED))

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            group.start_soon(ask)
    assert answers == [Answer(text="hello"), Answer(text="hello")]


async def test_nobody_listening_is_a_connection_error(free_port: int) -> None:
    """The error says what the system said, where, and what to check."""
    async with client(f"http://127.0.0.1:{free_port}/v1") as model:
        for ask in (read, OpenAICompatModel.complete):
            with pytest.raises(ModelConnectionError, match=f"127.0.0.1:{free_port}/v1: Connection refused") as caught:
                await ask(model, REQUEST)
            assert (caught.value.error_type, caught.value.retryable) == ("connection_error", True)


async def test_a_name_that_nobody_has_is_a_connection_error() -> None:
    """A host that cannot be found is no answer."""
    async with client("http://no-such-host.invalid/v1") as model:
        with pytest.raises(ModelConnectionError, match=r"no answer from http://no-such-host\.invalid:80/v1"):
            await model.complete(REQUEST)


async def test_a_connection_that_closes_without_a_word_is_a_connection_error(
    serve: Serve, reply_whole: MakeReply
) -> None:
    """No response at all is no answer, not a broken one."""
    silent = type(reply_whole(b""))([])
    async with serve(silent) as server, client(server.url) as model:
        with pytest.raises(ModelConnectionError, match="without sending a response"):
            await read(model)


async def test_silence_is_a_timeout(serve: Serve, reply_whole: MakeReply, reply_sse: MakeReply) -> None:
    """A server that says nothing for longer than the read timeout, before or in the answer, has timed out."""
    mute = type(reply_whole(b""))([], then="wait")
    replies = [mute, reply_sse(HELLO, done=False, then="wait")]
    async with serve(*replies) as server, client(server.url, read_timeout=0.05) as model:
        for _ in replies:
            with pytest.raises(ModelConnectionError, match=r"silent for 0\.05 seconds") as caught:
                await read(model)
            assert caught.value.error_type == "timeout"


async def test_the_begin_of_an_answer_has_a_limit_of_its_own(
    serve: Serve, reply_whole: MakeReply, reply_sse: MakeReply
) -> None:
    """A response that does not begin in time has timed out, whatever the limit of a silence; and vice versa."""
    mute = type(reply_whole(b""))([], then="wait")
    async with serve(mute) as server, client(server.url, first_byte_timeout=0.05, read_timeout=60) as model:
        with pytest.raises(ModelConnectionError, match=r"silent for 0\.05 seconds"):
            await read(model)
    stalled = reply_sse(HELLO, done=False, then="wait")
    async with serve(stalled) as server, client(server.url, first_byte_timeout=60, read_timeout=0.05) as model:
        with pytest.raises(ModelConnectionError, match=r"silent for 0\.05 seconds"):
            await read(model)


async def test_of_a_refusal_only_the_beginning_is_read(serve: Serve, reply_whole: MakeReply) -> None:
    """A refusal may be endless: what is shown of it is short, and the rest is not waited for."""
    endless = type(reply_whole(b""))(
        [b"HTTP/1.1 500 Oh\r\ncontent-type: text/plain\r\n\r\nno way ", b"x" * 100_000], then="wait"
    )
    async with serve(endless) as server, client(server.url) as model:
        with pytest.raises(ModelStatusError, match="answered 500: no way xxx") as caught:
            await read(model)
        assert len(str(caught.value)) < 500
        await server.client_closed.wait()


async def test_complete_ends_within_the_timeout_of_its_request(serve: Serve, reply_whole: MakeReply) -> None:
    """The timeout bounds the whole call, and the connection closes."""
    mute = type(reply_whole(b""))([b"HTTP/1.1 200 OK\r\n"], then="wait")
    request = ModelRequest(op=OpId("1"), system=None, messages=[], timeout=0.05)
    async with serve(mute) as server, client(server.url) as model:
        with pytest.raises(ModelConnectionError, match=r"no whole answer within 0\.05 seconds") as caught:
            await model.complete(request)
        with anyio.fail_after(5):
            await server.client_closed.wait()
    assert caught.value.error_type == "timeout"


async def test_a_body_over_the_limit_is_refused(serve: Serve, reply_whole: MakeReply) -> None:
    """An answer that does not end is cut where the limit is."""
    endless = type(reply_whole(b""))([b"HTTP/1.1 200 OK\r\n\r\n", *[b" " * (1 << 20)] * 17])
    async with serve(endless) as server, client(server.url) as model:
        with pytest.raises(ModelStreamError, match="more than 16777216 bytes"):
            await model.complete(REQUEST)


@pytest.mark.parametrize("streamed", [True, False])
async def test_cancelling_before_the_answer_closes_the_connection(
    serve: Serve, reply_whole: MakeReply, *, streamed: bool
) -> None:
    """The server sees the end of the connection while it still thinks."""
    mute = type(reply_whole(b""))([b""], then="wait")
    async with serve(mute) as server, client(server.url) as model:

        async def ask() -> None:
            if streamed:
                await read(model)
            else:
                await model.complete(REQUEST)

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await server.sent.wait()
            group.cancel_scope.cancel()
        with anyio.fail_after(5):
            await server.client_closed.wait()


@pytest.mark.parametrize("how", ["cancel", "leave"])
async def test_leaving_a_stream_closes_the_connection(serve: Serve, reply_sse: MakeReply, how: str) -> None:
    """Cancellation in the middle of an answer and a reader that has enough both reach the server."""
    async with serve(reply_sse(HELLO, done=False, then="wait")) as server, client(server.url) as model:
        with anyio.CancelScope() as scope:
            async with aclosing(model.stream(REQUEST)) as chunks:
                async for _ in chunks:
                    if how == "leave":
                        break
                    scope.cancel()
        with anyio.fail_after(5):
            await server.client_closed.wait()


async def test_fifty_streams_at_once(serve: Serve, reply_sse: MakeReply) -> None:
    """One client serves fifty sessions at the same time; none waits for another's connection."""
    answers: list[list[Chunk]] = []
    async with serve(*[reply_sse(HELLO) for _ in range(50)]) as server, client(server.url) as model:

        async def ask() -> None:
            answers.append(await read(model))

        async with anyio.create_task_group() as group:
            for _ in range(50):
                group.start_soon(ask)
    assert answers == [[Chunk(text="hello")]] * 50


async def test_the_endpoint_names_the_model() -> None:
    """The labels of a call: model, provider, host and port, also when the port is the scheme's own."""
    async with client("https://user:secret@api.example.com/v1") as model:
        assert model.endpoint == Endpoint("m", "test", "api.example.com", 443)


@pytest.mark.parametrize("url", ["", "localhost:8000", "ftp://host/v1", "http://", "http://host:port/v1", "http://["])
def test_a_wrong_address_is_named(url: str) -> None:
    """The error shows the value and how an address looks."""
    with pytest.raises(ConfigError, match="an address like"):
        client(url)


@pytest.mark.parametrize("key", ["", "sk-ä", "sk-1\n", "a b"])
def test_a_wrong_key_is_refused_without_showing_it(key: str) -> None:
    """A pasted line break or letter that no header can carry is found at once."""
    with pytest.raises(ConfigError, match="printable ASCII") as caught:
        client("http://127.0.0.1:1/v1", api_key=key)
    assert "'***'" in str(caught.value)


async def test_no_error_shows_the_key(serve: Serve, reply_whole: MakeReply) -> None:
    """Neither the text nor the chain of an error repeats a key that the server sent back."""
    body = f"wrong key {KEY}".encode()
    async with serve(reply_whole(body, status="401 No"), reply_whole(body)) as server, client(server.url) as model:
        for _ in range(2):
            with pytest.raises(ModelError) as caught:
                await model.complete(REQUEST)
            assert KEY not in f"{caught.value} {caught.value.__cause__}"


def test_importing_the_client_imports_no_openai() -> None:
    """Only the constructor pays for the library."""
    code = "import sys, recallscope.runtime.model.openai_compat; print('openai' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
