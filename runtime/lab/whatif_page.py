"""A what-if as one self-contained page, and its plot as a file of its own."""

from itertools import chain
from math import ceil

from recallscope.runtime import __version__
from recallscope.runtime.lab.whatif import WhatIf
from recallscope.runtime.lab.whatif_answer import QUANTILES, Answer, from_to, in_words, percent, percent_between
from recallscope.runtime.terms import Delivered
from recallscope.telemetry.report.blocks import (
    Cell,
    Column,
    Curve,
    Figure,
    Grid,
    Level,
    Line,
    Page,
    Remark,
    Row,
    Section,
    Tone,
)
from recallscope.telemetry.report.markup import Markup, tag
from recallscope.telemetry.report.page import render
from recallscope.telemetry.report.plots import draw
from recallscope.telemetry.report.style import STYLE

__all__ = ["html_page", "svg_plot", "whatif_section"]

_FIRST = (Delivered.INITIAL, Delivered.BOTH)
_LINES = (
    ("at the first send", _FIRST, (Tone.TIERED, Tone.DEADLINE, Tone.TOOL)),
    ("anywhere", (*_FIRST, Delivered.TOOL_RESULT), (Tone.PREFETCH, Tone.BACKOFF, Tone.WAITING)),
)
SVG_WIDTH, SVG_PLOT, SVG_MARGIN, SVG_KEY = 760, 270, 24, 20


def html_page(answer: Answer, *, source: str) -> str:
    """Return the answer as HTML that needs neither network nor scripts; `source` says where the turns are from."""
    return render(
        Page(
            title=f"What another {answer.question.axis} would have given",
            facts=(("Turns", f"{in_words(answer.record)[0]} {source}"),),
            remarks=(),
            sections=(whatif_section(answer, title=f"By {answer.question.axis}"),),
            footer=f"Recallscope {__version__}.",
            data={"turns": len(answer.record.courses)},
        )
    )


def whatif_section(answer: Answer, *, title: str) -> Section:
    """Return the answer as a section of a page: what was left out, the plot, and the table."""
    blocks: list[Figure | Grid | Remark] = [Remark(text=sentence) for sentence in answer.told()[1:]]
    if answer.record.differing:
        number = len(answer.record.differing)
        what = "1 turn is" if number == 1 else f"{number} turns are"
        text = f"{what} not reproduced by the rules of this version."
        blocks.append(Remark(text=text, level=Level.WARNING))
    if answer.series():
        blocks.append(Figure(key="whatif-plot", plot=_curve(answer), grid=_grid(answer)))
    else:
        blocks.append(_grid(answer))
    if doubts := answer.doubts():
        blocks.append(Remark(text="Why turns are unknown:", items=tuple(doubts)))
    return Section(
        key="whatif",
        title=title,
        intro=(
            "Recorded moments, fed through the rules of recall. Where the record does not decide what would have come, "
            "a turn is unknown; intervals hold for 95 of 100 such records, whatever the unknown turns are."
        ),
        blocks=tuple(blocks),
    )


def svg_plot(answer: Answer) -> str:
    """Return the plot alone as an SVG document; without any line where no setting has a place on the axis."""
    curve = _curve(answer)
    top, bottom = 2 * SVG_MARGIN, 2 * SVG_MARGIN + SVG_PLOT
    height = bottom + SVG_KEY * (len(curve.lines) + 1)
    title = f"{curve.title} ({in_words(answer.record)[0].rstrip('.')})"
    keys = (
        tag(
            "g",
            tag("rect", x=0, y=2, width=14, height=10, class_=f"tone-{line.tone}"),
            tag("text", line.name, x=22, y=11),
            transform=f"translate({SVG_MARGIN} {bottom + SVG_KEY * number})",
        )
        for number, line in enumerate(curve.lines)
    )
    document = tag(
        "svg",
        tag("style", Markup(STYLE)),
        tag("rect", width=SVG_WIDTH, height=height, style="fill: var(--ground)"),
        tag("text", title, x=SVG_MARGIN, y=SVG_MARGIN, class_="strong"),
        tag("svg", draw(curve, "whatif"), x=SVG_MARGIN, y=top, width=SVG_WIDTH - 2 * SVG_MARGIN, height=SVG_PLOT),
        *keys,
        xmlns="http://www.w3.org/2000/svg",
        width=SVG_WIDTH,
        height=height,
        viewBox=f"0 0 {SVG_WIDTH} {height}",
        class_="plot",
    )
    return f"{document}\n"


def _curve(answer: Answer) -> Curve:
    # The values stand at even distances: on a linear axis the small ones would be one.
    values = sorted(
        {row.value for row in chain.from_iterable(rows for _, rows in answer.series()) if row.value is not None}
    )
    places = {value: (number + 0.5) / len(values) for number, value in enumerate(values)}
    lines: list[Line] = []
    for number, (series, rows) in enumerate(answer.series()):
        for name, points, tones in _LINES:
            shares = [(places[row.value], row.whatif.at(*points)) for row in rows if row.value is not None]
            lines.append(
                Line(
                    name=f"{series}: {name}" if series and len(answer.series()) > 1 else name,
                    points=tuple((x, each.share, each.interval.low, each.interval.high) for x, each in shares),
                    tone=tones[number % len(tones)],
                )
            )
    axis = answer.question.axis
    every = max(ceil(len(values) / 12), 1)
    return Curve(
        title=f"Turns that receive memory, by {axis}",
        about="Shares of the turns over the setting: memory at the first send, and anywhere; bands are intervals.",
        axis=axis.value,
        ticks=tuple((x, axis.text(value)) for value, x in list(places.items())[::every]),
        lines=tuple(lines),
    )


def _grid(answer: Answer) -> Grid:
    columns = (
        Column(title=answer.question.axis.value),
        *(
            Column(title=name.value.replace("_", " ") if name is not Delivered.NONE else "missed", numeric=True)
            for name in Delivered
        ),
        Column(title="unknown", numeric=True),
        Column(title="delivered", numeric=True),
        *(Column(title=f"held p{100 * q:g}", numeric=True) for q in QUANTILES),
        Column(title="turns", numeric=True),
    )
    rows = [_row("as recorded", answer.recorded), *(_row(answer.label(row), row.whatif) for row in answer.rows)]
    return Grid(caption="What each setting would have given", columns=columns, rows=tuple(rows))


def _row(label: str, whatif: WhatIf) -> Row:
    delivered = whatif.delivered
    return Row(
        cells=(
            label,
            *(str(whatif.at(place).known) for place in Delivered),
            str(whatif.unknown),
            Cell(lines=(percent(delivered.share), percent_between(delivered.interval))),
            *(from_to(waits.least, waits.most) for waits in (whatif.wait(q) for q in QUANTILES)),
            str(whatif.turns),
        ),
        data={"delivered": delivered.share},
    )
