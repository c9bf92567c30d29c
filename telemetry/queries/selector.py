"""What stands between the braces of a query, and what is a range."""

import re

__all__ = ["is_range", "job"]

_RANGE = re.compile(r"(?:[1-9]\d*(?:ms|[smhdwy]))+")


def job(name: str) -> str:
    """Return the selector of the job `name`."""
    escaped = name.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return f'job="{escaped}"'


def is_range(text: str) -> bool:
    """Say whether `text` is a range that PromQL takes: `90s`, `1h30m`, `7d`."""
    return _RANGE.fullmatch(text) is not None
