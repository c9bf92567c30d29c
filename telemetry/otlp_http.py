"""OTLP over HTTP. Importing this costs some 80 ms of CPU, so it is imported when an endpoint is set."""

from collections.abc import Sequence
from typing import Any

from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import MeterProvider
from opentelemetry.sdk._logs.export import LogRecordExporter
from opentelemetry.sdk.metrics.export import MetricExporter, MetricExportResult, MetricsData
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from recallscope.telemetry.exporters import REFUSALS
from recallscope.telemetry.metric_export import MetricFlow
from recallscope.telemetry.otlp_spans import SpanEncoder
from recallscope.telemetry.settings import ExportPlan

__all__ = ["log_exporter", "metric_exporter", "span_exporter"]


class _MetricExporter(OTLPMetricExporter):
    def __init__(self, plan: ExportPlan, flow: MetricFlow) -> None:
        super().__init__(timeout=plan.timeout, compression=Compression(plan.compression))
        self._flow = flow

    def export(
        self, metrics_data: MetricsData, timeout_millis: float | None = 10_000, **kwargs: Any
    ) -> MetricExportResult:
        self._flow.begin(metrics_data)
        try:
            result = super().export(  # pyright: ignore[reportUnknownMemberType]  # the SDK leaves **kwargs open
                metrics_data, timeout_millis, **kwargs
            )
        except REFUSALS:
            result = MetricExportResult.FAILURE
        return self._flow.end(result)


class _SpanExporter(OTLPSpanExporter):
    """The library's exporter with our encoder; of a version that is built otherwise, the library's alone."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._encoder = SpanEncoder()
        self._sender: Any = getattr(self, "_client", None)
        self._counted: Any = getattr(self, "_metrics", None)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        if self._sender is None or self._counted is None:
            return super().export(spans)
        with self._counted.export_operation(len(spans)) as told:
            sent = self._sender.export(self._encoder.request(spans))
            if not sent.success:
                told.error = sent.error
        return SpanExportResult.SUCCESS if sent.success else SpanExportResult.FAILURE


def span_exporter(plan: ExportPlan, meters: MeterProvider | None) -> SpanExporter:
    """Make the exporter of spans."""
    return _SpanExporter(timeout=plan.timeout, compression=Compression(plan.compression), meter_provider=meters)


def metric_exporter(plan: ExportPlan, flow: MetricFlow) -> MetricExporter:
    """Make the exporter of metrics, which counts in `flow`."""
    return _MetricExporter(plan, flow)


def log_exporter(plan: ExportPlan, meters: MeterProvider | None) -> LogRecordExporter:
    """Make the exporter of log records."""
    return OTLPLogExporter(timeout=plan.timeout, compression=Compression(plan.compression), meter_provider=meters)
