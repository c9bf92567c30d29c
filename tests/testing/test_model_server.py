"""The scripted model server speaks the wire, plays its script, and remembers what it was asked."""

import contextlib
import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from anyio.abc import ByteStream
from hypothesis import given, settings
from hypothesis import strategies as st

from recallscope.runtime.testing.fake_clock import run
from recallscope.runtime.testing.model_server import ModelServer, serve
from recallscope.runtime.testing.script import (
    Embed,
    ErrorChunk,
    Malformed,
    Order,
    Scenario,
    Script,
    ScriptedToolCall,
    ScriptedUsage,
    Select,
    Step,
    Steps,
)

BOUND = 10.0
"""Seconds within which anything on loopback happens; not a measurement."""

CHAT = "/v1/chat/completions"


def chat(*messages: str | dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Return a request body; text is a person's message."""
    wire = [{"role": "user", "content": each} if isinstance(each, str) else each for each in messages or ("hi",)]
    return {"model": "m", "messages": wire, **fields}


@asynccontextmanager
async def connected(server: ModelServer) -> AsyncGenerator[ByteStream]:
    """Connect to `server` with nothing but a socket."""
    async with await anyio.connect_tcp("127.0.0.1", server.port) as stream:
        yield stream


async def send(stream: ByteStream, method: str, path: str, body: object = None, *headers: str) -> None:
    """Send one request; `body` is bytes, or a value to send as JSON."""
    data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    lines = [f"{method} {path} HTTP/1.1", "host: localhost", f"content-length: {len(data)}", *headers, "", ""]
    await stream.send("\r\n".join(lines).encode() + data)


async def until(stream: ByteStream, text: bytes) -> bytes:
    """Return what came when `text` has come."""
    received = b""
    while text not in received:
        received += await stream.receive()
    return received


async def ask(server: ModelServer, body: object, *headers: str, method: str = "POST", path: str = CHAT) -> bytes:
    """Return the whole answer to one request, head included, on a connection of its own."""
    async with connected(server) as stream:
        await send(stream, method, path, body, "connection: close", *headers)
        received = b""
        try:
            while True:
                received += await stream.receive()
        except anyio.EndOfStream:
            return received


def head(answer: bytes) -> list[str]:
    """Return the status line and the headers of an answer."""
    return answer.partition(b"\r\n\r\n")[0].decode().split("\r\n")


def body(answer: bytes) -> Any:
    """Return the JSON value of an answer that was not streamed."""
    return json.loads(answer.partition(b"\r\n\r\n")[2])


def events(answer: bytes) -> list[Any]:
    """Return the data lines of a stream as values; those that are no JSON as text."""
    lines = [line[6:] for line in answer.decode().split("\n") if line.startswith("data: ")]
    return [json.loads(line) if line.startswith("{") and line.endswith("}") else line for line in lines]


def deltas(answer: bytes) -> list[Any]:
    """Return what the chunks with a choice add, and the reason at the end."""
    chunks = [event for event in events(answer) if not isinstance(event, str)]
    choices = [choice for chunk in chunks for choice in chunk.get("choices", [])]
    return [choice["finish_reason"] or choice["delta"] for choice in choices]


@pytest.mark.anyio
async def test_a_stream_has_its_chunks_its_end_and_its_usage() -> None:
    """A streamed answer is split as the script says, ends with a reason, the usage that was asked for, and its mark."""
    step = Step(answer="Hello!", chunks=3, usage=ScriptedUsage(7, 3, cached=2))
    async with serve(Script.of(step)) as server:
        answer = await ask(server, chat(stream=True, stream_options={"include_usage": True}))
    assert head(answer)[0] == "HTTP/1.1 200 OK"
    assert "content-type: text/event-stream" in [line.lower() for line in head(answer)]
    assert deltas(answer) == [{"role": "assistant", "content": "He"}, {"content": "ll"}, {"content": "o!"}, "stop"]
    usage = {
        "prompt_tokens": 7,
        "completion_tokens": 3,
        "total_tokens": 10,
        "prompt_tokens_details": {"cached_tokens": 2},
    }
    assert [(event["choices"], event["usage"]) for event in events(answer)[-2:-1]] == [([], usage)]
    assert events(answer)[-1].strip() == "[DONE]"
    assert {(event["id"], event["model"]) for event in events(answer)[:-1]} == {("chatcmpl-1", "m")}


@pytest.mark.anyio
async def test_a_whole_answer_is_one_body() -> None:
    """Without `stream` the answer is one JSON body with message, reason and usage; the prefix /v1 can be left out."""
    step = Step(answer="Hello!", chunks=3, tool_calls=(ScriptedToolCall(name="glob", arguments="{}"),))
    async with serve(Script.of(step)) as server:
        answer = body(await ask(server, chat(), path="/chat/completions"))
    call = {"id": "call_1_0", "type": "function", "function": {"name": "glob", "arguments": "{}"}}
    assert answer["choices"] == [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "Hello!", "tool_calls": [call]},
            "finish_reason": "tool_calls",
        }
    ]
    assert answer["usage"] == {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}


@pytest.mark.anyio
async def test_tool_calls_come_in_fragments() -> None:
    """A tool call is streamed as its name and id first and its arguments in pieces; a scripted id stands as written."""
    calls = (
        ScriptedToolCall(name="glob", arguments='{"a":1}', fragments=2),
        ScriptedToolCall(name="grep", arguments="{}", id="mine", fragments=1),
        ScriptedToolCall(name="list", arguments="", id=""),
    )
    async with serve(Script.of(Step(tool_calls=calls))) as server:
        answer = await ask(server, chat(stream=True))
    fragments = [call for delta in deltas(answer)[:-1] for call in delta["tool_calls"]]
    assert fragments == [
        {"index": 0, "id": "call_1_0", "type": "function", "function": {"name": "glob", "arguments": ""}},
        {"index": 0, "function": {"arguments": '{"a'}},
        {"index": 0, "function": {"arguments": '":1}'}},
        {"index": 1, "id": "mine", "type": "function", "function": {"name": "grep", "arguments": ""}},
        {"index": 1, "function": {"arguments": "{}"}},
        {"index": 2, "type": "function", "function": {"name": "list", "arguments": ""}},
    ]
    assert deltas(answer)[-1] == "tool_calls"


@pytest.mark.anyio
async def test_the_usual_client_understands_the_stream() -> None:
    """`AsyncOpenAI` reads tool calls, text and usage of a conversation of two requests over one connection."""
    from openai import AsyncOpenAI  # noqa: PLC0415 - half a second that the other tests need not pay

    steps = (Step(tool_calls=(ScriptedToolCall(name="glob", arguments='{"a": 1}'),)), Step(answer="Hello!", chunks=3))
    async with (
        serve(Script.of(*steps)) as server,
        AsyncOpenAI(api_key="secret", base_url=server.url, max_retries=0, timeout=BOUND) as client,
    ):
        arguments = text = ""
        async with await client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "hi"}], stream=True
        ) as stream:
            async for chunk in stream:
                for call in chunk.choices[0].delta.tool_calls or []:
                    arguments += (call.function and call.function.arguments) or ""
        async with await client.chat.completions.create(
            model="m",
            messages=[{"role": "user", "content": "hi"}, {"role": "assistant", "content": "x"}],
            stream=True,
            stream_options={"include_usage": True},
        ) as stream:
            tokens = None
            async for chunk in stream:
                text += "".join(choice.delta.content or "" for choice in chunk.choices)
                tokens = chunk.usage.total_tokens if chunk.usage else None
        assert (arguments, text, tokens) == ('{"a": 1}', "Hello!", 120)
        assert [(each.step, each.client_closed) for each in server.requests] == [(0, False), (1, False)]
        assert server.statistics().connections == 1


@pytest.mark.anyio
async def test_a_request_is_recorded_with_masked_secrets() -> None:
    """The record holds method, path, headers in lower case without their secrets, body, purpose, scenario and step."""
    async with serve(Script.of(Step(answer="Hello!"))) as server:
        await ask(server, chat(), "Authorization: Bearer secret", "X-Api-Key: secret", "Traceparent: 00-1")
        (request,) = server.requests
    assert (request.number, request.method, request.path, request.status) == (1, "POST", CHAT, 200)
    assert (request.purpose, request.scenario, request.step) == ("main", "default", 0)
    assert (request.headers["authorization"], request.headers["x-api-key"]) == ("Bearer ***", "***")
    assert request.headers["traceparent"] == "00-1"
    assert request.body == chat()
    assert request.messages == chat()["messages"]
    assert request.answer_began is not None
    assert request.answer_ended is not None
    assert request.received <= request.answer_began <= request.answer_ended
    assert not request.client_closed


def test_delays_are_kept_exactly() -> None:
    """The headers leave after `delay`, each chunk after its `chunk_delay`; a whole body waits as long."""

    async def test() -> list[float | None]:
        script = Script.of(Step(answer="Hello!", delay=30, chunks=3, chunk_delay=2))
        async with serve(script, clock=anyio.current_time) as server:
            for stream in (True, False):
                await ask(server, chat(stream=stream))
            times = [(each.received, each.answer_began or 0.0, each.answer_ended or 0.0) for each in server.requests]
        return [round(moment - received, 6) for received, began, ended in times for moment in (began, ended)]

    assert run(test) == [30, 36, 36, 36]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("step", "before"),
    [
        (Step(hang=True), b""),
        (Step(answer="x", delay=3_600), b""),
        (Step(answer="abc", chunks=3, chunk_delay=3_600), b"HTTP/1.1 200"),
        (Step(answer="more ", endless=True, chunk_delay=0.001), b"more "),
        (Step(answer="more " * 1_000, endless=True), b"more "),
    ],
    ids=["hang", "delay", "chunk delay", "endless", "flood"],
)
async def test_a_client_that_leaves_is_noticed(step: Step, before: bytes) -> None:
    """Whatever the server was doing, it notes at once that the client closed the connection before the end."""
    with anyio.fail_after(BOUND):
        async with serve(Script.of(step)) as server:
            async with connected(server) as stream:
                await send(stream, "POST", CHAT, chat(stream=True))
                await server.wait_for(lambda request: request.purpose == "main")
                await until(stream, before)
            request = await server.wait_for(lambda request: request.client_closed)
            assert (request.number, request.answer_ended is not None) == (1, True)
            assert server.statistics().client_closed == 1


@pytest.mark.anyio
async def test_a_client_that_leaves_after_the_end_is_no_event() -> None:
    """A connection that is closed behind a whole answer counts as answered."""
    with anyio.fail_after(BOUND):
        async with serve(Script.of(Step(answer="abc", delay=0.001))) as server:
            async with connected(server) as stream:
                await send(stream, "POST", CHAT, chat(stream=True))
                await until(stream, b"[DONE]")
                await server.wait_for(lambda request: request.answer_ended is not None)
            await ask(server, chat())
            assert [request.client_closed for request in server.requests] == [False, False]


@pytest.mark.anyio
async def test_an_endless_answer_can_be_bounded() -> None:
    """An endless answer repeats its text, and with `max_chunks` ends well."""
    async with serve(Script.of(Step(answer="x", endless=True, max_chunks=3))) as server:
        answer = await ask(server, chat(stream=True))
    assert deltas(answer) == [{"role": "assistant", "content": ""}, *[{"content": "x"}] * 3, "stop"]
    assert events(answer)[-1].strip() == "[DONE]"


@pytest.mark.anyio
async def test_a_refusal_carries_its_status_and_when_to_come_again() -> None:
    """Steps in order of arrival: 429 with Retry-After and a message, 503 with a body of its own, then an answer."""
    steps = (
        Step(status=429, retry_after=0.5, body="Slow down"),
        Step(status=503, retry_after="Wed, 21 Oct 2026 07:28:00 GMT", body={"detail": "down"}),
        Step(answer="ok"),
    )
    async with serve(Script.of(*steps, order=Order.ARRIVAL)) as server:
        first, second, third = [await ask(server, chat(stream=True)) for _ in steps]
    assert head(first)[0] == "HTTP/1.1 429 Too Many Requests"
    assert [line for line in head(first) if line.lower().startswith("retry-after")] == ["retry-after: 0.5"]
    assert body(first)["error"] == {"message": "Slow down", "type": "rate_limit_error", "param": None, "code": None}
    assert head(second)[0].startswith("HTTP/1.1 503")
    assert body(second) == {"detail": "down"}
    assert deltas(third) == [{"role": "assistant", "content": "ok"}, "stop"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("step", "seen", "ended"),
    [
        (Step(answer="ab", chunks=2, cut_after=0), [], False),
        (Step(answer="ab", chunks=2, cut_after=1), ["a"], False),
        (Step(answer="ab", chunks=2, cut_after=9), ["a", "b"], False),
        (Step(answer="ab", chunks=2, error_chunk=ErrorChunk(message="full")), ["full"], True),
        (Step(answer="ab", chunks=2, error_chunk=ErrorChunk(message="full", after=1)), ["a", "full"], True),
        (Step(answer="ab", chunks=2, malformed=Malformed(line="{", after=1)), ["a", "{", "b", "stop", "[DONE]"], True),
        (Step(answer="a", comment_first=True), ["nothing", "a", "stop", "[DONE]"], True),
    ],
    ids=["cut at once", "cut", "cut at the end", "error at once", "error", "malformed", "comment"],
)
async def test_streams_break_where_the_script_says(step: Step, seen: list[str], ended: bool) -> None:
    """A cut stream lacks the end of its body; an error chunk ends the stream without a mark; a wrong line does not."""
    async with serve(Script.of(step)) as server:
        answer = await ask(server, chat(stream=True))

    def shown(event: Any) -> str:
        match event:
            case str():
                return event.strip()
            case {"error": {"message": str(message)}}:
                return message
            case {"choices": [{"delta": {"content": str(text)}}]}:
                return text
            case {"choices": [{"finish_reason": str(reason)}]}:
                return reason
            case _:
                return "nothing"

    assert [shown(event) for event in events(answer)] == seen
    assert answer.endswith(b"\r\n0\r\n\r\n") == ended
    assert (b"\r\n: this line is a comment\n\n" in answer) == step.comment_first


@pytest.mark.anyio
async def test_whole_answers_break_too() -> None:
    """Without `stream` a cut is half a body, an error object and a malformed line are the body."""
    steps = (
        Step(answer="ab", cut_after=0),
        Step(answer="ab", error_chunk=ErrorChunk(message="full", code="c")),
        Step(answer="ab", malformed=Malformed(line="<html>")),
    )
    async with serve(Script.of(*steps, order=Order.ARRIVAL)) as server:
        cut, error, malformed = [await ask(server, chat()) for _ in steps]
    announced = next(int(line.split(":")[1]) for line in head(cut) if line.lower().startswith("content-length"))
    assert 0 < len(cut.partition(b"\r\n\r\n")[2]) < announced
    assert body(error)["error"] == {"message": "full", "type": "server_error", "param": None, "code": "c"}
    assert malformed.endswith(b"\r\n\r\n<html>")


@pytest.mark.anyio
async def test_conversations_play_their_scenarios_at_once() -> None:
    """Twenty conversations of four scenarios, side by side, each get the answers of their own scenario in order."""
    scenarios = tuple(
        Scenario(
            name=name,
            text=f"<{name}>",
            purposes={
                "main": Steps((Step(answer=f"{name}0", delay=0.002), Step(answer=f"{name}1", delay=0.001))),
                "memory_selection": Steps((Step(select=Select(contains=(name,))),)),
            },
        )
        for name in ("one", "two", "three", "four")
    )
    heard: list[tuple[str, list[str]]] = []

    async def converse(server: ModelServer, name: str) -> None:
        first = body(await ask(server, chat(f"<{name}> go")))["choices"][0]["message"]
        schema = {"type": "json_schema", "json_schema": {"name": "memory_selection"}}
        question = f"<{name}> go\n\nn01 [user] one\nn02 [user] two\nn03 [user] three four"
        chosen = body(await ask(server, chat(question, response_format=schema)))["choices"][0]["message"]
        last = body(await ask(server, chat(f"<{name}> go", first, {"role": "tool", "content": "x"})))
        heard.append(
            (name, [first["content"], chosen["content"], last["choices"][0]["message"]["content"]]),
        )

    with anyio.fail_after(BOUND):
        async with serve(Script(scenarios=scenarios)) as server, anyio.create_task_group() as group:
            for number in range(20):
                group.start_soon(converse, server, scenarios[number % 4].name)
    ids = {"one": "n01", "two": "n02", "three": "n03", "four": "n03"}
    expected = [(name, [f"{name}0", json.dumps({"selected": [ids[name]]}), f"{name}1"]) for name in ids]
    assert sorted(heard) == sorted(expected * 5)


@pytest.mark.anyio
async def test_requests_that_are_wrong_say_why() -> None:
    """Bad JSON, missing fields, an unknown address and a purpose without steps are refused with a message."""
    schema = {"type": "json_schema", "json_schema": {"name": "other"}}
    async with serve(Script.of(Step(answer="ok"))) as server:
        answers = [
            await ask(server, b"{"),
            await ask(server, {"messages": []}),
            await ask(server, chat(response_format=schema)),
            await ask(server, chat(response_format={"type": "json_object"})),
            await ask(server, None, method="GET", path="/v1/other"),
        ]
    assert [int(head(answer)[0].split()[1]) for answer in answers] == [400, 400, 422, 422, 404]
    assert [body(answer)["error"]["message"].partition(";")[0] for answer in answers] == [
        "the body is no JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
        "the body needs a model (text) and messages (a list)",
        "no script can answer the purpose 'other'",
        "the script has no steps for json_object",
        "GET /other is not here",
    ]


@pytest.mark.anyio
async def test_what_is_no_http_gets_an_answer_and_the_end() -> None:
    """Bytes that are no request, and a head without end, are answered with 400 or 431 and the connection is closed."""
    async with serve(Script.of(Step(answer="ok"))) as server:
        for sent, status in ((b"hello\r\n\r\n", b"400"), (b"GET / HTTP/1.1\r\nx: " + b"a" * 70_000, b"431")):
            async with connected(server) as stream:
                await stream.send(sent)
                assert (await until(stream, b"\r\n")).split()[1] == status
        assert server.requests == ()


@pytest.mark.anyio
async def test_models_health_and_records_have_addresses() -> None:
    """Another process reads models, health, records and counts, and can have the records forgotten."""
    async with serve(Script.of(Step(answer="ok"))) as server:

        async def get(path: str, method: str = "GET") -> Any:
            return body(await ask(server, None, method=method, path=path))

        models = await get("/v1/models")
        await ask(server, chat())
        health = await get("/_/healthz")
        records = (await get("/_/requests"))["requests"]
        statistics = await get("/_/statistics")
        await get("/_/requests", "DELETE")
        forgotten = await get("/_/requests")
    assert [model["id"] for model in models["data"]] == ["scripted"]
    assert health == {"status": "ok", "pid": os.getpid()}
    assert [(each["path"], each["purpose"], each["body"]) for each in records] == [
        ("/v1/models", None, None),
        (CHAT, "main", chat()),
    ]
    assert (statistics["requests"], statistics["answered"], statistics["client_closed"]) == (2, 2, 0)
    assert forgotten == {"requests": []}


@pytest.mark.anyio
async def test_only_the_last_requests_are_kept() -> None:
    """A server remembers `keep_requests` requests, the latest ones, and says how many it forgot."""
    script = Script(purposes={"main": Steps((Step(answer="ok"),))}, keep_requests=2)
    async with serve(script) as server:
        for number in range(3):
            await ask(server, chat(str(number)))
        assert [request.messages[0]["content"] for request in server.requests] == ["1", "2"]
        assert server.statistics().forgotten == 1


@pytest.mark.anyio
async def test_a_connection_serves_many_requests_one_after_the_other() -> None:
    """Requests that are sent before the last answer ended are answered on the same connection, in order."""
    with anyio.fail_after(BOUND):
        async with serve(Script.of(Step(answer="ok", delay=0.001))) as server, connected(server) as stream:
            for number in range(3):
                await send(stream, "POST", CHAT, chat(str(number)))
            received = b""
            while received.count(b"chatcmpl-") < 3:
                received += await stream.receive()
            assert server.statistics().connections == 1
            assert [request.messages[0]["content"] for request in server.requests] == ["0", "1", "2"]


@pytest.mark.anyio
async def test_the_end_of_the_block_ends_open_answers() -> None:
    """A server that is left while it answers closes its connections; the client did not leave."""
    with anyio.fail_after(BOUND):
        async with serve(Script.of(Step(hang=True))) as server:
            stream = await anyio.connect_tcp("127.0.0.1", server.port)
            await send(stream, "POST", CHAT, chat())
            await server.wait_for(lambda request: request.purpose == "main")
        async with stream:
            with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
                await stream.receive()
        assert [request.client_closed for request in server.requests] == [False]


@pytest.mark.anyio
async def test_an_error_in_the_block_comes_out_as_it_is() -> None:
    """What a test raises beside a running server is not wrapped into a group."""
    with pytest.raises(LookupError, match="mine"):
        async with serve(Script.of(Step(answer="ok"))):
            raise LookupError("mine")


def http_bytes(method: bytes, path: bytes, header: bytes, content: bytes) -> bytes:
    """Return a request of these pieces."""
    return b"%b %b HTTP/1.1\r\nhost: x\r\n%b\r\n%b" % (method, path, header, content)


@settings(max_examples=40)
@given(
    st.one_of(
        st.binary(max_size=80),
        st.builds(
            http_bytes,
            st.sampled_from([b"HEAD", b"POST", b"GET", b"CONNECT", b"OPTIONS", b"PRI"]),
            st.sampled_from([CHAT.encode(), b"*", b"/_/requests", b"x:1", b"/v1/models"]),
            st.sampled_from(
                [
                    b"",
                    b"content-length: 4\r\n",
                    b"transfer-encoding: chunked\r\n",
                    b"upgrade: h2c\r\nconnection: upgrade\r\n",
                    b"expect: 100-continue\r\ncontent-length: 2\r\n",
                ]
            ),
            st.sampled_from([b"", b"{}", b"null", b"2\r\n{}\r\n0\r\n\r\n", b"[[[["]) | st.binary(max_size=8),
        ),
    )
)
def test_no_bytes_harm_the_server(sent: bytes) -> None:
    """Whatever a client sends before it leaves, the next client gets its answer."""

    async def test() -> str:
        async with serve(Script.of(Step(answer="ok"))) as server:
            async with connected(server) as stream:
                await stream.send(sent)
                await stream.send_eof()
                with contextlib.suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                    while True:
                        await stream.receive()
            return body(await ask(server, chat()))["choices"][0]["message"]["content"]

    assert run(test) == "ok"


EMBEDDINGS = "/v1/embeddings"
WRONG: tuple[dict[str, object], ...] = ({"model": "m", "input": []}, {"input": "a"})


def texts(*texts: str) -> dict[str, Any]:
    """Return a request for vectors."""
    return {"model": "vectors", "input": list(texts)}


@pytest.mark.anyio
async def test_embeddings_are_vectors_of_the_scripts_length() -> None:
    """Each text gets a vector in its place, a lone text is a list of one; it is recorded as `embedding`."""
    script = Script.of(embedding=Step(embed=Embed(dimension=8, synonyms=(("ship", "deploy"),))))
    async with serve(script) as server:
        several = json.loads((await ask(server, texts("ship", "deploy", "cat"), path=EMBEDDINGS)).split(b"\r\n\r\n")[1])
        alone = json.loads((await ask(server, {"model": "m", "input": "ship"}, path=EMBEDDINGS)).split(b"\r\n\r\n")[1])
        recorded = server.requests[0]

    assert [(entry["index"], len(entry["embedding"])) for entry in several["data"]] == [(0, 8), (1, 8), (2, 8)]
    assert several["usage"] == {"prompt_tokens": 100, "total_tokens": 100}
    assert (several["model"], several["data"][0]["embedding"]) == ("vectors", alone["data"][0]["embedding"])
    assert (recorded.purpose, recorded.step, recorded.status) == ("embedding", 0, 200)


@pytest.mark.anyio
async def test_what_goes_wrong_with_embeddings_is_scripted() -> None:
    """Refusals, error objects, broken and half bodies come in the order of arrival; without steps it is 422."""
    steps = (
        Step(status=503),
        Step(error_chunk=ErrorChunk(message="no")),
        Step(malformed=Malformed(line="{")),
        Step(cut_after=0),
    )
    async with serve(Script(purposes={"embedding": Steps(steps, Order.ARRIVAL)})) as server:
        answers = [await ask(server, texts("a"), path=EMBEDDINGS) for _ in steps]
        wrong = [await ask(server, body, path=EMBEDDINGS) for body in WRONG]
    async with serve(Script.of(Step(answer="hi"))) as server:
        unscripted = await ask(server, texts("a"), path=EMBEDDINGS)

    assert [head(answer)[0].split()[1] for answer in answers] == ["503", "200", "200", "200"]
    assert b'"message":"no"' in answers[1]
    assert answers[2].endswith(b"{")
    assert not answers[3].endswith(b"}")
    assert [head(answer)[0].split()[1] for answer in (*wrong, unscripted)] == ["400", "400", "422"]
