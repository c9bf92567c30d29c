"""Draws plots as inline SVG whose bars stretch with the page while their text keeps its size.

Positions are shares of the width in percent, heights are pixels. Each plot has a title and a description that a screen
reader reads; colours come from classes, so that the page's light and dark schemes reach them.
"""

from collections.abc import Iterable
from typing import Final, assert_never

from recallscope.telemetry.report.blocks import Bars, Columns, Curve, Drawing, Line, Plot, Series, Stack
from recallscope.telemetry.report.markup import Markup, joined, plain, tag

__all__ = ["draw"]

BAR_STEP: Final = 38
BAR_HEIGHT: Final = 12
MARGIN: Final = 0.3
"""Nearer to an end of the width the meaning of a limit stands on the other side of its line, so that it is not cut."""

LONGEST_LABEL: Final = 48
"""What is longer is cut: the value beside it must be read in a narrow window, and the table has all of it."""

COLUMNS_HEIGHT: Final = 84
SERIES_STEP: Final = 118
AXIS_HEIGHT: Final = 34
CURVE_HEIGHT: Final = 220
STACK_HEIGHT: Final = 28


def draw(plot: Plot, key: str) -> Markup:
    """Return the plot as one SVG element; `key` makes its ids unique in the page."""
    match plot:
        case Bars():
            body, height = _bars(plot)
        case Columns():
            body, height = _columns(plot)
        case Curve():
            body, height = _curve(plot)
        case Stack():
            body, height = _stack(plot)
        case Drawing():
            return tag("div", Markup(plot.svg), class_="drawing", data_plot="drawing")
        case _:
            assert_never(plot)
    title, about = f"{key}-title", f"{key}-about"
    return tag(
        "svg",
        tag("title", plot.title, id=title),
        tag("desc", plot.about, id=about),
        body,
        class_="plot",
        width="100%",
        height=height,
        role="img",
        aria_labelledby=f"{title} {about}",
        data_plot=type(plot).__name__.lower(),
    )


def _bars(plot: Bars) -> tuple[Markup, float]:
    full = plot.full or max((bar.value for bar in plot.bars), default=0.0) or 1.0
    parts: list[Markup] = []
    for number, bar in enumerate(plot.bars):
        top = number * BAR_STEP
        parts += [
            _text(_short(bar.label), x="0", y=top + 14),
            _text(bar.text, x="100%", y=top + 14, class_="end"),
            _rect(0.0, 100.0, top + 20, BAR_HEIGHT, "track"),
            _rect(0.0, 100.0 * bar.value / full, top + 20, BAR_HEIGHT, f"tone-{bar.tone}"),
        ]
    return joined(*parts), max(len(plot.bars) * BAR_STEP, 1)


def _stack(plot: Stack) -> tuple[Markup, float]:
    whole = sum(part.value for part in plot.parts) or 1.0
    parts: list[Markup] = [_rect(0.0, 100.0, 0, STACK_HEIGHT, "track")]
    left = 0.0
    for part in plot.parts:
        width = 100.0 * part.value / whole
        hint = tag("title", f"{part.label}: {part.text}")
        parts.append(_rect(left, width, 0, STACK_HEIGHT, f"tone-{part.tone} part", hint))
        left += width
    return joined(*parts), STACK_HEIGHT


def _columns(plot: Columns) -> tuple[Markup, float]:
    number = len(plot.bounds)
    bottom = len(plot.series) * SERIES_STEP
    parts = [_distribution(series, place * SERIES_STEP, number) for place, series in enumerate(plot.series)]
    if plot.limit is not None:
        after, meaning = plot.limit
        share = after / number
        x = _percent(100.0 * share)
        parts.append(tag("line", x1=x, x2=x, y1=14, y2=bottom, class_="limit"))
        parts.append(_text(meaning, x=x, y=10, class_=f"{_side(share)} small"))
    for place, bound in enumerate(plot.bounds):
        if bound:
            end = 100.0 * (place + 1) / number
            x = _percent(end)
            parts.append(tag("line", x1=x, x2=x, y1=bottom, y2=bottom + 4, class_="axis"))
            parts.append(_text(bound, x=x, y=bottom + 18, class_=f"{_anchor(end)} small"))
    return joined(*parts), bottom + AXIS_HEIGHT


def _distribution(series: Series, top: int, number: int) -> Markup:
    highest = max(series.shares, default=0.0) or 1.0
    base = top + SERIES_STEP - 6
    parts: list[Markup] = [
        _text(series.name, x="0", y=top + 24, class_="strong"),
        tag("line", x1="0", x2="100%", y1=base, y2=base, class_="axis"),
    ]
    for place, share in enumerate(series.shares):
        if share > 0:
            height = max((COLUMNS_HEIGHT - 16) * share / highest, 1.5)
            left, width = 100.0 * (place + 0.08) / number, 84.0 / number
            parts.append(_rect(left, width, base - height, height, f"tone-{series.tone}"))
            x = 100.0 * (place + 0.5) / number
            parts.append(_text(_share(share), x=_percent(x), y=base - height - 3, class_="middle small"))
    return joined(*parts)


def _curve(plot: Curve) -> tuple[Markup, float]:
    # Lines need joined points, which percentages cannot give to a path: an inner SVG with a box of its own stretches.
    parts: list[Markup] = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = _height(share)
        parts.append(tag("line", x1="0", x2="100%", y1=y, y2=y, class_="grid"))
        parts.append(_text(f"{share:.0%}", x="0", y=y - 3, class_="small"))
    inner = joined(*(_line(line) for line in plot.lines))
    parts.append(
        tag(
            "svg",
            inner,
            x="0",
            y="0",
            width="100%",
            height=CURVE_HEIGHT,
            viewBox=f"0 0 1000 {CURVE_HEIGHT}",
            preserveAspectRatio="none",
        )
    )
    for line in plot.lines:
        for x, share, _, _ in line.points:
            parts.append(tag("circle", cx=_percent(100 * x), cy=_height(share), r=3.5, class_=f"tone-{line.tone}"))
    for x, label in plot.ticks:
        parts.append(_text(label, x=_percent(100 * x), y=CURVE_HEIGHT + 14, class_=f"{_anchor(100 * x)} small"))
    parts.append(_text(plot.axis, x="50%", y=CURVE_HEIGHT + 30, class_="middle small"))
    return joined(*parts), CURVE_HEIGHT + AXIS_HEIGHT


def _line(line: Line) -> Markup:
    upper = [(x, high) for x, _, _, high in line.points if high is not None]
    lower = [(x, low) for x, _, low, _ in line.points if low is not None]
    parts: list[Markup] = []
    if upper and lower:
        parts.append(tag("polygon", points=_points([*upper, *reversed(lower)]), class_=f"tone-{line.tone} band"))
    middle = [(x, share) for x, share, _, _ in line.points]
    parts.append(
        tag("polyline", points=_points(middle), class_=f"line line-{line.tone}", vector_effect="non-scaling-stroke")
    )
    return joined(*parts)


def _points(points: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{1000 * x:.1f},{_height(share):.1f}" for x, share in points)


def _height(share: float) -> float:
    return 16 + (CURVE_HEIGHT - 20) * (1 - share)


def _rect(left: float, width: float, top: float, height: float, class_: str, *children: Markup) -> Markup:
    return tag("rect", *children, x=_percent(left), y=top, width=_percent(width), height=height, rx=2.0, class_=class_)


def _text(text: str, *, x: str, y: float, class_: str | None = None) -> Markup:
    return tag("text", plain(text), x=x, y=y, class_=class_)


def _percent(number: float) -> str:
    return f"{number:.3f}".rstrip("0").rstrip(".") + "%"


def _anchor(x: float) -> str:
    """Keep a label within the plot: the last one ends where the plot does."""
    return "end" if x > 96 else "start" if x < 4 else "middle"  # noqa: PLR2004 - about half a label


def _side(share: float) -> str:
    return "end" if share > 1 - MARGIN else "start" if share < MARGIN else "middle"


def _short(label: str) -> str:
    return label if len(label) <= LONGEST_LABEL else f"{label[: LONGEST_LABEL - 1]}…"


def _share(share: float) -> str:
    return f"{share:.0%}" if share >= 0.01 else "<1%"  # noqa: PLR2004 - one percent
