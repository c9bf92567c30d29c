"""Quantiles of a classic histogram, interpolated as Prometheus's `histogram_quantile` does it."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

__all__ = ["EMPTY", "Buckets"]


@dataclass(frozen=True, slots=True)
class Buckets:
    """A classic histogram: ascending upper `bounds`, the last +Inf, and how many observations lie at or below each.

    Counts may be fractions (`increase` extrapolates). Without any bucket it is the empty histogram.
    """

    bounds: tuple[float, ...] = ()
    counts: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if len(self.bounds) != len(self.counts):
            raise ValueError(f"{len(self.bounds)} bounds do not go with {len(self.counts)} counts")
        if self.bounds and (self.bounds[-1] != math.inf or list(self.bounds) != sorted(set(self.bounds))):
            raise ValueError(f"bounds must ascend and end with +Inf: {self.bounds}")

    @classmethod
    def of(cls, counts: Mapping[float, float]) -> "Buckets":
        """Make a histogram of `le` bounds and their cumulative counts in any order.

        Without a +Inf bucket nothing is known of it, so it is empty; a count that is lower than the one before it (a
        scrape that ran into an update) counts as the same. Both as Prometheus takes them.
        """
        if math.inf not in counts:
            return EMPTY
        bounds = tuple(sorted(counts))
        highest, running = 0.0, list[float]()
        for bound in bounds:
            highest = max(highest, counts[bound])
            running.append(highest)
        return cls(bounds, tuple(running))

    @property
    def count(self) -> float:
        """How many observations there are."""
        return self.counts[-1] if self.counts else 0.0

    def quantile(self, q: float) -> float | None:
        """Return the `q` quantile (0 < q ≤ 1), linear within its bucket; None without observations.

        The first bucket begins at 0 (unless its bound is not above 0); in the +Inf bucket the answer is the highest
        finite bound. The source of these rules is `histogram_quantile` of Prometheus 2.42.

        Raises:
            ValueError: `q` is not in range.
        """
        if not 0 < q <= 1:
            raise ValueError(f"a quantile lies above 0 and not above 1, and {q} does not")
        if self.count <= 0 or len(self.bounds) < 2:  # noqa: PLR2004 - +Inf alone tells nothing
            return None
        rank = q * self.count
        place = next(place for place, count in enumerate(self.counts) if count >= rank)
        if self.bounds[place] == math.inf:
            return self.bounds[place - 1]
        if place == 0 and self.bounds[0] <= 0:
            return self.bounds[0]
        start, before = (self.bounds[place - 1], self.counts[place - 1]) if place else (0.0, 0.0)
        return start + (self.bounds[place] - start) * ((rank - before) / (self.counts[place] - before))

    @property
    def highest(self) -> float | None:
        """The upper bound of the highest bucket that holds an observation (maybe +Inf); None without observations."""
        if self.count <= 0:
            return None
        return next(bound for bound, count in zip(self.bounds, self.counts, strict=True) if count >= self.count)

    def at_most(self, bound: float) -> float:
        """Return how many observations are known to lie at or below `bound`: those up to the last boundary there."""
        return next(
            (count for upper, count in zip(self.bounds[::-1], self.counts[::-1], strict=True) if upper <= bound), 0.0
        )

    def __add__(self, other: "Buckets") -> "Buckets":
        """Return both histograms together; they must have the same bounds unless one is empty."""
        return self._with(other, 1)

    def __sub__(self, earlier: "Buckets") -> "Buckets":
        """Return what was observed since `earlier`, an older reading of the same histogram."""
        return self._with(earlier, -1)

    def _with(self, other: "Buckets", sign: int) -> "Buckets":
        if not other.bounds:
            return self
        if not self.bounds:
            return Buckets(other.bounds, tuple(sign * count for count in other.counts))
        if self.bounds != other.bounds:
            raise ValueError(f"histograms of other bounds do not go together: {self.bounds} and {other.bounds}")
        pairs: Iterable[tuple[float, float]] = zip(self.counts, other.counts, strict=True)
        return Buckets(self.bounds, tuple(mine + sign * theirs for mine, theirs in pairs))


EMPTY = Buckets()
"""A histogram without buckets."""
