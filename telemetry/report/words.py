"""How a report writes numbers: short, with the unit that suits them."""

import math
from datetime import UTC, datetime
from typing import Final

__all__ = ["NONE", "bound", "count", "duration", "instant", "seconds", "share", "span"]

NONE: Final = "—"
"""What stands where there is no number."""

_SECOND_BELOW = 10.0
_MINUTE = 60.0
_HOUR = 3_600.0
_DAY = 86_400.0


def seconds(value: float | None) -> str:
    """Write a measured time: `0.4 ms`, `105 ms`, `2.31 s`, `41.2 s`, `3.2 min`; a dash for none."""
    if value is None:
        return NONE
    if math.isinf(value):
        return "beyond all buckets"
    if value < 1:
        milliseconds = value * 1000
        return f"{milliseconds:.0f} ms" if milliseconds >= _SECOND_BELOW else f"{_trimmed(milliseconds, 1)} ms"
    if value < _SECOND_BELOW:
        return f"{_trimmed(value, 2)} s"
    return f"{_trimmed(value, 1)} s" if value < 10 * _MINUTE else f"{_trimmed(value / _MINUTE, 1)} min"


def bound(value: float) -> str:
    """Write a bound of a histogram's bucket, exactly: `2.5 ms`, `105 ms`, `10.24 s`."""
    return f"{value * 1000:g} ms" if value < 1 else f"{value:g} s"


def duration(value: float) -> str:
    """Write a length of time in two units at most: `45 s`, `2 h 41 min`, `3 d 4 h`."""
    whole = round(value)
    for unit, size, below, below_size in (
        ("d", _DAY, "h", _HOUR),
        ("h", _HOUR, "min", _MINUTE),
        ("min", _MINUTE, "s", 1.0),
    ):
        if whole >= size:
            rest = int(whole % size // below_size)
            return f"{int(whole // size)} {unit}" + (f" {rest} {below}" if rest else "")
    return f"{whole} s"


def share(good: float, total: float) -> str:
    """Write a share in percent, never rounded up to all or down to none."""
    if total <= 0:
        return NONE
    percent = 100.0 * good / total
    if good >= total or percent <= 0:
        return f"{percent:.0f} %"
    for digits in (1, 2, 3):
        text = f"{percent:.{digits}f}"
        if text not in {f"{100:.{digits}f}", f"{0:.{digits}f}"}:
            return f"{text} %"
    return "< 100 %" if percent > 50 else "> 0 %"  # noqa: PLR2004 - which end it is near


def count(value: float) -> str:
    """Write a number of things, thousands apart."""
    return f"{value:,.0f}".replace(",", "\u202f")


def instant(wall: float) -> str:
    """Write a moment (seconds since 1970) in UTC, to the second."""
    return datetime.fromtimestamp(wall, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def span(begin: float, end: float) -> str:
    """Write a span of time from `begin` to `end`."""
    return f"{instant(begin)} to {instant(end)} ({duration(end - begin)})"


def _trimmed(value: float, digits: int) -> str:
    return f"{value:.{digits}f}".rstrip("0").rstrip(".") if digits else f"{value:.0f}"
