"""The matrix of vectors: exact likeness, whatever is added and dropped, and rows that survive the catalog's bytes."""

import math

from hypothesis import given
from hypothesis import strategies as st

from recallscope.runtime.memory.vector_index import Nearest, VectorIndex
from recallscope.runtime.memory.vector_rows import packed

numbers = st.floats(-1, 1, width=32).map(lambda number: 0.0 if abs(number) < 0.01 else number)
vectors = st.lists(numbers, min_size=4, max_size=4).filter(lambda vector: math.hypot(*vector) > 0.1)


def row(number: int, vector: list[float]) -> tuple[int, float, bytes]:
    """Return a row as the catalog keeps it."""
    return number, *packed(vector)


def cosine(one: list[float], other: list[float]) -> float:
    """Return how alike two vectors are."""
    return sum(a * b for a, b in zip(one, other, strict=True)) / math.hypot(*one) / math.hypot(*other)


@given(st.dictionaries(st.integers(1, 50), vectors, max_size=12), vectors, st.integers(1, 12))
def test_the_nearest_are_those_with_the_greatest_cosine(
    notes: dict[int, list[float]], query: list[float], limit: int
) -> None:
    """The likeness is the cosine, to the hundredth that packed numbers keep; the best come first."""
    index = VectorIndex()
    index.change(add=[row(number, vector) for number, vector in notes.items()])
    found = index.nearest(query, limit).near
    likeness = [near.likeness for near in found]

    assert len(found) == min(limit, len(notes))
    assert likeness == sorted(likeness, reverse=True)
    assert all(abs(near.likeness - cosine(query, notes[near.number])) < 0.02 for near in found)
    others = notes.keys() - {near.number for near in found}
    assert all(cosine(query, notes[number]) <= likeness[-1] + 0.02 for number in others)


@given(st.lists(st.tuples(st.sets(st.integers(1, 9)), st.sets(st.integers(1, 9))), max_size=6))
def test_changes_add_and_drop_notes(changes: list[tuple[set[int], set[int]]]) -> None:
    """After any changes the index holds what was added and not dropped since; a note is never there twice."""
    index, expected = VectorIndex(), set[int]()
    for drop, add in changes:
        index.change(drop=drop, add=[row(number, [1.0, float(number)]) for number in sorted(add)])
        expected = (expected - drop) | add

    assert (index.numbers, len(index)) == (expected, len(expected))


def test_what_cannot_be_compared_is_left_out() -> None:
    """An empty index, another length, a query without a direction: nothing is near. A zero vector is like nothing."""
    index = VectorIndex()
    assert index.nearest([1.0, 0.0], 3) == Nearest()
    index.change(add=[row(1, [1.0, 0.0]), row(2, [1.0, 0.0, 0.0]), row(3, [0.0, 0.0])])

    assert (index.numbers, index.dimension) == ({1, 3}, 2)
    assert index.nearest([1.0], 3) == index.nearest([0.0, 0.0], 3) == Nearest()
    assert [(near.number, round(near.likeness, 3)) for near in index.nearest([2.0, 0.0], 3).near] == [
        (1, 1.0),
        (3, 0.0),
    ]


def test_the_likeness_of_all_notes_is_told() -> None:
    """Mean and deviation are those of every note, not of the nearest alone."""
    index = VectorIndex()
    index.change(add=[row(1, [1.0, 0.0]), row(2, [-1.0, 0.0])])
    found = index.nearest([1.0, 0.0], 1)

    assert (len(found.near), round(found.mean, 3), round(found.deviation, 3)) == (1, 0.0, 1.0)
