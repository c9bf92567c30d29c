"""What words and vectors make together: each source's own threshold holds, and an absent one changes nothing."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallscope.runtime.memory.search import Dropped, Found, Hit, LeftOut, Part, Source
from recallscope.runtime.memory.semantic import merged
from recallscope.runtime.testing.memory import make_note

NAMES = tuple("abcdefgh")


def hit(name: str, score: float, source: Source = Source.WORDS) -> Hit:
    """Return a hit of one source."""
    return Hit(make_note(name), score, (Part(source, score),))


def near(*names: str) -> tuple[Hit, ...]:
    """Return what the vectors found, best first."""
    return tuple(hit(name, 0.9 - place / 10, Source.VECTORS) for place, name in enumerate(names))


def ids(*names: str) -> frozenset[str]:
    """Return the ids of notes."""
    return frozenset(make_note(name).id for name in names)


def titles(hits: tuple[Hit, ...]) -> list[str]:
    """Return the titles of hits."""
    return [one.note.title for one in hits]


SILENT = Found(
    candidates=(make_note("x"), make_note("a")),
    left_out=(LeftOut(hit("w", 0.3), Dropped.THRESHOLD), LeftOut(hit("e", 0.9), Dropped.EXCLUDED)),
    threshold=0.7,
)


def test_where_words_are_silent_the_vectors_answer_with_their_own_threshold() -> None:
    """Only what is strong goes; the rest is told with its reason; candidates hold both, one for one."""
    found = merged(SILENT, near("a", "b", "c"), (), strong=ids("a", "b"), threshold=0.5)

    assert (titles(found.fast), found.threshold) == (["a", "b"], 0.5)
    assert titles(found.lexical) == ["a", "b"]
    assert [(left.hit.note.title, left.why) for left in found.left_out] == [
        ("w", Dropped.THRESHOLD),
        ("c", Dropped.THRESHOLD),
        ("e", Dropped.EXCLUDED),
    ]
    assert [note.title for note in found.candidates] == ["a", "x", "b", "c"]
    assert found.sources == (Source.WORDS, Source.VECTORS)


def test_where_both_answer_their_places_decide() -> None:
    """A note that both find goes first; the threshold stays that of the words, whose scores stand there."""
    words = Found(fast=(hit("a", 2.0),), lexical=(hit("a", 2.0), hit("b", 1.0)), threshold=0.7)
    found = merged(words, near("b", "c"), (), strong=ids("b"), threshold=0.5)

    assert titles(found.fast) == ["b", "a"]
    assert (found.fast[0].score, found.threshold) == (1.0, 0.7)
    assert [part.source for part in found.fast[0].parts] == [Source.WORDS, Source.VECTORS]


def test_a_note_that_is_left_out_whatever_its_likeness_says_why() -> None:
    """Superseded notes, noise and notes of the conversation are told once, also where both sources met them."""
    dropped = (LeftOut(hit("e", 0.8, Source.VECTORS), Dropped.EXCLUDED), LeftOut(hit("s", 0.7), Dropped.SUPERSEDED))
    found = merged(SILENT, (), dropped, strong=frozenset(), threshold=0.5)

    assert found.fast == ()
    assert [(left.hit.note.title, left.why) for left in found.left_out] == [
        ("w", Dropped.THRESHOLD),
        ("e", Dropped.EXCLUDED),
        ("s", Dropped.SUPERSEDED),
    ]


@given(
    st.lists(st.sampled_from(NAMES), unique=True, max_size=5),
    st.integers(0, 2),
    st.lists(st.sampled_from(NAMES), unique=True),
    st.integers(0, 3),
)
def test_nothing_enters_that_no_source_finds_good_enough(
    words: list[str], fast: int, vectors: list[str], strong: int
) -> None:
    """Whatever both found: at most two go, each good enough for one source, and all that was found is accounted for."""
    hits = tuple(hit(name, 2.0 - place / 10) for place, name in enumerate(words))
    found = Found(fast=hits[:fast], lexical=hits, threshold=0.7)
    good = ids(*vectors[:strong])
    both = merged(found, near(*vectors), (), strong=good, threshold=0.5)
    told = [one.note.id for one in both.fast] + [left.hit.note.id for left in both.left_out]

    assert {one.note.id for one in both.fast} <= {one.note.id for one in found.fast} | good
    assert {one.note.id for one in both.lexical} <= ids(*words) | good
    assert len(both.fast) == min(2, len({one.note.id for one in found.fast} | good))
    assert (len(told), set(told)) == (len(set(told)), ids(*words, *vectors))


@pytest.mark.parametrize("found", [SILENT, replace(SILENT, fast=(hit("a", 2.0),), lexical=(hit("a", 2.0),))])
def test_vectors_that_found_nothing_change_nothing_but_who_answered(found: Found) -> None:
    """The fast result, the list and the candidates are those of the words."""
    both = merged(found, (), (), strong=frozenset(), threshold=0.5)

    assert (both.fast, both.lexical, both.candidates, both.threshold) == (
        found.fast,
        found.lexical,
        found.candidates,
        found.threshold,
    )
