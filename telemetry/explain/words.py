"""How durations, shares, counts and foreign text are written."""

import unicodedata

__all__ = ["count", "duration", "moment", "percent", "printable"]

SECOND = 1.0
MINUTE = 60.0
TEN_MILLISECONDS = 0.01


def duration(seconds: float) -> str:
    """Return `seconds` as a person says them: `3.4 ms`, `908 ms`, `1.61 s`, `12.4 s`, `3 min 5 s`."""
    if seconds >= 10 * MINUTE:
        return f"{seconds / MINUTE:.0f} min"
    if seconds >= MINUTE:
        return f"{int(seconds // MINUTE)} min {int(seconds % MINUTE)} s"
    if seconds >= 10 * SECOND - 0.05:  # what rounds to 10 s
        return f"{seconds:.1f} s"
    if seconds >= SECOND - 0.0005:  # what rounds to 1,000 ms
        return f"{seconds:.2f} s"
    if seconds >= TEN_MILLISECONDS or seconds <= 0:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds * 1000:.1f} ms"


def moment(seconds: float) -> str:
    """Return a moment of a turn, counted from its start: `+0.908 s`."""
    return f"{seconds:+.3f} s"


def percent(share: float) -> str:
    """Return a share (0 to 1) in percent; a small one is not rounded to nothing."""
    if 0 < share < 0.005:  # noqa: PLR2004 - what would be shown as 0 %
        return "<1 %"
    return f"{share * 100:.0f} %"


def count(number: int, thing: str) -> str:
    """Return a number of things: `1 note`, `2 notes`."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def printable(text: str) -> str:
    """Return `text` in one line, without what a terminal would obey or not show: ids and names come from outside."""
    words = " ".join(text.split())
    return "".join(letter for letter in words if letter == " " or unicodedata.category(letter)[0] not in "CZ")
