"""The kinds of value that a configuration key may take: what each allows, and how it is read.

A value is read from text (the environment, a flag) or from a typed TOML value; text that looks like a number is a
number only in the former.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Generic, TypeVar
from urllib.parse import urlsplit

from recallscope.runtime.config.masking import MASK

__all__ = [
    "FILE",
    "FOLDER",
    "HOST",
    "OPTIONAL_FOLDER",
    "OPTIONAL_TEXT",
    "SECRET",
    "SWITCH",
    "TEXT",
    "URL",
    "Kind",
    "Reading",
    "Secret",
    "WrongValueError",
    "choice",
    "number",
    "optional_whole",
    "seconds",
    "whole",
]

T = TypeVar("T")
C = TypeVar("C", bound=StrEnum)

LONGEST_TEXT = 4_096
_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})


class WrongValueError(Exception):
    """A value is not of its kind; `load` says which key, and where the value came from."""


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """A credential that shows itself only by `value`: neither `str` nor `repr` has it."""

    value: str

    def __repr__(self) -> str:
        return MASK


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How one value is read: `from_text` or typed, relative paths below `base`, `~` as `home`."""

    from_text: bool
    base: Path
    home: Path


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """What a key may hold: `allowed` says it in words, `read` makes the value or raises `WrongValueError`."""

    allowed: str
    read: Callable[[object, Reading], T]


def _text(value: object, _reading: Reading) -> str:
    if not isinstance(value, str) or len(value) > LONGEST_TEXT or not value.isprintable():
        raise WrongValueError
    return value


def _some_text(value: object, reading: Reading) -> str:
    text = _text(value, reading)
    if not text or text != text.strip():
        raise WrongValueError
    return text


def _optional_text(value: object, reading: Reading) -> str | None:
    return None if value == "" else _some_text(value, reading)


def _secret(value: object, reading: Reading) -> Secret | None:
    text = _text(value, reading)
    if not text:
        return None
    if not text.isascii() or " " in text:
        raise WrongValueError
    return Secret(text)


def _url(value: object, reading: Reading) -> str | None:
    text = _text(value, reading)
    if not text:
        return None
    try:
        parts = urlsplit(text)
        usable = parts.port != 0
    except ValueError:
        raise WrongValueError from None
    if parts.scheme not in {"http", "https"} or not parts.hostname or not usable or " " in text:
        raise WrongValueError
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise WrongValueError
    return text.rstrip("/")


def _host(value: object, reading: Reading) -> str:
    text = _some_text(value, reading)
    if any(character in text for character in " /@"):
        raise WrongValueError
    return text


def _switch(value: object, reading: Reading) -> bool:
    if isinstance(value, bool):
        return value
    if reading.from_text and isinstance(value, str):
        if value.lower() in _TRUE:
            return True
        if value.lower() in _FALSE:
            return False
    raise WrongValueError


def _folder(value: object, reading: Reading) -> Path:
    text = _some_text(str(value) if isinstance(value, Path) else value, reading)
    if text == "~" or text.startswith("~/"):
        return Path(reading.home, text[2:])
    return Path(reading.base, text)


def _optional_folder(value: object, reading: Reading) -> Path | None:
    return None if value == "" else _folder(value, reading)


def _file(value: object, reading: Reading) -> Path | None:
    path = _optional_folder(value, reading)
    try:
        if path is None or path.is_file():
            return path
    except OSError:
        pass
    raise WrongValueError


TEXT = Kind("a text in one line", _some_text)
OPTIONAL_TEXT = Kind("a text in one line, or an empty one for none", _optional_text)
SECRET = Kind("a credential of ASCII characters without spaces, or an empty text for none", _secret)
URL = Kind(
    "an address such as http://127.0.0.1:8000/v1, without user, password and query, or an empty text for none", _url
)
HOST = Kind("a host name or an IP address", _host)
SWITCH = Kind("true or false", _switch)
FOLDER = Kind("the path of a folder", _folder)
OPTIONAL_FOLDER = Kind("the path of a folder, or an empty text for none", _optional_folder)
FILE = Kind("the path of a file that exists, or an empty text for none", _file)


def choice(members: type[C]) -> Kind[C]:
    """Return the kind that allows the values of `members`."""

    def read(value: object, reading: Reading) -> C:
        text = _text(value, reading)
        try:
            return members(text)
        except ValueError:
            raise WrongValueError from None

    return Kind(f"one of {', '.join(member.value for member in members)}", read)


def whole(lowest: int, highest: int) -> Kind[int]:
    """Return the kind of whole numbers from `lowest` to `highest`, both included."""

    def read(value: object, reading: Reading) -> int:
        if reading.from_text and isinstance(value, str):
            try:
                value = int(value)
            except ValueError:
                raise WrongValueError from None
        if isinstance(value, bool) or not isinstance(value, int) or not lowest <= value <= highest:
            raise WrongValueError
        return value

    return Kind(f"a whole number from {lowest} to {highest}", read)


def optional_whole(highest: int) -> Kind[int | None]:
    """Return the kind of whole numbers up to `highest`; 0 means none."""
    kind = whole(0, highest)
    return Kind(f"{kind.allowed}, 0 for none", lambda value, reading: kind.read(value, reading) or None)


def seconds(lowest: float, highest: float) -> Kind[float]:
    """Return the kind of times in seconds from `lowest` to `highest`, both included."""
    return Kind(f"a number of seconds from {lowest:g} to {highest:g}", number(lowest, highest).read)


def number(lowest: float, highest: float) -> Kind[float]:
    """Return the kind of numbers from `lowest` to `highest`, both included."""

    def read(value: object, reading: Reading) -> float:
        if reading.from_text and isinstance(value, str):
            try:
                value = float(value)
            except ValueError:
                raise WrongValueError from None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise WrongValueError
        if not lowest <= value <= highest:  # nor is it within when it is no number
            raise WrongValueError
        return float(value)

    return Kind(f"a number from {lowest:g} to {highest:g}", read)
