"""When the words have settled it: the query asks for one note by its title, and no other note comes near."""

import re
import unicodedata
from typing import Final

from recallscope.runtime.memory.rank import Field
from recallscope.runtime.memory.search import Dropped, Found, Source

__all__ = ["FAR_AHEAD", "is_certain", "names_title"]

FAR_AHEAD: Final = 0.5
"""Every other note has less than this share of the first one's score."""

_RIVALS: Final = frozenset({Dropped.THRESHOLD, Dropped.UNRELATED, Dropped.PLACE})
"""Notes left out for these reasons could have been chosen; the others no selector would get to see."""

_WORD: Final = re.compile(r"\w+")


def is_certain(query: str, found: Found) -> bool:
    """Tell whether no model is needed: one note alone in the fast result, asked for by its title, and far ahead.

    The whole title stands in the query, and every telling word of the query stands in the title: a query that says
    more, such as a task, may want other notes too. Only a whole answer of the words can be certain: where the search
    was interrupted, or vectors had a say, the selector is asked.
    """
    if len(found.fast) != 1 or found.partial or found.sources != (Source.WORDS,):
        return False
    first = found.fast[0]
    others = [hit.score for hit in found.lexical if hit.note.id != first.note.id]
    others += [left.hit.score for left in found.left_out if left.why in _RIVALS]
    if max(others, default=0.0) >= FAR_AHEAD * first.score:
        return False
    in_title = {part.word for part in first.parts if part.field is Field.TITLE}
    return bool(found.asked) and found.asked <= in_title and names_title(query, first.note.title)


def names_title(query: str, title: str) -> bool:
    """Tell whether the whole `title` stands in `query`, word for word.

    Capitals, punctuation and the forms of characters (NFKC) do not count.
    """
    wanted, asked = _words(title), _words(query)
    return bool(wanted) and f" {wanted} " in f" {asked} "


def _words(text: str) -> str:
    return " ".join(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))
