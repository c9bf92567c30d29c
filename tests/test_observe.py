"""How facts are stated: observers watch, and cannot hurt what they watch."""

import itertools
import logging
from collections.abc import Callable

import anyio
import anyio.to_thread
import pytest

from recallscope.runtime.errors import ModelStatusError
from recallscope.runtime.events import (
    Cause,
    Event,
    OpId,
    SessionClosed,
    Status,
    ToolFinished,
    ToolStarted,
    TurnFirstToken,
)
from recallscope.runtime.observe import FAILURES_TO_SWITCH_OFF, Observers, ObserverStatistics, process_ids
from recallscope.runtime.testing.recorder import EventRecorder


class Faulty:
    """An observer that fails whenever it is told to."""

    name = "faulty"

    def __init__(self, *, failing: bool = True) -> None:
        self.failing = failing
        self.seen: list[Event] = []

    def __call__(self, event: Event, /) -> None:
        """Fail, or keep the event."""
        if self.failing:
            raise ValueError("a bug")
        self.seen.append(event)


def fact(number: int = 0) -> Event:
    """Make a fact."""
    return TurnFirstToken(op=OpId("turn"), at=float(number))


def started() -> ToolStarted:
    """Make the start of a tool call."""
    return ToolStarted(op=OpId("tool"), at=1.0, parent=OpId("turn"), tool="grep", call_id="c1")


def observers_at(recorder: EventRecorder, *moments: float) -> Observers:
    """State to a recorder, with these times one after the other."""
    return Observers([recorder], clock=iter(moments).__next__)


def test_observers_see_each_event_in_order() -> None:
    """Every observer gets every event, the first one first."""
    seen: list[tuple[str, Event]] = []
    first: Callable[[Event], None] = lambda event: seen.append(("first", event))  # noqa: E731 - two of them, in a line
    second: Callable[[Event], None] = lambda event: seen.append(("second", event))  # noqa: E731 - as above
    observers = Observers([first, second])
    observers.emit(fact(1))
    observers.emit(fact(2))

    assert seen == [("first", fact(1)), ("second", fact(1)), ("first", fact(2)), ("second", fact(2))]


def test_a_failing_observer_loses_its_event_alone(caplog: pytest.LogCaptureFixture) -> None:
    """Emit never raises; the other observers see the event; the failure is counted and logged once per kind."""
    faulty, recorder = Faulty(), EventRecorder()
    observers = Observers([faulty, recorder])
    closed = SessionClosed(op=OpId("s"), at=2.0, session="s", cause=Cause.SESSION_DISPOSE)
    for event in (fact(1), fact(2), closed):
        observers.emit(event)

    assert recorder.events == [fact(1), fact(2), closed]
    assert observers.statistics() == (
        ObserverStatistics("faulty", 3, switched_off=False),
        ObserverStatistics("recorder", 0, switched_off=False),
    )
    assert [record.getMessage() for record in caplog.records] == [
        "observer faulty failed on TurnFirstToken and lost it",
        "observer faulty failed on SessionClosed and lost it",
    ]
    assert all(record.exc_info for record in caplog.records)


def test_an_observer_that_fails_ten_times_in_a_row_is_off(caplog: pytest.LogCaptureFixture) -> None:
    """The tenth failure in a row switches it off, says so once, and it is asked no more."""
    faulty = Faulty()
    observers = Observers([faulty])
    for number in range(FAILURES_TO_SWITCH_OFF + 5):
        observers.emit(fact(number))
    faulty.failing = False
    observers.emit(fact())

    assert observers.statistics() == (ObserverStatistics("faulty", 10, switched_off=True),)
    assert faulty.seen == []
    assert [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR] == [
        "observer faulty failed 10 times in a row and is switched off"
    ]


def test_a_success_begins_the_count_anew() -> None:
    """Failures that are not in a row never switch an observer off."""
    faulty = Faulty()
    observers = Observers([faulty])
    for number in range(100):
        faulty.failing = number % FAILURES_TO_SWITCH_OFF != 0
        observers.emit(fact(number))

    assert observers.statistics() == (ObserverStatistics("faulty", 90, switched_off=False),)
    assert len(faulty.seen) == 10


def test_observers_come_and_go() -> None:
    """An observer sees what is stated between its coming and its going; going twice changes nothing."""
    recorder = EventRecorder()
    observers = Observers()
    observers.emit(fact(1))
    observers.add(recorder)
    observers.emit(fact(2))
    observers.remove(recorder)
    observers.remove(recorder)
    observers.emit(fact(3))

    assert recorder.events == [fact(2)]


def test_observers_that_change_the_list_while_an_event_is_stated() -> None:
    """One that is added meanwhile watches from the next event on; one that removes itself hides none from others."""
    recorder, last = EventRecorder(), EventRecorder()
    observers = Observers()

    def once(_: Event) -> None:
        observers.remove(once)
        observers.add(recorder)

    observers.add(once)
    observers.add(last)
    observers.emit(fact(1))
    observers.emit(fact(2))

    assert (recorder.events, last.events) == ([fact(2)], [fact(1), fact(2)])


def test_an_observer_is_named_by_its_class_or_by_itself() -> None:
    """A name of its own goes before the class."""

    class Plain:
        def __call__(self, event: Event, /) -> None:
            """Take it."""

    names = [each.name for each in Observers([Plain(), EventRecorder()]).statistics()]

    assert names == ["Plain", "recorder"]


def test_ids_differ() -> None:
    """Ids are unique within a process, and two processes do not share them."""
    ids, others = process_ids(), process_ids()
    made = [ids() for _ in range(100)] + [others() for _ in range(100)]

    assert len(set(made)) == 200


# Operations


def test_an_operation_that_ends_well() -> None:
    """Start and finish are stated, with what was noted on the way; a later note of a field wins."""
    recorder = EventRecorder()
    with observers_at(recorder, 3.0).operation(started()) as operation:
        operation.note(characters=1)
        operation.note(characters=7, is_error=True)

    assert recorder.events == [
        started(),
        ToolFinished(op=OpId("tool"), at=3.0, status=Status.OK, characters=7, is_error=True),
    ]


@pytest.mark.parametrize(
    ("error", "error_type"),
    [
        (ValueError("no"), "ValueError"),
        (ModelStatusError(url="u", status_code=429, body=""), "429"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
    ],
)
def test_an_operation_that_fails(error: BaseException, error_type: str) -> None:
    """The finish says that it failed and with which kind of error, and the error goes on."""
    recorder = EventRecorder()

    def fail() -> None:
        with observers_at(recorder, 3.0).operation(started()) as operation:
            operation.note(characters=7)
            raise error

    with pytest.raises(type(error)):
        fail()

    assert recorder.only(ToolFinished) == ToolFinished(
        op=OpId("tool"), at=3.0, status=Status.FAILED, error_type=error_type, characters=7
    )


@pytest.mark.anyio
async def test_an_operation_that_is_cancelled() -> None:
    """The finish says that it was cancelled and why, as it is known then."""
    recorder = EventRecorder()
    causes: list[Cause] = []
    with anyio.CancelScope() as scope:
        with observers_at(recorder, 3.0).operation(started(), cause=lambda: causes[0]):
            causes.append(Cause.SUPERSEDED)
            scope.cancel()
            await anyio.sleep(1)

    finished = recorder.only(ToolFinished)
    assert (finished.status, finished.cause, finished.error_type) == (Status.CANCELLED, Cause.SUPERSEDED, None)


@pytest.mark.anyio
async def test_an_operation_in_a_thread() -> None:
    """Work in a thread without a loop states its own failure, and that is the one that goes on."""
    recorder = EventRecorder()
    observers = observers_at(recorder, 3.0)

    def write() -> None:
        with observers.operation(started()):
            raise PermissionError("read only")

    with pytest.raises(PermissionError, match="read only"):
        await anyio.to_thread.run_sync(write)

    assert recorder.only(ToolFinished).error_type == "PermissionError"


def test_a_failing_observer_does_not_fail_the_operation() -> None:
    """What an observer does wrong stays outside the work that is observed."""
    recorder = EventRecorder()
    numbers = itertools.count(2)
    observers = Observers([Faulty(), recorder], clock=lambda: float(next(numbers)))
    with observers.operation(started()):
        pass

    assert recorder.kinds() == ["ToolStarted", "ToolFinished"]
