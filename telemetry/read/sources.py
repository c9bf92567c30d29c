"""Where recorded turns come from: what every source can do."""

from collections.abc import Iterable, Iterator
from heapq import nlargest
from typing import Final, Protocol

from recallscope.telemetry.read.figures import ReadError
from recallscope.telemetry.read.recorded import RecordedTurn

__all__ = ["LAST", "TurnSource", "ambiguous", "not_found", "slowest_of"]

LAST: Final = "last"
"""The name of the turn that ended last."""

SHOWN: Final = 5


class TurnSource(Protocol):
    """Turns that were recorded; all methods block."""

    @property
    def where(self) -> str:
        """What is read, for people."""
        ...

    @property
    def broken(self) -> int:
        """How many broken lines stood in what was read so far, and were left out; a torn last line is none."""
        ...

    def turns(self, *, since: float | None = None) -> Iterator[RecordedTurn]:
        """Yield the turns that ended, or were last seen, at `since` (seconds since 1970) or later, in no order.

        Raises:
            ReadError: the source cannot be read.
        """
        ...

    def slowest(self, *, top: int, since: float | None = None) -> list[RecordedTurn]:
        """Return the `top` turns that took the longest, the slowest first.

        Raises:
            ReadError: the source cannot be read.
        """
        ...

    def find(self, name: str) -> RecordedTurn:
        """Return the turn with the id or the trace id `name`, or the only one whose id begins so; or `last`.

        Raises:
            ReadError: there is none, there are several, or the source cannot be read.
        """
        ...


def slowest_of(turns: Iterable[RecordedTurn], top: int) -> list[RecordedTurn]:
    """Return the `top` longest of `turns`, the longest first, holding no more than that many at once."""
    return nlargest(top, turns, key=lambda turn: (turn.length, turn.wall))


def not_found(name: str, where: str) -> ReadError:
    """Make the error for a turn that is not there."""
    if name == LAST:
        return ReadError(f"no turn was found in {where}; run one, or name another place with --from")
    return ReadError(
        f"no turn {name!r} was found in {where}; `recallscope slow` lists turns, --from names another place"
    )


def ambiguous(name: str, found: Iterable[str]) -> ReadError:
    """Make the error for a name that several turns have."""
    names = sorted(found)
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ReadError(f"{name!r} may be {', '.join(names[:SHOWN])}{more}; give more of it")
