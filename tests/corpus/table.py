"""The figures of the labelled corpus as tables, and the curve behind the threshold; `docs/ranking.md` holds them.

`make corpus` prints the figures, `make corpus-curve` writes figures and curve into the page, `tests` compare them.
"""

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

from curve import curve_svg, curve_table
from evaluate import Answer, Figures, Run, figures, random_figures, runs_of
from labelled import Half, Slice, load_corpus

__all__ = ["CURVE", "PAGE", "blocks", "figures_table", "with_blocks"]

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "ranking.md"
CURVE = DOCS / "ranking-curve.svg"

_BLOCK = re.compile(r"(?P<begin><!-- corpus: (?P<name>\w+) -->\n).*?(?P<end><!-- end of (?P=name) -->)", re.DOTALL)
_HEADS = ("Hit@1", "Hit@2", "Recall@5", "false", "precision")

_Kept = Callable[[Answer], bool]


def figures_table(without: Run, stored: Run) -> str:
    """Return the figures per half, slice and language: without the stored phrasings, with them, and at random."""
    heads = " | ".join(chain((f"{head}, notes alone" for head in _HEADS), (f"{head}, phrasings" for head in _HEADS)))
    rows = [_row(what, kept, without, stored) for what, kept in _groups(without.answers)]
    return "\n".join([f"| queries | number | {heads} | Hit@2 at random |", f"|---|{'--:|' * 12}", *rows])


def blocks(runs: tuple[Run, Run]) -> Mapping[str, str]:
    """Return the generated blocks of the page by name."""
    return {"figures": figures_table(*runs), "curve": curve_table(*runs)}


def with_blocks(page: str, made: Mapping[str, str]) -> str:
    """Return the page with its generated blocks made anew; a block that `made` lacks stays as it is."""
    return _BLOCK.sub(
        lambda match: f"{match['begin']}{made[match['name']]}\n{match['end']}" if match["name"] in made else match[0],
        page,
    )


def _groups(answers: Sequence[Answer]) -> Iterator[tuple[str, _Kept]]:
    yield "all", lambda answer: bool(answer.query.text)
    for half in Half:
        yield f"{half} half", lambda answer, half=half: answer.query.half is half
    yield "words shared", lambda answer: answer.query.slice.shares_words
    for slice_ in Slice:
        yield f"`{slice_}`", lambda answer, slice_=slice_: answer.query.slice is slice_
    for language in sorted({answer.query.language for answer in answers}):
        yield (
            f"words shared, {language}",
            lambda answer, language=language: answer.query.language == language and answer.query.slice.shares_words,
        )


def _row(what: str, kept: _Kept, without: Run, stored: Run) -> str:
    runs = [[answer for answer in run.answers if kept(answer)] for run in (without, stored)]
    cells = chain.from_iterable(_cells(figures(answers)) for answers in runs)
    at_random = random_figures(runs[0], without.notes).hit_2
    return f"| {what} | {len(runs[0])} | {' | '.join(cells)} | {_share(at_random)} |"


def _cells(of: Figures) -> Iterator[str]:
    return map(_share, (of.hit_1, of.hit_2, of.recall_5, of.false, of.precision))


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def main(arguments: Sequence[str]) -> None:
    """Print the figures, or with `--write` put figures and curve into the page."""
    runs = runs_of(load_corpus())
    if "--write" in arguments:
        PAGE.write_text(with_blocks(PAGE.read_text(encoding="utf-8"), blocks(runs)), encoding="utf-8")
        CURVE.write_text(curve_svg(*runs), encoding="utf-8")
    else:
        sys.stdout.write(f"{figures_table(*runs)}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
