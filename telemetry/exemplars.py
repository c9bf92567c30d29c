"""The last exemplar of each series and bucket: the SDK forgets them at every collection, whoever collects."""

import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from opentelemetry.sdk.metrics.export import (
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
    Sum,
)

__all__ = ["ExemplarStore", "Series", "series_of"]

KEPT_SECONDS: Final = 600.0

Series = tuple[str, tuple[tuple[str, Any], ...]]
"""A metric's name and a point's attributes."""

Point = HistogramDataPoint | NumberDataPoint


def series_of(metric: Metric, attributes: Mapping[str, Any] | None) -> Series:
    """Name the series that a point of `metric` with `attributes` belongs to."""
    return metric.name, tuple(sorted((attributes or {}).items()))


class ExemplarStore:
    """Keeps exemplars between collections, for 10 minutes at most; `wall` is seconds since 1970."""

    def __init__(self, wall: Callable[[], float] = time.time) -> None:
        self._wall = wall
        self._kept: dict[tuple[Series, int], Any] = {}

    def keep(self, data: MetricsData) -> None:
        """Keep the exemplars of a collection, and forget what is too old."""
        for metric in _metrics(data):
            if isinstance(metric.data, Sum | Histogram):
                for point in metric.data.data_points:
                    for exemplar in point.exemplars:
                        if exemplar.trace_id and exemplar.span_id:
                            self._keep((series_of(metric, point.attributes), _bucket(point, exemplar.value)), exemplar)
        oldest = (self._wall() - KEPT_SECONDS) * 1e9
        for key in [key for key, exemplar in self._kept.items() if exemplar.time_unix_nano < oldest]:
            del self._kept[key]

    def last(self, series: Series, bucket: int) -> Any:
        """Return the SDK's exemplar that was last seen in `bucket` (a counter has only 0); None if there is none."""
        return self._kept.get((series, bucket))

    def complete(self, data: MetricsData, *, since_ns: int) -> MetricsData:
        """Return `data` with the last exemplars since `since_ns`, also those that an earlier collection took away."""
        newer: dict[Series, list[Any]] = {}
        for (series, _), exemplar in self._kept.copy().items():
            if exemplar.time_unix_nano >= since_ns:
                newer.setdefault(series, []).append(exemplar)
        return MetricsData(
            [
                replace(
                    resource,
                    scope_metrics=[
                        replace(scope, metrics=[_with_exemplars(metric, newer) for metric in scope.metrics])
                        for scope in resource.scope_metrics
                    ],
                )
                for resource in data.resource_metrics
            ]
        )

    def _keep(self, key: tuple[Series, int], exemplar: Any) -> None:
        known = self._kept.get(key)
        if known is None or known.time_unix_nano <= exemplar.time_unix_nano:
            self._kept[key] = exemplar


def _with_exemplars(metric: Metric, newer: Mapping[Series, list[Any]]) -> Metric:
    match metric.data:
        case Sum() as counted:
            counts = [replace(point, exemplars=_of(metric, point, newer)) for point in counted.data_points]
            return replace(metric, data=replace(counted, data_points=counts))
        case Histogram() as measured:
            buckets = [replace(point, exemplars=_of(metric, point, newer)) for point in measured.data_points]
            return replace(metric, data=replace(measured, data_points=buckets))
        case _:
            return metric


def _of(metric: Metric, point: Point, newer: Mapping[Series, list[Any]]) -> list[Any]:
    return newer.get(series_of(metric, point.attributes), [])


def _bucket(point: Point, value: float) -> int:
    return bisect_left(point.explicit_bounds, value) if isinstance(point, HistogramDataPoint) else 0


def _metrics(data: MetricsData) -> Iterator[Metric]:
    for resource in data.resource_metrics:
        for scope in resource.scope_metrics:
            yield from scope.metrics
