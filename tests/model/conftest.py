"""A TCP server that answers HTTP requests with exactly the bytes a test gives, wrong ones included."""

import json
import socket
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

JSON_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
SSE_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Reply:
    """Bytes to send piece by piece; afterwards the server closes, or waits until the client does, or goes on."""

    pieces: Sequence[bytes]
    then: str = "close"


@dataclass(slots=True)
class WireServer:
    """What the server saw: requests as targets, header dictionaries (lower case) and bodies, and connections."""

    url: str
    replies: list[Reply]
    targets: list[str] = field(default_factory=list[str])
    headers: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    bodies: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    connections: int = 0
    client_closed: anyio.Event = field(default_factory=anyio.Event)
    sent: anyio.Event = field(default_factory=anyio.Event)

    async def handle(self, stream: SocketStream) -> None:
        """Answer the requests of one connection."""
        self.connections += 1
        buffered = BufferedByteReceiveStream(stream)
        async with stream:
            while True:
                try:
                    head = await buffered.receive_until(b"\r\n\r\n", 65536)
                except (anyio.IncompleteRead, anyio.BrokenResourceError):
                    self.client_closed.set()
                    return
                self.targets.append(head.split(b" ", 2)[1].decode())
                headers = dict(line.decode().lower().split(": ", 1) for line in head.split(b"\r\n")[1:])
                self.headers.append(headers)
                self.bodies.append(json.loads(await buffered.receive_exactly(int(headers["content-length"]))))
                if not await self.answer(stream, self.replies.pop(0)):
                    return

    async def answer(self, stream: SocketStream, reply: Reply) -> bool:
        """Send one reply and say whether the connection goes on."""
        for piece in reply.pieces:
            await stream.send(piece)
        self.sent.set()
        if reply.then == "wait":
            try:
                await stream.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                self.client_closed.set()
        return reply.then == "keep"


def whole(body: bytes, *, status: str = "200 OK", headers: str = "") -> Reply:
    """Make a reply with a length and a status."""
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n{headers}\r\n"
    return Reply([head.encode() + body], then="keep")


def sse(*events: object, done: bool = True, then: str = "close") -> Reply:
    """Make a streamed reply of JSON values or raw lines."""
    lines = [event if isinstance(event, bytes) else b"data: " + json.dumps(event).encode() for event in events]
    if done:
        lines.append(b"data: [DONE]")
    return Reply([SSE_HEAD, *(line + b"\n\n" for line in lines)], then=then)


@asynccontextmanager
async def _serve(*replies: Reply) -> AsyncGenerator[WireServer, None]:
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
    port = listener.extra(SocketAttribute.local_port)  # noqa: S610 - a socket attribute, not Django
    server = WireServer(f"http://127.0.0.1:{port}/v1", list(replies))
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, server.handle)
        try:
            yield server
        finally:
            group.cancel_scope.cancel()


Serve = Callable[..., AbstractAsyncContextManager[WireServer]]


@pytest.fixture
def serve() -> Serve:
    """Serve replies, in order, on a free port of loopback."""
    return _serve


@pytest.fixture
def reply_whole() -> Callable[..., Reply]:
    """Make a reply with a length and a status."""
    return whole


@pytest.fixture
def reply_sse() -> Callable[..., Reply]:
    """Make a streamed reply."""
    return sse


@pytest.fixture
def free_port() -> int:
    """Find a port of loopback where nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
