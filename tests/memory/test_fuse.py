"""Several rankings become one: by place, in any order, and a source that is missing changes nothing else."""

import itertools
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from recallscope.runtime.memory.fuse import Ranking, fuse
from recallscope.runtime.memory.search import Hit, Part, Source
from recallscope.runtime.testing.memory import make_note

NAMES = tuple("abcdefgh")


def ranked(source: Source, names: str | tuple[str, ...]) -> Ranking:
    """Return a ranking of notes with these names, whose scores fall from 1 in steps."""
    hits = (
        Hit(make_note(name, updated=float(ord(name) % 3)), 1.0 - place / 10, (Part(source, 1.0 - place / 10),))
        for place, name in enumerate(names)
    )
    return Ranking(source, tuple(hits))


def titles(*rankings: Ranking) -> list[str]:
    """Return the titles of the fused notes."""
    return [hit.note.title for hit in fuse(rankings)]


def rankings_of(source: Source) -> st.SearchStrategy[Ranking]:
    """Make rankings of one source."""
    return st.lists(st.sampled_from(NAMES), unique=True).map(lambda names: ranked(source, tuple(names)))


WORDS, VECTORS = rankings_of(Source.WORDS), rankings_of(Source.VECTORS)


def test_a_note_that_both_found_goes_before_those_of_one() -> None:
    """Second place twice is more than first place once; hits carry what each source gave."""
    fused = fuse([ranked(Source.WORDS, "ab"), ranked(Source.VECTORS, "cb")])

    assert [hit.note.title for hit in fused] == ["b", "a", "c"]
    assert fused[0].parts == (Part(Source.WORDS, 0.9), Part(Source.VECTORS, 0.9))
    assert fused[0].score == 0.9


def test_the_body_is_kept_whichever_source_has_it() -> None:
    """A source may find notes without their bodies."""
    (hit,) = ranked(Source.WORDS, "a").hits
    bare = Ranking(Source.WORDS, (replace(hit, note=replace(hit.note, body="")),))

    assert fuse([bare, ranked(Source.VECTORS, "a")])[0].note.body == "The fact about a."


@given(WORDS)
def test_one_source_alone_keeps_its_order(words: Ranking) -> None:
    """Fusing a single ranking gives it back, whatever empty ones stand beside it."""
    assert fuse([words]) == words.hits
    assert fuse([Ranking(Source.VECTORS, ()), words]) == words.hits


@given(WORDS, VECTORS)
def test_the_order_of_the_sources_does_not_matter(words: Ranking, vectors: Ranking) -> None:
    """Who answered first leaves no trace."""
    assert fuse([words, vectors]) == fuse([vectors, words])


@given(WORDS, VECTORS)
def test_every_note_stands_once_in_an_order_without_ties(words: Ranking, vectors: Ranking) -> None:
    """Equal places are parted by recency and then by the id, so that the order is total and always the same."""
    fused = fuse([words, vectors])
    place = {
        source: {hit.note.id: number for number, hit in enumerate(ranking.hits, start=1)}
        for source, ranking in (("w", words), ("v", vectors))
    }

    def key(hit: Hit) -> tuple[float, float, str]:
        given_by = (1 / (60 + found[hit.note.id]) for found in place.values() if hit.note.id in found)
        return -sum(given_by), -hit.note.updated, hit.note.id

    assert len({hit.note.id for hit in fused}) == len(fused) == len(set(place["w"]) | set(place["v"]))
    assert all(key(one) < key(other) for one, other in itertools.pairwise(fused))


@given(WORDS, VECTORS, st.integers(0, 8))
def test_a_source_cut_short_changes_nothing_for_the_notes_it_still_names(
    words: Ranking, vectors: Ranking, kept: int
) -> None:
    """Without its tail, a source leaves the order of all notes that do not stand in that tail as it was."""
    tail = {hit.note.title for hit in vectors.hits[kept:]}
    cut = replace(vectors, hits=vectors.hits[:kept])

    whole = [title for title in titles(words, vectors) if title not in tail]
    assert [title for title in titles(words, cut) if title not in tail] == whole
