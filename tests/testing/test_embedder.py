"""Vectors for tests: stable, of length 1, and alike where the texts share words, pieces of them, or synonyms."""

import math

from hypothesis import given
from hypothesis import strategies as st

from recallscope.runtime.testing.embedder import Embedder


def likeness(embedder: Embedder, one: str, other: str) -> float:
    """Return the cosine of two texts."""
    return sum(a * b for a, b in zip(embedder.vector(one), embedder.vector(other), strict=True))


@given(st.text(max_size=80), st.integers(1, 64))
def test_a_vector_has_length_one_and_is_always_the_same(text: str, dimension: int) -> None:
    """Whatever the text, also an empty one: so many finite numbers, length 1, the same from another embedder."""
    vector = Embedder(dimension).vector(text)

    assert len(vector) == dimension
    assert math.isclose(math.hypot(*vector), 1.0)
    assert vector == Embedder(dimension).vector(text)


def test_texts_are_alike_by_words_by_pieces_and_by_synonyms() -> None:
    """A shared word counts most, a shared stem less, a stated synonym as much as the script says."""
    plain, taught = Embedder(), Embedder(synonyms=[["deploy", "ship"]])

    assert likeness(plain, "deploy the frontend", "Deploy the frontend!") > 0.99
    assert likeness(plain, "deployment", "deploying") > 0.25 > abs(likeness(plain, "deployment", "kitchen"))
    assert likeness(taught, "deploy", "ship") > 0.5 > abs(likeness(plain, "deploy", "ship"))
