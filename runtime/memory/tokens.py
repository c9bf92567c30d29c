"""How text becomes words that can be looked up: the same way for notes and for queries.

NFKC, case folding, no accents; Han, kana and Hangul in pairs of characters, Thai, Lao, Khmer and Burmese in triples
(their writing does not part words); words stemmed by their script, in Latin letters as English and, where the text
around them is another language, as that one too; `fooBar`, `foo_bar` and `src/foo.py` whole and in parts; `C++`,
`.NET`, `k8s`, `10.0.0.1` and `1.2` as they are. Function words are no words here.
"""

import itertools
import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

import Stemmer

from recallscope.runtime.memory.common_words import COMMON_PAIRS, COMMON_WORDS
from recallscope.runtime.memory.words import ALIASES, EVERYDAY, FUNCTION_WORDS, GRAMMAR_CHARACTERS, GRAMMAR_GRAMS

__all__ = ["LITTLE", "TOKENS_VERSION", "QueryToken", "Tokens"]

TOKENS_VERSION = f"2 unicode {unicodedata.unidata_version} {sorted(GRAMMAR_GRAMS)} {sorted(ALIASES)} " + " ".join(
    f"{language} {sorted(words)}" for language, words in FUNCTION_WORDS.items()
)
"""Changes when the same text may give other tokens: a catalog of another version is rebuilt."""

MAX_TOKEN = 64
MAX_QUERY_TOKENS = 64
MAX_QUERY_CHARACTERS = 16_384
MAX_TEXT_CHARACTERS = 100_000
_CACHED_RUNS = 50_000
_GUESSED_BY = 400
"""Words of a text that tell its language."""

ENGLISH = "english"
_LATIN = ("english", "german", "french", "spanish", "portuguese", "italian", "dutch")
_BY_SCRIPT = (("\u0370", "\u0400", "greek"), ("\u0400", "\u0530", "russian"), ("\u0600", "\u0700", "arabic"))

_PAIRS = (
    "\u1100-\u11ff\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3130-\u318f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
_TRIPLES = "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u1000-\u109f\u1780-\u17dd"
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff"
)
_WORD = r"(?:(?<![\w.])\.(?=[a-zA-Z]))?{first}{rest}*(?:[-_./\\:@+#]{{1,3}}{rest}+)*(?:\+\+|#(?!\w))?"
_ASCII_RUNS = re.compile(_WORD.format(first="[a-zA-Z0-9]", rest="[a-zA-Z0-9_]"))
_RUNS = re.compile(_WORD.format(first=rf"(?:[^\W_]|[{_TRIPLES}])", rest=rf"[\w{_MARKS}{_TRIPLES}]"))
_UNPARTED = re.compile(f"[{_PAIRS}{_TRIPLES}]")
_PIECES = re.compile(rf"[{_PAIRS}]+|[{_TRIPLES}]+|[^{_PAIRS}{_TRIPLES}]+")
_CLITICS = re.compile(
    r"(?i:(?<=\w)n['\u2019]t\b)|(?i:(?<=\w)['\u2019](?:s|ll|d|re|ve|m)\b)|(?<=[a-zA-Z\u00c0-\u024f])['\u2019](?=\w)"
)
_APOSTROPHE = re.compile(r"(?<=\w)['\u2019](?=\w)")

_PLACES = re.compile(r"[/\\:@#]+|__+")
_JOINTS = re.compile(r"[-_.+]+")
_JOINED = re.compile(r"(?<=[^\W\d_])[-_]+(?=[^\W\d_])")
_HUMPS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z0-9]+|[A-Z]+[0-9]*|[0-9]+|[^A-Za-z0-9]+")
_HUMP = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2,}[a-z]")
_HYPHENED = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)+\Z")
_DOTTED_NUMBER = re.compile(r"v?(\d+(?:\.\d+)+)\Z")
_SHORT_NAME = re.compile(r"([a-z]{1,2}(?:\+\+|#))(\d*)\Z")
_YEAR = re.compile(r"(?:19|20)\d\d\Z")
_ASCII_WORD = re.compile(r"[a-z]{3,}\Z")
_ACCENTS = re.compile(
    r"(?<!и)\u0306|[\u0300-\u0305\u0307-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670]"
)
_PLAIN_LETTERS = str.maketrans(
    {"ł": "l", "ø": "o", "đ": "d", "\u0131": "i", "æ": "ae", "œ": "oe", "ß": "ss", "ς": "\u03c3"}
)
_CAPITALS = frozenset({"IT", "US", "WHO"})
_GO = re.compile(
    r"(?<=[^\s.!?:] )Go\b|\A\W*go\W*\Z"
    r"|(?i:\b(?:in|with|using|our|the|of|than|or|for|from) go\b"
    r"|\bgo (?:code|modules?|mod|tests?|services?|versions?|vet|builds?|routines?|channels?|structs?|interfaces?|sdk|"
    r"clients?|servers?|packages?|library|libraries|binary|binaries|lint(?:er)?|toolchain|fmt|compiler|programs?)\b)"
)

WHOLE = 1.2
PLAIN = 1.0
NUMBER = 0.5
PAIR = 0.75
TRIPLE = 0.5
PART = 0.5
COMMON = 0.6
LITTLE = 0.3
OWN = 0.6
FOREIGN = 0.4
_LONG_NUMBER = 4
_TELLING_DIGITS = 3
"""Shorter numbers inside an identifier say nothing by themselves: the 10 of an address, the 01 of a date."""

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class QueryToken:
    """A token of a query; `weight` is how much it can tell by its nature, 1 being an ordinary content word."""

    text: str
    weight: float


class _Remembered(dict[str, _Value], Generic[_Value]):
    """What runs of characters come to: prose repeats itself, and stemming is slow."""

    def __init__(self, make: Callable[[str], _Value]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, run: str) -> _Value:
        made = self._make(run)
        if len(run) <= MAX_TOKEN:
            if len(self) >= _CACHED_RUNS:
                self.clear()
            self[run] = made
        return made


class Tokens:
    """Turns text into tokens; may be shared between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stemmers: dict[str, Callable[[str], str]] = {}
        self._words: dict[str, _Remembered[tuple[QueryToken, ...]]] = {}
        self._texts: dict[str, _Remembered[tuple[str, ...]]] = {}
        self._signs = _Remembered(_signs)
        self._everyday = {
            language: frozenset(itertools.chain(words, (self._stem(word, language) for word in words)))
            for language, words in EVERYDAY.items()
        }
        self._common = frozenset(self._stem(word, ENGLISH) for word in COMMON_WORDS)
        self._dropped = {language: frozenset(FUNCTION_WORDS[language]) for language in FUNCTION_WORDS}
        others = frozenset[str]().union(*(FUNCTION_WORDS[language] for language in _LATIN[1:]))
        self._dropped |= dict.fromkeys(_LATIN[1:], others)
        self._foreign = others - self._dropped[ENGLISH]

    def of(self, text: str) -> dict[str, None]:
        """Return the distinct tokens of a text in the order of their first place."""
        return self.of_fields((text,))[0]

    def of_fields(self, texts: Sequence[str]) -> tuple[dict[str, None], ...]:
        """Return the distinct tokens of each of a note's fields; what language it is in, they tell together."""
        runs = [_runs(text[:MAX_TEXT_CHARACTERS]) for text in texts]
        known = self._known_texts(self._language(itertools.chain.from_iterable(runs)))
        return tuple(dict.fromkeys(itertools.chain.from_iterable(map(known.__getitem__, found))) for found in runs)

    def query(self, text: str) -> tuple[QueryToken, ...]:
        """Return the distinct tokens of a query, of a long one those of its beginning and its end."""
        half = MAX_QUERY_CHARACTERS // 2
        if len(text) > MAX_QUERY_CHARACTERS:
            text = f"{text[:half]} {text[-half:]}"
        runs = _runs(text)
        language = self._language(runs)
        known = self._known_words(language)
        found: dict[str, QueryToken] = {}
        for token in itertools.chain.from_iterable(map(known.__getitem__, runs)):
            before = found.get(token.text)
            if before is None or before.weight < token.weight:
                found[token.text] = token
        if "go" in found and (language != ENGLISH or _GO.search(text)):
            found["go"] = QueryToken("go", PLAIN)
        tokens = tuple(found.values())
        half = MAX_QUERY_TOKENS // 2
        return tokens if len(tokens) <= MAX_QUERY_TOKENS else tokens[:half] + tokens[-half:]

    def _language(self, runs: Iterable[str]) -> str:
        """Guess the language of a text in Latin letters by its function words; what is not clear is English."""
        signs = map(self._signs.__getitem__, itertools.islice(runs, _GUESSED_BY))
        counts = Counter(itertools.chain.from_iterable(signs))
        return max(_LATIN, key=counts.__getitem__)  # of equals the first: English

    def _known_words(self, language: str) -> _Remembered[tuple[QueryToken, ...]]:
        known = self._words.get(language)
        if known is None:
            known = self._words.setdefault(language, _Remembered(lambda run: tuple(self._run(run, language))))
        return known

    def _known_texts(self, language: str) -> _Remembered[tuple[str, ...]]:
        known = self._texts.get(language)
        if known is None:
            words = self._known_words(language)
            known = self._texts.setdefault(language, _Remembered(lambda run: tuple(token.text for token in words[run])))
        return known

    def _run(self, run: str, language: str) -> Iterator[QueryToken]:
        if run.isascii() or not _UNPARTED.search(run):
            yield from self._word(run, language)
            return
        for piece in _PIECES.findall(run):
            if not _UNPARTED.match(piece):
                for word in _runs(piece):
                    yield from self._word(word, language)
            elif "\u0e00" <= piece[0] <= "\u109f" or "\u1780" <= piece[0] <= "\u17dd":
                yield from _grams(piece, 3)
            else:
                yield from _grams(piece.casefold(), 2)

    def _word(self, word: str, language: str) -> Iterator[QueryToken]:
        word = word.rstrip("_")
        folded = _fold(word)
        if word in _CAPITALS:
            yield QueryToken(folded, PLAIN)
        elif (number := _DOTTED_NUMBER.match(folded)) is not None:
            yield from _dotted_number(number[1])
        elif (name := _SHORT_NAME.match(folded)) is not None:
            yield from (QueryToken(text, WHOLE) for text in dict.fromkeys((folded, name[1])))
        elif _JOINTS.search(word) is None and _PLACES.search(word) is None and _HUMP.search(word) is None:
            yield from self._simple(folded, PLAIN, language)
        elif _HYPHENED.match(word):
            yield from self._hyphened(folded, language)
        else:
            yield from self._identifier(word, folded)

    def _hyphened(self, folded: str, language: str) -> Iterator[QueryToken]:
        """Yield the words of a hyphenated word, and what it is without hyphens: `e-mail` is `email`."""
        parts = [token for part in folded.split("-") for token in self._simple(part, PLAIN, language)]
        yield from parts
        weight = LITTLE if any(part.weight >= PLAIN for part in parts) else PLAIN
        for token in self._simple(folded.replace("-", ""), weight, language):
            yield QueryToken(token.text, weight)

    def _identifier(self, word: str, folded: str) -> Iterator[QueryToken]:
        """Yield an identifier or path whole, its components whole, and their parts."""
        components = [component for component in _PLACES.split(word) if component]
        if len(components) > 1 and len(folded) <= MAX_TOKEN:
            yield QueryToken(folded, WHOLE)
        for component in components:
            small = _JOINED.sub("", _fold(component))
            if (number := _DOTTED_NUMBER.match(small)) is not None:
                yield from _dotted_number(number[1])
                continue
            pieces = [
                _fold(part)
                for piece in _JOINTS.split(component)
                for part in (_HUMPS.findall(piece) if _HUMP.search(piece) else (piece,))
            ]
            if len(pieces) > 1 or len(components) == 1:
                yield QueryToken(small[:MAX_TOKEN], WHOLE)
            for piece in pieces:
                tiny = len(pieces) > 1 and piece.isdecimal() and len(piece) < _TELLING_DIGITS
                if piece and not tiny and len(pieces) + len(components) > 2:  # noqa: PLR2004 - one of several
                    yield from self._simple(piece, PART, ENGLISH)

    def _simple(self, folded: str, weight: float, language: str) -> Iterator[QueryToken]:
        if len(folded) < 2:  # noqa: PLR2004 - a lone letter or digit is no query
            return
        if folded in ALIASES:
            yield QueryToken(ALIASES[folded], weight)
            return
        if folded.isdecimal():
            long = len(folded) >= _LONG_NUMBER and not _YEAR.match(folded)
            yield QueryToken(folded[:MAX_TOKEN], weight if long else min(weight, NUMBER))
            return
        own = language
        if not folded.isascii():
            own = next((named for low, high, named in _BY_SCRIPT if low <= folded[0] < high), language)
        if folded in self._dropped[own]:
            return
        stem = self._stem(folded, own)
        if self._says_little(folded, stem, own):
            weight = min(weight, LITTLE)
        elif weight == PLAIN and any(character.isdecimal() for character in folded):
            weight = WHOLE
        english = stem if own not in _LATIN or own == ENGLISH else self._stem(folded, ENGLISH)
        if english in self._common:
            weight *= COMMON if weight > LITTLE else 1
        if english == stem:
            yield QueryToken(stem[:MAX_TOKEN], weight)
        else:
            yield QueryToken(stem[:MAX_TOKEN], OWN * weight)
            yield QueryToken(english[:MAX_TOKEN], FOREIGN * weight)

    def _says_little(self, folded: str, stem: str, language: str) -> bool:
        """Say whether a word is an everyday one, or what another language builds its sentences with.

        The latter stands in a text that is taken for English where a quotation hides what the rest is written in.
        """
        if stem in self._everyday[language] or folded in self._everyday[language]:
            return True
        return language == ENGLISH and folded in self._foreign and stem not in self._common

    def _stem(self, word: str, language: str) -> str:
        if len(word) > MAX_TOKEN or len(word) < 3 or (language in _LATIN and not _ASCII_WORD.match(word)):  # noqa: PLR2004 - too short
            return word
        with self._lock:  # a stemmer keeps the word that it works on
            stem = self._stemmers.get(language)
            if stem is None:
                made = cast("Any", Stemmer.Stemmer(language))  # pyright: ignore[reportUnknownMemberType] - it has no types
                stem = self._stemmers[language] = cast("Callable[[str], str]", made.stemWord)
            return stem(word) or word


def _signs(run: str) -> tuple[str, ...]:
    """Return the languages in which a word is a function word."""
    word = _fold(run)
    return tuple(language for language in _LATIN if word in FUNCTION_WORDS[language])


def _runs(text: str) -> list[str]:
    """Return the runs of characters that may hold words."""
    if text.isascii():
        if "'" in text:
            text = _CLITICS.sub(_without_clitic, text)
        return cast("list[str]", _ASCII_RUNS.findall(text))
    normal = unicodedata.normalize("NFKC", text)
    return cast("list[str]", _RUNS.findall(_APOSTROPHE.sub("", _CLITICS.sub(_without_clitic, normal))))


def _without_clitic(match: re.Match[str]) -> str:
    """Drop the `'s` of English, keep `don't` one word, part `l'équipe`."""
    clitic = match[0]
    if clitic[0] in "nN":
        return "nt"
    return "" if len(clitic) > 1 else " "


def _fold(word: str) -> str:
    """Return a word in lower case and without accents."""
    folded = word.casefold()
    if folded.isascii():
        return folded
    bare = _ACCENTS.sub("", unicodedata.normalize("NFD", folded))
    return unicodedata.normalize("NFC", bare).translate(_PLAIN_LETTERS)


def _dotted_number(number: str) -> Iterator[QueryToken]:
    """Yield a version or an address; a version of three parts goes by its first two as well."""
    yield QueryToken(number[:MAX_TOKEN], WHOLE)
    parts = number.split(".")
    if len(parts) == 3:  # noqa: PLR2004 - major, minor, patch
        yield QueryToken(".".join(parts[:2])[:MAX_TOKEN], PART)


def _grams(run: str, size: int) -> Iterator[QueryToken]:
    """Yield the overlapping grams of a run; a run shorter than a gram is no token, unless it could be a word."""
    if len(run) < size and size > 2:  # noqa: PLR2004 - a pair of Thai characters may be a word, a lone Han is no query
        yield QueryToken(run, LITTLE)
    for at in range(len(run) - size + 1):
        gram = run[at : at + size]
        if gram not in GRAMMAR_GRAMS:
            yield QueryToken(gram, _gram_weight(gram))


def _gram_weight(gram: str) -> float:
    if any("\u3041" <= character <= "\u309f" or character in GRAMMAR_CHARACTERS for character in gram):
        return LITTLE
    if len(gram) > 2:  # noqa: PLR2004 - no pair
        return TRIPLE
    return COMMON * PAIR if gram in COMMON_PAIRS else PAIR
