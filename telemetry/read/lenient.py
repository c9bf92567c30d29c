"""Takes values out of decoded JSON that anybody may have written: what is not of the expected kind is None."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, Final, TypeVar, cast

__all__ = ["entries", "mapping", "member", "members", "number", "text", "texts", "truth", "whole"]

EnumT = TypeVar("EnumT", bound=StrEnum)

MOST: Final = 1e15


def mapping(value: object) -> Mapping[str, Any]:
    """Return a JSON object; an empty one for anything else."""
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def entries(value: object) -> list[Any]:
    """Return a JSON list; an empty one for anything else."""
    return list(cast("Iterable[Any]", value)) if isinstance(value, list) else []


def number(value: object) -> float | None:
    """Return a number below a million billion, either way: sums and differences of such stay numbers."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if abs(found) < MOST else None


def whole(value: object) -> int | None:
    """Return a whole number of 64 bits."""
    if isinstance(value, bool) or not (isinstance(value, int) or (isinstance(value, float) and value.is_integer())):
        return None
    found = int(value)
    return found if abs(found) < 1 << 64 else None


def text(value: object) -> str | None:
    """Return a text."""
    return value if isinstance(value, str) else None


def truth(value: object) -> bool | None:
    """Return a truth value."""
    return value if isinstance(value, bool) else None


def texts(value: object) -> tuple[str, ...] | None:
    """Return a list of texts; None if it is no list."""
    if not isinstance(value, list | tuple):
        return None
    return tuple(item for item in cast("Iterable[object]", value) if isinstance(item, str))


def member(enum: type[EnumT], value: object) -> EnumT | None:
    """Return the member of `enum` that has this value; None for one that this version does not know."""
    if not isinstance(value, str):
        return None
    try:
        return enum(value)
    except ValueError:
        return None


def members(enum: type[EnumT], value: object) -> tuple[EnumT, ...]:
    """Return the members of `enum` in a list of values, without those that this version does not know."""
    found = (member(enum, item) for item in texts(value) or ())
    return tuple(item for item in found if item is not None)
