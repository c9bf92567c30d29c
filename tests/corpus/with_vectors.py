"""What the vector source does on the corpus with the embedder of the tests, over thresholds.

That embedder is no language model: what it finds beyond shared pieces of words stands in `GROUPS` below. The figures
show that the parts work together and what the two conditions of the source (its threshold, and standing out from all
notes) do to queries that nothing answers; they say nothing about the quality of any model. Run it with
`python tests/corpus/with_vectors.py`.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from labelled import Corpus, Query, Slice, load_corpus

from recallscope.runtime.memory.note import parse
from recallscope.runtime.memory.vector_index import Nearest, VectorIndex
from recallscope.runtime.memory.vector_rows import packed
from recallscope.runtime.memory.vectors import OUTSTANDING, embedded_text
from recallscope.runtime.terms import ScopeName
from recallscope.runtime.testing.embedder import Embedder

PLACES = 2
RELATED = 0.9
DIMENSION = 384

GROUPS = (
    ("lorry", "truck", "vehicle", "vehicles"),
    ("bill", "bills", "invoice", "invoices", "invoicing"),
    ("purchase", "order", "orders"),
    ("client", "clients", "customer", "customers"),
    ("staff", "employee", "employees"),
    ("standby", "replica", "failover"),
    ("aborted", "cancelled", "timeout", "timeouts"),
    ("authentication", "login", "password", "credentials"),
    ("quota", "licence", "limit", "limits"),
    ("cartography", "map", "maps"),
    ("stickers", "label", "labels"),
    ("ship", "vessel", "ferry"),
    ("parallelism", "partition", "partitions"),
    ("handsets", "handhelds", "tablet", "tablets", "phone", "phones"),
    ("images", "photo", "photos", "upload", "uploads"),
    ("tour", "tours", "route", "routes"),
    ("fake", "mock", "mocks"),
    ("revert", "rollback"),
    ("quote", "offer", "quotation"),
    ("slow", "crawls", "latency"),
)


def nearest_of(corpus: Corpus, embedder: Embedder) -> list[tuple[Query, Nearest, Sequence[str]]]:
    """Compare every query with every note."""
    index = VectorIndex()
    paths: list[str] = []
    for number, item in enumerate(corpus.notes):
        data = item.text(phrasings=False).encode()
        note = parse(data, scope=ScopeName.PROJECT, root=Path(), relative=item.path, modified=0.0)
        paths.append(item.path)
        if note.superseded_by is None:
            index.change(add=[(number, *packed(embedder.vector(embedded_text(note))))])
    return [(query, index.nearest(embedder.vector(query.text), 10), paths) for query in corpus.queries]


def fast(nearest: Nearest, least: float, outstanding: float) -> list[int]:
    """Return the fast result of the vectors alone."""
    least = max(least, nearest.mean + outstanding * nearest.deviation)
    best = nearest.near[0].likeness if nearest.near else 0.0
    return [near.number for near in nearest.near[:PLACES] if near.likeness >= max(least, RELATED * best)]


def main() -> None:
    """Print hits on queries without a shared word and false positives on negative ones."""
    corpus = load_corpus()
    for name, groups in (("pieces of words alone", ()), ("with the synonyms of this file", GROUPS)):
        asked = nearest_of(corpus, Embedder(DIMENSION, groups))
        sys.stdout.write(f"{name}\n")
        for outstanding in (0.0, OUTSTANDING):
            for least in (0.2, 0.3, 0.4, 0.5):
                gap = [
                    any(paths[number] in query.relevant for number in fast(nearest, least, outstanding))
                    for query, nearest, paths in asked
                    if query.slice is Slice.NO_SHARED_WORD
                ]
                false = [
                    bool(fast(nearest, least, outstanding))
                    for query, nearest, _ in asked
                    if query.slice is Slice.NEGATIVE
                ]
                sys.stdout.write(
                    f"  threshold {least:.1f}, {outstanding:.1f} deviations: no shared word {sum(gap) / len(gap):.3f}, "
                    f"false {sum(false) / len(false):.3f}\n"
                )


if __name__ == "__main__":
    main()
