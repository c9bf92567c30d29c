"""Rankings of several sources made into one by reciprocal rank: places count, scores of different kinds never meet.

A source that did not answer is simply not there: what the others found keeps its order.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from recallscope.runtime.memory.note import Note
from recallscope.runtime.memory.search import Hit, Part, Source

__all__ = ["RANK_CONSTANT", "Ranking", "fuse"]

RANK_CONSTANT: Final = 60
"""How little the first places stand out: the n-th place of a source gives 1 / (60 + n), the usual choice.

(Cormack, Clarke, Buettcher: Reciprocal rank fusion outperforms Condorcet and individual rank learning methods.)
"""


@dataclass(frozen=True, slots=True)
class Ranking:
    """What one source found, best first, each note once."""

    source: Source
    hits: tuple[Hit, ...]


def fuse(rankings: Iterable[Ranking]) -> tuple[Hit, ...]:
    """Return every note that was found, once, best first; the order of `rankings` does not matter.

    A hit keeps the score of the first of its sources, in the order of `Source`, and the parts of all of them. Of notes
    with the same places the newer one comes first, then the one whose id sorts first.
    """
    places: dict[str, float] = {}
    found: dict[str, Hit] = {}
    order = {source: number for number, source in enumerate(Source)}
    for ranking in sorted(rankings, key=lambda ranking: order[ranking.source]):
        for place, hit in enumerate(ranking.hits, start=1):
            name = hit.note.id
            places[name] = places.get(name, 0.0) + 1 / (RANK_CONSTANT + place)
            known = found.get(name)
            found[name] = (
                hit if known is None else replace(known, note=_whole(known.note, hit.note), parts=_both(known, hit))
            )
    return tuple(sorted(found.values(), key=lambda hit: (-places[hit.note.id], -hit.note.updated, hit.note.id)))


def _both(known: Hit, hit: Hit) -> tuple[Part, ...]:
    return (*known.parts, *hit.parts)


def _whole(one: Note, other: Note) -> Note:
    """Return the note that has its body; a source may find notes without it."""
    return one if one.body or not other.body else other
