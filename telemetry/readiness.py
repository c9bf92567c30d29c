"""When something was ready for the first send of a turn: what a ceiling must be so that the send can take it along."""

from typing import Final

from recallscope.runtime.events import OpId, Point, RecallFastResult, RecallSettled, RecallWaited

__all__ = ["Readiness"]

MAX_OPEN: Final = 10_000


class Readiness:
    """Learns from the events of each recall when its first send asked for memory, and when notes first were there."""

    def __init__(self) -> None:
        self._asked: dict[OpId, float] = {}
        self._ready: dict[OpId, float] = {}

    def came(self, event: RecallFastResult | RecallSettled) -> None:
        """Take a result; an empty one makes nothing ready."""
        if event.notes and len(self._ready) < MAX_OPEN:
            self._ready.setdefault(event.op, event.at)

    def waited(self, event: RecallWaited) -> None:
        """Take a hold; the first one at the initial point tells when memory was asked for."""
        if event.point is Point.INITIAL and len(self._asked) < MAX_OPEN:
            self._asked.setdefault(event.op, event.at - event.waited)

    def closed(self, recall: OpId) -> float | None:
        """Return how long after the question notes were there (seconds, 0 if before it), and forget the recall.

        None: no send asked, or no notes came.
        """
        asked, ready = self._asked.pop(recall, None), self._ready.pop(recall, None)
        return None if asked is None or ready is None else max(ready - asked, 0.0)
