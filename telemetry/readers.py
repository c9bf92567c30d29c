"""The reader behind `/metrics` and behind the export of metrics: it collects when somebody asks."""

import threading
from collections.abc import Callable, Mapping
from typing import Any

from opentelemetry.sdk.metrics.export import AggregationTemporality, MetricReader, MetricsData

from recallscope.telemetry.exemplars import ExemplarStore
from recallscope.telemetry.histograms import HistogramReader

__all__ = ["PullReader"]


class PullReader(MetricReader):
    """Collects when it is asked, for any number of askers; cumulative unless stated otherwise.

    Each reader costs a turn as much as the first one does, so whoever can takes what another one's reader collects.
    With `read` it collects histograms too, which the SDK does not know.

    Args:
        store: keeps the exemplars that the SDK forgets.
        before: called before each collection, so that what was just stated is in it.
        cardinality_limits: as for every metric reader.
        temporality: as for every metric reader.
    """

    def __init__(
        self,
        *,
        store: ExemplarStore | None = None,
        before: Callable[[], object] = lambda: None,
        cardinality_limits: Mapping[type, int] | None = None,
        temporality: dict[type, AggregationTemporality] | None = None,
    ) -> None:
        super().__init__(
            preferred_temporality=temporality,
            cardinality_limits=dict(cardinality_limits) if cardinality_limits else None,
        )
        self.store = store or ExemplarStore()
        self.before = before
        self._histograms: HistogramReader | None = None
        self._pulling = threading.Lock()
        self._data: MetricsData | None = None

    def pull(self) -> MetricsData | None:
        """Collect now; None if nothing was measured yet."""
        self.before()
        with self._pulling:
            self.collect()
            data, self._data = self._data, None
            if self._histograms is not None:
                data = self._histograms.add_to(data)
            if data is not None:
                self.store.keep(data)
            return data

    def read(self, histograms: HistogramReader) -> None:
        """Collect `histograms` with everything else."""
        self._histograms = histograms

    def shutdown(self, timeout_millis: float = 30_000, **kwargs: Any) -> None:
        """Do nothing: there is nothing to flush."""

    def _receive_metrics(self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: Any) -> None:
        self._data = metrics_data
