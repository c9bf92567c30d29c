"""The section of the slowest turns: each with its verdict in words and its waterfall (`telemetry/explain`)."""

from collections.abc import Sequence
from typing import Final

from recallscope.telemetry.explain.page import svg_of
from recallscope.telemetry.explain.sentences import sentences
from recallscope.telemetry.explain.verdict import judge
from recallscope.telemetry.explain.waterfall import Row as Piece
from recallscope.telemetry.explain.waterfall import waterfall
from recallscope.telemetry.explain.words import duration, moment
from recallscope.telemetry.read.recorded import RecordedTurn
from recallscope.telemetry.report.blocks import Column, Drawing, Figure, Grid, Remark, Row, Section, Story
from recallscope.telemetry.report.words import NONE, instant

__all__ = ["story_of", "turns_section"]

_COLUMNS: Final = (
    Column(title="what"),
    Column(title="begins", numeric=True),
    Column(title="takes", numeric=True),
    Column(title="note"),
)


def turns_section(turns: Sequence[RecordedTurn], *, where: str) -> Section:
    """Return the section of `turns`, in their order; `where` says what they were read from."""
    intro = f"The longest turns in {where}, the longest first: what held each, and what came of its memory."
    return Section(
        key="turns",
        title="The slowest turns",
        intro=intro if turns else "",
        blocks=tuple(story_of(turn, number) for number, turn in enumerate(turns, 1))
        or (Remark(text=f"No turn was found in {where}."),),
    )


def story_of(turn: RecordedTurn, number: int = 1) -> Story:
    """Return a turn's story; `number` tells it from others of the page."""
    pieces = waterfall(turn)
    told = sentences(turn, judge(turn))
    closed = turn.recall.closed if turn.recall is not None else None
    facts = (
        instant(turn.wall),
        f"agent {turn.agent}" if turn.agent is not None else "",
        str(turn.outcome) if turn.outcome is not None else "no end recorded",
        f"policy {turn.policy}" if turn.policy is not None else "",
        f"scenario {closed.scenario}" if closed is not None else "",
        f"memory: {closed.delivered}" if closed is not None else "",
        f"trace {turn.trace_id}" if turn.trace_id is not None else "",
    )
    return Story(
        key=f"turn-{number}",
        title=f"{number}. {turn.turn}: {duration(turn.length)}",
        facts=tuple(fact for fact in facts if fact),
        sentences=told.labelled,
        figure=Figure(
            key=f"turn-{number}-waterfall",
            plot=Drawing(title=f"Waterfall of {turn.turn}", svg=svg_of(pieces, turn.length)),
            grid=Grid(caption=f"What happened in {turn.turn}", columns=_COLUMNS, rows=_rows(pieces)),
            folded=True,
        ),
        data={"turn": turn.turn, "seconds": turn.length},
    )


def _rows(pieces: Sequence[Piece]) -> tuple[Row, ...]:
    rows: list[Row] = []
    for piece in pieces:
        took = NONE if piece.ended is None else duration(piece.ended - piece.started)
        rows.append(Row(cells=(piece.label, moment(piece.started), took, piece.note)))
        rows += [Row(cells=(f"· {each.mark}", moment(each.at), "", each.text), quiet=True) for each in piece.moments]
    return tuple(rows)
