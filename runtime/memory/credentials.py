"""Finds credentials in what is about to be written to memory.

Notes are read by models, copied into requests and kept for years: a secret has no place in them. A finding names the
rule and the line, never the value. The rules are those of the library `detect-secrets` that go by a secret's own form;
what it does not know stands in `credential_rules`. Neither proves that a text is clean.

Every character is scanned, in pieces of at most `PIECE` characters: the work grows with the length of the text, not
with that of its lines, and no single search holds the interpreter for long. What is written to look like ASCII, or has
characters in between that nobody sees, is scanned once more as plain text.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

__all__ = ["OVERLAP", "PIECE", "Finding", "find_credentials", "pieces"]

PIECE: Final = 2_048
"""The most characters that one regular expression sees at once."""

OVERLAP: Final = 512
"""Neighbouring pieces of one long line share this many characters, more than any rule needs to see."""

MOST_FINDINGS: Final = 20

_INVISIBLE: Final = re.compile(
    "[\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u206f\\u3164"
    "\\ufdf0-\\ufdfb\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufffb\\U000e0000-\\U000e0fff]"
)
"""Characters without width, and the Arabic phrases in one sign, up to 18 letters long; none is a line break."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A line that looks like it holds a credential; `line` counts from 1."""

    rule: str
    line: int


def find_credentials(text: str) -> tuple[Finding, ...]:
    """Return the lines of `text` that look like they hold a credential, in order, each with the first rule it meets.

    After `MOST_FINDINGS` lines the scan ends: such a text is refused anyway.
    """
    # The library takes a fifth of a second to import, which only a process that writes shall pay.
    from recallscope.runtime.memory.credential_rules import all_rules  # noqa: PLC0415 - the line above says why

    rules = all_rules()
    found: dict[int, str] = {}
    for first, piece in _as_written_and_as_seen(text):
        suspects = [rule for rule in rules if rule.may_stand_in(piece)]
        if not suspects:
            continue
        for number, line in enumerate(piece.split("\n"), start=first):
            name = next((rule.name for rule in suspects if rule.stands_in(line)), None)
            if name is not None:
                found.setdefault(number, name)
        if len(found) >= MOST_FINDINGS:
            break
    return tuple(Finding(rule, number) for number, rule in sorted(found.items())[:MOST_FINDINGS])


def _as_written_and_as_seen(text: str) -> Iterator[tuple[int, str]]:
    """Yield the pieces of `text`, then those that differ without invisible characters and with plain forms (NFKC).

    A piece is normalised by itself: the work of it may grow with the square of a run of accents.
    """
    yield from pieces(text)
    if text.isascii():
        return
    seen = _INVISIBLE.sub("", text)
    for first, piece in pieces(seen):
        plain = _INVISIBLE.sub("", unicodedata.normalize("NFKC", piece))
        if plain != piece or len(seen) != len(text):
            yield first, plain


def pieces(text: str) -> Iterator[tuple[int, str]]:
    """Cut `text` into pieces of at most `PIECE` characters, each with the number of its first line.

    Short lines are taken together, a longer line is cut with an overlap: every run of up to `OVERLAP` characters within
    a line stands whole in one piece. The pieces hold at most twice the characters of the text.
    """
    start, first, length = 0, 1, len(text)
    while start < length:
        if length - start <= PIECE:
            yield first, text[start:]
            return
        end = text.rfind("\n", start, start + PIECE)
        if end >= start:
            piece = text[start:end]
            yield first, piece
            first += piece.count("\n") + 1
            start = end + 1
            continue
        line_end = text.find("\n", start)
        line_end = length if line_end < 0 else line_end
        while True:
            yield first, text[start : min(start + PIECE, line_end)]
            if start + PIECE >= line_end:
                break
            start += PIECE - OVERLAP
        start, first = line_end + 1, first + 1
