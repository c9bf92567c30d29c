"""Figures as Grafana writes them: the units that the dashboards use."""

import math

__all__ = ["written"]

_SECONDS = ((1e-6, "ns", 1e9), (1e-3, "µs", 1e6), (1.0, "ms", 1e3), (120.0, "s", 1.0), (7200.0, "min", 1 / 60))


def written(value: float, unit: str, decimals: int | None = None) -> str:
    """Return a figure with its unit; seconds become milliseconds or minutes, large numbers get K and M."""
    if math.isnan(value):
        return "-"
    if unit == "percentunit":
        return f"{_rounded(100 * value, 1 if decimals is None else decimals)} %"
    if unit == "s":
        return _time(value, decimals)
    short = _short(value, decimals)
    return f"{short} {unit.removeprefix('suffix:')}" if unit.startswith("suffix:") else short


def _time(seconds: float, decimals: int | None) -> str:
    size = abs(seconds)
    if size == 0:
        return "0 s"
    for below, name, factor in _SECONDS:
        if size < below:
            return f"{_rounded(seconds * factor, _places(seconds * factor, decimals))} {name}"
    return f"{_rounded(seconds / 3600, 1)} h"


def _short(value: float, decimals: int | None) -> str:
    for factor, name in ((1e9, " Bil"), (1e6, " Mil"), (1e3, " K")):
        if abs(value) >= factor:
            return f"{_rounded(value / factor, 2)}{name}"
    return _rounded(value, _places(value, decimals))


def _places(value: float, decimals: int | None) -> int:
    if decimals is not None:
        return decimals
    size = abs(value)
    return 0 if size >= 100 else 1 if size >= 10 else 2 if size >= 0.1 or size == 0 else 4


def _rounded(value: float, places: int) -> str:
    text = f"{value:.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
