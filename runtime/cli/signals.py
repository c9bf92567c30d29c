"""How a command ends in an orderly way on Ctrl-C and SIGTERM."""

import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskStatus

__all__ = ["INTERRUPTED", "on_signal"]

INTERRUPTED = 130
"""The exit code after Ctrl-C."""

SAME_SIGNAL_SECONDS = 0.5
"""Within this time another signal is the same one: a wrapper may pass on what the terminal has sent already."""


@asynccontextmanager
async def on_signal(end: Callable[[signal.Signals], object]) -> AsyncGenerator[list[signal.Signals], None]:
    """Call `end` for each Ctrl-C and SIGTERM within the block, and yield the list of those that came so far.

    One that comes later than the first ends the process at once: the orderly end does not come.
    """
    received: list[signal.Signals] = []

    async def listen(*, task_status: TaskStatus[None]) -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            task_status.started()
            first = None
            async for number in signals:
                received.append(signal.Signals(number))
                end(signal.Signals(number))
                first = first or anyio.current_time()
                if anyio.current_time() - first > SAME_SIGNAL_SECONDS:
                    # Die of the signal, as a program does that never listened.
                    signal.signal(number, signal.SIG_DFL)
                    signal.raise_signal(number)

    async with anyio.create_task_group() as tasks:
        await tasks.start(listen)
        yield received
        tasks.cancel_scope.cancel()
