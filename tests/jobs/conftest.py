"""A memory with notes, and a small model that answers about them."""

import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from recallscope.runtime.memory.memory import Memory, open_memory
from recallscope.runtime.memory.scopes import MemoryRoots
from recallscope.runtime.observe import Observers
from recallscope.runtime.testing.models import Turnout, saying
from recallscope.runtime.testing.recorder import EventRecorder

Opened = Callable[[Mapping[str, str]], AbstractAsyncContextManager[Memory]]
"""Writes files and opens the memory over them, synced."""


@pytest.fixture
def anyio_backend() -> str:
    """Files are real, so time is, too."""
    return "asyncio"


@pytest.fixture
def recorder() -> EventRecorder:
    """Record what is stated."""
    return EventRecorder()


@pytest.fixture
def observers(recorder: EventRecorder) -> Observers:
    """State facts to the recorder."""
    return Observers([recorder])


@pytest.fixture
def opened(tmp_path: Path, observers: Observers) -> Opened:
    """Return a function that writes notes and opens a memory over them, whose clock stands at second 9,000,000."""

    @asynccontextmanager
    async def open_it(files: Mapping[str, str]) -> AsyncGenerator[Memory, None]:
        for relative, text in files.items():
            path = tmp_path / "notes" / relative
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        roots = MemoryRoots(project=tmp_path / "notes")
        catalog = tmp_path / "cache" / "catalog.sqlite3"
        async with open_memory(roots, observers=observers, catalog_path=catalog, clock=lambda: 9_000_000.0) as memory:
            await memory.wait_synced()
            yield memory

    return open_it


@pytest.fixture
def phrased() -> Callable[..., Turnout]:
    """Make an answer with these phrasings, and keywords where they are given."""

    def phrase(*phrasings: object, keywords: object = ()) -> Turnout:
        return saying(json.dumps({"phrasings": list(phrasings), "keywords": keywords}))

    return phrase
