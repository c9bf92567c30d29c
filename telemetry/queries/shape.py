"""The shapes that most expressions share: what is added up over processes, and quantiles of classic histograms.

`by` are labels, spelled as telemetry spells them (`gen_ai.request.model`) or as Prometheus does.
"""

from recallscope.telemetry.metric import Metric, prometheus_label

__all__ = ["buckets", "by_labels", "grown", "increase", "quantile", "rate", "series"]


def by_labels(*labels: str) -> str:
    """Return the clause that groups by `labels`, with a space behind it; nothing when there are none."""
    return f" by ({', '.join(prometheus_label(label) for label in labels)}) " if labels else ""


def series(metric: Metric, selector: str, suffix: str = "") -> str:
    """Name the series of `metric`: of a histogram, `suffix` is `_bucket`, `_count` or `_sum`."""
    return f"{metric.prometheus}{suffix}{{{selector}}}"


def increase(what: str, window: str, *by: str) -> str:
    """Count the events of the counter `what` within `window`."""
    return f"sum{by_labels(*by)}(increase({what}[{window}]))"


def grown(what: str, window: str) -> str:
    """Count the events of each series of the counter `what` within `window`, to the event.

    `increase` adds what it thinks happened at the edges, and does not see the events that a series is born with, which
    of a counter of failures are often all. It is asked only of a process that began anew within `window` and has had
    events before and after: as near as it can, less those that the series was born with.
    """
    now, before = f"last_over_time({what}[{window}])", f"{what} offset {window}"
    return f"{now} - ({before} or 0 * {now})\nunless resets({what}[{window}]) > 0\nor increase({what}[{window}])"


def rate(what: str, window: str, *by: str) -> str:
    """Give the events a second of the counter `what`, or of the sum of a histogram the seconds a second."""
    return f"sum{by_labels(*by)}(rate({what}[{window}]))"


def buckets(metric: Metric, selector: str, window: str, *by: str) -> str:
    """Count the observations of a histogram within `window` by bucket."""
    return increase(series(metric, selector, "_bucket"), window, *by, "le")


def quantile(share: float, metric: Metric, selector: str, window: str, *by: str) -> str:
    """Give a quantile of a histogram's observations within `window`, interpolated within its bucket."""
    return f"histogram_quantile({share:g}, {rate(series(metric, selector, '_bucket'), window, *by, 'le')})"
