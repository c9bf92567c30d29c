"""How a value is told to a person without giving a credential away: the one rule for errors and for listings.

A value under a name that looks like a credential's is masked whole. Of other texts the parts that may be credentials
are masked: user, password and query of an address, what follows `Bearer`, and `token=...` among other settings. Tables
and lists are told by their kind alone.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["MASK", "Described", "is_credential", "mask_text", "tell"]

MASK: Final = "********"
LONGEST_TOLD = 200
LARGEST_TOLD = 10**100

_WORDS = "key|token|secret|passw|pwd|authorization|header|credential|cookie"
_CREDENTIAL = re.compile(_WORDS, re.IGNORECASE)
_SCHEME = re.compile(r"\b(bearer|basic)\s+\S+", re.IGNORECASE)
_USER = re.compile(r"//.*@", re.DOTALL)
_BARE_USER = re.compile(r"[^\s/@:]+:(?!//)\S*@")
_QUERY = re.compile(r"(://[^?#]*[?#]|\?(?=\S*=)).*", re.DOTALL)
_SETTING = re.compile(rf"([\w.\-]*(?:{_WORDS})[\w.\-]*[\"']?\s*(?:=|:(?!//))\s*)[^\s,;&]+", re.IGNORECASE)


@dataclass(frozen=True, slots=True, repr=False)
class Described:
    """A value that is told by words about it; its `repr` is these words, without quotes."""

    words: str

    def __repr__(self) -> str:
        return self.words


def is_credential(name: str) -> bool:
    """Tell whether the name of a key or of a variable looks like that of a credential."""
    return _CREDENTIAL.search(name) is not None


def mask_text(text: str) -> str:
    """Return `text` with what may be a credential in it masked."""
    text = _SCHEME.sub(rf"\g<1> {MASK}", text)
    text = _BARE_USER.sub(f"{MASK}@", _USER.sub(f"//{MASK}@", text))
    return _SETTING.sub(rf"\g<1>{MASK}", _QUERY.sub(rf"\g<1>{MASK}", text))


def tell(value: object) -> object:
    """Return what an error may show of `value`: something short whose `repr` holds no credential."""
    match value:
        case Mapping():
            return Described("a table")
        case list() | tuple():
            return Described("a list")
        case int() if abs(value) > LARGEST_TOLD:
            return Described("a very large number")
        case str() | Path():
            text = mask_text(str(value))
            return text if len(text) <= LONGEST_TOLD else text[:LONGEST_TOLD] + "…"
        case _:
            return value
