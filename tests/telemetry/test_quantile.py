"""Quantiles are interpolated as `histogram_quantile` does it."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallscope.telemetry.read.quantile import EMPTY, Buckets

BOUNDS = st.lists(
    st.integers(1, 10_000).map(lambda thousandths: thousandths / 1000), min_size=1, max_size=8, unique=True
).map(sorted)


@st.composite
def histograms(draw: st.DrawFn) -> tuple[list[float], list[int]]:
    """Draw finite bounds and the number of observations in each bucket, that above all bounds last."""
    bounds = draw(BOUNDS)
    inside = draw(st.lists(st.integers(0, 5), min_size=len(bounds) + 1, max_size=len(bounds) + 1))
    return bounds, inside


def _buckets(bounds: list[float], inside: list[int]) -> Buckets:
    counts = {bound: float(sum(inside[: place + 1])) for place, bound in enumerate([*bounds, math.inf])}
    return Buckets.of(counts)


def _naive(q: float, bounds: list[float], inside: list[int]) -> float | None:
    """Walk through the buckets observation by observation, in exact arithmetic."""
    total = sum(inside)
    if total == 0:
        return None
    left = Fraction(q) * total
    start = Fraction(0)
    for bound, here in zip(bounds, inside, strict=False):
        if here and left <= here:
            return float(start + (Fraction(bound) - start) * left / here)
        left -= here
        start = Fraction(bound)
    return bounds[-1]


@given(histograms(), st.sampled_from([0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0]))
def test_a_quantile_is_that_of_a_naive_walk(drawn: tuple[list[float], list[int]], q: float) -> None:
    """A quantile is the point within its bucket that a walk through all observations comes to."""
    bounds, inside = drawn

    got, expected = _buckets(bounds, inside).quantile(q), _naive(q, bounds, inside)

    assert (got is None) == (expected is None)
    if got is not None and expected is not None:
        assert math.isclose(got, expected, rel_tol=1e-9)


@given(histograms())
def test_the_highest_bucket_is_where_the_last_observation_lies(drawn: tuple[list[float], list[int]]) -> None:
    """`highest` is the upper bound of the last bucket that is not empty, and the quantile 1 where that is finite."""
    bounds, inside = drawn
    buckets = _buckets(bounds, inside)
    filled = [bound for bound, here in zip([*bounds, math.inf], inside, strict=True) if here]

    assert buckets.highest == (filled[-1] if filled else None)
    if filled and filled[-1] != math.inf:
        assert buckets.quantile(1) == pytest.approx(buckets.highest)


@given(histograms(), st.data())
def test_a_later_reading_less_an_earlier_one_is_what_came_between(
    drawn: tuple[list[float], list[int]], data: st.DataObject
) -> None:
    """The sum of a reading and a difference is the later reading again."""
    bounds, inside = drawn
    more = data.draw(st.lists(st.integers(0, 5), min_size=len(inside), max_size=len(inside)))
    earlier, between = _buckets(bounds, inside), _buckets(bounds, more)

    assert (earlier + between) - earlier == between


def test_quantiles_that_prometheus_gives() -> None:
    """The answers of Prometheus 2.42 to the same buckets."""
    buckets = Buckets.of({0.1: 2, 0.5: 6, 1.0: 8, math.inf: 10})

    assert buckets.quantile(0.1) == pytest.approx(0.05)
    assert buckets.quantile(0.5) == pytest.approx(0.4)
    assert buckets.quantile(0.7) == pytest.approx(0.75)
    assert buckets.quantile(0.95) == 1.0


def test_what_nobody_observed_has_no_quantile() -> None:
    """Without observations, or without a +Inf bucket, there is neither a quantile nor a highest bucket."""
    assert EMPTY.quantile(0.5) is None
    assert Buckets.of({0.1: 0, math.inf: 0}).quantile(0.5) is None
    assert Buckets.of({0.1: 3}) == EMPTY
    assert Buckets.of({math.inf: 3}).quantile(0.5) is None
    assert EMPTY.highest is None


def test_a_first_bound_that_is_not_above_zero_is_its_own_quantile() -> None:
    """Nothing can be interpolated below a first bound of 0."""
    assert Buckets.of({0.0: 3, 1.0: 4, math.inf: 4}).quantile(0.5) == 0.0


def test_counts_never_fall() -> None:
    """A cumulative count that is lower than the one before counts as the same."""
    assert Buckets.of({0.1: 3, 0.5: 2, math.inf: 4}) == Buckets((0.1, 0.5, math.inf), (3, 3, 4))


@pytest.mark.parametrize("q", [0.0, -1.0, 1.1, math.nan])
def test_a_quantile_out_of_range_is_refused(q: float) -> None:
    """Prometheus answers with infinities there; nobody here asks for them."""
    with pytest.raises(ValueError, match="a quantile lies above 0"):
        EMPTY.quantile(q)


def test_histograms_that_do_not_fit_are_refused() -> None:
    """Neither bounds out of order nor histograms of other bounds are taken."""
    with pytest.raises(ValueError, match="bounds must ascend"):
        Buckets((1.0, 0.5, math.inf), (1, 2, 3))
    with pytest.raises(ValueError, match="do not go with"):
        Buckets((1.0, math.inf), (1,))
    with pytest.raises(ValueError, match="of other bounds"):
        _ = Buckets((1.0, math.inf), (1, 1)) + Buckets((2.0, math.inf), (1, 1))
