"""What the scripted model server remembers of each request, as frozen values that tests compare and wait for."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import anyio

__all__ = ["RecordedRequest", "RequestLog", "ServerStatistics"]

MAX_KEPT_BYTES = 64 * 1024 * 1024

_SECRET_HEADERS = ("authorization", "api-key", "x-api-key", "cookie")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRequest:
    """One request. Times are seconds of the server's monotonic clock, None while it has not come so far.

    `purpose`, `scenario` and `step` are None for what is no model request, the latter two also when the script has no
    answer. `client_closed`: the client closed the connection before the answer had ended.
    """

    number: int
    received: float
    method: str
    path: str
    headers: Mapping[str, str]
    raw: bytes = field(repr=False)
    purpose: str | None = None
    scenario: str | None = None
    step: int | None = None
    status: int | None = None
    answer_began: float | None = None
    answer_ended: float | None = None
    client_closed: bool = False

    @property
    def body(self) -> Any:
        """The parsed body; None when it is no JSON. Parsed anew at each look, so that a server can keep many."""
        try:
            return json.loads(self.raw)
        except (ValueError, RecursionError):
            return None

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages of the body; empty when it has none."""
        match self.body:
            case {"messages": [*messages]}:
                return messages
            case _:
                return []

    def as_data(self) -> dict[str, Any]:
        """Return plain data, as `GET /_/requests` shows it."""
        return {
            "number": self.number,
            "received": self.received,
            "method": self.method,
            "path": self.path,
            "headers": dict(self.headers),
            "body": self.body,
            "purpose": self.purpose,
            "scenario": self.scenario,
            "step": self.step,
            "status": self.status,
            "answer_began": self.answer_began,
            "answer_ended": self.answer_ended,
            "client_closed": self.client_closed,
        }


@dataclass(frozen=True, slots=True)
class ServerStatistics:
    """Counts of one server: connections open now, requests since the start, and what became of them."""

    connections: int
    requests: int
    answering: int
    answered: int
    client_closed: int
    forgotten: int


class RequestLog:
    """The last `keep` requests, and whoever waits for one of them."""

    def __init__(self, keep: int) -> None:
        self._keep = keep
        self._requests: dict[int, RecordedRequest] = {}
        self._bytes = 0
        self._waiters: list[tuple[Callable[[RecordedRequest], bool], anyio.Event, list[RecordedRequest]]] = []
        self._count = 0
        self._answered = 0
        self._client_closed = 0
        self._open: dict[int, RecordedRequest] = {}

    @property
    def requests(self) -> tuple[RecordedRequest, ...]:
        """The remembered requests in the order of their arrival."""
        return tuple(self._requests.values())

    def add(self, *, received: float, method: str, path: str, headers: Mapping[str, str], raw: bytes) -> int:
        """Remember a request and return its number, counted from 1; secrets in headers are masked."""
        self._count += 1
        request = RecordedRequest(
            number=self._count, received=received, method=method, path=path, headers=_masked(headers), raw=raw
        )
        self._requests[request.number] = self._open[request.number] = request
        self._bytes += len(raw)
        while len(self._requests) > self._keep or (self._bytes > MAX_KEPT_BYTES and len(self._requests) > 1):
            oldest = self._requests.pop(next(iter(self._requests)))
            self._bytes -= len(oldest.raw)
        self._tell(request)
        return request.number

    def update(self, number: int, **changes: Any) -> None:
        """Note what became of a request; one that is no longer remembered is only counted."""
        request = replace(self._open[number], **changes)
        self._open[number] = request
        if number in self._requests:
            self._requests[number] = request
        if request.answer_ended is not None:
            del self._open[number]
            self._answered += not request.client_closed
            self._client_closed += request.client_closed
        self._tell(request)

    def forget(self) -> None:
        """Forget what is remembered; counts go on."""
        self._requests.clear()
        self._bytes = 0

    async def wait_for(self, predicate: Callable[[RecordedRequest], bool]) -> RecordedRequest:
        """Return the first request for which `predicate` holds, now or as soon as one comes so far.

        It waits without an end; bound it with `anyio.fail_after`.
        """
        for request in self._requests.values():
            if predicate(request):
                return request
        found: list[RecordedRequest] = []
        waiter = (predicate, anyio.Event(), found)
        self._waiters.append(waiter)
        try:
            await waiter[1].wait()
        finally:
            self._waiters.remove(waiter)
        return found[0]

    def statistics(self, *, connections: int) -> ServerStatistics:
        """Count what came and what became of it."""
        return ServerStatistics(
            connections=connections,
            requests=self._count,
            answering=len(self._open),
            answered=self._answered,
            client_closed=self._client_closed,
            forgotten=self._count - len(self._requests),
        )

    def _tell(self, request: RecordedRequest) -> None:
        for predicate, event, found in self._waiters:
            if not event.is_set() and predicate(request):
                found.append(request)
                event.set()


def _masked(headers: Mapping[str, str]) -> dict[str, str]:
    masked = dict(headers)
    for name in _SECRET_HEADERS:
        if name in masked:
            scheme, space, _ = masked[name].partition(" ")
            masked[name] = f"{scheme} ***" if space else "***"
    return masked
