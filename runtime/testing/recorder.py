"""An observer that keeps what it sees, for tests and reports that compare lists of events."""

from collections.abc import Callable
from typing import TypeVar

import anyio

from recallscope.runtime.events import Event

__all__ = ["EventRecorder"]

EventT = TypeVar("EventT", bound=Event)


class EventRecorder:
    """Keeps every event in the order in which it was stated."""

    name = "recorder"

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._waiters: list[tuple[Callable[[Event], bool], anyio.Event]] = []

    def __call__(self, event: Event, /) -> None:
        """Keep `event`."""
        self.events.append(event)
        for matches, happened in self._waiters:
            if not happened.is_set() and matches(event):
                happened.set()

    def of(self, kind: type[EventT]) -> list[EventT]:
        """Return the events of one kind (subclasses included), in order."""
        return [event for event in self.events if isinstance(event, kind)]

    def only(self, kind: type[EventT]) -> EventT:
        """Return the one event of its kind.

        Raises:
            LookupError: there is none, or more than one.
        """
        found = self.of(kind)
        if len(found) != 1:
            raise LookupError(f"{len(found)} events of the kind {kind.__name__} instead of one, among {self.kinds()}")
        return found[0]

    def kinds(self) -> list[str]:
        """Return the names of the kinds of all events, in order."""
        return [type(event).__name__ for event in self.events]

    async def wait_for(self, kind: type[EventT], predicate: Callable[[EventT], bool] = lambda _: True) -> EventT:
        """Return the first event of `kind` for which `predicate` holds, now or as soon as it is stated.

        It waits without an end; bound it with `anyio.fail_after`.
        """
        found = next((event for event in self.of(kind) if predicate(event)), None)
        if found is not None:
            return found
        seen: list[EventT] = []

        def matches(event: Event) -> bool:
            if isinstance(event, kind) and predicate(event):
                seen.append(event)
                return True
            return False

        waiter = (matches, anyio.Event())
        self._waiters.append(waiter)
        try:
            await waiter[1].wait()
        finally:
            self._waiters.remove(waiter)
        return seen[0]

    def clear(self) -> None:
        """Forget what was seen."""
        self.events.clear()
