"""Counts what metric exports become of: points that arrived, points that did not."""

from opentelemetry.sdk.metrics.export import MetricExportResult, MetricsData

from recallscope.telemetry import names
from recallscope.telemetry.flow import Flow

__all__ = ["MetricFlow"]


class MetricFlow:
    """The points of one process's metric exports; written by the exporting thread."""

    def __init__(self) -> None:
        self._exported = 0
        self._failed = 0
        self._in_flight = 0

    def begin(self, data: MetricsData) -> None:
        """Note that the points of `data` are on their way."""
        self._in_flight = sum(
            len(metric.data.data_points)
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        )

    def end(self, result: MetricExportResult) -> MetricExportResult:
        """Count the points on their way by `result`, and return it."""
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
