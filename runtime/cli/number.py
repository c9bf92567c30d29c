"""The numbers of options: within bounds, and never what is no number; one kind of refusal for all commands."""

import math

import click

__all__ = ["Number", "Whole", "finite"]


class Number(click.FloatRange):
    """A number within bounds; the library's own range lets `nan` through, and `inf` where it is open."""

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read what was written; `nan`, `inf` and texts are refused as no number."""
        number = finite(str(value))
        if number is None:
            self.fail(f"{value!r} is no number", param, ctx)
        return float(super().convert(number, param, ctx))


class Whole(click.IntRange):
    """A whole number within bounds."""

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read what was written; what is no whole number is refused as that."""
        try:
            number = int(str(value))
        except ValueError:
            self.fail(f"{value!r} is no whole number", param, ctx)
        return int(super().convert(number, param, ctx))


def finite(text: str) -> float | None:
    """Return the number that `text` is; None if it is none, as `nan` and `inf` are none."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
