"""How text becomes words that can be looked up: the same way for notes and for queries.

NFKC and case folding; Han, kana and Hangul in pairs of characters, Thai, Lao, Khmer and Burmese in triples (their
writing does not part words); English stemmed; `fooBar`, `foo_bar` and `src/foo.py` whole and in parts; `C++`, `k8s`,
`10.0.0.1` and `v1.2` as they are. Function words are no words here.
"""

import re
import threading
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import snowballstemmer

from recallscope.runtime.memory.words import EVERYDAY, FUNCTION_WORDS, GRAMMAR_BIGRAMS

__all__ = ["TOKENS_VERSION", "QueryToken", "Tokens"]

TOKENS_VERSION = f"1 unicode {unicodedata.unidata_version} {sorted(FUNCTION_WORDS | GRAMMAR_BIGRAMS)}"
"""Changes when the same text may give other tokens: a catalog of another version is rebuilt."""

MAX_TOKEN = 64
MAX_QUERY_TOKENS = 64
MAX_QUERY_CHARACTERS = 16_384
MAX_TEXT_CHARACTERS = 100_000
_CACHED_WORDS = 50_000

_PAIRS = (
    "\u1100-\u11ff\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3130-\u318f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
_TRIPLES = "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u1000-\u109f\u1780-\u17dd"
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff"
)
_LETTER = rf"(?:(?![{_PAIRS}{_TRIPLES}])(?:[^\W_]|[{_MARKS}]))"
_RUNS = re.compile(
    rf"(?P<pairs>[{_PAIRS}]+)|(?P<triples>[{_TRIPLES}]+)"
    rf"|(?P<word>_*{_LETTER}+(?:[-_./\\:@+#]+{_LETTER}+)*(?:\+\+|\#(?![^\W_]))?)"
)
_APOSTROPHE = re.compile(r"(?<=\w)['\u2019](?=\w)")
_JOINTS = re.compile(r"[-_./\\:@+#]+")
_HUMPS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z0-9]+|[A-Z]+[0-9]*|[0-9]+|[^A-Za-z0-9]+")
_HUMP = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2,}[a-z]")
_STEMMED = re.compile(r"[a-z]{3,}\Z")

WHOLE = 1.2
PLAIN = 1.0
NUMBER = 0.5
PAIR = 0.75
PART = 0.5
LITTLE = 0.3


@dataclass(frozen=True, slots=True)
class QueryToken:
    """A token of a query; `weight` is how much it can tell by its nature, 1 being an ordinary content word."""

    text: str
    weight: float


class Tokens:
    """Turns text into tokens; may be shared between threads."""

    def __init__(self) -> None:
        stemmer: Any = snowballstemmer.stemmer("english")  # pyright: ignore[reportUnknownMemberType] - it has no types
        self._stem_word = cast("Callable[[str], str]", stemmer.stemWord)
        self._lock = threading.Lock()
        self._known: dict[str, tuple[QueryToken, ...]] = {}
        self._everyday = frozenset(self._stem(word) for word in EVERYDAY)

    def of(self, text: str) -> dict[str, None]:
        """Return the distinct tokens of a note's text in the order of their first place."""
        return dict.fromkeys(token.text for token in self._tokens(text[:MAX_TEXT_CHARACTERS]))

    def query(self, text: str) -> tuple[QueryToken, ...]:
        """Return the distinct tokens of a query, of a long one those of its beginning and its end."""
        half = MAX_QUERY_CHARACTERS // 2
        if len(text) > MAX_QUERY_CHARACTERS:
            text = f"{text[:half]} {text[-half:]}"
        found: dict[str, QueryToken] = {}
        for token in self._tokens(text):
            known = found.get(token.text)
            if known is None or known.weight < token.weight:
                found[token.text] = token
        tokens = tuple(found.values())
        half = MAX_QUERY_TOKENS // 2
        return tokens if len(tokens) <= MAX_QUERY_TOKENS else tokens[:half] + tokens[-half:]

    def _tokens(self, text: str) -> Iterator[QueryToken]:
        normal = _APOSTROPHE.sub("", unicodedata.normalize("NFKC", text))
        for run in _RUNS.finditer(normal):
            match run.lastgroup:
                case "pairs":
                    yield from _grams(run[0].casefold(), 2)
                case "triples":
                    yield from _grams(run[0].casefold(), 3)
                case _:
                    yield from self._known_word(run[0])

    def _known_word(self, word: str) -> tuple[QueryToken, ...]:
        """Return the tokens of a word, remembered: prose repeats itself, and stemming is slow."""
        known = self._known.get(word)
        if known is None:
            if len(self._known) >= _CACHED_WORDS:
                self._known.clear()
            known = tuple(self._word(word))
            if len(word) <= MAX_TOKEN:
                self._known[word] = known
        return known

    def _word(self, word: str) -> Iterator[QueryToken]:
        word = word.lstrip("_")
        folded = word.casefold()
        if _JOINTS.search(word) is None and _HUMP.search(word) is None:
            if folded not in FUNCTION_WORDS and len(folded) > 1:
                yield self._simple(folded, PLAIN)
            return
        if len(folded) <= MAX_TOKEN and folded not in FUNCTION_WORDS:
            yield QueryToken(folded, WHOLE)
        for piece in _JOINTS.split(word):
            for part in _HUMPS.findall(piece) if _HUMP.search(piece) else (piece,):
                small = part.casefold()
                if len(small) > 1 and small not in FUNCTION_WORDS and small != folded:
                    yield self._simple(small, PART)

    def _simple(self, word: str, weight: float) -> QueryToken:
        if word.isdecimal():
            return QueryToken(word[:MAX_TOKEN], min(weight, NUMBER))
        stem = self._stem(word)
        if stem in self._everyday:
            return QueryToken(stem, min(weight, LITTLE))
        mixed = weight == PLAIN and any(character.isdecimal() for character in word)
        return QueryToken(stem[:MAX_TOKEN], WHOLE if mixed else weight)

    def _stem(self, word: str) -> str:
        if not _STEMMED.match(word) or len(word) > MAX_TOKEN:
            return word
        with self._lock:  # the stemmer keeps the word that it works on
            return self._stem_word(word)


def _grams(run: str, size: int) -> Iterator[QueryToken]:
    """Yield the overlapping grams of a run; a run shorter than a gram is no token, unless it could be a word."""
    if len(run) < size and size > 2:  # noqa: PLR2004 - a pair of Thai characters may be a word, a lone Han is no query
        yield QueryToken(run, LITTLE)
    for at in range(len(run) - size + 1):
        gram = run[at : at + size]
        if gram not in GRAMMAR_BIGRAMS:
            hiragana = all("\u3041" <= character <= "\u309f" for character in gram)
            yield QueryToken(gram, LITTLE if hiragana else PAIR)
