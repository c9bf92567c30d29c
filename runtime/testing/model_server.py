"""The scripted model server: a real HTTP server on loopback that speaks the chat and embeddings wires as a script says.

`docs/model-server.md` describes scripts and addresses. In a test:

    async with serve(Script.of(Step(answer="Hello"))) as server:
        ...  # ask at server.url
        request = await server.wait_for(lambda request: request.client_closed)

`testing/process` starts one in a process of its own.
"""

import argparse
import json
import os
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import Listener, SocketAttribute, SocketStream

from recallscope.runtime.errors import ScriptError
from recallscope.runtime.observe import Clock
from recallscope.runtime.testing.embedder import Embedder
from recallscope.runtime.testing.http1 import BadRequestError, HttpConnection, HttpRequest
from recallscope.runtime.testing.matching import (
    Match,
    Matcher,
    embedding_request,
    messages_of,
    purpose_of,
    selected,
    wants_usage,
)
from recallscope.runtime.testing.record import RecordedRequest, RequestLog, ServerStatistics
from recallscope.runtime.testing.replies import (
    Ending,
    Frame,
    Head,
    Reply,
    make_embeddings,
    make_reply,
    refusal,
    with_id,
)
from recallscope.runtime.testing.script import EMBEDDING, Embed, Script
from recallscope.runtime.testing.script_parser import load_script

__all__ = ["ModelServer", "RecordedRequest", "ServerStatistics", "run_model_server", "serve", "serve_forever"]

MAX_PREPARED = 1_000
"""Encoded replies that are kept; a model name in a request makes a reply of its own."""


class ModelServer:
    """A running server: where it is, what it was asked, and a way to wait for that."""

    def __init__(self, script: Script, *, address: tuple[str, int], clock: Clock) -> None:
        self._script = script
        self._address = address
        self._clock = clock
        self._matcher = Matcher(script)
        self._log = RequestLog(script.keep_requests)
        self._prepared: dict[tuple[str, str, int, str, bool, bool], Reply] = {}
        self._embedders: dict[Embed, Embedder] = {}
        self._connections = 0

    @property
    def url(self) -> str:
        """The base URL that a client is given, `http://127.0.0.1:PORT/v1`."""
        host, port = self._address
        return f"http://{f'[{host}]' if ':' in host else host}:{port}/v1"

    @property
    def port(self) -> int:
        """The port that the server listens on."""
        return self._address[1]

    @property
    def requests(self) -> tuple[RecordedRequest, ...]:
        """The requests so far, in the order of their arrival, each as it stands now."""
        return self._log.requests

    async def wait_for(self, predicate: Callable[[RecordedRequest], bool]) -> RecordedRequest:
        """Return the first request for which `predicate` holds, now or as soon as one comes so far.

        It waits without an end; bound it with `anyio.fail_after`.
        """
        return await self._log.wait_for(predicate)

    def statistics(self) -> ServerStatistics:
        """Count connections and requests."""
        return self._log.statistics(connections=self._connections)

    async def handle(self, stream: SocketStream) -> None:
        """Answer the requests of one connection until it is closed."""
        self._connections += 1
        try:
            async with stream:
                await self._handle(HttpConnection(stream))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass  # the client left between two requests; what it left within one is in the record
        finally:
            self._connections -= 1

    async def _handle(self, connection: HttpConnection) -> None:
        while True:
            try:
                request = await connection.read_request()
            except BadRequestError as error:
                await _send(connection, refusal(error.status, str(error)), "")
                return
            if request is None:
                return
            path = request.target.partition("?")[0]
            if path.startswith("/_/"):
                await _send(connection, self._control(request.method, path), "")
            else:
                await self._answer(connection, request, path)
            if not connection.ready_for_next():
                return

    async def _answer(self, connection: HttpConnection, request: HttpRequest, path: str) -> None:
        number = self._log.add(
            received=self._clock(), method=request.method, path=path, headers=request.headers, raw=request.body
        )
        reply = self._reply(number, request, path.removeprefix("/v1"))
        finished = False
        left = False

        async def play() -> None:
            nonlocal finished
            await _send(connection, reply, f"{number:x}", began=began)
            finished = True

        def began() -> None:
            self._log.update(number, answer_began=self._clock(), status=reply.head.status)

        try:
            if reply.instant:
                await play()
            else:
                async with anyio.create_task_group() as group:

                    async def watch() -> None:
                        nonlocal left
                        await connection.wait_client_left()
                        left = not finished
                        group.cancel_scope.cancel()

                    group.start_soon(watch)
                    try:
                        await play()
                    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                        left = True
                    group.cancel_scope.cancel()
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            left = True
        finally:
            self._log.update(number, answer_ended=self._clock(), client_closed=left)

    def _reply(self, number: int, request: HttpRequest, path: str) -> Reply:
        match request.method, path:
            case "POST", "/chat/completions":
                return self._model_reply(number, request, self._completion)
            case "POST", "/embeddings":
                return self._model_reply(number, request, self._embeddings)
            case "GET", "/models":
                return _json({"object": "list", "data": [_model(name) for name in self._script.models]})
            case "GET", _ if path.removeprefix("/models/") in self._script.models:
                return _json(_model(path.removeprefix("/models/")))
            case _:
                return refusal(
                    404,
                    f"{request.method} {path} is not here; ask POST /v1/chat/completions or POST /v1/embeddings",
                    "not_found",
                )

    def _model_reply(self, number: int, request: HttpRequest, reply: Callable[[int, HttpRequest, Any], Reply]) -> Reply:
        try:
            body: Any = json.loads(request.body)
        except (ValueError, RecursionError) as error:
            return refusal(400, f"the body is no JSON: {error}")
        return reply(number, request, body)

    def _completion(self, number: int, request: HttpRequest, body: Any) -> Reply:
        match body:
            case {"model": str(model), "messages": [*_]}:
                pass
            case _:
                return refusal(400, "the body needs a model (text) and messages (a list)")
        messages = messages_of(body)
        purpose = purpose_of(body, request.headers)
        found = self._matcher.match(purpose, messages)
        if found is None:
            self._log.update(number, purpose=purpose)
            return refusal(422, self._matcher.advice(purpose))
        self._log.update(number, purpose=purpose, scenario=found.scenario, step=found.index)
        stream = body.get("stream") is True
        include_usage = stream and wants_usage(body)
        if found.step.select is not None:
            answer = json.dumps({"selected": selected(found.step.select, messages)})
            return make_reply(found.step, answer=answer, model=model, stream=stream, include_usage=include_usage)
        return self._prepare(found, model, stream=stream, include_usage=include_usage)

    def _embeddings(self, number: int, _request: HttpRequest, body: object) -> Reply:
        model, texts = embedding_request(body)
        if not texts:
            return refusal(400, "the body needs a model (text) and an input (a text, or a list of texts)")
        found = self._matcher.match(EMBEDDING, [{"role": "user", "content": "\n".join(texts)}])
        if found is None:
            self._log.update(number, purpose=EMBEDDING)
            return refusal(422, self._matcher.advice(EMBEDDING))
        self._log.update(number, purpose=EMBEDDING, scenario=found.scenario, step=found.index)
        embed = found.step.embed or Embed()
        embedder = self._embedders.setdefault(embed, Embedder(embed.dimension, embed.synonyms))
        return make_embeddings(found.step, [embedder.vector(text) for text in texts], model=model)

    def _prepare(self, found: Match, model: str, *, stream: bool, include_usage: bool) -> Reply:
        key = (found.scenario, found.purpose, found.index, model, stream, include_usage)
        reply = self._prepared.get(key)
        if reply is None:
            step = found.step
            reply = make_reply(step, answer=step.answer, model=model, stream=stream, include_usage=include_usage)
            if len(self._prepared) >= MAX_PREPARED:
                self._prepared.clear()
            self._prepared[key] = reply
        return reply

    def _control(self, method: str, path: str) -> Reply:
        match method, path:
            case "GET", "/_/healthz":
                return _json({"status": "ok", "pid": os.getpid()})
            case "GET", "/_/requests":
                return _json({"requests": [request.as_data() for request in self.requests]})
            case "GET", "/_/statistics":
                return _json(asdict(self.statistics()))
            case "DELETE", "/_/requests":
                self._log.forget()
                return _json({"status": "ok"})
            case _:
                return refusal(404, f"{method} {path} is not here; see docs/model-server.md", "not_found")


@asynccontextmanager
async def serve(
    script: Script, *, host: str = "127.0.0.1", port: int = 0, clock: Clock = time.monotonic
) -> AsyncGenerator[ModelServer]:
    """Run a server until the block ends; `port` 0 takes a free one. Open connections are closed at the end.

    Raises:
        OSError: the port is taken.
    """
    async with await _listen(host, port) as listener:
        server = ModelServer(script, address=_address(listener), clock=clock)
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(listener.serve, server.handle)
                yield server
                group.cancel_scope.cancel()
        except BaseExceptionGroup as failed:
            # What the block raises comes out as the block raised it, without the group that stands here.
            match failed.exceptions:
                case [only]:
                    raise only from None
                case _:
                    raise


async def serve_forever(
    script: Script,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    on_ready: Callable[[ModelServer], None] = lambda _: None,
) -> None:
    """Run a server until it is cancelled; `on_ready` is called once, when it listens.

    Raises:
        OSError: the port is taken.
    """
    async with serve(script, host=host, port=port) as server:
        on_ready(server)
        await anyio.sleep_forever()


def run_model_server(script: Path, port: int, ready: Callable[[ModelServer], None], *, host: str = "127.0.0.1") -> None:
    """Read `script` and run a server for it until the process is interrupted; `ready` is called when it listens.

    Raises:
        ScriptError: the script is wrong.
        OSError: the port is taken.
        KeyboardInterrupt: Ctrl-C.
    """
    loaded = load_script(script)

    async def main() -> None:
        await serve_forever(loaded, host=host, port=port, on_ready=ready)

    anyio.run(main)


async def _listen(host: str, port: int) -> Listener[SocketStream]:
    listeners = await anyio.create_tcp_listener(local_host=host, local_port=port)
    return listeners.listeners[0]


def _address(listener: Listener[SocketStream]) -> tuple[str, int]:
    address = listener.extra(SocketAttribute.local_address)  # noqa: S610 - anyio's typed attributes, no query
    return str(address[0]), int(address[1])


async def _send(
    connection: HttpConnection, reply: Reply, response_id: str, *, began: Callable[[], None] = lambda: None
) -> None:
    """Send `reply` in its time; `began` is called when the headers leave."""
    start = anyio.current_time() + reply.delay
    if reply.ending is Ending.HANG:
        await anyio.sleep_forever()
    if reply.delay:
        await anyio.sleep_until(start)
    frames = [Frame(frame.at, with_id(frame.data, response_id)) for frame in reply.frames]
    head = reply.head
    if reply.ending is Ending.WHOLE and head.content_type == "application/json":
        data = b"".join(frame.data for frame in frames)
        began()
        await connection.send_whole(head.status, replace(head, length=len(data)).headers, data)
        return
    began()
    await connection.send_head(head.status, head.headers)
    for frame in frames:
        if frame.at:
            await anyio.sleep_until(start + frame.at)
        await connection.send_data(frame.data)
    if reply.ending is Ending.ENDLESS:
        await _repeat(connection, reply, start, response_id)
    if reply.ending is not Ending.CUT:
        await connection.end()


async def _repeat(connection: HttpConnection, reply: Reply, start: float, response_id: str) -> None:
    again = with_id(reply.again, response_id)
    sent = 0
    while reply.repeats is None or sent < reply.repeats:
        sent += 1
        if reply.interval:
            await anyio.sleep_until(start + sent * reply.interval)
        await connection.send_data(again)
    await connection.send_data(with_id(reply.last, response_id))


def _json(value: object) -> Reply:
    return Reply(head=Head(200, "application/json"), frames=(Frame(0.0, json.dumps(value).encode()),))


def _model(name: str) -> dict[str, object]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "recallscope"}


def _main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="model_server", description="Run a scripted model server until it is stopped."
    )
    parser.add_argument("--script", type=Path, required=True, help="the script, YAML or JSON")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one (the default)")
    parser.add_argument("--with-parent", action="store_true", help="end when stdin is closed")
    options = parser.parse_args(arguments)
    if options.with_parent:
        threading.Thread(target=_end_with_stdin, daemon=True, name="parent watch").start()
    try:
        run_model_server(options.script, options.port, _say_ready)
    except (ScriptError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


def _say_ready(server: ModelServer) -> None:
    sys.stdout.write(json.dumps({"url": server.url, "pid": os.getpid()}) + "\n")
    sys.stdout.flush()


def _end_with_stdin() -> None:
    while os.read(0, 1024):
        pass
    os._exit(0)


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
