"""The histograms of a process: added up where they are measured, read when somebody collects.

The SDK's instruments cost each observation some twenty microseconds, most of it for attribute sets that are always the
same; here the values of a metric's labels are the key. What is collected are the SDK's own points, put beside those of
its meter, as the specification has it for a producer of metrics, which the Python SDK does not know.
"""

import math
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum, unique
from typing import Final

from opentelemetry.context import Context
from opentelemetry.sdk.metrics import Exemplar
from opentelemetry.sdk.metrics import export as sdk
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import get_current_span
from opentelemetry.util.types import AttributeValue

from recallscope.telemetry.instruments import Labels
from recallscope.telemetry.metric import Metric

__all__ = ["Exemplars", "Histogram", "HistogramReader", "Histograms"]

MOST_SERIES: Final = 500
"""Series of one histogram; what comes after goes into one labelled `otel.metric.overflow`, as the SDK does it."""

_OVERFLOW: Final[Mapping[str, AttributeValue]] = {"otel.metric.overflow": True}


@unique
class Exemplars(StrEnum):
    """Which observations may become exemplars: those within a sampled span, all, or none."""

    TRACED = "trace_based"
    ALL = "always_on"
    NONE = "always_off"


@dataclass(slots=True)
class _Series:
    """One set of labels: counts per bucket, and the last exemplar of each."""

    attributes: Mapping[str, AttributeValue]
    counts: list[int]
    begun_ns: int
    total: float = 0.0
    least: float = math.inf
    most: float = -math.inf
    exemplars: dict[int, Exemplar] = field(default_factory=dict[int, Exemplar])


class Histogram:
    """One metric; made by `Histograms.make`. May be recorded and read in any thread."""

    def __init__(self, metric: Metric, *, exemplars: Exemplars, clock_ns: Callable[[], int]) -> None:
        self.metric = metric
        self._exemplars = exemplars
        self._clock_ns = clock_ns
        self._lock = threading.Lock()
        self._series: dict[Labels, _Series] = {}
        self._overflow: _Series | None = None

    def record(self, seconds: float, values: Labels, context: Context) -> None:
        """Record `seconds`, never below zero, under label `values` with the span in `context`; no number is ignored."""
        if not math.isfinite(seconds):
            return
        seconds = max(seconds, 0.0)
        bucket = bisect_left(self.metric.buckets, seconds)
        with self._lock:
            series = self._series.get(values) or self._begin(values)
            series.counts[bucket] += 1
            series.total += seconds
            series.least = min(series.least, seconds)
            series.most = max(series.most, seconds)
            if self._exemplars is not Exemplars.NONE:
                self._keep_exemplar(series, bucket, seconds, context)

    def series(self) -> list[_Series]:
        """Return copies of all series."""
        with self._lock:
            known = [*self._series.values(), *((self._overflow,) if self._overflow is not None else ())]
            return [replace(one, counts=one.counts.copy(), exemplars=one.exemplars.copy()) for one in known]

    def _begin(self, values: Labels) -> _Series:
        counts = [0] * (len(self.metric.buckets) + 1)
        if len(self._series) >= MOST_SERIES:
            self._overflow = self._overflow or _Series(_OVERFLOW, counts, self._clock_ns())
            return self._overflow
        pairs = zip(self.metric.labels, values, strict=True)
        attributes = {name: value for name, value in pairs if value != ""}
        series = self._series[values] = _Series(attributes, counts, self._clock_ns())
        return series

    def _keep_exemplar(self, series: _Series, bucket: int, seconds: float, context: Context) -> None:
        span = get_current_span(context).get_span_context()
        if self._exemplars is Exemplars.TRACED and not (span.is_valid and span.trace_flags.sampled):
            return
        trace, own = (span.trace_id, span.span_id) if span.is_valid else (None, None)
        series.exemplars[bucket] = Exemplar({}, seconds, self._clock_ns(), own, trace)


class Histograms:
    """Makes the histograms of one process and knows them all; `scope` and `resource` are its meter's."""

    def __init__(
        self,
        scope: InstrumentationScope,
        resource: Resource,
        *,
        exemplars: Exemplars = Exemplars.TRACED,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self.scope = scope
        self.resource = resource
        self.clock_ns = clock_ns
        self.exemplars = exemplars
        self._made: list[Histogram] = []

    def make(self, metric: Metric) -> Histogram:
        """Make the histogram `metric`."""
        made = Histogram(metric, exemplars=self.exemplars, clock_ns=self.clock_ns)
        self._made.append(made)
        return made

    @property
    def made(self) -> tuple[Histogram, ...]:
        """All histograms, in the order in which they were made."""
        return tuple(self._made)


class HistogramReader:
    """Adds histograms to what a reader has collected: all since the start, or with `delta` what came since the last."""

    def __init__(self, histograms: Histograms, *, delta: bool = False) -> None:
        self._histograms = histograms
        self._delta = delta
        self._last: dict[tuple[str, tuple[tuple[str, AttributeValue], ...]], _Series] = {}
        self._last_ns: int | None = None

    def add_to(self, data: sdk.MetricsData | None) -> sdk.MetricsData | None:
        """Return `data` with the histograms beside the other metrics of their scope; None if there is nothing."""
        now_ns = self._histograms.clock_ns()
        metrics = [metric for made in self._histograms.made if (metric := self._metric(made, now_ns)) is not None]
        self._last_ns = now_ns
        resources = list(data.resource_metrics) if data is not None else []
        if not metrics:
            return data
        if not resources:
            resources = [sdk.ResourceMetrics(self._histograms.resource, [], self._histograms.resource.schema_url)]
        first, *others = resources
        scopes = list(first.scope_metrics)
        place = next((at for at, one in enumerate(scopes) if one.scope == self._histograms.scope), None)
        if place is None:
            scopes.append(sdk.ScopeMetrics(self._histograms.scope, metrics, self._histograms.scope.schema_url or ""))
        else:
            scopes[place] = replace(scopes[place], metrics=[*scopes[place].metrics, *metrics])
        return sdk.MetricsData([replace(first, scope_metrics=scopes), *others])

    def _metric(self, made: Histogram, now_ns: int) -> sdk.Metric | None:
        metric = made.metric
        points = [self._point(metric, series, now_ns) for series in made.series()]
        told = [point for point in points if point.count or not self._delta]
        if not told:
            return None
        temporality = sdk.AggregationTemporality.DELTA if self._delta else sdk.AggregationTemporality.CUMULATIVE
        return sdk.Metric(metric.name, metric.description, metric.unit, sdk.Histogram(told, temporality))

    def _point(self, metric: Metric, series: _Series, now_ns: int) -> sdk.HistogramDataPoint:
        counts, total, begun_ns, exemplars = series.counts, series.total, series.begun_ns, series.exemplars
        least, most = series.least, series.most
        if self._delta:
            key = metric.name, tuple(series.attributes.items())
            last, self._last[key] = self._last.get(key), series
            if last is not None:
                counts = [now - then for now, then in zip(counts, last.counts, strict=True)]
                total -= last.total
                begun_ns = self._last_ns or begun_ns
                least = most = math.nan  # nobody has kept them for this stretch alone
                exemplars = {at: one for at, one in exemplars.items() if one.time_unix_nano >= begun_ns}
        return sdk.HistogramDataPoint(
            attributes=series.attributes,
            start_time_unix_nano=begun_ns,
            time_unix_nano=now_ns,
            count=sum(counts),
            sum=total,
            bucket_counts=counts,
            explicit_bounds=metric.buckets,
            min=least,
            max=most,
            exemplars=list(exemplars.values()),
        )
