"""Telemetry about itself: what was lost on the way, in the process and in the collector."""

from recallscope.telemetry import names
from recallscope.telemetry.queries.selector import INSTANCE
from recallscope.telemetry.queries.shape import by_labels, grown, increase, rate, series

__all__ = [
    "dropped",
    "exported",
    "lost",
    "observer_failures",
    "overflowing",
    "processes",
    "sample_age",
    "unclosed_spans",
]


def exported(selector: str, window: str) -> str:
    """Give the spans, points, records and lines a minute that were passed on, by signal."""
    return f"60 * {rate(series(names.TELEMETRY_EXPORTED, selector), window, names.SIGNAL)}"


def dropped(selector: str, window: str) -> str:
    """Give the spans, points, records and lines a minute that were lost, by signal and reason."""
    return f"60 * {rate(series(names.TELEMETRY_DROPPED, selector), window, names.SIGNAL, names.REASON)}"


def lost(selector: str, window: str) -> str:
    """Count the spans, points, records, lines and events that were lost, to the item, by signal and reason."""
    return f"sum{by_labels(names.SIGNAL, names.REASON)}({grown(series(names.TELEMETRY_DROPPED, selector), window)})"


def observer_failures(selector: str, window: str) -> str:
    """Count the events that an observer failed on, by observer."""
    return increase(series(names.OBSERVER_FAILURES, selector), window, names.OBSERVER)


def unclosed_spans(selector: str, window: str) -> str:
    """Count the spans that were ended because their parent ended."""
    return increase(series(names.TELEMETRY_UNCLOSED, selector), window)


def overflowing(selector: str) -> str:
    """Count the series in which a metric with too many label values gathers the rest; 0 when there is none."""
    return f'count({{{selector}, otel_metric_overflow="true"}}) or vector(0)'


def processes(selector: str) -> str:
    """Count the processes that report."""
    return f"count({series(names.TURN_ACTIVE, selector)})"


def sample_age(selector: str) -> str:
    """Give the seconds since each process last reported."""
    return f"time() - max by ({INSTANCE}) (timestamp({series(names.TURN_ACTIVE, selector)}))"
