"""The section of the service levels."""

from collections.abc import Sequence
from typing import Final

from recallscope.telemetry.read.levels import FEW, LevelName, ServiceLevel
from recallscope.telemetry.report.blocks import Cell, Column, Grid, Mark, Remark, Row, Section
from recallscope.telemetry.report.words import NONE, count, share

__all__ = ["levels_section"]

_TITLES: Final = {
    LevelName.HOLD: ("hold", "first sends that waited for memory no longer than their ceiling and 5 ms"),
    LevelName.DELIVERY: ("delivery", "turns of the table's scenarios that received memory"),
    LevelName.SLOW_TURNS: ("quick turns", "turns of at most 10.24 s, cancelled ones left out"),
    LevelName.TELEMETRY_LOSS: ("telemetry", "spans, points, records and lines that were not lost"),
}

_COLUMNS: Final = (
    Column(title="level"),
    Column(title="of"),
    Column(title="reached", numeric=True),
    Column(title="good of all", numeric=True),
    Column(title="target", numeric=True),
    Column(title="verdict"),
)


def levels_section(levels: Sequence[ServiceLevel], *, loss_known: bool) -> Section:
    """Return the section; without `loss_known` it says that the source does not tell what telemetry lost."""
    grid = Grid(
        caption="Service levels",
        columns=_COLUMNS,
        rows=tuple(
            _row(level, first=number == 0 or levels[number - 1].name is not level.name)
            for number, level in enumerate(levels)
        ),
        empty="No turn was counted, so there is no level to judge.",
    )
    blocks = (
        (grid,)
        if loss_known
        else (grid, Remark(text="What telemetry lost is not known from here; ask a Prometheus (--from-prometheus)."))
    )
    return Section(
        key="levels",
        title="Service levels",
        intro="What is promised, and what was reached. Hold and delivery are promises of tiered alone.",
        blocks=blocks,
    )


def _row(level: ServiceLevel, *, first: bool) -> Row:
    """Return the row of a level; the `first` one of a name says what it means."""
    title, meaning = _TITLES[level.name]
    return Row(
        cells=(
            Cell(lines=(title, meaning) if first else (title,)),
            level.of,
            share(level.good, level.total),
            f"{count(level.good)} of {count(level.total)}",
            NONE if level.target is None else f"≥ {level.target:.1%}".replace(".0%", "%").replace("%", " %"),
            _verdict(level),
        ),
        data={
            "level": level.name.value,
            "of": level.of,
            "share": level.share,
            "total": level.total,
            "met": {True: "yes", False: "no", None: "open"}[level.met],
        },
    )


def _verdict(level: ServiceLevel) -> Cell:
    match level.met:
        case True:
            return Cell(lines=("met",), mark=Mark.GOOD)
        case False:
            return Cell(lines=("missed",), mark=Mark.BAD)
        case None:
            why = "no promise" if level.target is None else f"fewer than {FEW}: too few to judge"
            return Cell(lines=(why,), mark=Mark.OPEN)
