"""What a process does once, before its first turn is admitted."""

import gc
import sys
from collections.abc import Generator
from contextlib import contextmanager

__all__ = ["SWITCH_SECONDS", "ready_for_turns"]

SWITCH_SECONDS = 0.0005
"""How long a thread may keep the interpreter from another one that waits for it; Python's own value is 5 ms."""


@contextmanager
def ready_for_turns() -> Generator[None]:
    """Keep the interpreter's own pauses out of the turns, for the length of the block; enter it after the imports.

    What was imported stays for good. Left to the garbage collector, one full pass over it (the model client brings
    80,000 objects, 110 ms) stops the event loop for longer than the recall ceiling, in the middle of some turn.

    A turn hands work to threads (a search, the check of a note's file) while telemetry counts in threads of its own.
    With Python's switch interval each hand-over may wait 5 ms for such a thread: all that a wait for memory may take.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        sys.setswitchinterval(before)
