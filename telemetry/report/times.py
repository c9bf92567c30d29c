"""The sections of how long turns took, and how long they waited for memory, by policy."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from recallscope.runtime.events import PolicyName
from recallscope.telemetry import names
from recallscope.telemetry.metric import Metric
from recallscope.telemetry.read.counts import Counts
from recallscope.telemetry.read.levels import SLOW_TURN_SECONDS
from recallscope.telemetry.read.quantile import Buckets
from recallscope.telemetry.report.blocks import Column, Columns, Figure, Grid, Remark, Row, Section, Series, Tone
from recallscope.telemetry.report.words import NONE, bound, count, seconds, share
from recallscope.telemetry.spans import WAIT_TOLERANCE_SECONDS

__all__ = ["TONES", "durations_section", "waits_section"]

TONES: Final = {
    PolicyName.OFF: Tone.PLAIN,
    PolicyName.DEADLINE: Tone.DEADLINE,
    PolicyName.PREFETCH: Tone.PREFETCH,
    PolicyName.TIERED: Tone.TIERED,
}
"""The colour of each policy."""

FEWEST_COLUMNS: Final = 6
ROUNDING: Final = 1e-9
_WRITTEN_R: Final = frozenset({0.001, 0.005, 0.05, 0.105, 0.5, 1.1, 5.0, 30.0})
_EVERY_OTHER: Final = 2

_QUANTILES: Final = (
    Column(title="p50", numeric=True),
    Column(title="p95", numeric=True),
    Column(title="p99", numeric=True),
    Column(title="longest", numeric=True),
)
_ABOUT: Final = "For each policy a row of columns: the share of its turns in each bucket of the histogram."


def durations_section(counts: Counts) -> Section:
    """Return the section of the turns' durations: wall time less queue and permission, as the metric counts it."""
    found = _by_policy(counts, names.TURN_DURATION)
    first = _by_policy(counts, names.TURN_TIME_TO_FIRST_TOKEN)
    columns = (
        Column(title="policy"),
        Column(title="turns", numeric=True),
        *_QUANTILES,
        Column(title="above 10.24 s", numeric=True),
        Column(title="first word p50", numeric=True),
        Column(title="p95", numeric=True),
    )
    rows = tuple(
        Row(
            cells=(
                policy.value,
                count(durations.count),
                *_quantiles(durations),
                share(durations.count - durations.at_most(SLOW_TURN_SECONDS), durations.count),
                *(
                    (seconds(words.quantile(0.5)), seconds(words.quantile(0.95)))
                    if (words := first.get(policy))
                    else (NONE, NONE)
                ),
            ),
            data={"policy": policy.value, "turns": durations.count},
        )
        for policy, durations in found.items()
    )
    written = frozenset(names.BUCKETS_T[1::_EVERY_OTHER])
    plot = _plot(
        "Share of the turns by their duration",
        found,
        names.TURN_DURATION,
        written,
        (SLOW_TURN_SECONDS, "slow from 10.24 s"),
    )
    return Section(
        key="durations",
        title="How long turns took",
        intro="From a prompt to the end of its answer, without the time that it queued or waited for a permission.",
        blocks=_blocks(plot, Grid(caption="Duration of turns, by policy", columns=columns, rows=rows), "durations"),
    )


def waits_section(counts: Counts) -> Section:
    """Return the section of the turns' waits for memory, all waits of a turn added."""
    found = _by_policy(counts, names.RECALL_TURN_WAIT_DURATION)
    overruns = counts.by(names.RECALL_WAIT_OVERRUNS, names.POLICY)
    columns = (
        Column(title="policy"),
        Column(title="turns", numeric=True),
        *_QUANTILES,
        Column(title="ceiling", numeric=True),
        Column(title="beyond it", numeric=True, about="and 5 ms"),
    )
    rows = tuple(
        Row(
            cells=(
                policy.value,
                count(waits.count),
                *_quantiles(waits),
                _ceiling(counts, policy),
                count(overruns.get((policy.value,), 0.0)),
            ),
            data={"policy": policy.value, "turns": waits.count, "overruns": overruns.get((policy.value,), 0.0)},
        )
        for policy, waits in found.items()
    )
    plot = _plot("Share of the turns by their wait", found, names.RECALL_TURN_WAIT_DURATION, _WRITTEN_R, _limit(counts))
    return Section(
        key="waits",
        title="How long turns waited for memory",
        intro="The time that sends were held for memory, all waits of a turn added.",
        blocks=_blocks(plot, Grid(caption="Wait for memory, by policy", columns=columns, rows=rows), "waits"),
    )


def _blocks(plot: Columns, grid: Grid, key: str) -> tuple[Figure | Remark, ...]:
    if not plot.series:
        return (Remark(text="No turn was counted."),)
    return (Figure(key=f"{key}-plot", plot=plot, grid=grid),)


def _by_policy(counts: Counts, metric: Metric) -> dict[PolicyName, Buckets]:
    found = counts.histogram(metric, names.POLICY)
    return {policy: found[policy.value,] for policy in PolicyName if (policy.value,) in found}


def _quantiles(buckets: Buckets) -> Sequence[str]:
    """Write the quantiles as `histogram_quantile` has them, and the bound of the highest bucket that is not empty."""
    highest = buckets.highest
    longest = (
        NONE if highest is None else f"> {bound(buckets.bounds[-2])}" if math.isinf(highest) else f"≤ {bound(highest)}"
    )
    return (*(seconds(buckets.quantile(q)) for q in (0.5, 0.95, 0.99)), longest)


def _ceiling(counts: Counts, policy: PolicyName) -> str:
    ceilings = counts.ceilings.get(policy)
    if ceilings is None:
        return NONE
    return seconds(ceilings.highest) if ceilings.one else f"{seconds(ceilings.lowest)} to {seconds(ceilings.highest)}"


def _limit(counts: Counts) -> tuple[float, str] | None:
    """Return the bound of the bucket that holds the ceiling of `tiered` and its tolerance, if it has one ceiling."""
    ceilings = counts.ceilings.get(PolicyName.TIERED)
    if ceilings is None or not ceilings.one or ceilings.highest <= 0:
        return None
    limit = ceilings.highest + WAIT_TOLERANCE_SECONDS - ROUNDING
    upper = next((upper for upper in names.BUCKETS_R if upper >= limit), None)
    return None if upper is None else (upper, "ceiling of tiered and 5 ms")


def _plot(
    title: str,
    found: Mapping[PolicyName, Buckets],
    metric: Metric,
    written: frozenset[float],
    limit: tuple[float, str] | None,
) -> Columns:
    """Return the plot, which ends behind the last bucket that holds anything."""
    shares = {policy: _shares(buckets) for policy, buckets in found.items()}
    last = max((place for row in shares.values() for place, share_ in enumerate(row) if share_ > 0), default=0)
    if limit is not None:
        last = max(last, metric.buckets.index(limit[0]))
    number = min(max(last + 2, FEWEST_COLUMNS), len(metric.buckets) + 1)
    bounds = (*(bound(upper) if upper in written else "" for upper in metric.buckets), "more")
    return Columns(
        title=title,
        about=_ABOUT,
        bounds=bounds[:number],
        series=tuple(Series(name=policy.value, shares=shares[policy][:number], tone=TONES[policy]) for policy in found),
        limit=None if limit is None else (metric.buckets.index(limit[0]) + 1, limit[1]),
    )


def _shares(buckets: Buckets) -> tuple[float, ...]:
    """Return the share of each bucket by itself."""
    below = (0.0, *buckets.counts[:-1])
    return tuple((upto - before) / buckets.count for upto, before in zip(buckets.counts, below, strict=True))
