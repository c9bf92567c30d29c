"""The providers of one process and what stands behind them: tracer, meter, logger, each with its way out."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.metrics import (
    AlwaysOffExemplarFilter,
    AlwaysOnExemplarFilter,
    Counter,
    MeterProvider,
    ObservableCounter,
    ObservableGauge,
    ObservableUpDownCounter,
    TraceBasedExemplarFilter,
)
from opentelemetry.sdk.metrics.export import MetricExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, Sampler
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Tracer

from recallscope.telemetry import names
from recallscope.telemetry.environment import choice, number, whole
from recallscope.telemetry.export_queue import ExportQueue, SpanQueueProcessor
from recallscope.telemetry.exporters import exporter_of, telling
from recallscope.telemetry.flow import Flow
from recallscope.telemetry.histograms import Exemplars, HistogramReader, Histograms
from recallscope.telemetry.limits import span_limits, which_exemplars
from recallscope.telemetry.metric_export import MetricFlow, MetricPush, preference_of
from recallscope.telemetry.readers import PullReader
from recallscope.telemetry.settings import TelemetrySettings, plan_export
from recallscope.telemetry.tracer import LeanTracer

__all__ = ["MetricPipeline", "TracePipeline"]

CARDINALITY_LIMITS: dict[type, int] = {
    Counter: 1_000,
    ObservableCounter: 1_000,
    ObservableGauge: 200,
    ObservableUpDownCounter: 200,
}
"""Series per instrument; what comes after goes into one series labelled `otel.metric.overflow`."""


_FILTERS: Final = {
    Exemplars.TRACED: TraceBasedExemplarFilter(),
    Exemplars.ALL: AlwaysOnExemplarFilter(),
    Exemplars.NONE: AlwaysOffExemplarFilter(),
}


INTERNAL_METRICS: Final = "OTEL_PYTHON_SDK_INTERNAL_METRICS_ENABLED"


class TracePipeline:
    """The tracer provider, and the queue to the collector if one is configured."""

    def __init__(self, settings: TelemetrySettings, resource: Resource, meters: MeterProvider | None) -> None:
        environ = settings.environ
        self._internal_metrics = environ.get(INTERNAL_METRICS, "").strip().lower() == "true"
        self._limits = span_limits(environ)
        self._ended: Callable[[ReadableSpan], None] = lambda _span: None
        self.provider = TracerProvider(
            sampler=_sampler(settings),
            resource=resource,
            id_generator=settings.ids,
            shutdown_on_exit=False,
            meter_provider=meters or NoOpMeterProvider(),
            span_limits=self._limits,
        )
        self.queue: ExportQueue[ReadableSpan] | None = None
        self.refused: Callable[[], int] = lambda: 0
        self._close_exporter: Callable[[], None] = lambda: None
        plan = plan_export(environ, "TRACES", by_default=True)
        if plan is None:
            return
        exporter: SpanExporter | None = exporter_of(plan, environ, lambda otlp: otlp.span_exporter(plan, meters))
        if exporter is None:
            return
        self.queue = ExportQueue(
            telling(exporter.export, SpanExportResult.SUCCESS),
            signal=names.TRACES,
            capacity=whole(environ, "OTEL_BSP_MAX_QUEUE_SIZE", 8_192, least=1),
            batch=whole(environ, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512, least=1),
            delay=number(environ, "OTEL_BSP_SCHEDULE_DELAY", 1_000) / 1_000,
        )
        self._close_exporter = exporter.shutdown
        processor = SpanQueueProcessor(self.queue)
        self._ended = processor.on_end
        self.provider.add_span_processor(processor)

    def tracer(self, version: str) -> Tracer:
        """Return what begins spans: ours, unless the SDK is asked for metrics of its own tracer."""
        if self._internal_metrics:
            return self.provider.get_tracer(names.SCOPE, version)
        return LeanTracer(
            sampler=self.provider.sampler,
            ids=self.provider.id_generator,
            resource=self.provider.resource,
            scope=InstrumentationScope(names.SCOPE, version),
            limits=self._limits,
            ended=self._ended,
        )

    def start_closing(self) -> None:
        """Take no more spans and pass on what waits."""
        if self.queue is not None:
            self.queue.start_closing()

    def finish_closing(self, deadline: float) -> None:
        """Wait until `deadline` (monotonic) at most for what waits."""
        if self.queue is not None:
            self.queue.finish_closing(deadline - time.monotonic())
            self._close_exporter()

    def flows(self) -> tuple[Flow, ...]:
        """Say what became of the spans; those that `refused` tells of were never begun."""
        if self.queue is None:
            return ()
        flow = self.queue.flow()
        return (replace(flow, lost=(*flow.lost, (names.LOST_TOO_MANY_OPEN, self.refused()))),)


class MetricPipeline:
    """The meter provider, the reader that answers `/metrics` (`scraped`), and what exports at an interval."""

    def __init__(self, settings: TelemetrySettings, resource: Resource) -> None:
        environ = settings.environ
        self.provider: MeterProvider | None = None
        self.histograms = Histograms(
            InstrumentationScope(names.SCOPE, settings.version), resource, exemplars=which_exemplars(environ)
        )
        self.readers: list[PullReader] = []
        self.scraped = PullReader(cardinality_limits=CARDINALITY_LIMITS) if settings.serve_metrics else None
        if self.scraped is not None:
            self.scraped.read(HistogramReader(self.histograms))
            self.readers.append(self.scraped)
        flow = MetricFlow()
        plan = plan_export(environ, "METRICS", by_default=True)
        exporter: MetricExporter | None = None
        if plan is not None:
            choice(environ, "OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION", ("explicit_bucket_histogram",))
            exporter = exporter_of(plan, environ, lambda otlp: otlp.metric_exporter(plan, flow))
        exported = self._exported_reader(exporter) if exporter is not None else None
        if self.readers:
            self.provider = MeterProvider(
                metric_readers=self.readers,
                resource=resource,
                shutdown_on_exit=False,
                exemplar_filter=_FILTERS[self.histograms.exemplars],
            )
        self._push: MetricPush | None = None
        if exporter is not None and exported is not None:
            self._push = MetricPush(
                exported,
                exporter,
                flow,
                interval=number(environ, "OTEL_METRIC_EXPORT_INTERVAL", 15_000) / 1_000,
                timeout=number(environ, "OTEL_METRIC_EXPORT_TIMEOUT", 30_000) / 1_000,
            )

    def _exported_reader(self, exporter: MetricExporter) -> PullReader:
        """Return the reader of `/metrics` if it collects what the exporter wants, else one of its own."""
        preference = preference_of(exporter)
        if self.scraped is not None and preference.usual:
            return self.scraped
        reader = PullReader(
            cardinality_limits=CARDINALITY_LIMITS,
            temporality=preference.temporality,
        )
        reader.read(HistogramReader(self.histograms, delta=preference.delta))
        self.readers.append(reader)
        return reader

    def start_closing(self, timeout: float) -> None:
        """Export once more, from the exporting thread; give up after `timeout` seconds."""
        if self._push is not None:
            self._push.start_closing(timeout)

    def finish_closing(self, deadline: float) -> None:
        """Wait until `deadline` (monotonic) at most for that last export."""
        if self._push is not None:
            self._push.finish_closing(deadline)

    def flows(self) -> tuple[Flow, ...]:
        """Say what became of the exported points."""
        return (self._push.flow(),) if self._push is not None else ()


def _sampler(settings: TelemetrySettings) -> Sampler | None:
    """Record everything; `OTEL_TRACES_SAMPLER` overrides (None).

    A parent-based sampler that also records below remote parents that are not recorded decides the same, but slower.
    """
    return None if settings.environ.get("OTEL_TRACES_SAMPLER") else ALWAYS_ON
