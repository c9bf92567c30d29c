"""Ranking: the numbers behind right or silent."""

import math

from hypothesis import given
from hypothesis import strategies as st

from recallscope.runtime.memory.rank import Field, Term, rarity, score, terms, threshold
from recallscope.runtime.memory.tokens import QueryToken, Tokens

LEAST = threshold((QueryToken("x", 1.0),))


def test_a_word_counts_once_in_its_strongest_field() -> None:
    """Title before keywords before description before body; a second place adds nothing."""
    words = (Term("deploy", 1.0),)
    one = frozenset({"deploy"})
    got = [score(words, {field: one}) for field in Field]
    assert got == [1.0, 0.95, 0.6, 0.4]
    assert score(words, dict.fromkeys(Field, one)) == 1.0


def test_one_rare_word_in_the_title_is_enough_and_in_the_body_is_not() -> None:
    """A word of a single note passes the threshold in title and keywords, not in description or body alone."""
    worth = terms((QueryToken("canary", 1.0),), {"canary": 1}, 1_000)
    got = [score(worth, {field: {"canary"}}) >= LEAST for field in Field]
    assert got == [True, True, False, False]


def test_an_everyday_word_is_never_enough() -> None:
    """`test`, alone in a title and rare in this memory, stays below the threshold."""
    query = Tokens().query("please test this")
    assert score(terms(query, {"test": 1}, 50), {Field.TITLE: {"test"}}) < LEAST


def test_a_word_that_most_notes_hold_is_never_enough() -> None:
    """The project's own name in every title tells nothing."""
    worth = terms((QueryToken("acme", 1.0),), {"acme": 8}, 10)
    assert score(worth, {Field.TITLE: {"acme"}}) < LEAST


def test_a_long_prompt_must_match_more() -> None:
    """The threshold rises with the number of telling words, and not below ten of them."""
    ten = tuple(QueryToken(f"w{number}", 1.0) for number in range(10))
    assert threshold(ten) == LEAST
    assert math.isclose(threshold(ten * 2), LEAST * 1.35)


@given(documents=st.integers(0, 10_000), notes=st.integers(0, 10_000))
def test_rarity_is_a_share_that_falls_with_the_number_of_notes(documents: int, notes: int) -> None:
    """It lies between 0 and 1, is 1 for a single note, and never rises when one more note holds the word."""
    got = rarity(documents, notes)
    assert 0.0 <= got <= 1.0
    assert rarity(documents + 1, notes) <= got or documents == 0
    if documents == 1 and notes:
        assert got == 1.0
