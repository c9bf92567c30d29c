"""What the alerts on a collector ask: of the metrics that the collector 0.161 shows of itself.

What is lost and refused is counted as the panels count it, by `collector`.

`selector` must name or match the jobs under which collectors are scraped.
"""

from typing import Final

from recallscope.telemetry.queries import collector
from recallscope.telemetry.queries.alerts import Share

__all__ = [
    "collector_down",
    "dropped_early",
    "export_failing",
    "queue_dropping",
    "queue_filling",
    "refusing",
]

QUEUE_SIZE: Final = "otelcol_exporter_queue_size"
QUEUE_CAPACITY: Final = "otelcol_exporter_queue_capacity"
UPTIME: Final = "otelcol_process_uptime_seconds_total"


def queue_filling(selector: str, *, above: float) -> str:
    """Ask for exporters whose queue is filled above a share."""
    by = "max by (job, instance, exporter)"
    return f"{by} ({QUEUE_SIZE}{{{selector}}})\n/\n{by} ({QUEUE_CAPACITY}{{{selector}}})\n> {above:g}"


def queue_dropping(selector: str, *, window: str, least: int) -> str:
    """Ask for exporters whose full queue refused `least` items or more: they are lost."""
    return _any("exporter", collector.queue_full(selector, window), least)


def export_failing(selector: str, share: Share) -> str:
    """Ask for the share of items that an exporter gave up on: they are lost."""
    failed, sent = collector.given_up(selector, share.window), collector.sent_items(selector, share.window)
    by = "job, exporter"
    pairs = [(collector.summed(by, failed[item]), collector.summed(by, sent[item])) for item in failed]
    return "\nor\n".join(
        f"{bad} / ({bad} + {good} or {bad}) > {share.above:g}\nand {bad} >= {share.least}" for bad, good in pairs
    )


def refusing(selector: str, *, window: str, least: int) -> str:
    """Ask for receivers that refused `least` items or more: the memory limiter, mostly."""
    return _any("receiver", collector.refused(selector, window), least)


def dropped_early(selector: str, *, window: str, least: int) -> str:
    """Ask for collectors whose tail sampler dropped `least` traces or more before it decided about them."""
    return f"{collector.dropped_too_early(selector, window)} >= {least}"


def collector_down(selector: str, *, known: str) -> str:
    """Ask for collectors that do not answer scrapes and did within `known`."""
    return f"up{{{selector}}} == 0\nand on (job, instance)\nlast_over_time({UPTIME}{{{selector}}}[{known}])"


def _any(by: str, items: collector.Items, least: int) -> str:
    return "\nor\n".join(f"{collector.summed(f'job, {by}', series)} >= {least}" for series in items.values())
