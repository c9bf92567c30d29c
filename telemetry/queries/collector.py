"""The collector about itself: what it took, what waits, what it lost, what it chose to keep.

Its names are its own (release 0.161). It makes counters of failures at the first failure; until then they are 0 here.
"""

from collections.abc import Mapping
from typing import Final, TypeAlias

from recallscope.telemetry.queries.shape import by_labels, grown

__all__ = [
    "ITEMS",
    "Items",
    "counted",
    "decided",
    "dropped_too_early",
    "given_up",
    "lost",
    "queue_full",
    "queue_used",
    "received",
    "refused",
    "restarts",
    "sent",
    "sent_items",
    "summed",
    "undecided",
    "undecided_at_restart",
    "up_series",
]

Items: TypeAlias = Mapping[str, str]
"""Expressions that count events series by series, by the kind of what they count, which are the keys of `ITEMS`."""


def up_series() -> str:
    """Name a series that every collector has once it has taken a span."""
    return "otelcol_receiver_accepted_spans_total"


def received(selector: str, window: str) -> str:
    """Give the spans a minute that the collector took."""
    return _a_minute(f"{up_series()}{{{selector}}}", window)


def sent(selector: str, window: str) -> str:
    """Give the spans a minute that it passed on, by exporter."""
    return _a_minute(f"otelcol_exporter_sent_spans_total{{{selector}}}", window, "exporter")


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
    """Count the traces of each collector that left the sampler's memory before it had decided about them."""
    dropped = f"otelcol_processor_tail_sampling_sampling_trace_dropped_too_early_total{{{selector}}}"
    return summed("job, instance", grown(dropped, window))


def undecided(selector: str) -> str:
    """Give the traces that each collector has not decided about, as it counted them within the last second."""
    return f"sum by (instance) (otelcol_processor_tail_sampling_sampling_traces_on_memory{{{selector}}})"


def undecided_at_restart(selector: str, window: str) -> str:
    """Give the most traces that a collector had undecided within a `window` in which it began anew.

    So many are lost at most if it was killed, and none if it was asked to end; which of the two, no metric tells.
    """
    held = f"otelcol_processor_tail_sampling_sampling_traces_on_memory{{{selector}}}"
    return f"max by (instance) (max_over_time({held}[{window}]) and on (job, instance) {_began(selector, window)} > 0)"


def restarts(selector: str, window: str) -> str:
    """Count how often each collector began anew within `window`."""
    return f"sum by (instance) ({_began(selector, window)})"


# What is lost or refused: one definition for the panels and for the alerts

ITEMS: Final = {"spans": "spans", "metric_points": "metric points", "log_records": "log records"}
"""What a collector counts, one metric for each, and how a person calls it."""


def sent_items(selector: str, window: str) -> Items:
    """Count what each exporter passed on within `window`, as near as Prometheus can."""
    return {item: f"increase(otelcol_exporter_sent_{item}_total{{{selector}}}[{window}])" for item in ITEMS}


def queue_full(selector: str, window: str) -> Items:
    """Count what found the queue of an exporter full within `window`: it is lost."""
    return _items("otelcol_exporter_enqueue_failed", selector, window)


def given_up(selector: str, window: str) -> Items:
    """Count what an exporter gave up on within `window`, since its store refused it for good: it is lost."""
    return _items("otelcol_exporter_send_failed", selector, window)


def refused(selector: str, window: str) -> Items:
    """Count what a receiver refused within `window`; who sent it knows, and tries again or counts it as lost."""
    return _items("otelcol_receiver_refused", selector, window)


def counted(items: Items, by: str) -> str:
    """Add `items` up by a label of theirs and by `item`, which names what they are."""
    return "\nor ".join(_named(ITEMS[name], by, summed(by, series)) for name, series in items.items())


def summed(by: str, series: str) -> str:
    """Add what is counted series by series up by labels."""
    return f"sum by ({by}) (\n{series}\n)"


def lost(items: Items, passed_on: Items) -> str:
    """Add up what exporters lost by exporter and item, with 0 for those that have passed on something."""
    return f"{counted(items, 'exporter')}\nor 0 * ({counted(passed_on, 'exporter')})"


def _items(name: str, selector: str, window: str) -> Items:
    return {item: grown(f"{name}_{item}_total{{{selector}}}", window) for item in ITEMS}


def _named(item: str, label: str, what: str) -> str:
    return f'label_replace({what}, "item", "{item}", "{label}", ".*")'


def _began(selector: str, window: str) -> str:
    return f"resets(otelcol_process_uptime_seconds_total{{{selector}}}[{window}])"


def _a_minute(what: str, window: str, *by: str) -> str:
    return f"60 * sum{by_labels(*by)}(rate({what}[{window}]))"
