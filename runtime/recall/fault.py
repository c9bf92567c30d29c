"""Where the faults of a recall stop: the first promise is that none of them reaches the turn."""

import logging
from collections.abc import Awaitable
from typing import TypeVar

from recallscope.runtime.errors import RecallscopeError

__all__ = ["outcome_of", "tell"]

_log = logging.getLogger(__name__)

ResultT = TypeVar("ResultT")


async def outcome_of(work: Awaitable[ResultT]) -> ResultT | Exception:
    """Await `work` and return its result, or its failure as a value; a cancellation goes through."""
    try:
        return await work
    except Exception as error:  # noqa: BLE001 - the first promise: no fault of a recall may reach the turn
        return error


def tell(what: str, failure: Exception) -> None:
    """Log a failure: one line for what is known to happen, with its traceback for a fault of the program."""
    if isinstance(failure, RecallscopeError):
        _log.warning("%s: %s", what, failure)
    else:
        _log.error("%s", what, exc_info=failure)
