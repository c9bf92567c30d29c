"""Takes what a check would log for what it finds: a finding says it once, and no line of a log beside it."""

import logging
from collections.abc import Generator
from contextlib import contextmanager

__all__ = ["heard"]


@contextmanager
def heard(*loggers: str) -> Generator[list[str]]:
    """Collect what the loggers of these names say within the block, from any thread, instead of letting it out."""
    said: list[str] = []

    def take(record: logging.LogRecord) -> bool:
        said.append(record.getMessage())
        return False

    found = [logging.getLogger(name) for name in loggers]
    for logger in found:
        logger.addFilter(take)
    try:
        yield said
    finally:
        for logger in found:
            logger.removeFilter(take)
