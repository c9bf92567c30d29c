"""What each alert asks of a Prometheus: conditions that answer with the job, and with what made them true.

Jobs are never mixed, since one series may reach a Prometheus on two ways, under two jobs; `selector` chooses them, and
`once` leaves out those that are marked as a second way.
A share is asked of a least number of events, so that one event of three wakes nobody. Windows are PromQL ranges such
as `15m`, shares lie between 0 and 1, ages and lags are seconds.
"""

from dataclasses import dataclass
from typing import Final

from recallscope.runtime.events import PolicyName, Reason, Scenario, TurnOutcome
from recallscope.telemetry import names
from recallscope.telemetry.metric import prometheus_label
from recallscope.telemetry.queries.service_levels import ServiceLevel
from recallscope.telemetry.queries.table import TABLE_SCENARIOS

__all__ = [
    "Share",
    "burning",
    "catalog_stale",
    "labels_overflow",
    "loop_lagging",
    "nothing_delivered",
    "nothing_found",
    "observer_failing",
    "once",
    "process_down",
    "process_gone",
    "selector_failing",
    "skipped_deliveries",
    "store_unavailable",
    "telemetry_lost",
    "turn_stuck",
    "turns_failing",
]

SKIPS: Final = (
    Reason.NOT_SETTLED,
    Reason.OVER_BUDGET,
    Reason.NO_SAFE_DELIVERY_POINT,
    Reason.SELECTOR_TIMEOUT,
)
"""Skips that memory answers for: not those where there was nothing to deliver, nor those that a person caused."""

OVERFLOW: Final = "otel_metric_overflow"
"""The label of the series into which a metric with too many label values puts the rest."""

SECOND_WAY: Final = 'alerts="off"'
"""The label of series that tell of turns which the same Prometheus knows from another job: nothing alerts on them."""

_STRUCTURE: Final = "(.+?)(?:_bucket|_count|_sum|_total)?"
"""A series' name, the metric's first and then what its kind adds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """When a share is too high: `above` it within `window`, with `least` bad events among `of` events or more."""

    window: str
    above: float
    least: int
    of: int


def once(selector: str) -> str:
    """Return `selector` without the series that are marked as a second way to the same turns."""
    return f"{selector}, {SECOND_WAY.replace('=', '!=')}"


def burning(level: ServiceLevel, *, long: str, short: str, above: float, least: int, of: int) -> str:
    """Ask whether the share of bad events is above `above` within both windows, from what is recorded of `level`."""
    return "\nand\n".join(
        [
            f"{level.share(long)} > {above:g}",
            f"{level.share(short)} > {above:g}",
            f"{level.recorded_bad(long)} >= {least}",
            f"{level.recorded_total(long)} >= {of}",
        ]
    )


# Turns


def turns_failing(selector: str, share: Share) -> str:
    """Ask for the share of turns that failed; cancelled ones count on neither side."""
    ended = f"{names.TURN_DURATION.prometheus}_count"
    failed = _grew("job", f'{ended}{{{selector}, {names.OUTCOME}="{TurnOutcome.FAILED}"}}', share.window)
    kept = _grew("job", f'{ended}{{{selector}, {names.OUTCOME}!="{TurnOutcome.CANCELLED}"}}', share.window)
    return _above(failed, kept, share)


def turn_stuck(selector: str, *, age: float) -> str:
    """Ask for processes whose oldest turn has been under way for more than `age`."""
    return f"max by (job, instance) ({names.TURN_OLDEST_AGE.prometheus}{{{selector}}}) > {age:g}"


def loop_lagging(selector: str, *, window: str, lag: float, least: int) -> str:
    """Ask for processes whose p99 of the loop lag is above `lag`, of `least` intervals of 100 ms or more."""
    series = names.LOOP_LAG.prometheus
    buckets = _grew("job, instance, le", f"{series}_bucket{{{selector}}}", window)
    count = _grew("job, instance", f"{series}_count{{{selector}}}", window)
    return f"histogram_quantile(0.99, {buckets}) > {lag:g}\nand\n{count} >= {least}"


# Recall


def skipped_deliveries(selector: str, share: Share) -> str:
    """Ask for the share of deliveries under `tiered` that did not happen for one of `SKIPS`.

    The other policies promise none: `prefetch` skips every turn that calls no tool.
    """
    tiered = f'{selector}, {names.POLICY}="{PolicyName.TIERED}"'
    reasons = f'{names.REASON}=~"{"|".join(SKIPS)}"'
    skipped = _grew("job", f"{names.RECALL_SKIPPED_DELIVERIES.prometheus}{{{tiered}, {reasons}}}", share.window)
    made = _grew("job", f"{names.RECALL_DELIVERIES.prometheus}{{{tiered}}}", share.window)
    return _above(skipped, f"({skipped} + ({made} or 0 * {skipped}))", share)


def selector_failing(selector: str, share: Share) -> str:
    """Ask for the share of recalls whose selection failed; a limit that the policy `deadline` sets is no failure."""
    series = names.RECALL_REFINEMENTS_FAILED.prometheus
    refused = f'{names.REASON}="{Reason.SELECTOR_UNAVAILABLE}"'
    timed_out = f'{names.REASON}="{Reason.SELECTOR_TIMEOUT}", {names.POLICY}!="{PolicyName.DEADLINE}"'
    window = f"[{share.window}]"
    failed = (
        "sum by (job, policy) (\n"
        f"  increase({series}{{{selector}, {refused}}}{window})\n"
        f"  or increase({series}{{{selector}, {timed_out}}}{window})\n)"
    )
    return _above(failed, _grew("job, policy", _started(selector), share.window), share)


def store_unavailable(selector: str, share: Share) -> str:
    """Ask for the share of recalls that failed since the catalog could not be read."""
    series = f'{names.RECALL_OUTCOMES.prometheus}{{{selector}, {names.REASON}="{Reason.STORE_UNAVAILABLE}"}}'
    return _above(_grew("job", series, share.window), _grew("job", _started(selector), share.window), share)


def nothing_found(selector: str, *, window: str, least: int) -> str:
    """Ask for jobs where `least` recalls or more found nothing and none found anything."""
    nothing = _grew("job", _turns(selector, f'{names.SCENARIO}="{Scenario.NOTHING_FOUND}"'), window)
    return f"{nothing} >= {least}\nunless\n{_any('job', _turns(selector, _in_the_table()), window)}"


def nothing_delivered(selector: str, *, window: str, least: int) -> str:
    """Ask for jobs where `least` turns or more could have received memory and none received any."""
    due = _grew("job", _turns(selector, _in_the_table()), window)
    received = _any("job", _turns(selector, f'{names.DELIVERED}!="none"'), window)
    return f"{due} >= {least}\nunless\n{received}"


def catalog_stale(selector: str, *, age: float) -> str:
    """Ask for catalogs that have not caught up with their files for more than `age`."""
    return f"time() - max by (job, instance, scope) ({names.CATALOG_LAST_SYNC.prometheus}{{{selector}}}) > {age:g}"


# Processes


def process_down(selector: str, *, known: str = "1d") -> str:
    """Ask for scraped processes that do not answer and showed sessions within `known`."""
    ours = f"last_over_time({names.SESSION_ACTIVE.prometheus}{{{selector}}}[{known}])"
    return f"up{{{selector}}} == 0\nand on (job, instance)\n{ours}"


def process_gone(selector: str, *, front_ends: str, known: str) -> str:
    """Ask for jobs where processes with one of `front_ends` pushed within `known`, and none does now.

    It is true for `known` after the last word of the last process, or for as long as the Prometheus keeps that. It
    misses processes that lived for less than ten minutes: so often it looks back, since samples of weeks are many.
    What is pushed has its process as `instance`; what is scraped has it as a label beside that, and `up` for its end.
    """
    pushed = f'{selector}, {prometheus_label(names.SERVICE_INSTANCE)}=""'
    told = f'target_info{{{pushed}, {prometheus_label(names.FRONT_END)}=~"{front_ends}"}}'
    return f"count by (job) (last_over_time({told}[{known}:10m]))\nunless\ncount by (job) ({told})"


# Telemetry itself


def telemetry_lost(selector: str, share: Share) -> str:
    """Ask for the share of items of a signal that was lost."""
    lost = _grew("job, signal", f"{names.TELEMETRY_DROPPED.prometheus}{{{selector}}}", share.window)
    passed = _grew("job, signal", f"{names.TELEMETRY_EXPORTED.prometheus}{{{selector}}}", share.window)
    return _above(lost, f"({lost} + {passed})", share)


def observer_failing(selector: str, *, window: str, least: int) -> str:
    """Ask for observers that failed on `least` events or more."""
    failures = _grew("job, observer", f"{names.OBSERVER_FAILURES.prometheus}{{{selector}}}", window)
    return f"{failures} >= {least}"


def labels_overflow(selector: str) -> str:
    """Ask for metrics some of whose series went into the one for those that are too many."""
    series = f'{{{selector}, {OVERFLOW}="true"}}'
    return f'count by (job, metric) (\n  label_replace({series}, "metric", "$1", "__name__", "{_STRUCTURE}")\n) > 0'


def _above(bad: str, total: str, share: Share) -> str:
    return f"{bad}\n/\n{total}\n> {share.above:g}\nand\n{bad} >= {share.least}\nand\n{total} >= {share.of}"


def _grew(by: str, series: str, window: str) -> str:
    return f"sum by ({by}) (increase({series}[{window}]))"


def _any(by: str, series: str, window: str) -> str:
    """Ask whether anything was counted: `increase` does not see the first event of a series that is born with it."""
    born = f"max_over_time({series}[{window}]) unless {series} offset {window}"
    return f"(\n  {_grew(by, series, window)} > 0\n  or sum by ({by}) ({born}) > 0\n)"


def _started(selector: str) -> str:
    return f"{names.RECALL_STARTED.prometheus}{{{selector}}}"


def _turns(selector: str, which: str) -> str:
    return f"{names.RECALL_TURNS.prometheus}{{{selector}, {which}}}"


def _in_the_table() -> str:
    return f'{names.SCENARIO}=~"{"|".join(TABLE_SCENARIOS)}"'
