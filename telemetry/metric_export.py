"""Counts what metric exports become of: points that arrived, points that did not."""

from collections.abc import Callable

from opentelemetry.sdk.metrics.export import MetricExportResult, MetricsData

from recallscope.telemetry import names
from recallscope.telemetry.export_queue import Flow

__all__ = ["MetricFlow"]


class MetricFlow:
    """The points of one process's metric exports; written by the exporting thread."""

    def __init__(self) -> None:
        self._exported = 0
        self._failed = 0
        self._in_flight = 0

    def count(self, data: MetricsData, export: Callable[[], MetricExportResult]) -> MetricExportResult:
        """Call `export`, count the points of `data` by its result, and return that."""
        self._in_flight = sum(
            len(metric.data.data_points)
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        )
        result = export()
        if result is MetricExportResult.SUCCESS:
            self._exported += self._in_flight
        else:
            self._failed += self._in_flight
        self._in_flight = 0
        return result

    def flow(self, *, ended: bool) -> Flow:
        """Say what became of the points; those still on their way are lost if this has `ended`."""
        lost = (
            (names.LOST_EXPORT_FAILED, self._failed),
            (names.LOST_SHUTDOWN, self._in_flight if ended else 0),
        )
        return Flow(names.METRICS_SIGNAL, self._exported, lost)
