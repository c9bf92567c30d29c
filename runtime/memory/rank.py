"""How well a note answers a query: rarity, the field where a word stands, and the threshold below which we are silent.

Each word of the query counts once, in the strongest field where it stands: its nature (`tokens`) times its rarity in
this memory times the field. The type never counts, and recency only parts equals.
"""

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import Enum
from typing import Final

from recallscope.runtime.memory.note import Note
from recallscope.runtime.memory.tokens import LITTLE, NUMBER, QueryToken

__all__ = ["RELATED", "Field", "Term", "agreement", "field_texts", "rarity", "score", "terms", "threshold"]


class Field(Enum):
    """A field of a note with its letter in the index; the strongest comes first."""

    TITLE = "t"
    KEYWORDS = "k"
    DESCRIPTION = "d"
    BODY = "b"

    @property
    def strength(self) -> float:
        """Return what a word in this field counts, in the title 1."""
        return _STRENGTH[self]


_STRENGTH: Final = {Field.TITLE: 1.0, Field.KEYWORDS: 0.95, Field.DESCRIPTION: 0.8, Field.BODY: 0.6}

_MOST_KEYWORDS: Final = 24
_MOST_SCENARIOS: Final = 16
_MOST_CHARACTERS: Final = {Field.TITLE: 200, Field.KEYWORDS: 2_000, Field.DESCRIPTION: 600}

RELATED: Final = 0.7
"""A second note goes with the first into the fast result if it has this share of its score."""

_THRESHOLD: Final = 1.15
"""Chosen on the development half of the corpus in `tests`; `docs/ranking.md` shows what other thresholds cost."""

_GROWTH: Final = 0.35
_AGREEMENT: Final = 0.4
_SHARE: Final = 0.7
_LEAST_LENGTH: Final = 0.6
_FEW_NOTES: Final = 10
_SMALL_MEMORY: Final = 200


@dataclass(frozen=True, slots=True)
class Term:
    """A token of a query with what it is worth in this memory: its nature times its rarity.

    `tells`: what it adds to the agreement of a note's words, at most 1; an everyday word adds nothing.
    """

    text: str
    worth: float
    tells: float = 1.0


def field_texts(note: Note) -> Mapping[Field, str]:
    """Return the text of each field of `note`; an overlong one counts in the body: a heap of keywords names nothing."""
    keywords = note.keywords if len(note.keywords) <= _MOST_KEYWORDS else ()
    scenarios = note.usage_scenarios if len(note.usage_scenarios) <= _MOST_SCENARIOS else ()
    texts = {
        Field.TITLE: note.title,
        Field.KEYWORDS: "\n".join((*keywords, *scenarios)),
        Field.DESCRIPTION: note.description,
    }
    beyond = ["\n".join(note.keywords)] * (not keywords) + ["\n".join(note.usage_scenarios)] * (not scenarios)
    for field, most in _MOST_CHARACTERS.items():
        if len(texts[field]) > most:
            beyond.append(texts[field])
            texts[field] = ""
    return {**texts, Field.BODY: "\n".join((note.body, *beyond)) if any(beyond) else note.body}


def rarity(documents: int, notes: int) -> float:
    """Return how much a word tells that stands in `documents` of `notes` notes: 1 for a single note, 0 for all.

    A memory of a few notes cannot tell a rare word from a common one, so it is taken as one of 200, and the share of
    notes with the word (of ten at least) counts against it directly.
    """
    if documents <= 0 or notes <= 0:
        return 0.0
    size = max(notes, _SMALL_MEMORY, documents)
    share = (documents - 1) / max(notes, documents, _FEW_NOTES)
    return math.log(size / documents) / math.log(size) * (1 - share)


def terms(tokens: Sequence[QueryToken], documents: Mapping[str, int], notes: int) -> tuple[Term, ...]:
    """Return the tokens that stand in this memory and tell anything, the most telling first."""
    found = (
        Term(token.text, token.weight * rarity(documents.get(token.text, 0), notes), _tells(token)) for token in tokens
    )
    return tuple(sorted((term for term in found if term.worth > 0), key=lambda term: (-term.worth, term.text)))


def score(query: Sequence[Term], fields: Mapping[Field, AbstractSet[str]]) -> float:
    """Return the score of a note whose fields hold these tokens: what each is worth, times their agreement."""
    total, telling = 0.0, 0.0
    for term in query:
        strength = next((field.strength for field in Field if term.text in fields.get(field, ())), 0.0)
        total += term.worth * strength
        telling += term.tells if strength > 0 else 0.0
    return round(total * agreement(telling), 4)


def agreement(telling: float) -> float:
    """Return the factor for words that stand in one note and tell so much: together they tell more than each by itself.

    A single rare word is met by accident; that several meet in one note seldom is.
    """
    return math.pow(max(telling, 1.0), _AGREEMENT)


def _tells(token: QueryToken) -> float:
    """Return 1 for a word, less for a common pair of characters, of which one word makes several, else 0."""
    if token.weight >= NUMBER:
        return 1.0
    return token.weight if token.weight > LITTLE else 0.0


def threshold(tokens: Sequence[QueryToken]) -> float:
    """Return the score from which a note is worth delivering.

    A long prompt meets more words by accident, so it rises with what the words can tell together, though slower; a
    query of a word or two is asked for no more than 70 % of that, though never for less than of a common word.
    """
    length = max(sum(token.weight for token in tokens), _LEAST_LENGTH)
    return min(_THRESHOLD * math.pow(length, _GROWTH), _SHARE * length)
