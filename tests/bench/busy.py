"""Cores kept busy by other processes, so that a figure can be taken as on a machine that has other work."""

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager

__all__ = ["busy_cores"]

_WORK = "import os; parent = os.getppid()\nwhile os.getppid() == parent: sum(range(1_000))"
"""Ends with the process that started it, however that ends."""


@contextmanager
def busy_cores(number: int) -> Generator[None]:
    """Keep `number` cores busy with other processes for the length of the block."""
    workers = [subprocess.Popen([sys.executable, "-c", _WORK]) for _ in range(number)]
    try:
        yield
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
