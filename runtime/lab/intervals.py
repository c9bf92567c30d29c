"""How sure a figure is that was computed from so many turns: intervals that hold for 95 of 100 such records.

None of them assumes a distribution: Wilson's interval for shares, order statistics for quantiles.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["CONFIDENCE", "Interval", "quantile", "quantile_interval", "wilson"]

CONFIDENCE = 0.95
Z = 1.959964
"""The quantile of the normal distribution that belongs to `CONFIDENCE`."""


@dataclass(frozen=True, slots=True)
class Interval:
    """From `low` to `high`; None where so few values say nothing about that side."""

    low: float | None
    high: float | None


def wilson(count: float, total: int) -> Interval:
    """Return the interval of the share `count` / `total`; from 0 to 1 without any turn."""
    if total <= 0:
        return Interval(0.0, 1.0)
    share, weight = count / total, Z * Z / total
    middle = share + weight / 2
    spread = Z * math.sqrt(share * (1 - share) / total + weight / (4 * total))
    low, high = (middle - spread) / (1 + weight), (middle + spread) / (1 + weight)
    return Interval(max(low, 0.0) if count else 0.0, min(high, 1.0) if count < total else 1.0)


def quantile(values: Sequence[float], q: float) -> float | None:
    """Return the `q` quantile of `values`, interpolated between neighbours; None without values."""
    if not values:
        return None
    ordered = sorted(values)
    place = q * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def quantile_interval(values: Sequence[float], q: float) -> Interval:
    """Return the interval of the `q` quantile: two of the values themselves, chosen by the binomial distribution.

    How many of n values lie below the quantile is binomial with n and `q`, whatever the values are.
    """
    ordered, tail = sorted(values), (1 - CONFIDENCE) / 2
    low = high = None
    below = 0.0  # the probability that at most `place` values lie below the quantile
    for place in range(len(ordered) + 1):
        chance = _binomial(place, len(ordered), q)
        if below + chance <= tail and place < len(ordered):
            low = ordered[place]
        below += chance
        if high is None and below >= 1 - tail and place < len(ordered):
            high = ordered[place]
    return Interval(low, high)


def _binomial(count: int, total: int, chance: float) -> float:
    if chance <= 0 or chance >= 1:
        return float(count == (total if chance >= 1 else 0))
    logarithm = (
        math.lgamma(total + 1)
        - math.lgamma(count + 1)
        - math.lgamma(total - count + 1)
        + count * math.log(chance)
        + (total - count) * math.log1p(-chance)
    )
    return math.exp(logarithm)
