"""What telemetry counted in a span of time: points of counters and histograms, from whichever source.

A Prometheus, a scrape and recorded turns all give the same points under the same names, so that whoever computes from
them does not know where they come from.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from recallscope.runtime.events import PolicyName
from recallscope.telemetry import names
from recallscope.telemetry.metric import Metric, MetricKind, prometheus_label
from recallscope.telemetry.read.ceilings import Ceilings
from recallscope.telemetry.read.figures import Figures, Point, collect_buckets, collect_turns, collect_waits
from recallscope.telemetry.read.quantile import EMPTY, Buckets

__all__ = ["COUNTED", "TABLE", "Counted", "Counts", "Key", "Tally"]

Key = tuple[str, ...]
"""Values of labels, in the order in which the labels were asked for."""


@dataclass(frozen=True, slots=True)
class Counted:
    """A metric that a report needs, the labels (of the contract) that it needs apart, and whether the sums, too."""

    metric: Metric
    labels: tuple[str, ...] = ()
    sums: bool = False


COUNTED: Final = (
    Counted(names.RECALL_TURNS, names.RECALL_TURNS.labels),
    Counted(names.RECALL_TURN_WAIT_DURATION, names.RECALL_TURN_WAIT_DURATION.labels),
    Counted(names.LOOP_LAG),
    Counted(names.TURN_DURATION, (names.POLICY, names.OUTCOME)),
    Counted(names.TURN_PHASE_DURATION, (names.PHASE,), sums=True),
    Counted(names.TURN_TIME_TO_FIRST_TOKEN, (names.POLICY,)),
    Counted(names.RECALL_STARTED, (names.POLICY,)),
    Counted(names.RECALL_WAIT_DURATION, (names.POLICY, names.POINT)),
    Counted(names.RECALL_WAIT_OVERRUNS, (names.POLICY,)),
    Counted(names.RECALL_DURATION, (names.POLICY, names.PHASE)),
    Counted(names.RECALL_DELIVERIES, (names.POLICY, names.PHASE, names.POINT)),
    Counted(names.RECALL_SKIPPED_DELIVERIES, (names.POLICY, names.POINT, names.REASON)),
    Counted(names.RECALL_OUTCOMES, (names.POLICY, names.OUTCOME, names.REASON)),
    Counted(names.RECALL_ROLLED_BACK, (names.POLICY, names.CAUSE)),
    Counted(names.INFERENCE_DURATION, (names.REQUEST_MODEL, names.PURPOSE, names.STATUS)),
    Counted(names.INFERENCE_FIRST_CHUNK, (names.REQUEST_MODEL, names.PURPOSE)),
    Counted(names.INFERENCE_INPUT_TOKENS, (names.REQUEST_MODEL, names.PURPOSE)),
    Counted(names.INFERENCE_OUTPUT_TOKENS, (names.REQUEST_MODEL, names.PURPOSE)),
    Counted(names.EXECUTE_TOOL_DURATION, (names.TOOL_NAME, names.STATUS)),
    Counted(names.TELEMETRY_DROPPED, (names.SIGNAL, names.REASON)),
    Counted(names.TELEMETRY_EXPORTED, (names.SIGNAL,)),
)
"""All that a report is computed from."""

TABLE: Final = tuple(
    counted
    for counted in COUNTED
    if counted.metric
    in {
        *(names.RECALL_TURNS, names.RECALL_TURN_WAIT_DURATION, names.LOOP_LAG),
        *(names.RECALL_WAIT_DURATION, names.RECALL_WAIT_OVERRUNS, names.TURN_DURATION),
    }
)
"""What the comparison table is drawn from, how often a wait passed its ceiling, and how many turns there were."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Points by their name in Prometheus (`…_total`, `…_bucket`, `…_sum`), with Prometheus's label names.

    `ceilings`: those of the counted recalls, by policy.
    """

    points: Mapping[str, Sequence[Point]] = field(default_factory=dict[str, Sequence[Point]])
    ceilings: Mapping[PolicyName, Ceilings] = field(default_factory=dict[PolicyName, Ceilings])

    def by(self, metric: Metric, *labels: str, where: Mapping[str, Iterable[str]] | None = None) -> dict[Key, float]:
        """Add up `metric` by `labels`; `where` keeps the points whose label has one of the values.

        A histogram gives its number of observations. What was counted as nothing is left out.
        """
        suffix = "_bucket" if metric.kind is MetricKind.HISTOGRAM else ""
        added: dict[Key, float] = {}
        for point_labels, value in self._chosen(f"{metric.prometheus}{suffix}", where):
            if value > 0 and point_labels.get("le", "+Inf") in _INFINITE:
                key = _key(point_labels, labels)
                added[key] = added.get(key, 0.0) + value
        return added

    def total(self, metric: Metric, *, where: Mapping[str, Iterable[str]] | None = None) -> float:
        """Add up all of `metric`, or what `where` keeps of it; of a histogram, its observations."""
        return sum(self.by(metric, where=where).values())

    def seconds(self, metric: Metric, *labels: str) -> dict[Key, float]:
        """Add up the observed values of a histogram by `labels`."""
        added: dict[Key, float] = {}
        for point_labels, value in self._chosen(f"{metric.prometheus}_sum", None):
            key = _key(point_labels, labels)
            added[key] = added.get(key, 0.0) + value
        return added

    def histogram(
        self, metric: Metric, *labels: str, where: Mapping[str, Iterable[str]] | None = None
    ) -> dict[Key, Buckets]:
        """Return the histograms of `metric` by `labels`, empty ones left out."""
        found: dict[Key, list[Point]] = {}
        for point in self._chosen(f"{metric.prometheus}_bucket", where):
            found.setdefault(_key(point[0], labels), []).append(point)
        made = {key: collect_buckets(points) for key, points in found.items()}
        return {key: buckets for key, buckets in made.items() if buckets.count > 0}

    def whole(self, metric: Metric, *, where: Mapping[str, Iterable[str]] | None = None) -> Buckets:
        """Return all of `metric`, or what `where` keeps of it, as one histogram."""
        return self.histogram(metric, where=where).get((), EMPTY)

    @property
    def figures(self) -> Figures:
        """The figures of the comparison table."""
        return Figures(
            turns=collect_turns(self.points.get(names.RECALL_TURNS.prometheus, ())),
            waits=collect_waits(self.points.get(f"{names.RECALL_TURN_WAIT_DURATION.prometheus}_bucket", ())),
            loop_lag=collect_buckets(self.points.get(f"{names.LOOP_LAG.prometheus}_bucket", ())),
            ceilings=self.ceilings,
        )

    def _chosen(self, name: str, where: Mapping[str, Iterable[str]] | None) -> Iterable[Point]:
        wanted = {prometheus_label(label): frozenset(values) for label, values in (where or {}).items()}
        return (
            point
            for point in self.points.get(name, ())
            if all(point[0].get(label, "") in values for label, values in wanted.items())
        )


_INFINITE = frozenset({"+Inf", "inf", "Inf"})


def _key(labels: Mapping[str, str], wanted: Iterable[str]) -> Key:
    return tuple(labels.get(prometheus_label(label), "") for label in wanted)


class Tally:
    """Counts what is told to it, one observation at a time, as the meter would."""

    def __init__(self) -> None:
        self._counters: dict[Metric, dict[Key, float]] = {}
        self._histograms: dict[Metric, dict[Key, _Histogram]] = {}
        self._ceilings: dict[PolicyName, Ceilings] = {}
        self._labels = {counted.metric: counted.labels for counted in COUNTED}

    def add(self, metric: Metric, *labels: str, amount: float = 1.0) -> None:
        """Add `amount` to a counter; `labels` are the values of those that `COUNTED` names, in its order."""
        series = self._counters.setdefault(metric, {})
        series[labels] = series.get(labels, 0.0) + amount

    def observe(self, metric: Metric, seconds: float, *labels: str) -> None:
        """Observe `seconds` in a histogram; `labels` as above."""
        series = self._histograms.setdefault(metric, {})
        histogram = series.get(labels)
        if histogram is None:
            histogram = series[labels] = _Histogram([0] * (len(metric.buckets) + 1))
        histogram.counts[bisect_left(metric.buckets, seconds)] += 1
        histogram.seconds += seconds

    def ceiling(self, policy: PolicyName, seconds: float) -> None:
        """Note the effective ceiling of a recall."""
        ceiling = Ceilings(seconds, seconds)
        self._ceilings[policy] = self._ceilings.get(policy, ceiling) | ceiling

    def counts(self) -> Counts:
        """Return what was counted so far."""
        points: dict[str, list[Point]] = {}
        for metric, series in self._counters.items():
            points[metric.prometheus] = [(self._named(metric, values), number) for values, number in series.items()]
        for metric, histograms in self._histograms.items():
            buckets = points.setdefault(f"{metric.prometheus}_bucket", [])
            sums = points.setdefault(f"{metric.prometheus}_sum", [])
            for values, histogram in histograms.items():
                labels = self._named(metric, values)
                bounds = (*(repr(float(bound)) for bound in metric.buckets), "+Inf")
                running = 0
                for bound, count in zip(bounds, histogram.counts, strict=True):
                    running += count
                    buckets.append(({**labels, "le": bound}, float(running)))
                sums.append((labels, histogram.seconds))
        return Counts(points, dict(self._ceilings))

    def _named(self, metric: Metric, values: Key) -> dict[str, str]:
        named = zip(self._labels[metric], values, strict=True)
        return {prometheus_label(label): value for label, value in named if value}


@dataclass(slots=True)
class _Histogram:
    """How many observations lie in each bucket, and their sum."""

    counts: list[int]
    seconds: float = 0.0
