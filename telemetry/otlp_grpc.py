"""OTLP over gRPC. Importing this costs some 70 ms of CPU, so it is imported when gRPC is asked for."""

from collections.abc import Sequence
from typing import Any

from grpc import Compression
from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import MeterProvider
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk._logs.export import LogRecordExporter
from opentelemetry.sdk.metrics.export import MetricExporter, MetricExportResult, MetricsData
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter

from recallscope.telemetry.exporters import REFUSALS
from recallscope.telemetry.metric_export import MetricFlow
from recallscope.telemetry.otlp_spans import SpanEncoder
from recallscope.telemetry.settings import ExportPlan

__all__ = ["log_exporter", "metric_exporter", "span_exporter"]

_COMPRESSIONS = {"none": Compression.NoCompression, "gzip": Compression.Gzip}


class _MetricExporter(OTLPMetricExporter):
    def __init__(self, plan: ExportPlan, flow: MetricFlow) -> None:
        super().__init__(timeout=plan.timeout, compression=_COMPRESSIONS[plan.compression])
        self._flow = flow

    def export(self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: Any) -> MetricExportResult:
        self._flow.begin(metrics_data)
        try:
            result = super().export(  # pyright: ignore[reportUnknownMemberType]  # the SDK leaves **kwargs open
                metrics_data, timeout_millis, **kwargs
            )
        except REFUSALS:
            result = MetricExportResult.FAILURE
        return self._flow.end(result)


class _SpanExporter(OTLPSpanExporter):
    """The library's exporter with our encoder."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._encoder = SpanEncoder()

    def _translate_data(self, data: Sequence[ReadableSpan]) -> ExportTraceServiceRequest:
        request = ExportTraceServiceRequest()
        request.ParseFromString(self._encoder.request(data))
        return request


def span_exporter(plan: ExportPlan, meters: MeterProvider | None) -> SpanExporter:
    """Make the exporter of spans."""
    return _SpanExporter(timeout=plan.timeout, compression=_COMPRESSIONS[plan.compression], meter_provider=meters)


def metric_exporter(plan: ExportPlan, flow: MetricFlow) -> MetricExporter:
    """Make the exporter of metrics, which counts in `flow`."""
    return _MetricExporter(plan, flow)


def log_exporter(plan: ExportPlan, meters: MeterProvider | None) -> LogRecordExporter:
    """Make the exporter of log records."""
    return OTLPLogExporter(timeout=plan.timeout, compression=_COMPRESSIONS[plan.compression], meter_provider=meters)
