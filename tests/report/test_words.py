"""How a report writes numbers."""

import math

import pytest

from recallscope.telemetry.report.words import bound, count, duration, instant, seconds, share, span


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "—"),
        (0.0, "0 ms"),
        (0.00042, "0.4 ms"),
        (0.0095, "9.5 ms"),
        (0.105, "105 ms"),
        (1.0, "1 s"),
        (2.305, "2.31 s"),
        (41.23, "41.2 s"),
        (599.0, "599 s"),
        (700.0, "11.7 min"),
        (math.inf, "beyond all buckets"),
    ],
)
def test_a_measured_time(value: float | None, expected: str) -> None:
    """With the unit that suits it, and no digits that say nothing."""
    assert seconds(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, "0 s"), (45.4, "45 s"), (60, "1 min"), (9_660, "2 h 41 min"), (86_400, "1 d"), (273_600, "3 d 4 h")],
)
def test_a_length_of_time(value: float, expected: str) -> None:
    """In two units at most."""
    assert duration(value) == expected


@pytest.mark.parametrize(
    ("good", "total", "expected"),
    [
        (0, 0, "—"),
        (0, 7, "0 %"),
        (7, 7, "100 %"),
        (1, 3, "33.3 %"),
        (999, 1_000, "99.9 %"),
        (99_999, 100_000, "99.999 %"),
        (9_999_999, 10_000_000, "< 100 %"),
        (1, 10_000_000, "> 0 %"),
        (1, 10_000, "0.01 %"),
    ],
)
def test_a_share_is_never_rounded_to_all_or_to_none(good: float, total: float, expected: str) -> None:
    """What is not quite all is not written as all: a service level is about the rest."""
    assert share(good, total) == expected


def test_numbers_bounds_and_moments() -> None:
    """Thousands apart, bounds as they are, moments in UTC."""
    assert count(1_234_567) == "1\u202f234\u202f567"
    assert [bound(value) for value in (0.0025, 0.105, 1.0, 10.24)] == ["2.5 ms", "105 ms", "1 s", "10.24 s"]
    assert instant(1_800_000_000.9) == "2027-01-15 08:00:00 UTC"
    assert span(1_800_000_000, 1_800_000_061).endswith("(1 min 1 s)")
