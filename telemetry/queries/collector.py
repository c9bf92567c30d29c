"""The collector about itself: what it took, what waits, what it lost, what it chose to keep.

Its names are its own (release 0.161). It makes counters of failures at the first failure; until then they are 0 here.
"""

from recallscope.telemetry.queries.shape import by_labels

__all__ = [
    "decided",
    "dropped_too_early",
    "points_refused",
    "queue_overflowed",
    "queue_used",
    "received",
    "refused",
    "sent",
    "stores_refused",
    "up_series",
]


def up_series() -> str:
    """Name a series that every collector has once it has taken a span."""
    return "otelcol_receiver_accepted_spans_total"


def received(selector: str, window: str) -> str:
    """Give the spans a minute that the collector took."""
    return _a_minute(f"{up_series()}{{{selector}}}", window)


def refused(selector: str, window: str) -> str:
    """Give the spans a minute that it refused, since it was out of memory; their senders try again."""
    return _a_minute(f"otelcol_receiver_refused_spans_total{{{selector}}}", window)


def sent(selector: str, window: str) -> str:
    """Give the spans a minute that it passed on, by exporter."""
    return _a_minute(f"otelcol_exporter_sent_spans_total{{{selector}}}", window, "exporter")


def stores_refused(selector: str, window: str) -> str:
    """Give the spans a minute that a store refused for good, by exporter: they are lost."""
    return _lost("send_failed_spans", "sent_spans", selector, window)


def queue_overflowed(selector: str, window: str) -> str:
    """Give the spans a minute that found the queue full, by exporter: they are lost."""
    return _lost("enqueue_failed_spans", "sent_spans", selector, window)


def points_refused(selector: str, window: str) -> str:
    """Give the metric points a minute that a Prometheus refused, by exporter."""
    return _lost("send_failed_metric_points", "sent_metric_points", selector, window)


def queue_used(selector: str) -> str:
    """Give the share of each exporter's queue that is full; at 1 it loses what comes."""
    return (
        f"max by (exporter) (otelcol_exporter_queue_size{{{selector}}} / otelcol_exporter_queue_capacity{{{selector}}})"
    )


def decided(selector: str, window: str) -> str:
    """Give the traces a minute by whether the tail sampler kept them."""
    return _a_minute(
        f"otelcol_processor_tail_sampling_global_count_traces_sampled_total{{{selector}}}", window, "sampled"
    )


def dropped_too_early(selector: str, window: str) -> str:
    """Give the traces a minute that left the sampler's memory before it had decided about them."""
    return _a_minute(f"otelcol_processor_tail_sampling_sampling_trace_dropped_too_early_total{{{selector}}}", window)


def _a_minute(what: str, window: str, *by: str) -> str:
    return f"60 * sum{by_labels(*by)}(rate({what}[{window}]))"


def _lost(what: str, instead_of: str, selector: str, window: str) -> str:
    """Give what was lost by exporter, and 0 for those that have sent something and lost nothing yet."""
    lost = _a_minute(f"otelcol_exporter_{what}_total{{{selector}}}", window, "exporter")
    return f"{lost} or 0 * {_a_minute(f'otelcol_exporter_{instead_of}_total{{{selector}}}', window, 'exporter')}"
