"""`/metrics`: what the meter measured, as OpenMetrics with exemplars (or the older text), served from a thread.

The SDK's own Prometheus reader drops exemplars and fails whole on one exponential histogram; this one keeps the last
exemplar of each series and bucket between scrapes, skips what it cannot show, and counts that.
"""

import logging
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from opentelemetry.sdk.metrics.export import (
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricReader,
    MetricsData,
    NumberDataPoint,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, InfoMetricFamily
from prometheus_client.registry import Collector
from prometheus_client.samples import Exemplar

from recallscope.telemetry.metric import prometheus_family, prometheus_label

__all__ = ["ExemplarReader", "MetricsServer"]

_log = logging.getLogger(__name__)

EXEMPLAR_KEPT_SECONDS = 600.0

Family = CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily
_Series = tuple[str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True, slots=True)
class _Kept:
    exemplar: Exemplar
    seen: float


class ExemplarReader(MetricReader):
    """A metric reader that answers with Prometheus families; always cumulative.

    Args:
        wall: seconds since 1970, for the age of exemplars.
        cardinality_limits: as for every metric reader.
    """

    def __init__(
        self, *, wall: Callable[[], float] = time.time, cardinality_limits: Mapping[type, int] | None = None
    ) -> None:
        super().__init__(cardinality_limits=dict(cardinality_limits) if cardinality_limits else None)
        self._wall = wall
        self._lock = threading.Lock()
        self._data: MetricsData | None = None
        self._exemplars: dict[tuple[_Series, int], _Kept] = {}
        self.skipped = 0

    def families(self) -> list[Family | InfoMetricFamily]:
        """Collect now and return one family per metric, and `target_info`."""
        with self._lock:
            self.collect()
            data, self._data = self._data, None
            families: dict[str, Family] = {}
            info: InfoMetricFamily | None = None
            for resource_metrics in data.resource_metrics if data is not None else ():
                info = info or _target_info(resource_metrics.resource)
                for scope_metrics in resource_metrics.scope_metrics:
                    for metric in scope_metrics.metrics:
                        self._add(families, metric)
            self._forget_old_exemplars()
            return [*families.values(), *([info] if info is not None else [])]

    def shutdown(self, timeout_millis: float = 30_000, **kwargs: Any) -> None:
        """Do nothing: there is nothing to flush."""

    def _receive_metrics(self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: Any) -> None:
        self._data = metrics_data

    def _add(self, families: dict[str, Family], metric: Metric) -> None:
        """Add the points of one metric to its family; a kind that the text formats cannot show is counted."""
        gauge = isinstance(metric.data, Gauge) or (isinstance(metric.data, Sum) and not metric.data.is_monotonic)
        name = prometheus_family(metric.name, metric.unit or "", gauge=gauge)
        help_text = metric.description or metric.name
        match metric.data:
            case Sum(is_monotonic=True):
                counter = families.setdefault(name, CounterMetricFamily(name, help_text))
                if isinstance(counter, CounterMetricFamily):
                    for point in metric.data.data_points:
                        self._add_count(counter, point)
                    return
            case Sum() | Gauge():
                family = families.setdefault(name, GaugeMetricFamily(name, help_text))
                if isinstance(family, GaugeMetricFamily):
                    for point in metric.data.data_points:
                        family.add_sample(name, _labels(point.attributes), point.value)
                    return
            case Histogram():
                histogram = families.setdefault(name, HistogramMetricFamily(name, help_text))
                if isinstance(histogram, HistogramMetricFamily):
                    for histogram_point in metric.data.data_points:
                        self._add_histogram(histogram, histogram_point)
                    return
            case _:
                pass
        self.skipped += 1

    def _add_count(self, family: CounterMetricFamily, point: NumberDataPoint) -> None:
        labels = _labels(point.attributes)
        series = (family.name, tuple(labels.items()))
        for exemplar in point.exemplars:
            self._keep(series, 0, exemplar)
        family.add_sample(f"{family.name}_total", labels, point.value, exemplar=self._kept(series, 0))

    def _add_histogram(self, family: HistogramMetricFamily, point: HistogramDataPoint) -> None:
        labels = _labels(point.attributes)
        series = (family.name, tuple(labels.items()))
        for exemplar in point.exemplars:
            self._keep(series, bisect_left(point.explicit_bounds, exemplar.value), exemplar)
        total = 0
        bounds = (*(repr(float(bound)) for bound in point.explicit_bounds), "+Inf")
        for bucket, (bound, count) in enumerate(zip(bounds, point.bucket_counts, strict=True)):
            total += count
            family.add_sample(
                f"{family.name}_bucket", {**labels, "le": bound}, total, exemplar=self._kept(series, bucket)
            )
        family.add_sample(f"{family.name}_count", labels, total)
        family.add_sample(f"{family.name}_sum", labels, point.sum)

    def _keep(self, series: _Series, bucket: int, exemplar: Any) -> None:
        if not exemplar.trace_id or not exemplar.span_id:
            return
        labels = {"trace_id": f"{exemplar.trace_id:032x}", "span_id": f"{exemplar.span_id:016x}"}
        seen = exemplar.time_unix_nano / 1e9
        known = self._exemplars.get((series, bucket))
        if known is None or known.seen <= seen:
            self._exemplars[series, bucket] = _Kept(Exemplar(labels, exemplar.value, round(seen, 3)), seen)

    def _kept(self, series: _Series, bucket: int) -> Exemplar | None:
        kept = self._exemplars.get((series, bucket))
        return kept.exemplar if kept is not None and self._wall() - kept.seen <= EXEMPLAR_KEPT_SECONDS else None

    def _forget_old_exemplars(self) -> None:
        oldest = self._wall() - EXEMPLAR_KEPT_SECONDS
        self._exemplars = {key: kept for key, kept in self._exemplars.items() if kept.seen >= oldest}


class _Families(Collector):
    """What `prometheus_client` asks at each scrape."""

    def __init__(self, reader: ExemplarReader) -> None:
        self._reader = reader

    def collect(self) -> Iterable[Any]:
        return self._reader.families()


class MetricsServer:
    """Serves a reader's families over HTTP on a thread; OpenMetrics to whoever accepts it, text to others.

    Use as a context manager. A port that is taken is a warning: `url` is None then, and nothing else changes.
    """

    def __init__(self, reader: ExemplarReader, *, host: str = "127.0.0.1", port: int = 9464) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(_Families(reader))
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
