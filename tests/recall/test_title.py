"""When the selector is not asked: the query asks for a note by its title, and no other note comes near."""

from dataclasses import replace

import pytest

from recallscope.runtime.memory.rank import Field
from recallscope.runtime.memory.search import Dropped, Found, Hit, LeftOut, Part, Source
from recallscope.runtime.recall.title import is_certain, names_title
from recallscope.runtime.testing.memory import make_note

PARTS = (
    Part(Source.WORDS, 1.0, "releas", Field.TITLE),
    Part(Source.WORDS, 1.0, "train", Field.TITLE),
    Part(Source.WORDS, 0.4, "night", Field.BODY),
)
TRAIN = Hit(make_note("Release train"), 2.0, PARTS)
ALONE = Found(fast=(TRAIN,), lexical=(TRAIN,), asked=frozenset({"releas", "train"}))


@pytest.mark.parametrize(
    ("query", "title"),
    [
        ("release train", "Release train"),
        ("What's the RELEASE-TRAIN?", "Release train"),
        ("Wie ist das mit dem Bereitschaftsdienst?", "Bereitschaftsdienst"),
        ("how is the \uff23ache  layer", "Cache layer"),
        ("\u53d1\u5e03\u6d41\u7a0b?", "\u53d1\u5e03\u6d41\u7a0b"),
    ],
)
def test_a_title_is_named_word_for_word(query: str, title: str) -> None:
    """The whole title stands in the query; case, punctuation and character forms do not count."""
    assert names_title(query, title)


@pytest.mark.parametrize(
    ("query", "title"),
    [
        ("train the release manager", "Release train"),
        ("when is the release?", "Release train"),
        ("prerelease train", "Release train"),
        ("", "Release train"),
        ("anything", "!!"),
    ],
)
def test_parts_of_a_title_name_none(query: str, title: str) -> None:
    """Words of it in another order, some of them, or pieces of longer words are not the title."""
    assert not names_title(query, title)


def test_a_note_alone_and_far_ahead_is_certain() -> None:
    """The others have less than half of its score, or the selector could not have chosen them."""
    far = LeftOut(Hit(make_note("b"), 0.9), Dropped.THRESHOLD)
    hidden = [LeftOut(Hit(make_note("c"), 9.0), why) for why in (Dropped.EXCLUDED, Dropped.NOISE, Dropped.SUPERSEDED)]

    assert is_certain("release train", replace(ALONE, left_out=(far, *hidden)))


@pytest.mark.parametrize(
    "found",
    [
        Found(),
        replace(ALONE, fast=(TRAIN, Hit(make_note("b"), 1.9))),
        replace(ALONE, lexical=(TRAIN, Hit(make_note("b"), 1.0))),
        replace(ALONE, left_out=(LeftOut(Hit(make_note("b"), 1.0), Dropped.UNRELATED),)),
        replace(ALONE, partial=True),
        replace(ALONE, sources=(Source.WORDS, Source.VECTORS)),
        replace(ALONE, asked=frozenset({"releas", "train", "migrat"})),
        replace(ALONE, asked=frozenset({"releas", "train", "night"})),
        replace(ALONE, asked=frozenset()),
    ],
)
def test_whatever_leaves_a_doubt_is_not_certain(found: Found) -> None:
    """Nothing found, a second note near by, a search cut short, another source, a word that is not in the title."""
    assert not is_certain("release train", found)
