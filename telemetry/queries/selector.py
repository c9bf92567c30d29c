"""What stands between the braces of a query, and what is a range."""

import re
from typing import Final

__all__ = [
    "COLLECTOR",
    "EACH",
    "INSTANCE",
    "JOB",
    "STEP",
    "WHOLE",
    "collector",
    "is_range",
    "job",
    "label_values",
    "pushed",
    "variables",
]

JOB: Final = "job"
INSTANCE: Final = "instance"
"""The two labels that a Prometheus gives to every series: which path it came on, and which process it is of."""

COLLECTOR: Final = "collector"
"""Grafana's variable for the job of the collector's own metrics."""

STEP: Final = "$__rate_interval"
EACH: Final = "$__interval"
WHOLE: Final = "$__range"
"""Grafana's windows. `STEP` is longer than a step, so that the windows of two steps overlap: for rates and quantiles.
`EACH` is one step, so that each event counts in one: for counts. `WHOLE` is the whole time range."""

_RANGE = re.compile(r"(?:[1-9]\d*(?:ms|[smhdwy]))+")


def job(name: str) -> str:
    """Return the selector of the job `name`."""
    escaped = name.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return f'job="{escaped}"'


def is_range(text: str) -> bool:
    """Say whether `text` is a range that PromQL takes: `90s`, `1h30m`, `7d`."""
    return _RANGE.fullmatch(text) is not None


def variables(*labels: str) -> str:
    """Return the selector that Grafana's variables fill: one job, any of the instances and of each of `labels`."""
    several = [f'{label}=~"${label}"' for label in (INSTANCE, *labels)]
    return ", ".join([f'{JOB}="${JOB}"', *several])


def pushed() -> str:
    """Return the selector of what a collector writes: its job is `service.namespace/service.name`."""
    return f'{JOB}=~"recallscope/.+"'


def collector() -> str:
    """Return the selector of the collectors that Grafana's variable chooses."""
    return f'{JOB}="${COLLECTOR}"'


def label_values(series: str, label: str) -> str:
    """Return the query of a Grafana variable that lists the values of `label` on `series`."""
    return f"label_values({series}, {label})"
