"""What each rule of the ranking is worth: it is left out, and the corpus is asked again, at equal cost.

Equal cost: each way of ranking gets the lowest threshold at which at most 2 % of the negative queries of the
development half deliver anything. `make corpus-rules` writes the table into `docs/ranking.md`; it takes minutes.
"""

import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from curve import Point, points
from evaluate import Run, runs_of
from labelled import Corpus, Half, load_corpus
from table import PAGE, with_blocks

from recallscope.runtime.memory import rank, tokens

MOST_FALSE = 0.02


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule, and what stands in its place when it is left out: an attribute of a module or class, and its value."""

    name: str
    owner: object
    attribute: str
    value: object

    @contextmanager
    def left_out(self) -> Generator[None, None, None]:
        """Leave the rule out inside the block."""
        kept = getattr(self.owner, self.attribute)
        setattr(self.owner, self.attribute, self.value)
        try:
            yield
        finally:
            setattr(self.owner, self.attribute, kept)


def _always_english(*_: object) -> str:
    return tokens.ENGLISH


def _equal_grams(run: str, size: int) -> Iterator[tokens.QueryToken]:
    yield from (tokens.QueryToken(run[at : at + size], tokens.PAIR) for at in range(len(run) - size + 1))


RULES: Sequence[Rule] = (
    Rule("the language of a text in Latin letters", tokens.Tokens, "_language", _always_english),
    Rule("stems of Cyrillic, Greek and Arabic", tokens, "_BY_SCRIPT", ()),
    Rule("accents are folded", tokens, "_fold", str.casefold),
    Rule("characters that are grammar tell little", tokens, "_grams", _equal_grams),
    Rule("common words tell less", tokens, "COMMON", 1.0),
    Rule("words that meet in one note tell more together", rank, "_AGREEMENT", 0.0),
    Rule("the threshold rises with the query", rank, "_GROWTH", 0.0),
)


def at_equal_cost(run: Run) -> Point:
    """Return the point of the development half's curve where at most 2 % of negative queries deliver anything."""
    curve = points([answer for answer in run.answers if answer.query.half is Half.DEVELOPMENT])
    return next(point for point in curve if point.false <= MOST_FALSE)


def rules_table(corpus: Corpus, say: Callable[[str], object]) -> str:
    """Return the Markdown table of all rules; `say` gets the name of each as it is measured."""
    rows = [
        "| left out | Hit@2, words shared, notes alone | with phrasings | Hit@2, no shared word, with phrasings |",
        "|---|--:|--:|--:|",
        _row("nothing", runs_of(corpus)),
    ]
    for rule in RULES:
        say(rule.name)
        with rule.left_out():
            rows.append(_row(rule.name, runs_of(corpus)))
    return "\n".join(rows)


def _row(name: str, runs: tuple[Run, Run]) -> str:
    alone, stored = map(at_equal_cost, runs)
    return f"| {name} | {alone.recall:.3f} | {stored.recall:.3f} | {stored.no_shared_word:.3f} |"


def main() -> None:
    """Write the table into the page."""
    table = rules_table(load_corpus(), lambda name: sys.stderr.write(f"without: {name}\n"))
    PAGE.write_text(with_blocks(PAGE.read_text(encoding="utf-8"), {"rules": table}), encoding="utf-8")


if __name__ == "__main__":
    main()
