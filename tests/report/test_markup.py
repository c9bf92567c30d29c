"""Nothing that stands in a record can become markup."""

from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallscope.telemetry.report.blocks import (
    Bar,
    Bars,
    Cell,
    Column,
    Columns,
    Figure,
    Grid,
    Page,
    Remark,
    Row,
    Section,
    Series,
    Stack,
)
from recallscope.telemetry.report.markup import Markup, joined, plain, tag
from recallscope.telemetry.report.page import render

NASTY = st.one_of(
    st.text(),
    st.sampled_from(
        [
            "</script><script>alert(1)</script>",
            '"><img src=http://example.invalid/x onerror=alert(1)>',
            "' onload='alert(1)",
            "</style></title></svg><svg onload=alert(1)>",
            "<!-- ]]> --><a href=javascript:alert(1)>",
            "&lt;b&gt;",
            "\ud800 half a pair",
            "\u202eturned",
        ]
    ),
)


class _Reader(HTMLParser):
    """Collects the elements, the attributes' names and the text of a page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[str] = []
        self.attributes: set[str] = set()
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes.update(name for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def _read(text: str) -> _Reader:
    reader = _Reader()
    reader.feed(text)
    reader.close()
    return reader


def _page(text: str) -> Page:
    """Return a page that has `text` wherever a page can have text."""
    grid = Grid(
        caption=text,
        columns=(Column(title=text, about=text), Column(title=text, numeric=True)),
        rows=(Row(cells=(text, Cell(lines=(text, text), data={"value": text})), data={"name": text}),),
    )
    bars = (Bar(label=text, value=1.0, text=text),)
    plots = (
        Bars(title=text, about=text, bars=bars),
        Stack(title=text, about=text, parts=bars),
        Columns(
            title=text,
            about=text,
            bounds=(text, text),
            series=(Series(name=text, shares=(0.5, 0.5)),),
            limit=(1, text),
        ),
    )
    figures = tuple(Figure(key=f"figure-{number}", plot=plot, grid=grid) for number, plot in enumerate(plots))
    section = Section(
        key="section",
        title=text,
        intro=text,
        blocks=(*figures, Remark(text=text, items=(text,)), grid),
        data={"a": text},
    )
    return Page(
        title=text,
        facts=((text, text),),
        remarks=(Remark(text=text),),
        sections=(section,),
        footer=text,
        data={"b": text},
    )


PLAIN = _read(render(_page("plain")))


@settings(max_examples=60)
@given(NASTY)
def test_text_never_becomes_an_element_or_an_attribute(text: str) -> None:
    """Whatever stands in a page, its elements and attributes are those of the same page with plain words."""
    told = render(_page(text))
    reader = _read(told)

    assert reader.attributes == PLAIN.attributes
    assert [name for name in reader.elements if name in {"script", "img", "link", "iframe", "object"}] == []
    assert len(reader.elements) == len(_read(render(_page("plain"))).elements) or not text
    assert told.encode()


@given(st.text(alphabet=st.characters(exclude_categories=["Cc", "Cf", "Cs", "Zl", "Zp"])))
def test_what_can_be_seen_is_shown_as_it_is(text: str) -> None:
    """A reader of the page gets the text back."""
    assert "".join(_read(tag("p", text)).text) == text


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (plain("<a & 'b'>"), "&lt;a &amp; &#x27;b&#x27;&gt;"),
        (plain("a\x00b\u202ec\ud800"), "a\ufffdb\ufffdc\ufffd"),
        (joined(Markup("<b>"), "<i>"), "<b>&lt;i&gt;"),
        (tag("p", "x", class_="a", data_number=0.1, id=None), '<p class="a" data-number="0.1">x</p>'),
        (tag("br"), "<br>"),
    ],
)
def test_markup_is_written_so(got: str, expected: str) -> None:
    """Plain strings are escaped, markup stays, what shows nothing is replaced, None is left out."""
    assert got == expected
