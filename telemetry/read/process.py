"""Reads from a `/metrics` who serves it and whether its observers have lost anything."""

from collections.abc import Mapping
from dataclasses import dataclass

from recallscope.telemetry import names
from recallscope.telemetry.metric import prometheus_label
from recallscope.telemetry.read.scrape import scrape_families

__all__ = ["ServedMetrics", "read_process"]

_FRONT_END = prometheus_label(names.FRONT_END)
_PID = prometheus_label(names.PROCESS)


@dataclass(frozen=True, slots=True)
class ServedMetrics:
    """What a `/metrics` says of its process: how many metrics there are, and who serves them; None: not one of ours.

    `observer_failures`: events that an observer failed on and lost, by observer, where there are any.
    """

    families: int
    front_end: str | None
    pid: str | None
    observer_failures: Mapping[str, float]


def read_process(url: str) -> ServedMetrics:
    """Scrape `url` (blocking, at most 10 s of silence).

    Raises:
        ReadError: nobody answers, the answer is an error, or it is no OpenMetrics text.
    """
    families = scrape_families(url)
    samples = [sample for family in families for sample in family.samples]
    target: Mapping[str, str] = {}
    for sample in samples:
        if sample.name == "target_info":
            target = sample.labels
    return ServedMetrics(
        families=len(families),
        front_end=target.get(_FRONT_END),
        pid=target.get(_PID),
        observer_failures={
            sample.labels[names.OBSERVER]: sample.value
            for sample in samples
            if sample.name == names.OBSERVER_FAILURES.prometheus and sample.value > 0
        },
    )
