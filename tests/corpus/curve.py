"""What other thresholds would have cost: precision against recall, as a table and as a drawing."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from evaluate import Answer, Run, figures
from labelled import Half, Slice

from recallscope.runtime.memory.rank import RELATED

__all__ = ["FACTORS", "Point", "curve_svg", "curve_table", "delivered_at", "points"]

FACTORS = tuple(number / 20 for number in range(4, 45))
"""Shares of the threshold in force that are looked at; 1 is the one in force."""

_NEAR = (0.8, 1.2)
"""Between these the table has twice as many rows."""

_PLACES = 2
_WIDTH, _HEIGHT, _EDGE = 640, 400, 50
_LEAST = 0.3
"""Where both axes of the drawing begin."""


@dataclass(frozen=True, slots=True)
class Point:
    """What a threshold gives: `recall` is Hit@2 of the queries that share words, `no_shared_word` that of the others.

    `precision` is the share of delivered notes that answer, over all queries; `false` the share of negative queries
    for which anything is delivered.
    """

    factor: float
    recall: float
    no_shared_word: float
    precision: float
    false: float


def delivered_at(answer: Answer, factor: float) -> tuple[str, ...]:
    """Return what would be in the fast result if the threshold were `factor` times what it is."""
    best = answer.scores[:_PLACES]
    return tuple(path for path, score in best if score >= factor * answer.threshold and score >= RELATED * best[0][1])


def points(answers: Sequence[Answer]) -> list[Point]:
    """Return the curve of `answers`."""
    return [
        _point(factor, [replace(answer, fast=delivered_at(answer, factor)) for answer in answers]) for factor in FACTORS
    ]


def curve_table(without: Run, stored: Run) -> str:
    """Return some points of the development half's curve, and of the held-out half's, as a Markdown table."""
    rows = [
        "| half | notes | threshold x | Hit@2, words shared | Hit@2, no shared word | precision | false, negative |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    for half in Half:
        for notes, run in (("alone", without), ("with phrasings", stored)):
            rows += [
                f"| {half} | {notes} | {point.factor:.2f} | {point.recall:.3f} | {point.no_shared_word:.3f} "
                f"| {point.precision:.3f} | {point.false:.3f} |"
                for point in points([answer for answer in run.answers if answer.query.half is half])
                if round(point.factor * 20) % (2 if _NEAR[0] <= point.factor <= _NEAR[1] else 4) == 0
            ]
    return "\n".join(rows)


def curve_svg(without: Run, stored: Run) -> str:
    """Draw precision against recall of the development half; the threshold in force is marked."""
    ticks = [tick / 10 for tick in range(3, 11)]
    lines = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
            'font-family="sans-serif" font-size="12">'
        ),
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        *(
            f'<path d="M{_x(tick):.1f} {_y(1):.1f}V{_y(_LEAST):.1f}M{_x(_LEAST):.1f} {_y(tick):.1f}H{_x(1):.1f}" '
            'stroke="#ddd"/>'
            for tick in ticks
        ),
        *(
            f'<text x="{_x(tick):.1f}" y="{_y(_LEAST) + 18:.1f}" text-anchor="middle">{tick:.1f}</text>'
            for tick in ticks
        ),
        *(
            f'<text x="{_x(_LEAST) - 8:.1f}" y="{_y(tick) + 4:.1f}" text-anchor="end">{tick:.1f}</text>'
            for tick in ticks
        ),
        (
            f'<text x="{_x(0.65):.1f}" y="{_HEIGHT - 8}" text-anchor="middle">'
            "recall (Hit@2 of queries that share words)</text>"
        ),
        f'<text transform="translate(14 {_y(0.65):.1f}) rotate(-90)" text-anchor="middle">precision</text>',
    ]
    for row, (name, run, colour) in enumerate(
        (("notes alone", without, "#1f77b4"), ("with phrasings", stored, "#d62728"))
    ):
        drawn = points([answer for answer in run.answers if answer.query.half is Half.DEVELOPMENT])
        path = " ".join(f"{_x(point.recall):.1f},{_y(point.precision):.1f}" for point in drawn)
        here = next(point for point in drawn if point.factor == 1)
        lines += [
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>',
            f'<circle cx="{_x(here.recall):.1f}" cy="{_y(here.precision):.1f}" r="5" fill="{colour}"/>',
            (
                f'<text x="{_x(0.33):.1f}" y="{_y(0.4) + 18 * row:.1f}" fill="{colour}">'
                f"{name}; the dot is the threshold</text>"
            ),
        ]
    return "\n".join([*lines, "</svg>", ""])


def _point(factor: float, answers: Sequence[Answer]) -> Point:
    shared = figures([answer for answer in answers if answer.query.slice.shares_words])
    others = figures([answer for answer in answers if answer.query.slice is Slice.NO_SHARED_WORD])
    negative = figures([answer for answer in answers if answer.query.slice is Slice.NEGATIVE])
    return Point(
        factor=factor,
        recall=shared.hit_2 or 0.0,
        no_shared_word=others.hit_2 or 0.0,
        precision=figures(answers).precision or 0.0,
        false=negative.false or 0.0,
    )


def _x(recall: float) -> float:
    return _EDGE + (recall - _LEAST) / (1 - _LEAST) * (_WIDTH - 2 * _EDGE)


def _y(precision: float) -> float:
    return _HEIGHT - _EDGE - (max(precision, _LEAST) - _LEAST) / (1 - _LEAST) * (_HEIGHT - 2 * _EDGE)
