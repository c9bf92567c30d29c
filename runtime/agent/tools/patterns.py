"""File name patterns: `*`, `?`, `[…]` within a name, `**` across folders, `{a,b}` for choices."""

import fnmatch
import re
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import product

from recallscope.runtime.errors import ToolError

__all__ = ["compile_pattern"]

PATTERN_LENGTH = 500
CHOICES = 64

_BRACES = re.compile(r"\{([^{}]*)\}")


def compile_pattern(pattern: str) -> Callable[[str], bool]:
    """Return a test for paths like `a/b/c.py`; its cost grows with path times pattern, never faster.

    Raises:
        ToolError: the pattern is too long, absolute, leads upwards or has too many choices.
    """
    if not pattern or len(pattern) > PATTERN_LENGTH:
        raise ToolError(f"a file pattern has 1 to {PATTERN_LENGTH} characters, not {len(pattern)}")
    if pattern.startswith("/") or ".." in pattern.split("/"):
        raise ToolError(f"{pattern!r} leads outside; a pattern is relative, like src/**/*.py")
    choices = [_compiled(choice) for choice in _choices(pattern)]
    return lambda path: any(_matches(choice, path.split("/")) for choice in choices)


def _choices(pattern: str) -> list[str]:
    pieces = _BRACES.split(pattern)  # text and insides of braces take turns
    options = [piece.split(",") if place % 2 else [piece] for place, piece in enumerate(pieces)]
    if reduce(lambda count, option: count * len(option), options, 1) > CHOICES:
        raise ToolError(f"the pattern has more than {CHOICES} choices; ask in several calls")
    return ["".join(choice) for choice in product(*options)]


def _compiled(pattern: str) -> Sequence[re.Pattern[str] | None]:
    """Compile each name of the pattern; None stands for `**`."""
    names = [name for name in pattern.split("/") if name not in {"", "."}]
    try:
        return [None if name == "**" else re.compile(fnmatch.translate(name)) for name in names]
    except re.error as error:
        raise ToolError(f"{pattern!r} is no file pattern: {error}") from None


def _matches(pattern: Sequence[re.Pattern[str] | None], names: Sequence[str]) -> bool:
    # reached[i]: the pattern so far matches the first i names.
    reached = [True] + [False] * len(names)
    for part in pattern:
        if part is None:
            first = reached.index(True) if True in reached else len(names) + 1
            reached = [place >= first for place in range(len(names) + 1)]
        else:
            reached = [False] + [
                before and part.match(name) is not None for before, name in zip(reached, names, strict=False)
            ]
    return reached[-1]
