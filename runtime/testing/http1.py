"""The server's side of one HTTP/1.1 connection, framed by h11, that notices when the client leaves."""

from collections.abc import Iterable
from dataclasses import dataclass

import anyio
import h11
from anyio.abc import ByteStream

__all__ = ["MAX_BODY_BYTES", "BadRequestError", "HttpConnection", "HttpRequest"]

MAX_BODY_BYTES = 64 * 1024 * 1024
MAX_HEAD_BYTES = 64 * 1024
MAX_EARLY_BYTES = 1024 * 1024

_REASONS = {
    200: b"OK",
    400: b"Bad Request",
    404: b"Not Found",
    429: b"Too Many Requests",
    500: b"Internal Server Error",
}


class BadRequestError(Exception):
    """What came is no HTTP request, or too much of one; `status` is the answer that it deserves."""

    def __init__(self, status: int, problem: str) -> None:
        super().__init__(problem)
        self.status = status


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request as it came; header names are lower case, repeated headers are joined by commas."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


class HttpConnection:
    """Reads requests from `stream` and writes answers to it, one after the other."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD_BYTES)
        self._early: list[bytes] = []
        self._no_body = False

    async def read_request(self) -> HttpRequest | None:
        """Return the next request, or None when the client closed the connection instead.

        Raises:
            BadRequestError: no request; answer it and close.
        """
        self._no_body = False
        try:
            head = await self._next_event()
            if not isinstance(head, h11.Request):
                return None
            self._no_body = head.method == b"HEAD"
            parts: list[bytes] = []
            size = 0
            while isinstance(event := await self._next_event(), h11.Data):
                parts.append(bytes(event.data))
                size += len(event.data)
                if size > MAX_BODY_BYTES:
                    raise BadRequestError(413, f"the body is longer than {MAX_BODY_BYTES} bytes")
        except h11.RemoteProtocolError as error:
            raise BadRequestError(error.error_status_hint, str(error)) from error
        if not isinstance(event, h11.EndOfMessage):
            return None
        return HttpRequest(head.method.decode(), head.target.decode("latin-1"), _joined(head.headers), b"".join(parts))

    async def send_head(self, status: int, headers: list[tuple[str, str]]) -> None:
        """Send the status line and the headers; without a content length the body goes in pieces."""
        data = self._http.send(h11.Response(status_code=status, headers=headers, reason=_REASONS.get(status, b"")))
        await self._stream.send(data)

    async def send_data(self, data: bytes) -> None:
        """Send a piece of the body; waits while the client does not read.

        Raises:
            anyio.BrokenResourceError: the client left.
        """
        framed = b"" if self._no_body else self._http.send(h11.Data(data=data))
        if framed:
            await self._stream.send(framed)

    async def send_whole(self, status: int, headers: list[tuple[str, str]], data: bytes) -> None:
        """Send an answer that is there already, at once."""
        head = self._http.send(h11.Response(status_code=status, headers=headers, reason=_REASONS.get(status, b"")))
        content = b"" if self._no_body else self._http.send(h11.Data(data=data))
        end = self._http.send(h11.EndOfMessage())
        await self._stream.send(b"".join(part for part in (head, content, end) if part))

    async def end(self) -> None:
        """End the body."""
        framed = self._http.send(h11.EndOfMessage())
        if framed:
            await self._stream.send(framed)

    def ready_for_next(self) -> bool:
        """Prepare for another request on this connection, or say that it must be closed."""
        if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            return False
        self._http.start_next_cycle()
        return True

    async def wait_client_left(self) -> None:
        """Return when the client closed its side; what it sends meanwhile is kept for the next request."""
        while sum(map(len, self._early)) < MAX_EARLY_BYTES:
            try:
                self._early.append(await self._stream.receive())
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                return
        await anyio.sleep_forever()

    async def _next_event(self) -> object:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            if self._http.they_are_waiting_for_100_continue:
                await self._stream.send(self._http.send(h11.InformationalResponse(status_code=100, headers=[])) or b"")
            self._http.receive_data(await self._more())
        return event

    async def _more(self) -> bytes:
        if self._early:
            return self._early.pop(0)
        try:
            return await self._stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return b""


def _joined(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    joined: dict[str, str] = {}
    for raw_name, raw_value in headers:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        joined[name] = f"{joined[name]}, {value}" if name in joined else value
    return joined
