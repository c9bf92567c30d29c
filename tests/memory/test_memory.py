"""Memory as a whole: synced with its files, searched off the event loop, never stale, edited through one path."""

import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, closing
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from recallscope.runtime.errors import MemoryWriteError, StoreUnavailableError
from recallscope.runtime.events import CatalogSynced, Event
from recallscope.runtime.memory.catalog import Catalog
from recallscope.runtime.memory.inspect import describe
from recallscope.runtime.memory.lookup import Lookup
from recallscope.runtime.memory.memory import Memory, open_memory
from recallscope.runtime.memory.note import Note, parse
from recallscope.runtime.memory.scopes import TICK_NS, MemoryRoots, Root, Skipped
from recallscope.runtime.memory.search import Found, Searchable
from recallscope.runtime.memory.tokens import QueryToken, Tokens
from recallscope.runtime.messages import NoteVersion
from recallscope.runtime.observe import Observers
from recallscope.runtime.terms import ScopeName

pytestmark = pytest.mark.anyio

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"

Write = Callable[[str, str], Path]
Opened = Callable[..., AbstractAsyncContextManager[Memory]]


async def search(
    memory: Searchable,
    query: str,
    *exclude: NoteVersion,
    tools: tuple[str, ...] = (),
    within: float | None = None,
) -> Found:
    """Search as a recall does."""
    return await memory.search(query, exclude=frozenset(exclude), recent_tools=tools, within=within)


def paths(found: Found) -> list[str]:
    """Return the paths of the fast result."""
    return [hit.note.relative for hit in found.fast]


def some_notes(write: Write) -> None:
    """Write a small memory."""
    write(
        "project/deploy.md", "---\nname: Deploy to staging\ndescription: canary first\nkeywords: [k8s]\n---\nmake ship"
    )
    write("project/db.md", "---\nname: Database migrations\ndescription: one alembic head\n---\nalembic upgrade")
    write("feedback/terse.md", "---\nname: Terse answers\ntype: feedback\n---\nNo small talk.")
    write("user/role.md", "# Role\nThe person maintains the billing service in Go.")


def look(root: Path) -> list[tuple[Path, int]]:
    """Return what stands below `root`, with times."""
    return sorted((path, path.stat().st_mtime_ns) for path in root.rglob("*"))


def make_old(root: Path) -> None:
    """Give every note the time of second 1,000, and return once none counts as just changed any more."""
    for path in root.rglob("*.md"):
        os.utime(path, (1_000, 1_000))
    newest = max(path.stat().st_ctime_ns for path in root.rglob("*.md"))
    while time.time_ns() <= newest + 2 * TICK_NS:
        pass


def spoil(catalog_file: Path) -> None:
    """Put something that is no database where the catalog lies."""
    for name in ("", "-wal", "-shm"):
        Path(f"{catalog_file}{name}").unlink(missing_ok=True)
    catalog_file.parent.mkdir(exist_ok=True)
    catalog_file.write_bytes(b"no database " * 500)


async def test_the_fast_result_is_right_or_silent(opened: Opened, write: Write) -> None:
    """Notes that share telling words come, best first; a query about something else gets nothing."""
    some_notes(write)
    async with opened() as memory:
        got = {
            query: paths(await search(memory, query))
            for query in (
                "how do we deploy to staging?",
                "k8s",
                "MIGRATION of the databases",
                "what is the weather",
                "please help me with this",
                '" OR * NEAR( k8s staging',
                "'; DROP TABLE notes; --",
                "",
                "\uff1f\uff01",
                "做",
            )
        }
    assert got == {
        "how do we deploy to staging?": ["project/deploy.md"],
        "k8s": ["project/deploy.md"],
        "MIGRATION of the databases": ["project/db.md"],
        "what is the weather": [],
        "please help me with this": [],
        '" OR * NEAR( k8s staging': ["project/deploy.md"],
        "'; DROP TABLE notes; --": [],
        "": [],
        "\uff1f\uff01": [],
        "做": [],
    }


async def test_what_a_recall_gets(opened: Opened, write: Write) -> None:
    """Fast and lexical notes have bodies; runners-up are below the threshold; candidates hold the newest notes too."""
    some_notes(write)
    async with opened() as memory:
        found = await search(memory, "deploy to staging for the billing")
        assert memory.notes == 4
    assert [(hit.note.title, hit.note.body) for hit in found.lexical] == [("Deploy to staging", "make ship")]
    hits = (*found.fast, *found.lexical, *(left.hit for left in found.left_out))
    assert [round(sum(part.value for part in hit.parts), 3) for hit in hits] == [round(hit.score, 3) for hit in hits]
    assert [hit.note.title for hit in (left.hit for left in found.left_out)] == ["Role"]
    assert {note.relative for note in found.candidates} == {
        "project/deploy.md",
        "project/db.md",
        "feedback/terse.md",
        "user/role.md",
    }
    assert not found.partial


async def test_recency_parts_equals_and_nothing_else(opened: Opened, write: Write) -> None:
    """Of two notes with the same score the newer one is first; the type does not matter."""
    write("user/a.md", "---\nname: canary rules\nupdated: 2026-01-01\n---\nx")
    write("project/b.md", "---\nname: canary rules\nupdated: 2026-01-02\n---\nx")
    async with opened() as memory:
        assert paths(await search(memory, "canary rules")) == ["project/b.md", "user/a.md"]


async def test_excluded_versions_do_not_come_and_new_versions_do(opened: Opened, write: Write) -> None:
    """What stands in the conversation is left out everywhere, until it changes."""
    some_notes(write)
    async with opened() as memory:
        hit = (await search(memory, "deploy staging")).fast[0]
        again = await search(memory, "deploy staging", hit.note.note_version)
        assert hit.note.id not in {note.id for note in again.candidates}
        assert (again.fast, again.lexical) == ((), ())
        write("project/deploy.md", "---\nname: Deploy to staging\n---\nchanged")
        await memory.sync()
        newer = await search(memory, "deploy staging", hit.note.note_version)
        assert [(found.note.body) for found in newer.fast] == ["changed"]


async def test_a_superseded_note_is_a_runner_up_at_best(opened: Opened, write: Write) -> None:
    """What another note replaces is never delivered."""
    write("old.md", "---\nname: canary rules\nsuperseded_by: new.md\n---\nx")
    async with opened() as memory:
        found = await search(memory, "canary rules")
    assert (found.fast, found.lexical, found.candidates) == ((), (), ())
    assert [hit.note.relative for hit in (left.hit for left in found.left_out)] == ["old.md"]


async def test_usage_notes_of_recent_tools_are_left_out(opened: Opened, write: Write) -> None:
    """After a call of the tool its usage note is noise; a warning about it is not."""
    write("usage.md", "---\nname: create_issue tool usage\n---\nfields: title, body")
    write("warning.md", "---\nname: create_issue tool usage\n---\nWarning: it notifies everybody")
    async with opened() as memory:
        query = "create_issue usage"
        assert set(paths(await search(memory, query))) == {"usage.md", "warning.md"}
        found = await search(memory, query, tools=("mcp__jira__create_issue",))
        assert paths(found) == ["warning.md"]
        assert [note.relative for note in found.candidates] == ["warning.md"]


async def test_every_unreadable_note_is_skipped_and_named(
    opened: Opened, root: Path, write: Write, events: list[Event], tmp_path: Path
) -> None:
    """Broken files cost themselves alone, and an unchanged one is not read again."""
    some_notes(write)
    write("empty.md", "")
    write("bad.md", "---\nx: [\n---\nbody")
    (root / "latin.md").write_bytes(b"caf\xe9 au lait")
    (root / "binary.md").write_bytes(bytes(range(256)))
    with (root / "big.md").open("wb") as stream:
        stream.truncate(5_000_000)
    os.mkfifo(root / "pipe.md")
    (root / "out.md").symlink_to(tmp_path / "elsewhere.md")
    (root / "crlf.md").write_bytes(b"\xef\xbb\xbf---\r\nname: Windows\r\n---\r\nfine\r\n")
    async with opened() as memory:
        await memory.sync()
        assert memory.notes == 5
        why = {skip.path: skip.why for skip in memory.skipped}
        answer = describe(await search(memory, "windows"), 0.001, memory)
    assert why == {
        "bad.md": "the front matter is no YAML: did not find expected node content in line 3",
        "big.md": "it has 5000000 bytes, at most 1048576 are read",
        "binary.md": "it is binary: it holds a NUL byte",
        "empty.md": "it is empty",
        "latin.md": "it is not UTF-8 (byte 3)",
        "out.md": "it is a symbolic link that leaves the memory folder",
        "pipe.md": "it is no regular file",
    }
    synced = [(event.notes, event.skipped) for event in events if isinstance(event, CatalogSynced)]
    assert synced == [(5, 7), (5, 7)]
    assert answer == {
        "fast": {
            "notes": [{"path": "crlf.md", "title": "Windows", "type": "project", "score": 0.6}],
            "seconds": 0.001,
        },
        "runners_up": [],
        "catalog": {"notes": 5, "skipped": [{"path": path, "why": reason} for path, reason in sorted(why.items())]},
    }


async def test_a_recall_writes_nothing_into_the_memory_folder(opened: Opened, root: Path, write: Write) -> None:
    """A folder of another program is read as it is: its index stays, and no file appears."""
    write("MEMORY.md", "- [a](a.md)\n")
    write("deep/er/a.md", "---\nname: canary\ndescription: d\ntype: reference\n---\nbody")
    before = look(root)
    async with opened() as memory:
        assert paths(await search(memory, "canary")) == ["deep/er/a.md"]
    assert look(root) == before


async def test_a_sync_takes_up_what_changed_and_forgets_what_is_gone(
    opened: Opened, root: Path, write: Write, events: list[Event]
) -> None:
    """Edited, new, renamed and deleted files are what the next search finds; an unchanged memory changes nothing."""
    some_notes(write)
    make_old(root)
    async with opened() as memory:
        write("project/db.md", "---\nname: Zebra crossing\n---\nx")
        (root / "project/deploy.md").rename(root / "project/moved.md")
        (root / "user/role.md").unlink()
        await memory.sync()
        got = [paths(await search(memory, query)) for query in ("zebra", "deploy staging", "migrations", "billing")]
        await memory.sync()
    assert got == [["project/db.md"], ["project/moved.md"], [], []]
    changed = [(event.notes, event.changed) for event in events if isinstance(event, CatalogSynced)]
    assert changed[0] == (4, 4)
    assert changed[1] == (3, 4)


async def test_what_the_catalog_holds_is_found_before_the_first_sync(
    opened: Opened, root: Path, write: Write, catalog_file: Path
) -> None:
    """A new process answers its first recall from the catalog on disk; its count is known at once."""
    some_notes(write)
    async with opened():
        pass
    catalog = Catalog(catalog_file)
    catalog.open()
    memory = Memory(MemoryRoots(project=root), catalog, observers=Observers())
    await memory.start(rebuilt=False)
    assert memory.notes == 4
    assert paths(await search(memory, "deploy staging")) == ["project/deploy.md"]
    catalog.close()


async def test_stale_notes_are_told_and_read_again(opened: Opened, root: Path, write: Write) -> None:
    """Changed and gone files are named by one `stat` each, and the background task re-indexes them."""
    some_notes(write)
    async with opened() as memory:
        notes = (await search(memory, "nothing of the kind")).candidates
        assert await memory.stale(notes) == frozenset()
        write("project/db.md", "---\nname: Zebra crossing\n---\nx")
        (root / "user/role.md").unlink()
        expected = {note.note_version for note in notes if note.relative in {"project/db.md", "user/role.md"}}
        assert await memory.stale(notes) == expected
        while memory.notes != 3:
            await anyio.lowlevel.checkpoint()
        assert paths(await search(memory, "zebra")) == ["project/db.md"]
        assert {version.note for version in await memory.stale(notes)} == {
            "project:project/db.md",
            "project:user/role.md",
        }


BEFORE, AFTER = "# Canary one\nstate A", "# Canary two\nstate B"


def _deleted(path: Path) -> None:
    path.unlink()


def _moved(path: Path) -> None:
    path.rename(path.with_name("other.md"))


def _longer(path: Path) -> None:
    path.write_text(f"{AFTER} and more")


def _in_place_time_put_back(path: Path) -> None:
    look = path.stat()
    path.write_text(AFTER)
    os.utime(path, ns=(look.st_atime_ns, look.st_mtime_ns))


def _another_file_time_put_back(path: Path) -> None:
    look = path.stat()
    copy = path.with_name("copy")
    copy.write_text(AFTER)
    os.utime(copy, ns=(look.st_atime_ns, look.st_mtime_ns))
    copy.replace(path)


def _inode_used_again(path: Path) -> None:
    look = path.stat()
    path.unlink()
    path.write_text(AFTER)
    os.utime(path, ns=(look.st_atime_ns, look.st_mtime_ns))


def _link_to_the_same_text(path: Path) -> None:
    copy = path.with_name("elsewhere")
    copy.write_text(BEFORE)
    path.unlink()
    path.symlink_to(copy)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize(
    "change",
    [
        _deleted,
        _moved,
        _longer,
        _in_place_time_put_back,
        _another_file_time_put_back,
        _inode_used_again,
        _link_to_the_same_text,
        _folder,
    ],
)
async def test_a_changed_note_is_never_current(
    change: Callable[[Path], None], old: bool, opened: Opened, write: Write
) -> None:
    """Whatever size, time and inode say, also within one tick of the file system's clock; it is read again at once."""
    path = write("a.md", BEFORE)
    if old:
        os.utime(path, (1_000, 1_000))
    async with opened() as memory:
        (hit,) = (await search(memory, "canary one")).fast
        assert await memory.stale([hit.note]) == frozenset()
        change(path)
        assert await memory.stale([hit.note]) == {hit.note.note_version}
        with anyio.fail_after(5):
            while any(found.note.version == hit.note.version for found in (await search(memory, "canary")).fast):
                await anyio.lowlevel.checkpoint()


async def test_a_note_that_was_only_touched_is_delivered(opened: Opened, write: Write) -> None:
    """Another time or other permissions are no other version: the file is read, and it is the same."""
    path = write("a.md", BEFORE)
    async with opened() as memory:
        (hit,) = (await search(memory, "canary one")).fast
        os.utime(path, (2_000, 2_000))
        path.chmod(0o400)
        assert await memory.stale([hit.note]) == frozenset()


async def test_load_gives_bodies_in_order_without_what_is_gone(opened: Opened, root: Path, write: Write) -> None:
    """The candidates of a selector become notes with bodies."""
    some_notes(write)
    async with opened() as memory:
        notes = sorted((await search(memory, "x")).candidates, key=lambda note: note.relative)
        (root / "project/db.md").unlink()
        await memory.sync()
        loaded = await memory.load(notes)
    assert [(note.relative, note.body) for note in loaded] == [
        ("feedback/terse.md", "No small talk."),
        ("project/deploy.md", "make ship"),
        ("user/role.md", "# Role\nThe person maintains the billing service in Go."),
    ]


async def test_a_deadline_makes_a_search_partial(opened: Opened, write: Write) -> None:
    """After the deadline a search returns what it has and says that it is partial."""
    some_notes(write)
    async with opened() as memory:
        query = "deploy the alembic canary to staging"
        assert [(await search(memory, query, within=limit)).partial for limit in (0.0, 30.0, None)] == [
            True,
            False,
            False,
        ]


async def test_a_stopped_search_ends_with_what_it_has(
    opened: Opened, write: Write, root: Path, catalog_file: Path
) -> None:
    """`stop` makes `run` return a partial answer, and ends a statement under way."""
    some_notes(write)
    async with opened():
        pass
    with closing(Catalog(catalog_file)) as catalog:
        catalog.open()
        lookup = Lookup(
            catalog=catalog,
            roots={catalog.root_id(root): Root(ScopeName.PROJECT, root)},
            query="deploy staging",
            exclude=frozenset(),
            tools=frozenset(),
        )
        entered = threading.Event()

        problems: list[str] = []

        def never_ending() -> None:
            with catalog.readers.borrow() as connection, lookup.interruptible(connection):
                entered.set()
                try:
                    connection.execute(
                        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
                    )
                except sqlite3.OperationalError as error:
                    problems.append(str(error))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(to_thread.run_sync, never_ending)
            await to_thread.run_sync(entered.wait)
            lookup.stop()
        assert problems == ["interrupted"]
        assert lookup.run().partial


class SlowTokens(Tokens):
    """Cuts no query before it is released."""

    def __init__(self) -> None:
        super().__init__()
        self.entered = threading.Event()
        self.released = threading.Event()

    def query(self, text: str) -> tuple[QueryToken, ...]:
        """Wait, then cut."""
        self.entered.set()
        self.released.wait()
        return super().query(text)


async def test_a_cancelled_search_does_not_hold_its_caller(
    opened: Opened, write: Write, root: Path, catalog_file: Path
) -> None:
    """The caller goes on at once while the thread is busy; the thread then ends and memory is as usable as before."""
    some_notes(write)
    async with opened():
        pass
    with closing(Catalog(catalog_file)) as catalog:
        catalog.open()
        catalog.tokens = tokens = SlowTokens()
        memory = Memory(MemoryRoots(project=root), catalog, observers=Observers())
        await memory.start(rebuilt=False)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(search, memory, "deploy")
            await to_thread.run_sync(tokens.entered.wait)
            tasks.cancel_scope.cancel()
        assert not tokens.released.is_set()
        tokens.released.set()
        assert paths(await search(memory, "deploy staging")) == ["project/deploy.md"]


async def test_a_folder_that_cannot_be_listed_is_unavailable_and_not_empty(
    tmp_path: Path, catalog_file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A memory folder that is a file makes a search fail with its reason, and the rest of memory stays usable."""
    broken = tmp_path / "file"
    broken.write_text("x")
    with caplog.at_level(logging.WARNING):
        async with open_memory(MemoryRoots(project=broken), observers=Observers(), catalog_path=catalog_file) as memory:
            await memory.wait_synced()
            with pytest.raises(StoreUnavailableError, match="Not a directory"):
                await search(memory, "anything")
            assert memory.statistics().scopes[0].problem is not None
    user = tmp_path / "user"
    user.mkdir()
    (user / "a.md").write_text("# Canary rules")
    async with open_memory(
        MemoryRoots(project=broken, user=user), observers=Observers(), catalog_path=catalog_file
    ) as memory:
        await memory.wait_synced()
        assert paths(await search(memory, "canary")) == ["a.md"]


async def test_a_catalog_that_breaks_is_rebuilt_while_memory_is_open(
    opened: Opened, write: Write, catalog_file: Path
) -> None:
    """A search over a broken file is unavailable; the next sync has everything again."""
    some_notes(write)
    async with opened() as memory:
        spoil(catalog_file)
        with pytest.raises(StoreUnavailableError):
            await search(memory, "deploy staging")
        await memory.sync()
        assert paths(await search(memory, "deploy staging")) == ["project/deploy.md"]


async def test_a_rebuilt_catalog_is_stated(
    opened: Opened, write: Write, catalog_file: Path, events: list[Event]
) -> None:
    """The first sync after a catalog was thrown away says so in its event, once."""
    some_notes(write)
    spoil(catalog_file)
    async with opened() as memory:
        await memory.sync()
    assert [event.rebuilt for event in events if isinstance(event, CatalogSynced)] == [True, False]


async def test_where_no_catalog_can_be_made_a_temporary_one_serves(
    root: Path, tmp_path: Path, write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    """An unusable cache directory costs a warning, not the memory."""
    some_notes(write)
    (tmp_path / "blocked").write_text("a file")
    async with open_memory(
        MemoryRoots(project=root), observers=Observers(), catalog_path=tmp_path / "blocked" / "catalog.sqlite3"
    ) as memory:
        await memory.wait_synced()
        assert paths(await search(memory, "deploy staging")) == ["project/deploy.md"]
        assert memory.statistics().temporary
    assert [record.message.endswith("a temporary catalog is used") for record in caplog.records] == [True]


async def test_an_error_of_the_caller_leaves_the_block_as_it_is(opened: Opened) -> None:
    """The background task does not wrap what happens in the block into a group."""
    with pytest.raises(MemoryWriteError):
        async with opened(read_only=True) as memory:
            await memory.edit.delete(_gone())


def _gone() -> Note:
    return parse(b"x", scope=ScopeName.PROJECT, root=Path("/x"), relative="x.md", modified=0.0)


async def test_skipped_files_are_known_before_the_first_sync(
    opened: Opened, root: Path, write: Write, catalog_file: Path
) -> None:
    """What could not be read stands in the catalog."""
    write("empty.md", "")
    async with opened():
        pass
    catalog = Catalog(catalog_file)
    catalog.open()
    memory = Memory(MemoryRoots(project=root), catalog, observers=Observers())
    await memory.start(rebuilt=False)
    assert memory.skipped == (Skipped("empty.md", "it is empty"),)
    catalog.close()
