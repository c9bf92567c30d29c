"""Reads from a Prometheus what live traffic counted: exactly, within a span of time, and since when there is any."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from recallscope.runtime.events import PolicyName
from recallscope.telemetry import names
from recallscope.telemetry.metric import MetricKind
from recallscope.telemetry.queries import exact
from recallscope.telemetry.read.ceilings import Ceilings
from recallscope.telemetry.read.counts import COUNTED, Counted, Counts
from recallscope.telemetry.read.figures import Point
from recallscope.telemetry.read.prometheus_api import PrometheusApi

__all__ = ["Reading", "read_prometheus"]

STEPS: Final = 200
"""Into how many steps a span is divided to see when its figures begin; the step that matters once more."""

SILENT_SECONDS: Final = 300.0
"""After so long without a scrape a Prometheus takes a process for gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What was counted from `asked` to `at` (seconds since 1970, by the Prometheus's clock).

    `first` and `last`: the first and the last moment at which a process of the job was known; None without one.
    """

    counts: Counts
    asked: float
    at: float
    first: float | None
    last: float | None

    @property
    def short(self) -> bool:
        """Say whether the figures reach back less far than was asked for."""
        return self.first is not None and self.first - self.asked > 2 * _step(_step(self.at - self.asked))

    @property
    def silent(self) -> bool:
        """Say whether no process of the job was scraped for a while."""
        return self.last is not None and self.at - self.last > SILENT_SECONDS


def read_prometheus(
    api: PrometheusApi, *, selector: str, seconds: int, wanted: Iterable[Counted] = COUNTED, at: float | None = None
) -> Reading:
    """Ask (blocking) for what `selector` counted within `seconds` up to `at`, which is now unless it is given.

    Raises:
        ReadError: nobody answers, or it is no Prometheus, or it refuses a query.
    """
    moment = api.now() if at is None else at
    points: dict[str, list[Point]] = {}
    for counted in wanted:
        for name, labels in _series(counted):
            points[name] = _finite(api.instant(exact.counted(name, labels, selector, seconds), at=moment))
    first, last = _seen(api, selector, moment - seconds, moment)
    return Reading(
        counts=Counts(points, _ceilings(api, selector, seconds, moment)),
        asked=moment - seconds,
        at=moment,
        first=first,
        last=last,
    )


def _series(counted: Counted) -> list[tuple[str, tuple[str, ...]]]:
    """Return the names of the series of a metric, each with the labels to group it by."""
    name = counted.metric.prometheus
    if counted.metric.kind is not MetricKind.HISTOGRAM:
        return [(name, counted.labels)]
    sums = [(f"{name}_sum", counted.labels)] if counted.sums else []
    return [(f"{name}_bucket", (*counted.labels, "le")), *sums]


def _finite(points: Iterable[Point]) -> list[Point]:
    return [(labels, value) for labels, value in points if math.isfinite(value)]


def _ceilings(api: PrometheusApi, selector: str, seconds: int, at: float) -> Mapping[PolicyName, Ceilings]:
    lowest = _by_policy(api.instant(exact.ceilings_lowest(selector, seconds), at=at))
    highest = _by_policy(api.instant(exact.ceilings_highest(selector, seconds), at=at))
    return {
        policy: Ceilings(lowest[policy.value], highest[policy.value])
        for policy in PolicyName
        if policy.value in lowest and policy.value in highest
    }


def _by_policy(points: Iterable[Point]) -> dict[str, float]:
    return {labels.get(names.POLICY, ""): value for labels, value in points}


def _seen(api: PrometheusApi, selector: str, start: float, end: float) -> tuple[float | None, float | None]:
    """Return the first and the last moment from `start` to `end` at which a process was scraped."""
    step = _step(end - start)
    moments = _scraped(api, selector, start, end, step)
    if not moments:
        return None, None
    first, last = min(moments), max(moments)
    if first > start:
        first = min(_scraped(api, selector, max(first - step, start), first, _step(step)), default=first)
    last = max(_scraped(api, selector, max(last - step, start), last, _step(step)), default=last)
    return first, last


def _scraped(api: PrometheusApi, selector: str, start: float, end: float, step: int) -> list[float]:
    """Return the moments, `step` seconds apart and the last at `end`, before which a process was scraped in a step."""
    first = end - step * math.floor((end - start) / step)
    found = api.over(exact.seen(selector, step), start=first, end=end, step=step)
    return [moment for moment, _ in found]


def _step(seconds: float) -> int:
    return max(math.ceil(seconds / STEPS), 1)
