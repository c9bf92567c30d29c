"""Charts as SVG, drawn from a panel's own settings: axes in its unit, thresholds, stacking, logarithms, exemplars."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from itertools import pairwise
from typing import Any

from answers import Answer, Series
from units import written

__all__ = ["COLORS", "PALETTE", "by_column", "curve", "heat", "over_time"]

PALETTE = ("#7eb26d", "#eab839", "#6ed0e0", "#ef843c", "#e24d42", "#1f78c1", "#ba43a9", "#705da0", "#508642", "#cca300")
COLORS = {"green": "#37872d", "orange": "#e0752d", "red": "#c4162a", "blue": "#3274d9", "text": "#24292e"}
LEFT, BOTTOM, TOP, RIGHT = 74, 20, 6, 8
TICKS = 4
NOTHING = 1e-9
"""Cells of a heat map with less are left white."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A drawing area and its two scales; a logarithmic one has no zero."""

    width: float
    height: float
    x: tuple[float, float]
    y: tuple[float, float]
    x_log: bool = False
    y_log: bool = False

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Return the place of a point."""
        across = _part(x, self.x, log=self.x_log) * (self.width - LEFT - RIGHT)
        up = _part(y, self.y, log=self.y_log) * (self.height - TOP - BOTTOM)
        return LEFT + across, self.height - BOTTOM - up


def over_time(panel: Mapping[str, Any], answer: Answer, width: float, height: float) -> str:
    """Draw lines or stacked areas over time, with thresholds and exemplars."""
    defaults, custom = panel["fieldConfig"]["defaults"], panel["fieldConfig"]["defaults"]["custom"]
    stacked = custom.get("stacking", {}).get("mode") == "normal"
    logarithmic = custom.get("scaleDistribution", {}).get("type") == "log"
    layers = _stacked(answer.series) if stacked else [(one, None) for one in answer.series]
    lines = _thresholds(panel)
    values = [value for one, _ in layers for _, value in one.points]
    high = max([*values, *(at for at, _ in lines), *(value for _, value in answer.exemplars)])
    frame = Frame(
        width, height, _times(answer), _range(values, high, defaults, logarithmic=logarithmic), y_log=logarithmic
    )
    parts = [_axes(frame, defaults["unit"], moments=True)]
    for number, (one, below) in reversed(list(enumerate(layers))):
        color = PALETTE[number % len(PALETTE)]
        if below is not None:
            path = " ".join(_points(frame, [*one.points, *reversed(below)]))
            parts.append(f'<polygon points="{path}" fill="{color}" fill-opacity="0.6"/>')
        parts.append(_line(frame, one.points, number))
    parts += [_threshold(frame, at, color) for at, color in lines]
    parts += [_dot(frame, moment, value) for moment, value in answer.exemplars]
    return _svg(width, height, parts)


def by_column(answer: Answer, column: str) -> tuple[Series, ...]:
    """Turn series of one figure for each bound `le` into one series for each value of a label, over the bounds."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for one in answer.series:
        bound = float(one.labels["le"])
        if not math.isinf(bound):
            lines.setdefault(one.labels[column], []).append((bound, one.last))
    return tuple(Series(name, {column: name}, tuple(sorted(lines[name]))) for name in sorted(lines))


def curve(panel: Mapping[str, Any], series: Sequence[Series], width: float, height: float) -> str:
    """Draw series over the bounds of a histogram, on a logarithmic axis."""
    defaults = panel["fieldConfig"]["defaults"]
    bounds = [bound for one in series for bound, _ in one.points]
    frame = Frame(width, height, (min(bounds), max(bounds)), (0.0, defaults.get("max", 1.0)), x_log=True)
    parts = [_axes(frame, defaults["unit"], moments=False)]
    parts += [_line(frame, one.points, number) for number, one in enumerate(series)]
    return _svg(width, height, parts)


def heat(panel: Mapping[str, Any], answer: Answer, width: float, height: float) -> str:
    """Draw the buckets of a cumulative histogram over time, darker where more fell in the step before a moment."""
    unit = panel["fieldConfig"]["defaults"]["unit"]
    buckets = sorted(answer.series, key=lambda one: float(one.labels["le"]))
    counts: dict[tuple[float, int], float] = {}
    for number, one in enumerate(buckets):
        below = dict(buckets[number - 1].points) if number else {}
        for moment, value in one.points:
            counts[moment, number] = max(value - below.get(moment, 0.0), 0.0)
    most = max(counts.values(), default=1.0) or 1.0
    moments = sorted({moment for moment, _ in counts})
    step = min((later - earlier for earlier, later in pairwise(moments)), default=1.0)
    begin, end = _times(answer)
    frame = Frame(width, height, (begin - step, end), (0.0, float(len(buckets))))
    tall = (height - TOP - BOTTOM) / max(len(buckets), 1)
    parts: list[str] = []
    for (moment, number), count in counts.items():
        if count > NOTHING:
            x, y = frame.at(moment - step, number + 1)
            wide = frame.at(moment, number + 1)[0] - x
            size, shade = f'width="{wide:.1f}" height="{tall - 1:.1f}"', 0.15 + 0.85 * math.sqrt(count / most)
            parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" {size} fill="#1f60c4" fill-opacity="{shade:.2f}"/>')
    for number, one in enumerate(buckets):
        _, y = frame.at(frame.x[0], number + 1)
        bound = float(one.labels["le"])
        name = "+Inf" if math.isinf(bound) else written(bound, unit)
        parts.append(f'<text x="{LEFT - 6}" y="{y + 8:.1f}" text-anchor="end">≤ {name}</text>')
    for moment, value in answer.exemplars:
        place = next((number for number, one in enumerate(buckets) if value <= float(one.labels["le"])), 0)
        x, y = frame.at(moment, place + 0.5)
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="#ff00ff" fill-opacity="0.7"/>')
    parts += _moments(frame)
    return _svg(width, height, parts)


def _part(value: float, scale: tuple[float, float], *, log: bool) -> float:
    low, high = scale
    if log:
        value, low, high = math.log10(max(value, low)), math.log10(low), math.log10(high)
    return min(max((value - low) / ((high - low) or 1.0), 0.0), 1.0)


def _range(
    values: Sequence[float], high: float, defaults: Mapping[str, Any], *, logarithmic: bool
) -> tuple[float, float]:
    if logarithmic:
        low = min((value for value in values if value > 0), default=0.001)
        return 10 ** math.floor(math.log10(low)), 10 ** math.ceil(math.log10(max(high, low * 1.01)))
    low = defaults.get("min", min(values, default=0.0))
    return low, defaults.get("max") or (high * 1.08 or 1.0)


def _times(answer: Answer) -> tuple[float, float]:
    moments = [moment for one in answer.series for moment, _ in one.points]
    return min(moments), max(moments)


def _stacked(series: Sequence[Series]) -> list[tuple[Series, list[tuple[float, float]] | None]]:
    moments = sorted({moment for one in series for moment, _ in one.points})
    floor = dict.fromkeys(moments, 0.0)
    layers: list[tuple[Series, list[tuple[float, float]] | None]] = []
    for one in series:
        own, below = dict(one.points), sorted(floor.items())
        for moment in moments:
            floor[moment] += own.get(moment, 0.0)
        layers.append((Series(one.name, one.labels, tuple(sorted(floor.items()))), below))
    return layers


def _thresholds(panel: Mapping[str, Any]) -> list[tuple[float, str]]:
    defaults = panel["fieldConfig"]["defaults"]
    if defaults["custom"].get("thresholdsStyle", {}).get("mode", "off") == "off":
        return []
    return [(step["value"], step["color"]) for step in defaults["thresholds"]["steps"] if step.get("value") is not None]


def _threshold(frame: Frame, at: float, color: str) -> str:
    _, y = frame.at(frame.x[0], at)
    return (
        f'<line x1="{LEFT}" x2="{frame.width - RIGHT:.1f}" y1="{y:.1f}" y2="{y:.1f}" stroke="{COLORS[color]}" '
        'stroke-dasharray="6 4" stroke-width="1.5"/>'
    )


def _line(frame: Frame, points: Sequence[tuple[float, float]], number: int) -> str:
    path, color = " ".join(_points(frame, points)), PALETTE[number % len(PALETTE)]
    return f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="1.6"/>'


def _dot(frame: Frame, moment: float, value: float) -> str:
    x, y = frame.at(moment, value)
    turned = f'transform="rotate(45 {x:.1f} {y:.1f})"'
    return f'<rect x="{x - 2.5:.1f}" y="{y - 2.5:.1f}" width="5" height="5" {turned} fill="#5794f2"/>'


def _points(frame: Frame, points: Sequence[tuple[float, float]]) -> list[str]:
    return ["{:.1f},{:.1f}".format(*frame.at(*point)) for point in points]


def _axes(frame: Frame, unit: str, *, moments: bool) -> str:
    parts: list[str] = []
    for value in _ticks(frame.y, log=frame.y_log):
        _, y = frame.at(frame.x[0], value)
        parts.append(f'<line x1="{LEFT}" x2="{frame.width - RIGHT:.1f}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{escape(written(value, unit))}</text>')
    if moments:
        return "".join(parts + _moments(frame))
    for value in _ticks(frame.x, log=frame.x_log):
        x, _ = frame.at(value, frame.y[0])
        parts.append(f'<text x="{x:.1f}" y="{frame.height - 5:.1f}" text-anchor="middle">{written(value, "s")}</text>')
    return "".join(parts)


def _moments(frame: Frame) -> list[str]:
    parts: list[str] = []
    for value in _ticks(frame.x, log=False)[:-1]:
        x, _ = frame.at(value, frame.y[0])
        name = datetime.fromtimestamp(value, UTC).strftime("%H:%M:%S")
        parts.append(f'<text x="{x:.1f}" y="{frame.height - 5:.1f}">{name}</text>')
    return parts


def _ticks(scale: tuple[float, float], *, log: bool) -> list[float]:
    low, high = scale
    if log:
        return [10.0**power for power in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)]
    return [low + (high - low) * number / TICKS for number in range(TICKS + 1)]


def _svg(width: float, height: float, parts: Sequence[str]) -> str:
    return f'<svg width="{width:.0f}" height="{height:.0f}">{"".join(parts)}</svg>'
