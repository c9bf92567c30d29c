"""An experiment: would words that stand near the query's words in this memory close the word gap?

Two words are related as far as the notes that hold the one hold the other (the cosine of their sets of notes). Each
word of a query brings its most related ones along, worth their relation and a share of its own worth. It is fair
only at equal cost: every way of scoring gets the threshold at which it delivers something for at most 2 % of the
negative queries, and is then asked how often a note that answers is among the first two. Run it with
`python tests/corpus/related_words.py`; `docs/word-gap.md` holds what it said, and why the expansion was not kept.
"""

import itertools
import math
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from labelled import Corpus, Query, Slice, load_corpus

from recallscope.runtime.memory.catalog import field_tokens
from recallscope.runtime.memory.note import parse
from recallscope.runtime.memory.rank import RELATED, Field, Term, score, terms, threshold
from recallscope.runtime.memory.tokens import Tokens
from recallscope.runtime.terms import ScopeName

MOST_FALSE = 0.02
PLACES = 2
LEAST_TOGETHER = 2
MOST_COMMON = 0.1
"""A word in more than this share of the notes is related to everything."""


@dataclass(frozen=True, slots=True)
class Memory:
    """The words of each note by field, and in how many notes each word stands."""

    fields: Mapping[str, Mapping[Field, frozenset[str]]]
    documents: Mapping[str, int]
    holding: Mapping[str, frozenset[str]]

    @classmethod
    def of(cls, corpus: Corpus, tokens: Tokens, *, phrasings: bool) -> "Memory":
        """Cut the notes of `corpus` into words."""
        fields: dict[str, dict[Field, frozenset[str]]] = {}
        holding: defaultdict[str, set[str]] = defaultdict(set)
        for item in corpus.notes:
            data = item.text(phrasings=phrasings).encode()
            note = parse(data, scope=ScopeName.PROJECT, root=Path(), relative=item.path, modified=0.0)
            if note.superseded_by is not None:
                continue
            cut = {field: frozenset(words) for field, words in field_tokens(tokens, note).items()}
            fields[item.path] = cut
            for word in frozenset[str]().union(*cut.values()):
                holding[word].add(item.path)
        sets = {word: frozenset(paths) for word, paths in holding.items()}
        return cls(fields, {word: len(paths) for word, paths in sets.items()}, sets)

    def related(self, word: str, most: int) -> list[tuple[str, float]]:
        """Return the words most related to `word`, and how much."""
        mine = self.holding.get(word, frozenset())
        if not LEAST_TOGETHER <= len(mine) <= MOST_COMMON * len(self.fields):
            return []
        together = Counter(
            itertools.chain.from_iterable(frozenset[str]().union(*self.fields[path].values()) for path in mine)
        )
        relations = [
            (other, count / math.sqrt(len(mine) * self.documents[other]))
            for other, count in together.items()
            if other != word and count >= LEAST_TOGETHER and self.documents[other] <= MOST_COMMON * len(self.fields)
        ]
        return sorted(relations, key=lambda pair: (-pair[1], pair[0]))[:most]


Way = Callable[[Memory, Tokens, Query], Mapping[str, float]]
"""Scores the notes for a query, each relative to the threshold of its length."""


def by_words(memory: Memory, tokens: Tokens, query: Query) -> Mapping[str, float]:
    """Score as the search does."""
    return _scores(memory, tokens, query, lambda words: words)


def with_related(share: float, most: int, *, alone: bool = False) -> Way:
    """Score with the `most` most related words of each word, worth `share` of it times their relation.

    `alone` leaves the words themselves out: a source of its own, with a threshold of its own.
    """

    def score_them(memory: Memory, tokens: Tokens, query: Query) -> Mapping[str, float]:
        def expand(words: Sequence[Term]) -> Sequence[Term]:
            own = {word.text for word in words}
            best: dict[str, float] = {}
            for word in words:
                for other, relation in memory.related(word.text, most):
                    if other not in own:
                        best[other] = max(best.get(other, 0.0), word.worth * relation * share)
            related = tuple(Term(text, worth) for text, worth in best.items())
            return related if alone else (*words, *related)

        return _scores(memory, tokens, query, expand)

    return score_them


def _scores(
    memory: Memory, tokens: Tokens, query: Query, expand: Callable[[Sequence[Term]], Sequence[Term]]
) -> Mapping[str, float]:
    asked = tokens.query(query.text)
    words = expand(terms(asked, memory.documents, len(memory.fields)))
    least = threshold(asked)
    touched = frozenset[str]().union(*(memory.holding[word.text] for word in words)) if words else frozenset[str]()
    return {path: score(words, memory.fields[path]) / least for path in touched}


def fast(scores: Mapping[str, float], least: float) -> list[str]:
    """Return the fast result at the threshold `least`."""
    best = sorted((path for path in scores if scores[path] >= least), key=lambda path: (-scores[path], path))
    return [path for path in best[:PLACES] if scores[path] >= RELATED * scores[best[0]]]


def report(corpus: Corpus, tokens: Tokens, *, phrasings: bool) -> None:
    """Print, for each way of scoring, its threshold, its share of hits per kind of query, and its time."""
    memory = Memory.of(corpus, tokens, phrasings=phrasings)
    ways: Mapping[str, Way] = {
        "words": by_words,
        **{
            f"related x{share:g}, {most} each": with_related(share, most)
            for share, most in ((0.3, 3), (0.5, 5), (0.8, 5))
        },
        "related alone, 5 each": with_related(1.0, 5, alone=True),
        "related alone, 20 each": with_related(1.0, 20, alone=True),
    }
    sys.stdout.write(f"\n{'with' if phrasings else 'without'} phrasings\n")
    for name, way in ways.items():
        started = time.perf_counter()
        scored = [(query, way(memory, tokens, query)) for query in corpus.queries]
        took = (time.perf_counter() - started) / len(scored)
        negatives = [max(scores.values(), default=0.0) for query, scores in scored if query.slice is Slice.NEGATIVE]
        allowed = int(MOST_FALSE * len(negatives))
        least = sorted(negatives, reverse=True)[allowed] + 1e-9
        groups = {
            "no shared word": [one for one in scored if one[0].slice is Slice.NO_SHARED_WORD],
            "others": [one for one in scored if one[0].relevant and one[0].slice.shares_words],
        }
        hits = {
            group: [any(path in query.relevant for path in fast(scores, least)) for query, scores in those]
            for group, those in groups.items()
        }
        shares = ", ".join(f"{group} {sum(found) / len(found):.3f}" for group, found in hits.items())
        sys.stdout.write(f"  {name:24} threshold x{least:.2f}: {shares}; {took * 1000:.1f} ms a query\n")


def main() -> None:
    """Report on the corpus with and without phrasings."""
    corpus, tokens = load_corpus(), Tokens()
    for phrasings in (False, True):
        report(corpus, tokens, phrasings=phrasings)


if __name__ == "__main__":
    main()
