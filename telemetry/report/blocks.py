"""What a report is made of, as values: sections of paragraphs, tables and plots; a plot always has its table.

`data` are the values that a program may read from the page (`data-…` attributes); numbers there are not rounded.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum, unique

__all__ = [
    "Bar",
    "Bars",
    "Block",
    "Cell",
    "Column",
    "Columns",
    "Curve",
    "Data",
    "Drawing",
    "Figure",
    "Grid",
    "Level",
    "Line",
    "Mark",
    "Page",
    "Plot",
    "Remark",
    "Row",
    "Section",
    "Series",
    "Stack",
    "Story",
    "Tone",
]

Data = Mapping[str, str | float]


@unique
class Tone(StrEnum):
    """The colours, by what they stand for; each plot says the same in words."""

    DEADLINE = "deadline"
    PREFETCH = "prefetch"
    TIERED = "tiered"
    PLAIN = "plain"
    MEMORY = "memory"
    MODEL = "model"
    TOOL = "tool"
    PREPARE = "prepare"
    BACKOFF = "backoff"
    WAITING = "waiting"
    OTHER = "other"


@unique
class Mark(StrEnum):
    """A verdict, by shape first and by colour second."""

    GOOD = "good"
    BAD = "bad"
    OPEN = "open"


@unique
class Level(StrEnum):
    """How loud a remark is."""

    NOTE = "note"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table; `numeric` ones stand right."""

    title: str
    numeric: bool = False
    about: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A cell of one or more lines, the first of them strong if there is a mark."""

    lines: tuple[str, ...]
    mark: Mark | None = None
    data: Data = field(default_factory=dict[str, str | float])


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row; its first cell is its heading. `quiet`: it is only there to be counted."""

    cells: tuple[str | Cell, ...]
    data: Data = field(default_factory=dict[str, str | float])
    quiet: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A table; `empty` is said instead when it has no rows."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    empty: str = "Nothing was counted."


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A horizontal bar: `text` is its value as it is read."""

    label: str
    value: float
    text: str
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """Horizontal bars on one scale, which ends at `full` (default: the longest)."""

    title: str
    about: str
    bars: tuple[Bar, ...]
    full: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One distribution: a share (0 to 1) for each column."""

    name: str
    shares: tuple[float, ...]
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Distributions below each other on one axis; `bounds` are the upper bounds of the columns, as they are read.

    An empty bound is not written. `limit`: a line after so many columns, and what it means.
    """

    title: str
    about: str
    bounds: tuple[str, ...]
    series: tuple[Series, ...]
    limit: tuple[int, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """Parts of a whole, in one bar."""

    title: str
    about: str
    parts: tuple[Bar, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of shares (0 to 1) over positions, with the ends of its interval (None: no interval)."""

    name: str
    points: tuple[tuple[float, float, float | None, float | None], ...]
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Lines over an axis; `ticks` are its positions (0 to 1) and what stands there."""

    title: str
    about: str
    axis: str
    ticks: tuple[tuple[float, str], ...]
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A plot that somebody else has drawn: `svg` is one element, and all text in it is escaped."""

    title: str
    svg: str


Plot = Bars | Columns | Curve | Drawing | Stack


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A plot and the table that says the same; `folded`: the table is shown when it is asked for."""

    key: str
    plot: Plot
    grid: Grid
    folded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """A paragraph, or with `items` a list below it; `level` WARNING for what must be known before believing figures."""

    text: str
    items: tuple[str, ...] = ()
    level: Level = Level.NOTE


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """One turn: what it was, its verdict in sentences with what each is about, and its figure."""

    key: str
    title: str
    facts: tuple[str, ...]
    sentences: tuple[tuple[str, str], ...]
    figure: Figure
    data: Data = field(default_factory=dict[str, str | float])


Block = Figure | Grid | Remark | Story


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of the page; `key` is its anchor."""

    key: str
    title: str
    intro: str
    blocks: tuple[Block, ...]
    data: Data = field(default_factory=dict[str, str | float])


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The whole page: what it is about in pairs of words, what must be known first, and the sections."""

    title: str
    facts: tuple[tuple[str, str], ...]
    remarks: tuple[Remark, ...]
    sections: tuple[Section, ...]
    footer: str
    data: Data = field(default_factory=dict[str, str | float])
