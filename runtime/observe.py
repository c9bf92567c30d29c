"""How the engine states facts: observers watch, and cannot hurt what they watch.

`emit` is synchronous, returns nothing and never raises. An observer that fails loses that one event, is counted,
and is logged once per kind of event; after `FAILURES_TO_SWITCH_OFF` failures in a row it is switched off
(the habit is trio's instruments). `operation` states the start and the finish of a piece of work in one task.
"""

import itertools
import logging
import secrets
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol

import anyio

from recallscope.runtime.events import Cause, Ended, Event, FinishedT, OpId, Started, Status

__all__ = ["Clock", "Ids", "Observer", "ObserverStatistics", "Observers", "Operation"]

_log = logging.getLogger(__name__)

FAILURES_TO_SWITCH_OFF = 10

Clock = Callable[[], float]
"""Seconds of a monotonic clock."""

Ids = Callable[[], OpId]
"""Makes a new operation id, unique across processes."""


class Observer(Protocol):
    """Whoever watches: called with each event, in order, in the task that states it."""

    def __call__(self, event: Event, /) -> None:
        """Take one event; must be quick, must not block, may not change anything in the engine."""


@dataclass(frozen=True, slots=True)
class ObserverStatistics:
    """What became of one observer: failures in all, and whether it was switched off."""

    name: str
    failures: int
    switched_off: bool


@dataclass(slots=True)
class _Watched:
    observer: Observer
    name: str
    failures: int = 0
    in_a_row: int = 0
    logged: set[str] = field(default_factory=set[str])
    off: bool = False


def process_ids() -> Ids:
    """Make ids from a random prefix of this process and a counter."""
    prefix = secrets.token_hex(4)
    numbers = itertools.count(1)
    return lambda: OpId(f"{prefix}{next(numbers):08x}")


class Observers:
    """The observers of one engine, with the clock and the ids that its events carry."""

    def __init__(
        self, observers: Sequence[Observer] = (), *, clock: Clock = time.monotonic, ids: Ids | None = None
    ) -> None:
        self._watched = [_Watched(observer, _name_of(observer)) for observer in observers]
        self.now = clock
        self.new_op = ids or process_ids()

    def add(self, observer: Observer) -> None:
        """Let one more observer watch from the next event on."""
        # A new list: an observer that is added while an event is being stated does not see that one.
        self._watched = [*self._watched, _Watched(observer, _name_of(observer))]

    def remove(self, observer: Observer) -> None:
        """Let `observer` watch no longer; unknown observers are ignored."""
        self._watched = [watched for watched in self._watched if watched.observer is not observer]

    def emit(self, event: Event) -> None:
        """State one fact to every observer; a failing observer loses it, the others and the engine go on."""
        for watched in self._watched:
            if watched.off:
                continue
            try:
                watched.observer(event)
            except Exception as error:  # noqa: BLE001 - the one place where any failure is caught: see the module text
                self._failed(watched, event, error)
            else:
                watched.in_a_row = 0

    def statistics(self) -> tuple[ObserverStatistics, ...]:
        """Say for each observer how often it failed and whether it is off."""
        return tuple(ObserverStatistics(watched.name, watched.failures, watched.off) for watched in self._watched)

    @contextmanager
    def operation(
        self, started: "Started[FinishedT]", *, cause: Callable[[], Cause | None] = lambda: None
    ) -> "Generator[Operation[FinishedT]]":
        """State `started`, run the block, and state its finish: ok, failed, or cancelled with what `cause` says then.

        Never hold this open across a `yield` of an asynchronous generator: the finish would be stated in whatever
        task closes the generator.
        """
        self.emit(started)
        operation = Operation[FinishedT]()
        try:
            yield operation
        except BaseException as error:
            if _is_cancellation(error):
                ended = Ended(at=self.now(), status=Status.CANCELLED, cause=cause())
            else:
                name = getattr(error, "error_type", None) or type(error).__name__
                ended = Ended(at=self.now(), status=Status.FAILED, error_type=str(name))
            self._finish(started, operation, ended)
            raise
        self._finish(started, operation, Ended(at=self.now(), status=Status.OK))

    def _finish(self, started: "Started[FinishedT]", operation: "Operation[FinishedT]", ended: Ended) -> None:
        finished = started.finished(ended)
        self.emit(replace(finished, **operation.noted) if operation.noted else finished)

    def _failed(self, watched: _Watched, event: Event, error: Exception) -> None:
        watched.failures += 1
        watched.in_a_row += 1
        kind = type(event).__name__
        if kind not in watched.logged:
            watched.logged.add(kind)
            _log.warning("observer %s failed on %s and lost it", watched.name, kind, exc_info=error)
        if watched.in_a_row >= FAILURES_TO_SWITCH_OFF:
            watched.off = True
            _log.error("observer %s failed %d times in a row and is switched off", watched.name, FAILURES_TO_SWITCH_OFF)


class Operation(Generic[FinishedT]):
    """A piece of work under way: what it learns on the way is noted for its finish event."""

    def __init__(self) -> None:
        self.noted: dict[str, Any] = {}

    def note(self, **fields: Any) -> None:
        """Set fields of the finish event; a later note of the same field wins."""
        self.noted.update(fields)


def _is_cancellation(error: BaseException) -> bool:
    try:
        return isinstance(error, anyio.get_cancelled_exc_class())
    except anyio.NoEventLoopError:
        return False  # in a thread without a loop nothing is cancelled


def _name_of(observer: Observer) -> str:
    return getattr(observer, "name", None) or type(observer).__name__
