"""HTML and SVG as text that cannot be spoilt by what stands in it: every plain string is escaped."""

import html
import unicodedata

__all__ = ["Markup", "joined", "plain", "tag"]

_VOID = frozenset({"meta", "br", "hr", "col"})
_ALLOWED_CONTROLS = frozenset("\n\t")
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Controls, formats such as turned directions, surrogates, separators of lines: shown as U+FFFD."""


class Markup(str):
    """Text that is markup already; whatever else is put into an element is escaped."""

    __slots__ = ()


def plain(text: str) -> Markup:
    """Return `text` as markup that shows it: special characters escaped, those that show nothing replaced."""
    shown = "".join(
        character if character in _ALLOWED_CONTROLS or unicodedata.category(character) not in _UNSEEN else "\ufffd"
        for character in text
    )
    return Markup(html.escape(shown, quote=True))


def joined(*parts: str) -> Markup:
    """Return the parts one after the other; those that are no markup are escaped."""
    return Markup("".join(part if isinstance(part, Markup) else plain(part) for part in parts))


def tag(name: str, /, *children: str, **attributes: str | float | None) -> Markup:
    """Return an element; in the names of attributes `_` stands for `-`, and one at the end is left out.

    An attribute that is None is left out. Numbers are written as short as they can be.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{joined(*children)}</{name}>")


def _value(value: str | float) -> str:
    if isinstance(value, Markup):
        return str(value)
    return plain(value) if isinstance(value, str) else f"{value:.6g}"
