"""`/metrics`: what the meter measured, as OpenMetrics with exemplars (or the older text), served from a thread.

The SDK's own Prometheus reader drops exemplars and fails whole on one exponential histogram; this one keeps the last
exemplar of each series and bucket between scrapes, skips what it cannot show, and counts that.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

from opentelemetry.sdk.metrics.export import (
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    NumberDataPoint,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, InfoMetricFamily
from prometheus_client.registry import Collector
from prometheus_client.samples import Exemplar

from recallscope.telemetry.exemplars import Series, series_of
from recallscope.telemetry.metric import prometheus_family, prometheus_label
from recallscope.telemetry.readers import PullReader

__all__ = ["Exposition", "MetricsServer"]

_log = logging.getLogger(__name__)

Family = CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily


class Exposition:
    """Turns what a reader collects into Prometheus families; `skipped` counts metrics that have no text form."""

    def __init__(self, reader: PullReader) -> None:
        self._reader = reader
        self._lock = threading.Lock()
        self.skipped = 0

    def families(self) -> list[Family | InfoMetricFamily]:
        """Collect now and return one family per metric, and `target_info`."""
        with self._lock:
            data = self._reader.pull()
            families: dict[str, Family] = {}
            info: list[InfoMetricFamily] = []
            for resource_metrics in data.resource_metrics if data is not None else ():
                info = info or [_target_info(resource_metrics.resource)]
                for scope_metrics in resource_metrics.scope_metrics:
                    for metric in scope_metrics.metrics:
                        if not self._add(families, metric):
                            self.skipped += 1
            return [*families.values(), *info]

    def _add(self, families: dict[str, Family], metric: Metric) -> bool:
        """Add the points of one metric to its family; False for a kind that the text formats cannot show."""
        gauge = isinstance(metric.data, Gauge) or (isinstance(metric.data, Sum) and not metric.data.is_monotonic)
        name = prometheus_family(metric.name, metric.unit or "", gauge=gauge)
        help_text = metric.description or metric.name
        match metric.data:
            case Sum(is_monotonic=True):
                family = families.setdefault(name, CounterMetricFamily(name, help_text))
                if not isinstance(family, CounterMetricFamily):
                    return False
                for point in metric.data.data_points:
                    self._add_count(family, metric, point)
            case Sum() | Gauge():
                family = families.setdefault(name, GaugeMetricFamily(name, help_text))
                if not isinstance(family, GaugeMetricFamily):
                    return False
                for point in metric.data.data_points:
                    family.add_sample(name, _labels(point.attributes), point.value)
            case Histogram():
                family = families.setdefault(name, HistogramMetricFamily(name, help_text))
                if not isinstance(family, HistogramMetricFamily):
                    return False
                for histogram_point in metric.data.data_points:
                    self._add_histogram(family, metric, histogram_point)
            case _:
                return False
        return True

    def _add_count(self, family: CounterMetricFamily, metric: Metric, point: NumberDataPoint) -> None:
        exemplar = self._exemplar(series_of(metric, point.attributes), 0)
        family.add_sample(f"{family.name}_total", _labels(point.attributes), point.value, exemplar=exemplar)

    def _add_histogram(self, family: HistogramMetricFamily, metric: Metric, point: HistogramDataPoint) -> None:
        labels = _labels(point.attributes)
        series = series_of(metric, point.attributes)
        total = 0
        bounds = (*(repr(float(bound)) for bound in point.explicit_bounds), "+Inf")
        for bucket, (bound, count) in enumerate(zip(bounds, point.bucket_counts, strict=True)):
            total += count
            exemplar = self._exemplar(series, bucket)
            family.add_sample(f"{family.name}_bucket", {**labels, "le": bound}, total, exemplar=exemplar)
        family.add_sample(f"{family.name}_count", labels, total)
        family.add_sample(f"{family.name}_sum", labels, point.sum)

    def _exemplar(self, series: Series, bucket: int) -> Exemplar | None:
        kept = self._reader.store.last(series, bucket)
        if kept is None:
            return None
        labels = {"trace_id": f"{kept.trace_id:032x}", "span_id": f"{kept.span_id:016x}"}
        return Exemplar(labels, kept.value, round(kept.time_unix_nano / 1e9, 3))


class _Families(Collector):
    """What `prometheus_client` asks at each scrape."""

    def __init__(self, exposition: Exposition) -> None:
        self._exposition = exposition

    def collect(self) -> Iterable[Any]:
        return self._exposition.families()


class MetricsServer:
    """Serves what a reader collects over HTTP on a thread; OpenMetrics to whoever accepts it, text to others.

    Use as a context manager. A port that is taken is a warning: `url` is None then, and nothing else changes.
    """

    def __init__(self, reader: PullReader, *, host: str = "127.0.0.1", port: int = 9464) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(_Families(Exposition(reader)))
        self._address = (host, port)
        self._stop: Callable[[], None] = lambda: None
        self.url: str | None = None

    def __enter__(self) -> Self:
        host, port = self._address
        try:
            server, thread = start_http_server(port, addr=host, registry=self._registry)
        except OSError as error:
            _log.warning(
                "no /metrics: %s:%d cannot be opened (%s); set OTEL_EXPORTER_PROMETHEUS_PORT to a free port, or to 0",
                *(host, port, error.strerror or error),
            )
            return self
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{server.server_port}/metrics"

        def stop() -> None:
            server.shutdown()
            server.server_close()
            thread.join()

        self._stop = stop
        return self

    def __exit__(self, *_exc: object) -> None:
        self._stop()
        self.url = None


def _labels(attributes: Mapping[str, Any] | None) -> dict[str, str]:
    return {prometheus_label(name): _text(value) for name, value in sorted((attributes or {}).items())}


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return ",".join(str(item) for item in value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]  # items of an attribute
    return str(value)


def _target_info(resource: Resource) -> InfoMetricFamily:
    return InfoMetricFamily("target", "What this process is.", value=_labels(resource.attributes))
