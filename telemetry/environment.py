"""Variables of the process that are read tolerantly: a value that is none is a warning and the default, never an error.

The SDK and the exporters refuse such values with an exception, some as early as their import. So what they would refuse
is read here and given to them, or is set aside while they look.
"""

import logging
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from importlib import import_module
from math import isfinite
from typing import Final

__all__ = ["IMPORT_LIMIT", "MOST", "choice", "import_sdk", "number", "set_aside", "whole"]

_log = logging.getLogger(__name__)

MOST: Final = 2_147_483_647
"""The highest number that is taken; as milliseconds 24 days, which every timer can wait."""

IMPORT_LIMIT: Final = "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT"
"""What the SDK reads while it is imported."""


def number(environ: Mapping[str, str], key: str, default: float, *, least: float = 1, most: int = MOST) -> float:
    """Return the number in variable `key`; `default` with a warning if it is none, or not from `least` to `most`."""
    text = environ.get(key, "").strip()
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not isfinite(value) or not least <= value <= most:
        _log.warning("%s=%s is no number from %g to %d: %g is used", key, text, least, most, default)
        return default
    return value


def whole(environ: Mapping[str, str], key: str, default: int, *, least: int = 0) -> int:
    """Return the number in variable `key`, rounded; else as `number` does."""
    return round(number(environ, key, default, least=least))


def choice(environ: Mapping[str, str], key: str, known: tuple[str, ...]) -> str:
    """Return the word in variable `key`, in small letters; the first of `known` if empty or (a warning) unknown."""
    text = environ.get(key, "").strip().lower()
    if text in known:
        return text
    if text:
        _log.warning("%s=%s is not known here: use %s; %s is used", key, text, " or ".join(known), known[0])
    return known[0]


@contextmanager
def set_aside(*keys: str) -> Generator[None]:
    """Take variables out of the process's environment for the block."""
    values = {key: value for key in keys if (value := os.environ.pop(key, None)) is not None}
    try:
        yield
    finally:
        os.environ.update(values)


def import_sdk() -> None:
    """Import the SDK now if its import would fail on `IMPORT_LIMIT`; else leave that to whoever needs it."""
    if not os.environ.get(IMPORT_LIMIT, "0").strip().isdecimal():
        with set_aside(IMPORT_LIMIT):
            import_module("opentelemetry.sdk.trace")
