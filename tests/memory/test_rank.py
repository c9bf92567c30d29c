"""Ranking: the numbers behind right or silent."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallscope.runtime.memory.note import Note
from recallscope.runtime.memory.rank import Field, Term, agreement, field_texts, rarity, score, terms, threshold
from recallscope.runtime.memory.tokens import QueryToken, Tokens
from recallscope.runtime.terms import NoteType, ScopeName

LEAST = threshold((QueryToken("x", 1.0),))
ONCE = {"a": 1, "b": 1, "c": 1, "d": 1}
NOTE = Note(
    id="project:a.md",
    version="1",
    scope=ScopeName.PROJECT,
    root=Path(),
    relative="a.md",
    title="Title",
    description="Description",
    type=NoteType.PROJECT,
    keywords=("one", "two"),
    usage_scenarios=("how to",),
    body="Body",
    updated=0.0,
)


def test_a_word_counts_once_in_its_strongest_field() -> None:
    """Title before keywords before description before body; a second place adds nothing."""
    words = (Term("deploy", 1.0),)
    one = frozenset({"deploy"})
    got = [score(words, {field: one}) for field in Field]
    assert got == [1.0, 0.95, 0.8, 0.6]
    assert score(words, dict.fromkeys(Field, one)) == 1.0


def test_one_rare_word_is_enough_for_a_query_of_one_word_but_not_in_the_body() -> None:
    """A word of a single note passes the threshold in title, keywords and description, not in the body alone."""
    worth = terms((QueryToken("canary", 1.0),), {"canary": 1}, 1_000)
    got = [score(worth, {field: {"canary"}}) >= LEAST for field in Field]
    assert got == [True, True, True, False]


def test_two_rare_words_in_the_body_are_enough() -> None:
    """A strong match passes from the body alone."""
    query = (QueryToken("canary", 1.0), QueryToken("rollout", 1.0))
    worth = terms(query, {"canary": 1, "rollout": 1}, 1_000)
    assert score(worth, {Field.BODY: {"canary", "rollout"}}) >= threshold(query)


def test_a_common_word_among_others_is_not_enough() -> None:
    """`weekend` in a title stays below the threshold of a query that asks for more, however rare it is here."""
    query = Tokens().query("who plans the weekend")
    assert score(terms(query, {"weekend": 1}, 1_000), {Field.TITLE: {"weekend"}}) < threshold(query)


def test_a_query_that_is_one_common_word_finds_the_title_with_it() -> None:
    """Who asks for `weekend` alone gets the note that is called so."""
    query = Tokens().query("the weekend")
    assert score(terms(query, {"weekend": 1}, 1_000), {Field.TITLE: {"weekend"}}) >= threshold(query)


def test_an_everyday_word_is_never_enough() -> None:
    """`test`, alone in a title and rare in this memory, stays below the threshold."""
    query = Tokens().query("please test this")
    assert score(terms(query, {"test": 1}, 50), {Field.TITLE: {"test"}}) < LEAST


def test_a_word_that_most_notes_hold_is_never_enough() -> None:
    """The project's own name in every title tells nothing."""
    worth = terms((QueryToken("acme", 1.0),), {"acme": 8}, 10)
    assert score(worth, {Field.TITLE: {"acme"}}) < LEAST


def test_words_that_meet_in_one_note_tell_more_together() -> None:
    """The sum counts more the more words agree; everyday words add nothing to that, common pairs of characters less."""
    words = terms((QueryToken("a", 1.0), QueryToken("b", 0.6), QueryToken("c", 0.45), QueryToken("d", 0.3)), ONCE, 200)

    assert [term.tells for term in words] == [1.0, 1.0, 0.45, 0.0]
    assert (agreement(0.45), agreement(1.0), agreement(2.0)) == (1.0, 1.0, 2.0**0.4)
    assert score(words, {Field.TITLE: {"a", "b", "c", "d"}}) == round((1.0 + 0.6 + 0.45 + 0.3) * 2.45**0.4, 4)


def test_a_long_prompt_must_match_more() -> None:
    """The threshold rises slower than what the words can tell; of a word or two it is a share."""
    sixteen = tuple(QueryToken(f"w{number}", 1.0) for number in range(16))
    assert math.isclose(threshold(sixteen), 1.15 * 16**0.35)
    assert math.isclose(threshold((QueryToken("x", 0.8),)), 0.56)
    assert threshold(()) == threshold((QueryToken("x", 0.3),)) == 0.42


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"title": "heap " * 41}, Field.TITLE),
        ({"description": "heap " * 121}, Field.DESCRIPTION),
        ({"keywords": tuple(f"heap{number}" for number in range(25))}, Field.KEYWORDS),
        ({"usage_scenarios": tuple(f"heap{number}" for number in range(17))}, Field.KEYWORDS),
        ({"keywords": ("heap " * 401,)}, Field.KEYWORDS),
    ],
)
def test_an_overlong_field_counts_in_the_body(changes: dict[str, Any], field: Field) -> None:
    """A heap of keywords is found, as anything in the body is, and names nothing."""
    texts = field_texts(replace(NOTE, **changes))
    assert "heap" not in texts[field]
    assert "heap" in texts[Field.BODY]


def test_the_fields_of_a_note_are_its_texts() -> None:
    """Keywords and usage scenarios are one field; each stands on a line of its own."""
    assert field_texts(NOTE) == {
        Field.TITLE: "Title",
        Field.KEYWORDS: "one\ntwo\nhow to",
        Field.DESCRIPTION: "Description",
        Field.BODY: "Body",
    }


@given(documents=st.integers(0, 10_000), notes=st.integers(0, 10_000))
def test_rarity_is_a_share_that_falls_with_the_number_of_notes(documents: int, notes: int) -> None:
    """It lies between 0 and 1, is 1 for a single note, and never rises when one more note holds the word."""
    got = rarity(documents, notes)
    assert 0.0 <= got <= 1.0
    assert rarity(documents + 1, notes) <= got or documents == 0
    if documents == 1 and notes:
        assert got == 1.0
