"""A memory folder to write notes into, and the events that memory states."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from recallscope.runtime.events import Event
from recallscope.runtime.memory.memory import Memory, open_memory
from recallscope.runtime.memory.scopes import MemoryRoots
from recallscope.runtime.observe import Observers

Opened = Callable[..., AbstractAsyncContextManager[Memory]]
"""Opens the memory over the test's folder, synced; takes `read_only`."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a memory folder that exists."""
    folder = tmp_path / "notes"
    folder.mkdir()
    return folder.resolve()


@pytest.fixture
def catalog_file(tmp_path: Path) -> Path:
    """Return where the test's catalog lies."""
    return tmp_path / "cache" / "catalog.sqlite3"


@pytest.fixture
def write(root: Path) -> Callable[[str, str], Path]:
    """Return a function that writes a file below the memory folder."""

    def write_file(relative: str, text: str) -> Path:
        path = root / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return write_file


@pytest.fixture
def events() -> list[Event]:
    """Return the list into which the opened memory's events go."""
    return []


@pytest.fixture
def opened(root: Path, catalog_file: Path, events: list[Event]) -> Opened:
    """Return a function that opens the memory and waits for its first sync; its clock stands at second 1,000."""

    @asynccontextmanager
    async def open_it(*, read_only: bool = False) -> AsyncGenerator[Memory, None]:
        async with open_memory(
            MemoryRoots(project=root),
            observers=Observers([events.append]),
            catalog_path=catalog_file,
            read_only=read_only,
            clock=lambda: 1_000.0,
        ) as memory:
            await memory.wait_synced()
            yield memory

    return open_it
