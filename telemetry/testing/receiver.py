"""A small OTLP receiver on loopback, over HTTP and gRPC: it decodes and keeps what arrives, or behaves badly."""

import gzip
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import Enum, unique
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self, cast

import grpc
from google.protobuf.message import Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest, ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
from opentelemetry.proto.trace.v1.trace_pb2 import Span

__all__ = ["Behaviour", "OtlpReceiver", "ReceivedSpan", "attributes_of"]


@unique
class Behaviour(Enum):
    """How the receiver answers."""

    ACCEPT = "accept"
    UNAVAILABLE = "unavailable"
    HANG = "hang"


@dataclass(frozen=True, slots=True)
class ReceivedSpan:
    """A span as it arrived, with ids as lower-case hex and attributes as plain values."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    kind: int
    start_ns: int
    end_ns: int
    status: int
    attributes: dict[str, Any]
    events: tuple[tuple[str, dict[str, Any]], ...]
    links: tuple[str, ...]
    resource: dict[str, Any] = field(repr=False)


class OtlpReceiver:
    """Receives OTLP on two ports of 127.0.0.1 while its `with` block runs.

    Attributes:
        behaviour: how it answers from now on; may be changed at any time.
        headers: the headers of each HTTP request, lower-case names.
    """

    def __init__(self, behaviour: Behaviour = Behaviour.ACCEPT) -> None:
        self.behaviour = behaviour
        self.headers: list[dict[str, str]] = []
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self._traces: list[ExportTraceServiceRequest] = []
        self._metrics: list[ExportMetricsServiceRequest] = []
        self._logs: list[ExportLogsServiceRequest] = []
        self._http = _HttpServer(self)
        self._grpc = grpc.server(ThreadPoolExecutor(max_workers=4))
        self._grpc.add_generic_rpc_handlers(_services(self))
        self._grpc_port: int = self._grpc.add_insecure_port("127.0.0.1:0")
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._grpc.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._closing.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()
        self._grpc.stop(grace=None).wait()

    @property
    def http_endpoint(self) -> str:
        """The value of `OTEL_EXPORTER_OTLP_ENDPOINT` for HTTP."""
        return f"http://127.0.0.1:{self._http.server_port}"

    @property
    def grpc_endpoint(self) -> str:
        """The value of `OTEL_EXPORTER_OTLP_ENDPOINT` for gRPC."""
        return f"http://127.0.0.1:{self._grpc_port}"

    def environ(self, protocol: str = "http/protobuf", **more: str) -> dict[str, str]:
        """Return the variables that make an exporter send here."""
        endpoint = self.grpc_endpoint if protocol == "grpc" else self.http_endpoint
        return {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL": protocol, **more}

    def spans(self) -> list[ReceivedSpan]:
        """Return the spans that arrived, in order of arrival."""
        with self._changed:
            return [
                _received(span, attributes_of(resource.resource.attributes))
                for request in self._traces
                for resource in request.resource_spans
                for scope in resource.scope_spans
                for span in scope.spans
            ]

    def metrics(self) -> dict[str, Metric]:
        """Return the last state of each metric by its name."""
        with self._changed:
            return {
                metric.name: metric
                for request in self._metrics
                for resource in request.resource_metrics
                for scope in resource.scope_metrics
                for metric in scope.metrics
            }

    def logs(self) -> list[LogRecord]:
        """Return the log records that arrived."""
        with self._changed:
            return [
                record
                for request in self._logs
                for resource in request.resource_logs
                for scope in resource.scope_logs
                for record in scope.log_records
            ]

    def wait_for(self, condition: Callable[[], bool], timeout: float = 10.0) -> bool:
        """Wait until `condition` holds, asked again after each arrival; say whether it does."""
        deadline = time.monotonic() + timeout
        while not condition():
            with self._changed:
                left = deadline - time.monotonic()
                if left <= 0 or (not self._changed.wait(min(left, 0.05)) and time.monotonic() >= deadline):
                    return condition()
        return True

    def take(self, request: Message) -> bool:
        """Keep a request and say whether it is accepted; hang first if that is the behaviour."""
        if self.behaviour is Behaviour.HANG:
            self._closing.wait()
            return False
        if self.behaviour is Behaviour.UNAVAILABLE:
            return False
        with self._changed:
            match request:
                case ExportTraceServiceRequest():
                    self._traces.append(request)
                case ExportMetricsServiceRequest():
                    self._metrics.append(request)
                case ExportLogsServiceRequest():
                    self._logs.append(request)
                case _:
                    return False
            self._changed.notify_all()
        return True


def attributes_of(pairs: Any) -> dict[str, Any]:
    """Return OTLP attributes as plain values."""
    return dict(_pairs(pairs))


def _pairs(pairs: Any) -> Iterator[tuple[str, Any]]:
    pair: KeyValue
    for pair in pairs:
        yield pair.key, _plain(pair.value)


def _plain(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    if kind == "array_value":
        return tuple(_plain(item) for item in value.array_value.values)
    return getattr(value, kind)


def _received(span: Span, resource: dict[str, Any]) -> ReceivedSpan:
    return ReceivedSpan(
        name=span.name,
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        kind=span.kind,
        start_ns=span.start_time_unix_nano,
        end_ns=span.end_time_unix_nano,
        status=span.status.code,
        attributes=attributes_of(span.attributes),
        events=tuple((event.name, attributes_of(event.attributes)) for event in span.events),
        links=tuple(link.span_id.hex() for link in span.links),
        resource=resource,
    )


_PATHS: dict[str, Callable[[], Message]] = {
    "/v1/traces": ExportTraceServiceRequest,
    "/v1/metrics": ExportMetricsServiceRequest,
    "/v1/logs": ExportLogsServiceRequest,
}


class _HttpServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, receiver: OtlpReceiver) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.receiver = receiver


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        receiver = cast("_HttpServer", self.server).receiver
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        make = _PATHS.get(self.path)
        if make is None:
            self.send_error(404)
            return
        request = make()
        request.ParseFromString(body)
        receiver.headers.append({name.lower(): value for name, value in self.headers.items()})
        self.send_response(200 if receiver.take(request) else 503)
        self.send_header("content-type", "application/x-protobuf")
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class calls it so
        """Print nothing."""


def _services(receiver: OtlpReceiver) -> tuple[Any, ...]:
    """Return the three collector services, each with its one method."""

    def export(request: Message, context: Any) -> Message:
        if not receiver.take(request):
            context.abort(grpc.StatusCode.UNAVAILABLE, "not now")
        return _ANSWERS[type(request)]()

    def serialize(answer: Message) -> bytes:
        return bytes(answer.SerializeToString())

    return tuple(
        grpc.method_handlers_generic_handler(
            service,
            {
                "Export": grpc.unary_unary_rpc_method_handler(
                    export, request_deserializer=make.FromString, response_serializer=serialize
                )
            },
        )
        for service, make in _SERVICES.items()
    )


_SERVICES: dict[str, Any] = {
    "opentelemetry.proto.collector.trace.v1.TraceService": ExportTraceServiceRequest,
    "opentelemetry.proto.collector.metrics.v1.MetricsService": ExportMetricsServiceRequest,
    "opentelemetry.proto.collector.logs.v1.LogsService": ExportLogsServiceRequest,
}
_ANSWERS: dict[type[Message], Callable[[], Message]] = {
    ExportTraceServiceRequest: ExportTraceServiceResponse,
    ExportMetricsServiceRequest: ExportMetricsServiceResponse,
    ExportLogsServiceRequest: ExportLogsServiceResponse,
}
