"""Virtual time jumps from deadline to deadline, stands still for threads, and tells a deadlock from a wait."""

import asyncio
import threading
import time
from collections.abc import Mapping

import anyio
import anyio.from_thread
import anyio.to_thread
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallscope.runtime.testing import fake_clock
from recallscope.runtime.testing.fake_clock import DeadlockError, VirtualLoop, run


@pytest.fixture
def anyio_backend() -> tuple[str, Mapping[str, object]]:
    """Let the asynchronous tests of this file run on virtual time."""
    return "asyncio", {"loop_factory": VirtualLoop}


@pytest.mark.anyio
async def test_thirty_seconds_pass_at_once() -> None:
    """A wait of thirty seconds ends at exactly thirty virtual seconds, long before a real second has passed."""
    began, real = anyio.current_time(), time.monotonic()
    await anyio.sleep(30)
    assert anyio.current_time() - began == 30
    assert time.monotonic() - real < 10  # generous: the other outcome is thirty


@pytest.mark.anyio
async def test_a_deadline_cuts_at_its_time() -> None:
    """A scope with a deadline ends what it holds at that moment, and whatever else runs goes on."""
    began = anyio.current_time()
    async with anyio.create_task_group() as group:
        group.start_soon(anyio.sleep, 0.5)
        with anyio.move_on_after(0.1) as scope:
            await anyio.sleep_forever()
        assert (scope.cancelled_caught, round(anyio.current_time() - began, 9)) == (True, 0.1)
    assert round(anyio.current_time() - began, 9) == 0.5


@settings(max_examples=50)
@given(st.lists(st.integers(0, 1_000_000), min_size=1, max_size=10))
def test_tasks_wake_in_the_order_of_their_deadlines(delays: list[int]) -> None:
    """However many tasks sleep, they wake in the order of their deadlines, each at its own."""

    async def test() -> list[float]:
        woken: list[float] = []

        async def sleep(delay: int) -> None:
            await anyio.sleep(delay / 1_000)
            woken.append(round(anyio.current_time() * 1_000, 3))

        async with anyio.create_task_group() as group:
            for delay in delays:
                group.start_soon(sleep, delay)
        return woken

    assert run(test) == sorted(delays)


@pytest.mark.anyio
async def test_time_stands_still_for_threads() -> None:
    """Work in a worker thread, and in the loop's executor, ends before any deadline comes."""
    began = anyio.current_time()

    def work() -> str:
        # Real work: it must be slow enough that the loop has nothing else to do than to jump.
        threading.Event().wait(0.02)
        return "done"

    results: list[str] = []
    with anyio.move_on_after(0.001) as scope:
        results.append(await anyio.to_thread.run_sync(work, abandon_on_cancel=True))
        results.append(await asyncio.get_running_loop().run_in_executor(None, work))
    assert (results, scope.cancelled_caught, anyio.current_time() - began) == (["done", "done"], False, 0)


@pytest.mark.anyio
async def test_a_thread_may_call_back() -> None:
    """A worker thread that runs a function in the loop gets its answer, and time has not moved."""
    moment = await anyio.to_thread.run_sync(lambda: anyio.from_thread.run_sync(anyio.current_time))
    assert moment == anyio.current_time()


def test_a_deadlock_is_an_error_that_names_who_waits() -> None:
    """Where every task waits for ever, the run ends with an error that says where each of them stands."""

    async def wait_for_nobody() -> None:
        await anyio.Event().wait()

    async def test() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(wait_for_nobody, name="the waiter")
            await anyio.sleep(3)
            await anyio.sleep_forever()

    with pytest.raises(DeadlockError) as caught:
        run(test)
    lines = str(caught.value).splitlines()
    assert lines[0] == "nothing can ever happen again: all tasks wait and no deadline is set; waiting:"
    assert sorted(line.split(" at ")[0].strip() for line in lines[1:]) == [
        f"{__name__}.test_a_deadlock_is_an_error_that_names_who_waits.<locals>.test",
        "the waiter",
    ]
    assert all(line.rpartition(":")[0].endswith("test_fake_clock.py") for line in lines[1:])


def test_a_thread_that_waits_for_virtual_time_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that waits for the loop's time to pass would wait for ever; after a bounded real time that is said."""
    monkeypatch.setattr(fake_clock, "STALL_SECONDS", 0.05)
    release = threading.Event()

    async def test() -> None:
        asyncio.get_running_loop().call_later(60, release.set)
        await anyio.to_thread.run_sync(release.wait, abandon_on_cancel=True)

    try:
        with pytest.raises(DeadlockError, match="a thread does not come back"):
            run(test)
    finally:
        release.set()


@pytest.mark.anyio
async def test_loopback_sockets_work() -> None:
    """What is sent through a socket arrives before time jumps, and an idle listener does not hold time back."""
    began = anyio.current_time()
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:

        async def echo(stream: anyio.abc.SocketStream) -> None:
            async with stream:
                received = await stream.receive()
                await anyio.sleep(30)
                await stream.send(received)

        async with anyio.create_task_group() as group:
            group.start_soon(listener.serve, echo)
            port = int(listener.listeners[0].extra(anyio.abc.SocketAttribute.local_address)[1])  # noqa: S610 - no query
            async with await anyio.connect_tcp("127.0.0.1", port) as stream:
                await stream.send(b"hello")
                assert await stream.receive() == b"hello"
            group.cancel_scope.cancel()
    assert anyio.current_time() - began == 30
