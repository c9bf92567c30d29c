"""An event loop whose time is virtual: a test of thirty seconds takes milliseconds, in the same order each time.

`run(test)` runs a coroutine function on it; a pytest test asks for it as its backend:

    @pytest.fixture
    def anyio_backend() -> tuple[str, dict[str, object]]:
        return "asyncio", {"loop_factory": VirtualLoop}

Time moves only when nothing can run: then it jumps to the next deadline. Hand `anyio.current_time` to whatever takes a
clock. Work in threads (`anyio.to_thread`, `run_in_executor`) takes no virtual time: time stands still until it is done.

What it cannot do: a thread that waits for virtual time to pass never gets on, which is an error after `STALL_SECONDS`;
threads that were started in another way are not seen. Sockets are waited for `SOCKET_GRACE` real seconds before each
jump: enough for both ends of a loopback connection in this loop, no promise for other processes.
"""

import asyncio
import math
import selectors
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from contextvars import Context
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar, TypeVarTuple, Unpack

import anyio

from recallscope.runtime.errors import RecallscopeError

__all__ = ["SOCKET_GRACE", "STALL_SECONDS", "DeadlockError", "VirtualLoop", "run"]

STALL_SECONDS = 5.0
"""Real seconds that threads and sockets get when nothing else can happen."""

SOCKET_GRACE = 0.005
"""Real seconds that sockets get before time jumps."""

ArgsT = TypeVarTuple("ArgsT")
ResultT = TypeVar("ResultT")

_Ready = list[tuple[selectors.SelectorKey, int]]


class DeadlockError(RecallscopeError):
    """Every task waits, no deadline is set, and nothing from outside can wake one: the run would never end."""

    def __init__(self, why: str, waiting: list[str]) -> None:
        tasks = "".join(f"\n  {line}" for line in waiting)
        super().__init__(f"{why}; waiting:{tasks or ' nobody'}")


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop that begins at `start` seconds and never sleeps.

    Raises:
        DeadlockError: out of whatever runs the loop, when nothing can ever happen again.
    """

    def __init__(self, start: float = 0.0) -> None:
        self._virtual = start
        self._outside = 0
        super().__init__(_JumpingSelector(self._jump))

    def time(self) -> float:
        """Return the virtual seconds."""
        return self._virtual

    def call_at(
        self, when: float, callback: Callable[[Unpack[ArgsT]], object], *args: *ArgsT, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Call `callback` at `when`; a call at infinity never comes, and is no deadline that time could jump to."""
        if when == math.inf:
            return asyncio.TimerHandle(when, callback, args, self, context)
        return super().call_at(when, callback, *args, context=context)

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[ArgsT]], ResultT], *args: *ArgsT
    ) -> asyncio.Future[ResultT]:
        """Run `func` in a thread; time stands still until it is done."""
        future = super().run_in_executor(executor, func, *args)
        self._outside += 1
        future.add_done_callback(self._came_back)
        return future

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - the loop's interface
        """End the threads of the default executor, in real time."""
        self._outside += 1
        try:
            await super().shutdown_default_executor()
        finally:
            self._outside -= 1

    def _came_back(self, _: "asyncio.Future[Any]") -> None:
        self._outside -= 1

    def _jump(self, select: Callable[[float | None], _Ready], timeout: float | None, sockets: bool) -> _Ready:
        """Wait until something is ready, or let time jump by `timeout`; called when no task can run."""
        # The order matters: a thread that is idle now has reported before, and the selector, asked after, shows that.
        if self._outside or _threads_of(self):
            return self._wait_really(select, "a thread does not come back (does it wait for virtual time?)")
        ready = select(SOCKET_GRACE if sockets and timeout is not None else 0)
        if ready:
            return ready
        if timeout is not None:
            self._virtual += timeout
            return []
        if sockets:
            return self._wait_really(select, "nothing came through the sockets that are open")
        raise DeadlockError("nothing can ever happen again: all tasks wait and no deadline is set", self._waiting())

    def _wait_really(self, select: Callable[[float | None], _Ready], why: str) -> _Ready:
        end = time.monotonic() + STALL_SECONDS
        while (left := end - time.monotonic()) > 0:
            ready = select(left)
            if ready:
                return ready
        raise DeadlockError(f"{why}; waited {STALL_SECONDS:g} real seconds", self._waiting())

    def _waiting(self) -> list[str]:
        return sorted(f"{task.get_name()} {_where(task)}" for task in asyncio.all_tasks(self))


class _JumpingSelector(selectors.DefaultSelector):
    """A selector that asks `jump` instead of sleeping."""

    def __init__(self, jump: Callable[[Callable[[float | None], _Ready], float | None, bool], _Ready]) -> None:
        super().__init__()
        self._jump = jump

    def select(self, timeout: float | None = None) -> _Ready:
        """Return what is ready, now (`timeout` 0) or as `jump` decides."""
        if timeout is not None and timeout <= 0:
            return super().select(0)
        # One is the loop's own pipe, by which threads wake it.
        return self._jump(super().select, timeout, len(self.get_map()) > 1)


def run(function: Callable[[Unpack[ArgsT]], Awaitable[ResultT]], *args: *ArgsT) -> ResultT:
    """Run `function(*args)` on a virtual loop of its own and return what it returns.

    Raises:
        DeadlockError: everything waits for nothing.
    """
    return anyio.run(function, *args, backend="asyncio", backend_options={"loop_factory": VirtualLoop})


def _threads_of(loop: asyncio.AbstractEventLoop) -> bool:
    """Tell whether a worker thread of anyio is busy for `loop`.

    anyio says so nowhere; a worker carries its loop and its queue, whose item is done after its result is reported.
    """
    for thread in threading.enumerate():
        queue = getattr(thread, "queue", None)
        if queue is not None and getattr(thread, "loop", None) is loop and queue.unfinished_tasks:
            return True
    return False


def _where(task: "asyncio.Task[Any]") -> str:
    """Name the line at which a task waits: the deepest one outside asyncio and anyio, as far as coroutines tell."""
    frames: list[FrameType] = []
    inner: Any = task.get_coro()
    while inner is not None:
        frame = getattr(inner, "cr_frame", None) or getattr(inner, "ag_frame", None)
        if frame is not None:
            frames.append(frame)
        inner = getattr(inner, "cr_await", None) or getattr(inner, "ag_await", None)
    own = [frame for frame in frames if not {"asyncio", "anyio"} & set(Path(frame.f_code.co_filename).parts)]
    for frame in reversed(own or frames):
        return f"at {frame.f_code.co_filename}:{frame.f_lineno}"
    return "before its first line"
