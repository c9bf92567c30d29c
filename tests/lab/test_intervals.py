"""Intervals: the values that textbooks give, and that they hold as often as they say."""

import random

import pytest

from recallscope.runtime.lab.intervals import Interval, quantile, quantile_interval, wilson


@pytest.mark.parametrize(
    ("count", "total", "low", "high"),
    [(0, 10, 0.0, 0.2775), (5, 10, 0.2366, 0.7634), (10, 10, 0.7225, 1.0), (81, 263, 0.2553, 0.3662)],
)
def test_the_interval_of_a_share(count: int, total: int, low: float, high: float) -> None:
    """Wilson's interval, also where all or none of few turns are counted."""
    got = wilson(count, total)

    assert got.low == pytest.approx(low, abs=1e-3)
    assert got.high == pytest.approx(high, abs=1e-3)


def test_nothing_is_known_without_turns() -> None:
    """No turn: any share, no quantile, no interval of one."""
    assert wilson(0, 0) == Interval(0.0, 1.0)
    assert quantile([], 0.5) is None
    assert quantile_interval([], 0.5) == Interval(None, None)


def test_a_quantile_lies_between_its_neighbours() -> None:
    """The order of the values does not matter."""
    assert quantile([3.0, 1.0, 2.0, 4.0], 0.5) == 2.5
    assert [quantile([5.0], q) for q in (0.0, 0.5, 1.0)] == [5.0] * 3


def test_few_values_say_nothing_about_the_upper_side_of_a_high_quantile() -> None:
    """From 72 values on the 95th percentile has an upper end."""
    assert quantile_interval([float(number) for number in range(71)], 0.95).high is None
    assert quantile_interval([float(number) for number in range(73)], 0.95).high == 72.0


def test_the_ends_of_a_median_are_those_of_the_tables() -> None:
    """Of 100 values the 40th and the 61st hold the median with 95 %, the narrowest pair that does on both sides."""
    assert quantile_interval([float(number) for number in range(1, 101)], 0.5) == Interval(40.0, 61.0)


@pytest.mark.parametrize("q", [0.5, 0.95])
def test_the_interval_of_a_quantile_holds_as_often_as_it_says(q: float) -> None:
    """Of 400 samples of 100 values at least 93 % have the true quantile between the ends, whatever the distribution."""
    chance = random.Random(1)
    held = 0
    for _ in range(400):
        got = quantile_interval([chance.random() ** 3 for _ in range(100)], q)
        held += (got.low or 0.0) <= q**3 <= (1.0 if got.high is None else got.high)

    assert held >= 372
