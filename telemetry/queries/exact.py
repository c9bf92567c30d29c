"""PromQL that counts exactly: what a process's counters say now less what they said when the window began.

`increase()` extrapolates to the ends of its window, and does not see the first value of a series: right for a panel,
and a turn too many or too few for a table that judges. Here a series of counters counts

- what it says now less what it said at the window's begin, where it is older than the window;
- all that it says, where it was born within the window: its process started in it, or its process was scraped before
  the series was there;
- what it says less the first that is known of it, where its process is older and nothing is known of the begin;
- what `increase()` says, and the first value of a series that was born, where its process started anew meanwhile.

The source of what a function does at its edges is Prometheus 2.42. As everywhere, a `job` must be selected.
"""

from collections.abc import Sequence
from typing import Final

from recallscope.telemetry import names
from recallscope.telemetry.metric import prometheus_label

__all__ = ["ceilings_highest", "ceilings_lowest", "counted", "seen"]

_START: Final = names.PROCESS_START.prometheus
_INSTANCE: Final = "job, instance"


def counted(series: str, labels: Sequence[str], selector: str, seconds: int) -> str:
    """Count `series` (a name in Prometheus, with its suffix) by `labels` within `seconds` up to now."""
    by = ", ".join(prometheus_label(label) for label in labels)
    return f"sum by ({by}) ({_exact(f'{series}{{{selector}}}', f'{_START}{{{selector}}}', seconds)})"


def ceilings_lowest(selector: str, seconds: int) -> str:
    """Give the lowest ceiling that a recall had, by policy, in seconds."""
    return (
        f"min by ({names.POLICY}) (min_over_time({names.RECALL_CEILING_IN_FORCE.prometheus}{{{selector}}}[{seconds}s]))"
    )


def ceilings_highest(selector: str, seconds: int) -> str:
    """Give the highest ceiling that a recall had, by policy, in seconds."""
    return (
        f"max by ({names.POLICY}) (max_over_time({names.RECALL_CEILING_IN_FORCE.prometheus}{{{selector}}}[{seconds}s]))"
    )


def seen(selector: str, seconds: int) -> str:
    """Count the processes that were scraped within `seconds`: at moments so far apart it misses none."""
    return f"count(last_over_time({_START}{{{selector}}}[{seconds}s]))"


def _exact(series: str, start: str, seconds: int) -> str:
    window = f"{seconds}s"
    last, first = f"last_over_time({series}[{window}])", f"min_over_time({series}[{window}])"
    begun = f"min_over_time({start}[{window}]) >= time() - {seconds}"
    unchanged = f"changes({start}[{window}]) == 0"
    earlier = f"count_over_time({series}[{window}]) < on ({_INSTANCE}) group_left count_over_time({start}[{window}])"
    new = (
        f"(({last} and on ({_INSTANCE}) ({begun}))"
        f" or ({last} and on ({_INSTANCE}) ({start} offset {window}))"
        f" or (({earlier}) and on ({_INSTANCE}) ({unchanged})))"
    )
    born = f"({first} and {new} unless {series} offset {window})"
    at_begin = f"({series} offset {window} or {born} * 0 or {first})"
    restarted = f"({first} and resets({series}[{window}]) > 0)"
    steady = f"({last} - {at_begin}) unless {restarted}"
    anew = f"(increase({series}[{window}]) + {born} or increase({series}[{window}])) and {restarted}"
    return f"{steady} or {anew}"
