"""What the alerts on a collector ask: of the metrics that the collector 0.161 shows of itself.

`selector` must name or match the jobs under which collectors are scraped.
"""

from typing import Final

from recallscope.telemetry.queries.alerts import Share

__all__ = [
    "collector_down",
    "dropped_early",
    "export_failing",
    "queue_dropping",
    "queue_filling",
    "refusing",
]

ITEMS: Final = ("spans", "metric_points", "log_records")
"""What a collector counts, one metric for each."""

QUEUE_SIZE: Final = "otelcol_exporter_queue_size"
QUEUE_CAPACITY: Final = "otelcol_exporter_queue_capacity"
DROPPED_EARLY: Final = "otelcol_processor_tail_sampling_sampling_trace_dropped_too_early_total"
NEW_TRACES: Final = "otelcol_processor_tail_sampling_new_trace_id_received_total"
UPTIME: Final = "otelcol_process_uptime_seconds_total"


def queue_filling(selector: str, *, above: float) -> str:
    """Ask for exporters whose queue is filled above a share."""
    by = "max by (job, instance, exporter)"
    return f"{by} ({QUEUE_SIZE}{{{selector}}})\n/\n{by} ({QUEUE_CAPACITY}{{{selector}}})\n> {above:g}"


def queue_dropping(selector: str, *, window: str, least: int) -> str:
    """Ask for exporters whose full queue refused `least` items or more: they are lost."""
    return _any("exporter", "otelcol_exporter_enqueue_failed", selector, window, least)


def export_failing(selector: str, share: Share) -> str:
    """Ask for the share of items that an exporter gave up on: they are lost."""
    window = share.window
    failed = _items("exporter", "otelcol_exporter_send_failed", selector, window)
    sent = _items("exporter", "otelcol_exporter_sent", selector, window)
    return "\nor\n".join(
        f"{bad} / ({bad} + ({good} or 0 * {bad})) > {share.above:g}\nand {bad} >= {share.least}"
        for bad, good in zip(failed, sent, strict=True)
    )


def refusing(selector: str, *, window: str, least: int) -> str:
    """Ask for receivers that refused `least` items or more: the memory limiter, mostly."""
    return _any("receiver", "otelcol_receiver_refused", selector, window, least)


def dropped_early(selector: str, *, window: str, least: int) -> str:
    """Ask for collectors whose tail sampler dropped `least` traces or more before it decided about them."""
    return _counted("job, instance", f"{DROPPED_EARLY}{{{selector}}}", window, least)


def collector_down(selector: str, *, known: str) -> str:
    """Ask for collectors that do not answer scrapes and did within `known`."""
    return f"up{{{selector}}} == 0\nand on (job, instance)\nlast_over_time({UPTIME}{{{selector}}}[{known}])"


def _items(by: str, name: str, selector: str, window: str) -> list[str]:
    return [f"sum by (job, {by}) (increase({name}_{items}_total{{{selector}}}[{window}]))" for items in ITEMS]


def _any(by: str, name: str, selector: str, window: str, least: int) -> str:
    counted = (f"{name}_{items}_total{{{selector}}}" for items in ITEMS)
    return "\nor\n".join(_counted(f"job, {by}", series, window, least) for series in counted)


def _counted(by: str, series: str, window: str, least: int) -> str:
    """Ask for a count within `window`, also of a series born with its first events, which `increase` misses."""
    grown = f"sum by ({by}) (increase({series}[{window}])) >= {least}"
    return f"{grown}\nor sum by ({by}) ({series} unless {series} offset {window}) >= {least}"
