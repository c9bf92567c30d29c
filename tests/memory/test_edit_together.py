"""Writes beside those of others: a wait has an end, can be ended, and loses no note."""

from collections.abc import Generator
from pathlib import Path

import anyio
import pytest
from anyio.lowlevel import checkpoint

from recallscope.runtime.errors import MemoryWriteError
from recallscope.runtime.events import Event, MemoryWriteFinished, MemoryWriteStarted, Status
from recallscope.runtime.memory.catalog import Catalog
from recallscope.runtime.memory.catalog_file import file_lock
from recallscope.runtime.memory.draft import Draft
from recallscope.runtime.memory.edit import Editor
from recallscope.runtime.memory.note import Note
from recallscope.runtime.memory.scopes import Root
from recallscope.runtime.observe import Observers
from recallscope.runtime.terms import ScopeName

pytestmark = pytest.mark.anyio

DRAFT = Draft(title="Canary rules", body="Roll out to 5 % first.")


@pytest.fixture
def catalog(catalog_file: Path) -> Generator[Catalog, None, None]:
    """Return an open catalog."""
    catalog = Catalog(catalog_file)
    catalog.open()
    yield catalog
    catalog.close()


def editor(catalog: Catalog, root: Path, events: list[Event], *, patience: float = 10.0) -> Editor:
    """Return an editor as every process has one, with a lock between its own writes alone."""
    roots = [Root(scope=ScopeName.PROJECT, path=root)]
    return Editor(catalog, roots, observers=Observers([events.append]), patience=patience)


def files(root: Path) -> list[str]:
    """Return the files and folders below `root`."""
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*"))


async def test_a_write_that_waits_too_long_is_refused(
    catalog: Catalog, root: Path, catalog_file: Path, events: list[Event]
) -> None:
    """The error says who is in the way and what to do; no write of any kind has changed a file, and each is stated."""
    note = await editor(catalog, root, events).create(ScopeName.PROJECT, DRAFT)
    before = [files(root), note.path.read_bytes()]
    waits = editor(catalog, root, events, patience=0.05)
    lock = catalog_file.with_name("writes.lock")
    says = (
        f"another process has been writing to this memory for 0.05 s ({lock}); "
        "try again, or end that process if it hangs; nothing was written"
    )
    told: list[str] = []
    events.clear()
    with file_lock(lock, patience=0.0):
        for write in (
            waits.create(ScopeName.PROJECT, DRAFT),
            waits.update(note, DRAFT),
            waits.pin(note, pinned=True),
            waits.annotate(note, usage_scenarios=["x"], keywords=["y"]),
            waits.restore(ScopeName.PROJECT, "other.md", b"# Other"),
            waits.delete(note),
        ):
            with pytest.raises(MemoryWriteError) as caught:
                await write
            told.append(str(caught.value))
    path = "project/canary-rules.md"
    assert told == [f"{where}: {says}" for where in ("Canary rules", path, path, path, "other.md", path)]
    assert [files(root), note.path.read_bytes()] == before
    assert [event.note for event in events if isinstance(event, MemoryWriteStarted)] == [
        *("project:project/canary-rules-2.md", note.id, note.id, note.id, "project:other.md", note.id)
    ]
    assert [event.status for event in events if isinstance(event, MemoryWriteFinished)] == [Status.FAILED] * 6


async def test_a_wait_that_is_cancelled_writes_nothing(
    catalog: Catalog, root: Path, catalog_file: Path, events: list[Event]
) -> None:
    """It ends at once, while the other process still writes, and does not write when that one is done."""
    first = editor(catalog, root, events)
    note = await first.create(ScopeName.PROJECT, DRAFT)
    before = [files(root), note.path.read_bytes()]
    events.clear()
    with file_lock(catalog_file.with_name("writes.lock"), patience=0.0):
        with anyio.fail_after(5):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(first.delete, note)
                while not any(isinstance(event, MemoryWriteStarted) for event in events):
                    await checkpoint()
                tasks.cancel_scope.cancel()
        assert [event.status for event in events if isinstance(event, MemoryWriteFinished)] == [Status.CANCELLED]
    assert [files(root), note.path.read_bytes()] == before
    await first.delete(note)
    assert not note.path.exists()


async def test_namesakes_of_several_writers_are_all_kept(catalog: Catalog, root: Path, events: list[Event]) -> None:
    """Each gets a name of its own, and the index of the last one holds them all."""
    written: list[Note] = []

    async def write(one: Editor) -> None:
        written.append(await one.create(ScopeName.PROJECT, DRAFT))

    async with anyio.create_task_group() as tasks:
        for one in [editor(catalog, root, events) for _ in range(4)] * 3:
            tasks.start_soon(write, one)
    names = {f"project/canary-rules{number}.md" for number in ("", *(f"-{number}" for number in range(2, 13)))}
    assert {note.relative for note in written} == names
    assert set(files(root)) == names | {"project", "MEMORY.md"}
    assert len((root / "MEMORY.md").read_text(encoding="utf-8").splitlines()) == 13


async def test_removing_makes_no_index(catalog: Catalog, root: Path, events: list[Event]) -> None:
    """A folder without `MEMORY.md` has none after its note is deleted."""
    one = editor(catalog, root, events)
    note = await one.create(ScopeName.PROJECT, DRAFT)
    (root / "MEMORY.md").unlink()
    await one.delete(note)
    assert files(root) == ["project"]
