"""Stands between the agents and the collector: passes OTLP on as it is, and remembers which spans went by.

What the collector kept is judged by what it was sent, and nobody but the wire knows that.
"""

import gzip
import json
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self, cast
from urllib.parse import urlsplit

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from recallscope.telemetry import names
from recallscope.telemetry.testing.receiver import attributes_of

__all__ = ["Relay", "Seen", "Trace", "kept_spans", "traces_of"]

ERROR = 2
TIMEOUT_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Seen:
    """A span on the wire or in a file: ids as lower-case hex, the status as OTLP numbers it, events by their names."""

    trace_id: str
    span_id: str
    name: str
    status: int
    attributes: dict[str, Any] = field(hash=False)
    message: str = ""
    events: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Trace:
    """All spans of one trace."""

    spans: tuple[Seen, ...]

    @property
    def ids(self) -> set[str]:
        """The ids of its spans."""
        return {span.span_id for span in self.spans}

    @property
    def marked(self) -> bool:
        """Whether a span asks that it be kept."""
        return any(span.attributes.get(names.TURN_KEEP) is True for span in self.spans)

    @property
    def failed(self) -> bool:
        """Whether a span failed."""
        return any(span.status == ERROR for span in self.spans)

    @property
    def is_turn(self) -> bool:
        """Whether it is that of a turn."""
        return any(span.name.startswith(f"{names.INVOKE_AGENT} ") for span in self.spans)


class Relay:
    """Listens on loopback while its `with` block runs, and passes every request to `target` (`http://host:port`)."""

    def __init__(self, target: str) -> None:
        self.target = target
        self._bodies: list[bytes] = []
        self._seen = threading.Lock()
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def endpoint(self) -> str:
        """The value of `OTEL_EXPORTER_OTLP_ENDPOINT` for HTTP."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def spans(self) -> list[Seen]:
        """Return the spans that the collector has accepted, in order of arrival."""
        with self._seen:
            bodies = tuple(self._bodies)
        return [
            Seen(
                trace_id=span.trace_id.hex(),
                span_id=span.span_id.hex(),
                name=span.name,
                status=span.status.code,
                attributes=attributes_of(span.attributes),
                message=span.status.message,
                events=tuple(event.name for event in span.events),
            )
            for body in bodies
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def pass_on(self, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        """Send a request on, remember it if it was accepted, and return the answer; 502 if nobody answers."""
        target = urlsplit(self.target)
        connection = HTTPConnection(target.hostname or "", target.port, timeout=TIMEOUT_SECONDS)
        try:
            connection.request("POST", path, body, headers)
            answer = connection.getresponse()
            told = answer.read()
        except OSError:
            return 502, b""
        finally:
            connection.close()
        if answer.status == 200 and path == "/v1/traces":
            plain = gzip.decompress(body) if headers.get("Content-Encoding") == "gzip" else body
            with self._seen:
                self._bodies.append(plain)
        return answer.status, told


def traces_of(spans: Iterable[Seen]) -> dict[str, Trace]:
    """Return the spans by trace."""
    found: dict[str, list[Seen]] = {}
    for span in spans:
        found.setdefault(span.trace_id, []).append(span)
    return {trace_id: Trace(tuple(spans)) for trace_id, spans in found.items()}


def kept_spans(path: Path) -> list[Seen]:
    """Read what the collector's file exporter wrote to `path` and to the files that it rotated away."""
    files = sorted(path.parent.glob(f"{path.stem}*{path.suffix}"))
    return [span for file in files for line in file.read_text(encoding="utf-8").splitlines() for span in _kept(line)]


def _kept(line: str) -> Iterator[Seen]:
    for resource in json.loads(line)["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                yield Seen(
                    trace_id=span["traceId"],
                    span_id=span["spanId"],
                    name=span.get("name", ""),
                    status=span.get("status", {}).get("code", 0),
                    attributes={pair["key"]: _plain(pair["value"]) for pair in span.get("attributes", ())},
                    message=span.get("status", {}).get("message", ""),
                    events=tuple(event.get("name", "") for event in span.get("events", ())),
                )


def _plain(value: dict[str, Any]) -> Any:
    match value:
        case {"stringValue": str(text)}:
            return text
        case {"boolValue": bool(flag)}:
            return flag
        case {"intValue": number}:
            return int(number)
        case {"doubleValue": number}:
            return float(number)
        case {"arrayValue": {"values": values}}:
            return tuple(_plain(item) for item in values)
        case _:
            return None


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, relay: Relay) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.relay = relay


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        wanted = ("Content-Type", "Content-Encoding")
        headers = {name: value for name in wanted if (value := self.headers.get(name)) is not None}
        status, told = cast("_Server", self.server).relay.pass_on(self.path, body, headers)
        self.send_response(status)
        self.send_header("content-type", "application/x-protobuf")
        self.send_header("content-length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class calls it so
        """Print nothing."""
