"""Vectors for tests: the same text always gives the same one, and texts that share words or their parts are alike.

This is no language model and proves nothing about one. It exists so that what is built around an embedding model can be
tried without one: character pieces are hashed into the places of a vector, and words of one group of synonyms, which
the script states, share a place. What such vectors find was therefore put into the script.
"""

import hashlib
import math
import re
import unicodedata
from collections.abc import Sequence

__all__ = ["Embedder"]

WORD = 1.0
GROUP = 2.0
PIECES = 1.0
SHORT = 0.2
SHORTEST_WORD = 4
PIECE = 3

_WORD = re.compile(r"\w+")


class Embedder:
    """Makes vectors of length 1 with `dimension` numbers; the words of one group in `synonyms` are alike."""

    def __init__(self, dimension: int = 256, synonyms: Sequence[Sequence[str]] = ()) -> None:
        self._dimension = dimension
        self._groups = {_fold(word): number for number, group in enumerate(synonyms) for word in group}
        self._words: dict[str, tuple[tuple[int, float], ...]] = {}

    def vector(self, text: str) -> tuple[float, ...]:
        """Return the vector of `text`; a text without a word gives one that is like no other."""
        numbers = [0.0] * self._dimension
        for word in dict.fromkeys(_WORD.findall(_fold(text))):
            for place, value in self._known(word):
                numbers[place] += value
        length = math.sqrt(sum(number * number for number in numbers))
        if not length:
            numbers[self._place(f"empty {text}")[0]] = length = 1.0
        return tuple(number / length for number in numbers)

    def _known(self, word: str) -> tuple[tuple[int, float], ...]:
        known = self._words.get(word)
        if known is None:
            known = self._words[word] = tuple(self._features(word))
        return known

    def _features(self, word: str) -> list[tuple[int, float]]:
        short = SHORT if len(word) < SHORTEST_WORD and word.isascii() else 1.0
        marked = f"<{word}>"
        pieces = [marked[at : at + PIECE] for at in range(len(marked) - PIECE + 1)]
        wanted = [(f"word {word}", WORD * short)]
        wanted += [(f"piece {piece}", PIECES * short / math.sqrt(len(pieces))) for piece in pieces]
        if word in self._groups:
            wanted.append((f"group {self._groups[word]}", GROUP))
        return [(place, sign * weight) for name, weight in wanted for place, sign in [self._place(name)]]

    def _place(self, feature: str) -> tuple[int, float]:
        digest = int.from_bytes(hashlib.blake2b(feature.encode("utf-8", "replace"), digest_size=8).digest(), "big")
        return (digest >> 1) % self._dimension, 1.0 if digest & 1 else -1.0


def _fold(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()
