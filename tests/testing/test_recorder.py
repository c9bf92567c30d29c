"""The event recorder keeps what it sees and lets tests wait for it."""

import anyio
import pytest

from recallscope.runtime.events import Event, OpId, ProcessStarted, TurnFirstToken
from recallscope.runtime.observe import Observers
from recallscope.runtime.testing.recorder import EventRecorder

FIRST = TurnFirstToken(op=OpId("a"), at=1.0)
SECOND = TurnFirstToken(op=OpId("b"), at=2.0)
STARTED = ProcessStarted(op=OpId("p"), at=0.0, wall=5.0, pid=1, version="0", front_end="test")


def test_events_are_kept_in_order_and_found_by_kind() -> None:
    """As an observer it keeps every event in order; `of` returns those of a kind, and of its subclasses."""
    recorder = EventRecorder()
    observers = Observers((recorder,))
    for event in (STARTED, FIRST, SECOND):
        observers.emit(event)
    assert recorder.events == [STARTED, FIRST, SECOND]
    assert recorder.kinds() == ["ProcessStarted", "TurnFirstToken", "TurnFirstToken"]
    assert recorder.of(TurnFirstToken) == [FIRST, SECOND]
    assert recorder.of(Event) == [STARTED, FIRST, SECOND]
    assert recorder.only(ProcessStarted) == STARTED
    recorder.clear()
    assert recorder.events == []


def test_the_only_event_must_be_the_only_one() -> None:
    """`only` refuses where there is none or more than one, and says what there was."""
    recorder = EventRecorder()
    recorder(FIRST)
    recorder(SECOND)
    with pytest.raises(LookupError, match="2 events of the kind TurnFirstToken instead of one"):
        recorder.only(TurnFirstToken)
    with pytest.raises(LookupError, match="0 events of the kind ProcessStarted instead of one"):
        recorder.only(ProcessStarted)


@pytest.mark.anyio
async def test_an_event_can_be_waited_for() -> None:
    """`wait_for` returns an event that is there, or the first one that comes and fits."""
    recorder = EventRecorder()
    found: list[Event] = []

    async def wait() -> None:
        found.append(await recorder.wait_for(TurnFirstToken, lambda event: event.at > 1))

    async with anyio.create_task_group() as group:
        group.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        for event in (STARTED, FIRST):
            recorder(event)
        await anyio.wait_all_tasks_blocked()
        assert found == []
        recorder(SECOND)
    assert found == [SECOND]
    assert await recorder.wait_for(ProcessStarted) == STARTED
