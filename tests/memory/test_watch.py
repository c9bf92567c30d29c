"""Notices of the file system: what people change is recallable at once, and a system that refuses costs one line."""

import errno
import logging
import os
import shutil
import threading
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from pathlib import Path

import anyio
import pytest
from anyio import lowlevel

from recallscope.runtime.events import CatalogSynced, Event
from recallscope.runtime.memory.memory import Memory, open_memory
from recallscope.runtime.memory.scopes import MemoryRoots, Root
from recallscope.runtime.memory.watch import Changed, FolderWatch, Watcher, watch_folders
from recallscope.runtime.observe import Observer, Observers
from recallscope.runtime.terms import ScopeName

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def watched(root: Path, catalog: Path, *watching: Observer) -> AsyncGenerator[Memory, None]:
    """Open a memory whose scans are so far apart that only notices can tell of a change in time."""
    async with open_memory(
        MemoryRoots(project=root), observers=Observers(watching), catalog_path=catalog, watch=True
    ) as memory:
        await memory.wait_synced()
        yield memory


async def comes(memory: Memory, query: str, *expected: str) -> None:
    """Wait, a second at most, until the fast result for `query` is of these paths: the next scan is two seconds off."""
    with anyio.fail_after(1):
        while True:
            found = await memory.search(query, exclude=frozenset(), recent_tools=())
            if tuple(hit.note.relative for hit in found.fast) == expected:
                return
            await lowlevel.checkpoint()


def save_as_vim(path: Path, text: str) -> None:
    """Save as vim does by default: a probe, the old file moved away, a new one, the old one removed."""
    (path.parent / "4913").touch()
    (path.parent / "4913").unlink()
    kept = path.with_name(f"{path.name}~")
    path.rename(kept)
    path.write_text(text)
    kept.unlink()


def save_by_rename(path: Path, text: str) -> None:
    """Save as editors do that write another file and move it into the place."""
    copy = path.with_name(f"{path.name}.tmp")
    copy.write_text(text)
    copy.replace(path)


def save_in_place(path: Path, text: str) -> None:
    """Save as VS Code does: the same file, written anew."""
    path.write_text(text)


@pytest.mark.parametrize("save", [save_as_vim, save_by_rename, save_in_place])
async def test_an_edit_is_recallable_within_a_second(
    save: Callable[[Path, str], None], root: Path, catalog_file: Path
) -> None:
    """However an editor saves."""
    (root / "a.md").write_text("# Zebra crossing")
    async with watched(root, catalog_file) as memory:
        save(root / "a.md", "# Walrus colony")
        await comes(memory, "walrus colony", "a.md")
        await comes(memory, "zebra crossing")


async def test_files_and_folders_come_and_go(root: Path, catalog_file: Path) -> None:
    """New, renamed and deleted notes, in new, renamed and deleted folders."""
    async with watched(root, catalog_file) as memory:
        (root / "a.md").write_text("# Walrus colony")
        await comes(memory, "walrus colony", "a.md")
        (root / "a.md").rename(root / "b.md")
        await comes(memory, "walrus colony", "b.md")
        (root / "b.md").unlink()
        await comes(memory, "walrus colony")
        (root / "deep" / "er").mkdir(parents=True)
        (root / "deep" / "er" / "c.md").write_text("# Narwhal pod")
        await comes(memory, "narwhal pod", "deep/er/c.md")
        (root / "deep" / "er" / "c.md").write_text("# Lemur troop")
        await comes(memory, "lemur troop", "deep/er/c.md")
        (root / "deep").rename(root / "moved")
        await comes(memory, "lemur troop", "moved/er/c.md")
        shutil.rmtree(root / "moved")
        await comes(memory, "lemur troop")


async def test_a_root_may_be_made_removed_and_moved_back_later(tmp_path: Path, catalog_file: Path) -> None:
    """The folder need not be there at the start, not even the one that holds it."""
    root = tmp_path / "base" / "projects" / "memory"
    async with watched(root, catalog_file) as memory:
        root.mkdir(parents=True)
        (root / "a.md").write_text("# Walrus colony")
        await comes(memory, "walrus colony", "a.md")
        root.rename(tmp_path / "away")
        await comes(memory, "walrus colony")
        (tmp_path / "away").rename(root)
        await comes(memory, "walrus colony", "a.md")


async def test_a_burst_of_files_is_taken_up_by_a_scan(root: Path, catalog_file: Path) -> None:
    """What a version control system writes at once comes at once."""
    all_there = anyio.Event()

    def seen(event: Event) -> None:
        if isinstance(event, CatalogSynced) and event.notes == 600:
            all_there.set()

    async with watched(root, catalog_file, seen) as memory:
        for number in range(600):
            folder = root / f"f{number % 7}"
            folder.mkdir(exist_ok=True)
            (folder / f"n{number}.md").write_text(f"# Burst word{number}")
        with anyio.fail_after(10):
            await all_there.wait()  # asking again and again would take the processor from whoever scans
        await comes(memory, "word599", "f4/n599.md")


async def test_closing_ends_the_watch(root: Path) -> None:
    """Nothing waits for a notice once the memory is closed: the place of the waiting thread is free again."""
    watch = FolderWatch([_root(root)], changed=lambda _root, _files: None, scan=lambda: None)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch.run)
        await watch.begun.wait()
        tasks.cancel_scope.cancel()
    assert watch._limiter.borrowed_tokens == 0  # pyright: ignore[reportPrivateUsage] - nobody else may see it


def refuse(code: int) -> Callable[[Sequence[str]], AbstractContextManager[Watcher]]:
    """Return a start that fails as a system does whose limit is reached."""

    def start(_folders: Sequence[str]) -> AbstractContextManager[Watcher]:
        raise OSError(code, os.strerror(code))

    return start


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EMFILE, errno.EACCES, errno.ENOENT])
async def test_a_system_that_refuses_costs_one_line(code: int, root: Path, caplog: pytest.LogCaptureFixture) -> None:
    """At the limit of watches, or where a folder keeps vanishing, scans go on alone."""
    watch = FolderWatch([_root(root)], changed=lambda _root, _files: None, scan=lambda: None, start=refuse(code))
    await watch.run()
    assert watch.begun.is_set()
    assert [record.getMessage() for record in caplog.records] == [
        f"the memory folders cannot be watched, changes are found by scans only: [Errno {code}] {os.strerror(code)}"
    ]


class Broken:
    """A watch that fails while it is used, as native code does."""

    def watch(
        self, debounce_ms: int, step_ms: int, timeout_ms: int, stop_event: threading.Event
    ) -> Collection[tuple[int, str]] | str:
        """Fail."""
        raise RuntimeError("the queue overflowed")


async def test_a_watch_that_breaks_costs_one_line(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What breaks later is told as well, once."""
    watch = FolderWatch(
        [_root(root)], changed=lambda _root, _files: None, scan=lambda: None, start=lambda _: nullcontext(Broken())
    )
    await watch.run()
    assert [(record.levelno, record.getMessage()[-20:]) for record in caplog.records] == [
        (logging.WARNING, "the queue overflowed")
    ]


async def test_links_are_not_followed(root: Path, tmp_path: Path) -> None:
    """No folder behind a link, no hidden one, and no file that is no note is watched or told."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (root / "link").symlink_to(elsewhere)
    (root / ".git").mkdir()
    (root / "sub").mkdir()
    asked: list[str] = []

    def start(folders: Sequence[str]) -> AbstractContextManager[Watcher]:
        asked.extend(folders)
        return nullcontext(Broken())

    await FolderWatch([_root(root)], changed=lambda _root, _files: None, scan=lambda: None, start=start).run()
    assert asked == [str(root.parent), str(root), str(root / "sub")]


def test_what_a_batch_means(root: Path) -> None:
    """Notes are named; folders, and the root's own coming and going, ask for a look at all; the rest is nothing."""
    (root / "sub").mkdir()
    (root / "new.md").mkdir()
    where = _root(root)
    watch = FolderWatch([where], changed=lambda _root, _files: None, scan=lambda: None)
    folders = {str(root), str(root / "sub")}

    def means(*batch: tuple[int, str]) -> Changed:
        return watch.sort_out([(kind, str(root / path)) for kind, path in batch], folders)

    added, modified, deleted = 1, 2, 3
    nothing = Changed()
    assert means((added, "a.md"), (modified, "sub/b.MD"), (deleted, "c.md")) == Changed(
        files={where: frozenset({"a.md", "sub/b.MD", "c.md"})}
    )
    assert (
        means((added, "MEMORY.md"), (added, ".a.md"), (added, ".x/a.md"), (added, "4913"), (added, "a.md~")) == nothing
    )
    assert means((added, "../other/a.md"), (modified, ".."), (modified, "sub")) == nothing
    assert [means((deleted, "sub")), means((added, "new.md")), means((deleted, "."))] == [Changed(folders=True)] * 3
    assert means(*((added, f"n{number}.md") for number in range(201))).burst


def test_the_systems_own_watch_tells_of_a_file(root: Path) -> None:
    """The native part behaves as `Watcher` says."""
    with watch_folders([str(root)]) as watcher:
        (root / "a.md").write_text("x")
        batch = watcher.watch(300, 10, 5_000, threading.Event())
        assert (1, str(root / "a.md")) in list(batch)
        stop = threading.Event()
        stop.set()
        assert watcher.watch(300, 10, 5_000, stop) == "stop"


def _root(path: Path) -> Root:
    return Root(ScopeName.PROJECT, path)
