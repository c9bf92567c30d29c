"""What a metric is, and how Prometheus calls it."""

import re
from dataclasses import dataclass
from enum import StrEnum, unique
from typing import Final

__all__ = [
    "Metric",
    "MetricKind",
    "counter",
    "gauge",
    "histogram",
    "prometheus_family",
    "prometheus_label",
    "up_down",
]


@unique
class MetricKind(StrEnum):
    """What an instrument is."""

    HISTOGRAM = "histogram"
    COUNTER = "counter"
    UP_DOWN_COUNTER = "up_down_counter"
    GAUGE = "gauge"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: what it is called, what it is, and which labels it may carry."""

    name: str
    kind: MetricKind
    unit: str
    description: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()

    @property
    def prometheus(self) -> str:
        """The name in PromQL; a histogram adds `_bucket`, `_count` and `_sum` to it."""
        family = prometheus_family(self.name, self.unit, gauge=self.kind is MetricKind.GAUGE)
        return f"{family}_total" if self.kind is MetricKind.COUNTER else family


def prometheus_label(name: str) -> str:
    """Return an attribute name as a Prometheus label, as the collector translates it."""
    label = re.sub(r"[^a-zA-Z0-9_]", "_", name)
    return f"key_{label}" if label[:1].isdigit() else label


def prometheus_family(name: str, unit: str, *, gauge: bool = False) -> str:
    """Return the Prometheus family of a metric, as the collector translates it, without `_total`.

    Dots become underscores, a unit becomes a suffix unless the name holds it already; `{recall}` adds nothing,
    `1` adds `_ratio` to a gauge.
    """
    words = [word for word in re.split(r"[^a-zA-Z0-9:]+", name) if word and word != "total"]
    suffix = "ratio" if unit == "1" and gauge else _UNITS.get(unit, "")
    if suffix and suffix not in words:
        words.append(suffix)
    family = "_".join(words)
    return f"_{family}" if family[:1].isdigit() else family


_UNITS: Final = {
    "s": "seconds",
    "ms": "milliseconds",
    "By": "bytes",
    "d": "days",
    "h": "hours",
    "min": "minutes",
    "%": "percent",
}


def histogram(name: str, description: str, *labels: str, buckets: tuple[float, ...]) -> Metric:
    """Make a histogram of seconds."""
    return Metric(name, MetricKind.HISTOGRAM, "s", description, labels, buckets)


def counter(name: str, unit: str, description: str, *labels: str) -> Metric:
    """Make a counter."""
    return Metric(name, MetricKind.COUNTER, unit, description, labels)


def up_down(name: str, unit: str, description: str) -> Metric:
    """Make an up-down counter."""
    return Metric(name, MetricKind.UP_DOWN_COUNTER, unit, description)


def gauge(name: str, unit: str, description: str, *labels: str) -> Metric:
    """Make a gauge."""
    return Metric(name, MetricKind.GAUGE, unit, description, labels)
