"""Server-sent events out of bytes: the framing of a streamed answer.

Lines end in LF, CR or CRLF and nothing else: a text decoder that also splits at U+2028 would tear a JSON string apart.
Comments, `id:` and `retry:` are ignored (the HTML standard, section 9.2).
"""

from collections.abc import Iterator

from recallscope.runtime.errors import ModelStreamError

__all__ = ["EVENT_LIMIT", "SseDecoder"]

EVENT_LIMIT = 1024 * 1024
"""Bytes that one line, or the data of one event, may have."""

_BOM = b"\xef\xbb\xbf"


class SseDecoder:
    """Takes bytes as they come, at any borders, and gives each event once it is whole.

    `url` names the server in errors. An event is its name (`message` where the server gives none) and its data; data
    of several lines is joined with newlines, and events without data are dropped.
    """

    def __init__(self, *, url: str, limit: int = EVENT_LIMIT) -> None:
        self._url = url
        self._limit = limit
        self._line = bytearray()
        self._name = "message"
        self._data: list[bytes] = []
        self._size = 0
        self._after_cr = False
        self._at_start = True

    def feed(self, data: bytes) -> Iterator[tuple[str, bytes]]:
        """Take bytes and yield the events that are whole now, in order.

        Raises:
            ModelStreamError: a line or an event is longer than the limit.
        """
        if self._after_cr and data:
            self._after_cr = False
            data = data.removeprefix(b"\n")
        if not data:
            return
        self._after_cr = data.endswith(b"\r")
        lines = data.splitlines(keepends=True)
        rest = b"" if lines[-1].endswith((b"\n", b"\r")) else lines.pop()
        for line in lines:
            if self._line:
                self._keep(line)
                line = bytes(self._line)  # noqa: PLW2901 - the whole line in place of its last piece
                self._line.clear()
            yield from self._take(line.rstrip(b"\r\n"))
        if rest:
            self._keep(rest)

    def flush(self) -> Iterator[tuple[str, bytes]]:
        """Yield what a server sent that forgot the last empty line."""
        if self._line:
            line = bytes(self._line)
            self._line.clear()
            yield from self._take(line)
        yield from self._take(b"")

    def _keep(self, piece: bytes) -> None:
        self._line += piece
        self._check(len(self._line))

    def _check(self, size: int) -> None:
        if size > self._limit:
            raise ModelStreamError(url=self._url, problem=f"one event has more than {self._limit} bytes")

    def _take(self, line: bytes) -> Iterator[tuple[str, bytes]]:
        if self._at_start:
            self._at_start = False
            line = line.removeprefix(_BOM)
        if not line:
            if self._data:
                yield self._name, self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
            self._name, self._data, self._size = "message", [], 0
            return
        field, _, value = line.partition(b":")
        if field == b"data":
            value = value.removeprefix(b" ")
            self._size += len(value)
            self._check(self._size)
            self._data.append(value)
        elif field == b"event":
            self._name = value.removeprefix(b" ").decode("utf-8", "replace")
