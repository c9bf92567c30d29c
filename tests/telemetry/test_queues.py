"""The two queues: towards an exporter, and towards an observer with a thread of its own."""

import threading
from collections.abc import Callable, Sequence

import pytest

from recallscope.runtime.events import Event
from recallscope.telemetry import names
from recallscope.telemetry.deferred import DeferredObserver
from recallscope.telemetry.export_queue import ExportQueue
from recallscope.telemetry.flow import Flow
from recallscope.telemetry.testing.golden import golden_turn

Until = Callable[[Callable[[], bool]], bool]


def _queue(
    export: Callable[[Sequence[int]], bool], *, capacity: int = 100, batch: int = 10, delay: float = 0.01
) -> ExportQueue[int]:
    return ExportQueue(export, signal="traces", capacity=capacity, batch=batch, delay=delay)


def _lost(flow: Flow) -> dict[str, int]:
    return {reason: number for reason, number in flow.lost if number}


def test_items_arrive_in_order_and_in_batches(until: Until) -> None:
    """What is put in is passed on, at most a batch at once."""
    arrived: list[list[int]] = []
    queue = _queue(lambda batch: arrived.append(list(batch)) is None)
    for number in range(35):
        queue.put(number)

    assert until(lambda: sum(map(len, arrived)) == 35)
    queue.start_closing()
    queue.finish_closing(1)
    assert [number for batch in arrived for number in batch] == list(range(35))
    assert max(map(len, arrived)) <= 10
    assert queue.flow() == Flow("traces", 35, (("queue_full", 0), ("export_failed", 0), ("shutdown", 0)))


def test_a_full_queue_drops_what_comes_and_counts_it() -> None:
    """While the exporter is busy a producer never waits."""
    go, busy = threading.Event(), threading.Event()

    def export(_batch: Sequence[int]) -> bool:
        busy.set()
        return go.wait(10)

    queue = _queue(export, capacity=10)
    for number in range(10):
        queue.put(number)
    busy.wait(10)
    for number in range(25):
        queue.put(number)
    go.set()
    queue.start_closing()
    queue.finish_closing(5)

    assert queue.flow().exported == 20
    assert _lost(queue.flow()) == {names.LOST_QUEUE_FULL: 15}


def test_failed_batches_are_counted_and_told_once_each_way(until: Until, caplog: pytest.LogCaptureFixture) -> None:
    """The log has one line when it begins to fail and one when it works again."""
    answers = [False, False, False, True, True]
    queue = _queue(lambda _batch: answers.pop(0) if answers else True, batch=1)
    for number in range(6):
        queue.put(number)

    assert until(lambda: queue.flow().exported == 3)
    queue.start_closing()
    queue.finish_closing(1)
    assert _lost(queue.flow()) == {names.LOST_EXPORT_FAILED: 3}
    assert [record.getMessage() for record in caplog.records] == [
        "traces cannot be exported; what is lost is counted, turns go on",
        "traces are exported again; 3 were lost meanwhile",
    ]


def test_closing_passes_on_what_waits() -> None:
    """Nothing is lost when the collector is there."""
    arrived: list[int] = []
    queue = _queue(lambda batch: arrived.extend(batch) is None, delay=60)
    for number in range(5):
        queue.put(number)
    queue.start_closing()
    queue.finish_closing(5)

    assert arrived == list(range(5))


def test_closing_gives_up_after_its_time_and_counts_what_is_left() -> None:
    """An exporter that hangs costs the given time; the batch on its way and the rest are lost."""
    go = threading.Event()
    queue = _queue(lambda _batch: go.wait(30), delay=60)
    for number in range(25):
        queue.put(number)
    queue.start_closing()
    queue.finish_closing(0.1)
    go.set()

    assert queue.flow().exported == 0
    assert _lost(queue.flow()) == {names.LOST_SHUTDOWN: 25}


def test_closing_does_not_try_each_batch_when_the_collector_is_gone() -> None:
    """After one failure at the end the rest is given up."""
    tries: list[int] = []

    def fails(batch: Sequence[int]) -> bool:
        tries.append(len(batch))
        return False

    queue = _queue(fails, delay=60)
    for number in range(9):
        queue.put(number)
    queue.start_closing()
    for _ in range(30):
        queue.put(0)
    queue.finish_closing(5)

    assert tries == [9]
    assert _lost(queue.flow()) == {names.LOST_EXPORT_FAILED: 9, names.LOST_SHUTDOWN: 30}


def test_a_deferred_observer_sees_all_events_in_order() -> None:
    """After settling, everything that was stated is handled."""
    seen: list[Event] = []
    deferred = DeferredObserver(seen.append, name="x", linger=60)
    for event in golden_turn():
        deferred(event)

    assert deferred.settle(5)
    assert seen == golden_turn()
    deferred.close()


def test_a_deferred_observer_handles_events_without_being_asked(until: Until) -> None:
    """Events wait for company only a moment."""
    seen: list[Event] = []
    deferred = DeferredObserver(seen.append, name="x", linger=0.01)
    deferred(golden_turn()[0])

    assert until(lambda: len(seen) == 1)
    deferred.close()


def test_a_deferred_observer_drops_and_counts_when_it_cannot_follow() -> None:
    """The engine's thread never waits for it."""
    go = threading.Event()

    def stand_still(_event: Event) -> None:
        go.wait(10)

    deferred = DeferredObserver(stand_still, name="x", capacity=5, linger=0.0)
    for _ in range(50):
        deferred(golden_turn()[0])
    go.set()
    deferred.close(5)

    assert dict(deferred.flow().lost)[names.LOST_QUEUE_FULL] >= 44


def test_closing_a_deferred_observer_handles_what_waits() -> None:
    """The last events of a process are in its last export."""
    seen: list[Event] = []
    deferred = DeferredObserver(seen.append, name="x", linger=60)
    for event in golden_turn():
        deferred(event)
    deferred.close(5)

    assert seen == golden_turn()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_deferred_observer_that_fails_loses_one_event_and_says_so(until: Until) -> None:
    """The next event fails in its place, so that the failure is counted; the others are handled."""
    seen: list[Event] = []

    def fails_once(event: Event) -> None:
        if not seen:
            seen.append(event)
            raise ValueError("a bug")
        seen.append(event)

    deferred = DeferredObserver(fails_once, name="x", linger=0.0)
    first, second, third = golden_turn()[:3]
    deferred(first)
    assert until(lambda: not _alive("recallscope-x"))
    with pytest.raises(RuntimeError, match="observer x failed on an earlier event"):
        deferred(second)
    deferred(third)
    deferred.close(5)

    assert seen == [first, second, third]


def _alive(name: str) -> bool:
    return any(thread.name == name and thread.is_alive() for thread in threading.enumerate())
