"""The option `--since`: how far back a command looks, such as `90s`, `30m`, `1h30m`, `24h` or `7d`."""

import re
from dataclasses import dataclass

import click

__all__ = ["SINCE", "Since"]

_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800, "y": 31_536_000}
_PART = re.compile(r"([1-9][0-9]{0,5})([smhdwy])")
_WHOLE = re.compile(rf"(?:{_PART.pattern})+")
LONGEST_SECONDS = 100 * _UNITS["y"]


@dataclass(frozen=True, slots=True)
class Since:
    """A length of time as it was written, and in seconds."""

    text: str
    seconds: int

    def __str__(self) -> str:
        return self.text


class _SinceType(click.ParamType[Since]):
    """Units as Prometheus has them, largest first or not; whole seconds."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Since:
        """Read the text; a value is one already."""
        if isinstance(value, Since):
            return value
        text = str(value)
        seconds = sum(int(number) * _UNITS[unit] for number, unit in _PART.findall(text))
        if _WHOLE.fullmatch(text) is None or seconds > LONGEST_SECONDS:
            self.fail(f"{text!r}: it must be a time such as 90s, 30m, 1h30m, 24h or 7d", param, ctx)
        return Since(text, seconds)


SINCE = _SinceType()
"""The type of `--since`."""
