"""What a process does once, before its first turn is admitted."""

import gc
from collections.abc import Generator
from contextlib import contextmanager

__all__ = ["imports_settled"]


@contextmanager
def imports_settled() -> Generator[None]:
    """Keep the garbage collector away from what is imported by now, for the length of the block.

    What was imported stays for good. Left to the collector, one full pass over it (the model client alone brings 80,000
    objects, 110 ms) stops the event loop for longer than the recall ceiling, in the middle of some turn.
    """
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
