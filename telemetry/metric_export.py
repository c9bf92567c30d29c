"""Exports metrics at an interval, and counts what becomes of them: points that arrived, points that did not."""

import threading
import time
from collections.abc import Mapping

from opentelemetry.sdk.metrics import Histogram
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    MetricExporter,
    MetricExportResult,
    MetricsData,
)

from recallscope.telemetry import names
from recallscope.telemetry.flow import Flow
from recallscope.telemetry.readers import PullReader

__all__ = ["MetricFlow", "MetricPush", "Preference", "preference_of"]


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


class Preference:
    """How an exporter wants its metrics: each instrument's since the start, or since the last export."""

    def __init__(self, temporality: Mapping[type, AggregationTemporality] | None) -> None:
        self.temporality = dict(temporality or {})

    @property
    def usual(self) -> bool:
        """Say whether it wants everything since the start, as `/metrics` shows it."""
        return all(kind is AggregationTemporality.CUMULATIVE for kind in self.temporality.values())

    @property
    def delta(self) -> bool:
        """Say whether it wants histograms since the last export."""
        return self.temporality.get(Histogram) is AggregationTemporality.DELTA


def preference_of(exporter: MetricExporter) -> Preference:
    """Return what `exporter` was told by `OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE`; only the SDK asks it."""
    return Preference(exporter._preferred_temporality)  # pyright: ignore[reportPrivateUsage]  # noqa: SLF001 - no other way


class MetricPush:
    """Exports what `reader` collects every `interval` seconds, from a daemon thread, and once more at the end.

    The SDK's periodic reader does this too, but a reader of its own for it doubles what each measurement costs a turn.
    An export may take `timeout` seconds. It begins with the first interval, so that a short run exports once.
    """

    def __init__(
        self, reader: PullReader, exporter: MetricExporter, flow: MetricFlow, *, interval: float, timeout: float
    ) -> None:
        self._reader = reader
        self._exporter = exporter
        self._flow = flow
        self._interval = interval
        self._timeout = timeout
        self._closing = threading.Event()
        self._since_ns = 0
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="recallscope-metrics-export", daemon=True)
        self._thread.start()

    def start_closing(self, timeout: float) -> None:
        """Export once more, within `timeout` seconds, and end; `finish_closing` waits for that."""
        self._timeout = min(timeout, self._timeout)
        self._closing.set()

    def finish_closing(self, deadline: float) -> None:
        """Wait until `deadline` (monotonic) at most for that last export."""
        self._thread.join(max(deadline - time.monotonic(), 0.0))
        self._ended = True

    def flow(self) -> Flow:
        """Say what became of the points."""
        return self._flow.flow(ended=self._ended)

    def _run(self) -> None:
        while not self._closing.wait(self._interval):
            self._export()
        self._export()
        self._exporter.shutdown(self._timeout * 1_000)  # pyright: ignore[reportUnknownMemberType]  # open **kwargs

    def _export(self) -> None:
        began_ns = time.time_ns()
        data = self._reader.pull()
        if data is None:
            return
        complete = self._reader.store.complete(data, since_ns=self._since_ns)
        self._exporter.export(complete, self._timeout * 1_000)  # pyright: ignore[reportUnknownMemberType]  # the same
        self._since_ns = began_ns
