"""Renders a page: values in, one HTML document out that needs no network and no script.

A content security policy in the document forbids it to load anything, whatever a browser or a text in it might try.
"""

from typing import Final, assert_never

from recallscope.telemetry.report.blocks import (
    Block,
    Cell,
    Column,
    Curve,
    Data,
    Drawing,
    Figure,
    Grid,
    Mark,
    Page,
    Plot,
    Remark,
    Row,
    Section,
    Stack,
    Story,
)
from recallscope.telemetry.report.markup import Markup, joined, plain, tag
from recallscope.telemetry.report.plots import draw
from recallscope.telemetry.report.style import STYLE

__all__ = ["render"]

MOST_BESIDE: Final = 5
"""A table of more columns stands below its plot, not beside it."""

POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

_MARKS = {Mark.GOOD: ("✔", "as stated"), Mark.BAD: ("✘", "differs"), Mark.OPEN: ("○", "not measured")}


def render(page: Page) -> str:
    """Return the page as HTML."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", page.title),
        tag("style", Markup(STYLE)),
    )
    body = tag(
        "body",
        tag("header", tag("h1", page.title), _facts(page.facts), *(_remark(remark) for remark in page.remarks)),
        _contents(page.sections),
        tag("main", *(_section(section) for section in page.sections)),
        tag("footer", tag("p", page.footer)),
        **_data(page.data),
    )
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def _facts(facts: tuple[tuple[str, str], ...]) -> Markup:
    return tag("dl", *(joined(tag("dt", name), tag("dd", value)) for name, value in facts), class_="facts")


def _contents(sections: tuple[Section, ...]) -> Markup:
    links = (tag("li", tag("a", section.title, href=f"#{section.key}")) for section in sections)
    return tag("nav", tag("ul", *links), aria_label="Contents")


def _section(section: Section) -> Markup:
    intro = (tag("p", section.intro, class_="intro"),) if section.intro else ()
    return joined(
        "\n",
        tag(
            "section",
            tag("h2", section.title, id=f"{section.key}-heading"),
            *intro,
            *(_block(block) for block in section.blocks),
            id=section.key,
            aria_labelledby=f"{section.key}-heading",
            data_section=section.key,
            **_data(section.data),
        ),
    )


def _block(block: Block) -> Markup:
    match block:
        case Figure():
            return _figure(block)
        case Grid():
            return _grid(block)
        case Remark():
            return _remark(block)
        case Story():
            return _story(block)
        case _:
            assert_never(block)


def _remark(remark: Remark) -> Markup:
    attributes = {"class_": f"remark {remark.level}", "data_remark": remark.level}
    if not remark.items:
        return tag("p", remark.text, **attributes)
    items = tag("ul", *(tag("li", item) for item in remark.items))
    return tag("div", tag("p", remark.text), items, **attributes)


def _figure(figure: Figure) -> Markup:
    plot = draw(figure.plot, figure.key)
    keys = _keys(figure.plot)
    grid = _grid(figure.grid, named=figure.grid.caption != figure.plot.title)
    if figure.folded:
        grid = tag("details", tag("summary", "The same as a table"), grid)
    beside = not isinstance(figure.plot, Stack | Drawing) and len(figure.grid.columns) <= MOST_BESIDE
    return tag(
        "figure",
        tag("figcaption", figure.plot.title, class_="unseen" if isinstance(figure.plot, Drawing) else None),
        tag("div", plot, keys),
        tag("div", grid),
        class_="beside" if beside else None,
        data_figure=figure.key,
    )


def _keys(plot: Plot) -> Markup:
    """Return what the colours of a plot mean, where the plot does not say it itself."""
    match plot:
        case Stack(parts=parts):
            keys = [(part.tone, f"{part.label} {part.text}") for part in parts]
        case Curve(lines=lines):
            keys = [(line.tone, line.name) for line in lines]
        case _:
            return Markup()
    return tag(
        "ul",
        *(tag("li", tag("span", class_=f"swatch tone-{tone}", aria_hidden="true"), name) for tone, name in keys),
        class_="keys",
    )


def _grid(grid: Grid, *, named: bool = True) -> Markup:
    """Return a table; one that is not `named` has its caption for those alone who hear the page."""
    if not grid.rows:
        return tag("p", grid.empty, class_="remark note")
    heads = (
        tag(
            "th",
            column.title,
            *((tag("span", column.about, class_="about"),) if column.about else ()),
            scope="col",
            class_="number" if column.numeric else None,
        )
        for column in grid.columns
    )
    table = tag(
        "table",
        tag("caption", grid.caption, class_=None if named else "unseen"),
        tag("thead", tag("tr", *heads)),
        tag("tbody", *(_row(row, grid.columns) for row in grid.rows)),
    )
    return tag("div", table, class_="scroll", role="region", aria_label=grid.caption, tabindex="0")


def _row(row: Row, columns: tuple[Column, ...]) -> Markup:
    cells: list[Markup] = []
    for place, (cell, column) in enumerate(zip(row.cells, columns, strict=True)):
        held = cell if isinstance(cell, Cell) else Cell(lines=(cell,))
        attributes = {"class_": "number" if column.numeric else None, **_data(held.data)}
        if place == 0:
            cells.append(tag("th", _lines(held), scope="row", **attributes))
        else:
            cells.append(tag("td", _lines(held), **attributes))
    return tag("tr", *cells, class_="quiet" if row.quiet else None, **_data(row.data))


def _lines(cell: Cell) -> Markup:
    if cell.mark is None and len(cell.lines) == 1:
        return plain(cell.lines[0])
    lines = [tag("span", line, class_="line") for line in cell.lines]
    if cell.mark is not None:
        sign, meaning = _MARKS[cell.mark]
        mark = tag("span", sign, class_=f"mark-{cell.mark}", role="img", aria_label=meaning)
        first = cell.lines[0] if cell.lines else ""
        lines[:1] = [tag("span", mark, " ", first, class_="line")]
    return joined(*lines)


def _story(story: Story) -> Markup:
    return tag(
        "article",
        tag("h3", story.title),
        tag("p", " · ".join(story.facts), class_="told"),
        tag("dl", *(joined(tag("dt", about), tag("dd", text)) for about, text in story.sentences), class_="verdict"),
        _figure(story.figure),
        class_="turn",
        id=story.key,
        **_data(story.data),
    )


def _data(data: Data) -> dict[str, str | float | None]:
    return {f"data_{key}": value if isinstance(value, str) else Markup(repr(value)) for key, value in data.items()}
