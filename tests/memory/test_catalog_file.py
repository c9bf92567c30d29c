"""Whatever happens to the catalog's file, it costs at most one recall: it is made anew or bypassed, with one line."""

import logging
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallscope.runtime.errors import StoreUnavailableError
from recallscope.runtime.memory.catalog import Catalog
from recallscope.runtime.memory.catalog_readers import files_of
from recallscope.runtime.memory.catalog_schema import SCHEMA
from recallscope.runtime.memory.memory import Memory, open_memory
from recallscope.runtime.memory.scopes import MemoryRoots, catalog_path
from recallscope.runtime.observe import Observers

pytestmark = pytest.mark.anyio

NOBODY = 65_534


def write_notes(folder: Path, number: int = 12) -> None:
    """Write notes, each with a word of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    for at in range(number):
        (folder / f"n{at}.md").write_text(
            f"---\nname: Fact word{at}\nkeywords: [k{at}]\n---\nbody{at} of the note\n" * 1
        )


async def found(memory: Memory, query: str) -> list[str]:
    """Return the paths of the fast result, current ones only: what a turn would get."""
    hits = (await memory.search(query, exclude=frozenset(), recent_tools=())).fast
    stale = await memory.stale([hit.note for hit in hits])
    return [hit.note.relative for hit in hits if hit.note.note_version not in stale]


async def answers_again(memory: Memory, word: str = "word7", path: str = "n7.md") -> None:
    """Recall until there is an answer: a recall may find memory unavailable once, and each one after a sync may not."""
    try:
        if await found(memory, word) == [path]:
            return
    except StoreUnavailableError:
        pass
    await memory.sync()
    assert await found(memory, word) == [path]


@asynccontextmanager
async def over(catalog: Catalog, root: Path) -> AsyncGenerator[Memory, None]:
    """Open a memory without its background task, so that the test says when it syncs."""
    with closing(catalog):
        rebuilt = catalog.open_or_bypass()
        memory = Memory(MemoryRoots(project=root), catalog, observers=Observers())
        await memory.start(rebuilt=rebuilt)
        await memory.sync()
        yield memory


def remove(path: Path, suffixes: tuple[str, ...]) -> None:
    """Delete parts of the catalog at `path`."""
    for suffix in suffixes:
        Path(f"{path}{suffix}").unlink()


async def build(path: Path, root: Path) -> None:
    """Make a catalog over `root` at `path`, closed."""
    async with over(Catalog(path), root):
        pass


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the lines that were written."""
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


HOLDER = """
import sqlite3, sys
held = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=0)
for statement in sys.argv[2:]:
    held.execute(statement)
print("held", flush=True)
sys.stdin.read()
"""

LOCKER = """
import fcntl, sys
lock = open(sys.argv[1], "w")
fcntl.flock(lock, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def another_process(program: str, *arguments: str) -> Generator[None, None, None]:
    """Let another process hold something for the length of the block."""
    with subprocess.Popen(
        [sys.executable, "-c", program, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield
        process.communicate()


# Content


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, Path]:
    """Return the bytes of a whole catalog, and the folder of its notes."""
    folder = tmp_path_factory.mktemp("pristine")
    root = (folder / "notes").resolve()
    write_notes(root)
    anyio.run(build, folder / "catalog.sqlite3", root)
    return (folder / "catalog.sqlite3").read_bytes(), root


PLACE = st.tuples(st.floats(0, 1, exclude_max=True), st.binary(min_size=1, max_size=40))


@settings(max_examples=12, deadline=None)
@given(places=st.lists(PLACE, min_size=1, max_size=20))
def test_random_bytes_in_the_file_cost_one_recall(
    places: list[tuple[float, bytes]], pristine: tuple[bytes, Path]
) -> None:
    """With random bytes at random places recall answers at the latest after a sync, and only with current notes.

    What the bytes changed unnoticed may hide a note until the catalog is made anew; it never makes up one.
    """
    whole, root = pristine

    async def recall() -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "catalog.sqlite3"
            spoilt = bytearray(whole)
            for place, data in places:
                at = int(place * len(spoilt))
                spoilt[at : at + len(data)] = data[: len(spoilt) - at]
            path.write_bytes(spoilt)
            async with over(Catalog(path), root) as memory:
                for query in ("word3", "body7 k9"):
                    try:
                        got = await found(memory, query)
                    except StoreUnavailableError:
                        await memory.sync()
                        got = await found(memory, query)
                    assert all((root / relative).exists() for relative in got)

    anyio.run(recall)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.5, 0.99])
async def test_a_file_cut_short_is_made_anew(share: float, pristine: tuple[bytes, Path], tmp_path: Path) -> None:
    """Half a file, or nothing of it, costs at most one recall."""
    whole, root = pristine
    path = tmp_path / "catalog.sqlite3"
    path.write_bytes(whole[: int(share * len(whole))])
    async with over(Catalog(path), root) as memory:
        await answers_again(memory)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5])
async def test_a_file_cut_short_while_open_is_made_anew(
    share: float, pristine: tuple[bytes, Path], tmp_path: Path
) -> None:
    """The same for a file in use."""
    whole, root = pristine
    path = tmp_path / "catalog.sqlite3"
    path.write_bytes(whole)
    async with over(Catalog(path), root) as memory:
        assert await found(memory, "word7") == ["n7.md"]
        os.truncate(path, int(share * len(whole)))
        await answers_again(memory)


@pytest.mark.parametrize("missing", [("-wal",), ("-shm",), ("-wal", "-shm"), ("",), ("", "-wal", "-shm")])
@pytest.mark.parametrize("while_open", [False, True])
async def test_parts_of_the_catalog_may_be_deleted(missing: tuple[str, ...], while_open: bool, tmp_path: Path) -> None:
    """Without its log, the log's index or the file itself, at rest or in use, it answers again."""
    root = (tmp_path / "notes").resolve()
    write_notes(root)
    path = tmp_path / "cache" / "catalog.sqlite3"
    async with over(Catalog(path), root) as memory:
        assert await found(memory, "word7") == ["n7.md"]
        copies = {file.name: file.read_bytes() for file in files_of(path)}
        if while_open:
            remove(path, missing)
            await answers_again(memory)
            (root / "new.md").write_text("# Walrus colony")
            await memory.sync()
            assert await found(memory, "walrus colony") == ["new.md"]
    for name, data in copies.items():  # as a killed process leaves them
        (path.parent / name).write_bytes(data)
    remove(path, missing)
    async with over(Catalog(path), root) as memory:
        await answers_again(memory)


async def test_the_log_of_another_catalog_brings_no_notes_of_another_project(tmp_path: Path) -> None:
    """What a log that was left from another file brings in belongs to its own root: recall is wrong for nobody."""
    mine, theirs = (tmp_path / "mine").resolve(), (tmp_path / "theirs").resolve()
    write_notes(mine)
    write_notes(theirs, 3)
    (theirs / "secret.md").write_text("# Walrus colony")
    path = tmp_path / "catalog.sqlite3"
    await build(path, mine)
    async with over(Catalog(tmp_path / "other.sqlite3"), theirs):
        log = (tmp_path / "other.sqlite3-wal").read_bytes()
    files_of(path)[1].write_bytes(log)
    async with over(Catalog(path), mine) as memory:
        await answers_again(memory)
        assert await found(memory, "walrus colony") == []
        candidates = (await memory.search("anything", exclude=frozenset(), recent_tools=())).candidates
        assert {note.relative for note in candidates} == {f"n{at}.md" for at in range(12)}


async def test_a_catalog_replaced_while_open_shows_no_notes_of_another_project(tmp_path: Path) -> None:
    """The number of our root is another project's in the file that took the place: nothing of it is ever found."""
    mine, theirs = (tmp_path / "mine").resolve(), (tmp_path / "theirs").resolve()
    write_notes(mine)
    theirs.mkdir()
    (theirs / "n7.md").write_text("# Fact word7 of theirs")
    path, other = tmp_path / "catalog.sqlite3", tmp_path / "other.sqlite3"
    await build(other, theirs)
    async with over(Catalog(path), mine) as memory:
        assert await found(memory, "word7") == ["n7.md"]
        for file in files_of(path)[1:]:
            file.unlink()
        other.replace(path)
        with pytest.raises(StoreUnavailableError, match="does not stand for"):
            await memory.search("word7", exclude=frozenset(), recent_tools=())
        await memory.sync()
        assert await found(memory, "word7") == ["n7.md"]
    async with over(Catalog(path), theirs) as memory:
        assert await found(memory, "fact word7") == ["n7.md"]  # and what it held is still there


# Versions


async def test_two_versions_of_the_program_keep_their_own_catalogs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The version stands in the file's name: an older and a newer one beside it stay as they are, without a line."""
    root = (tmp_path / "notes").resolve()
    write_notes(root)
    path = catalog_path(MemoryRoots(project=root), tmp_path / "cache")
    assert path.name == f"catalog-{SCHEMA:08x}.sqlite3"
    path.parent.mkdir(parents=True)
    others = [path.with_name(f"catalog-{version:08x}.sqlite3") for version in (1, SCHEMA + 1)]
    for other in others:
        other.write_bytes(b"of another version")
    async with over(Catalog(path), root) as memory:
        await answers_again(memory)
    assert [other.read_bytes() for other in others] == [b"of another version"] * 2
    assert warnings(caplog) == []


async def test_a_catalog_of_another_version_goes_when_nobody_opens_it(tmp_path: Path) -> None:
    """A month after its last opening it is removed, with what belongs to it; this one's opening is marked."""
    root = (tmp_path / "notes").resolve()
    write_notes(root)
    path = catalog_path(MemoryRoots(project=root), tmp_path / "cache")
    old = path.with_name("catalog-00000001.sqlite3")
    await build(path, root)
    for file in (path, old, Path(f"{old}-wal"), old.with_suffix(".lock")):
        file.touch()
        os.utime(file, (1_000, 1_000))
    await build(path, root)
    assert sorted(file.name for file in path.parent.iterdir()) == [path.with_suffix(".lock").name, path.name]
    assert path.stat().st_mtime > 1_000


# Locks


@pytest.mark.parametrize(
    "statements",
    [
        ("PRAGMA locking_mode = EXCLUSIVE", "BEGIN EXCLUSIVE"),
        ("PRAGMA journal_mode = DELETE", "BEGIN EXCLUSIVE"),
    ],
)
async def test_a_catalog_that_another_process_keeps_for_itself_is_bypassed(
    statements: tuple[str, ...], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """At the start a temporary one serves in its place, with one line."""
    root = (tmp_path / "notes").resolve()
    write_notes(root)
    path = tmp_path / "catalog.sqlite3"
    await build(path, root)
    with another_process(HOLDER, str(path), *statements):
        async with over(Catalog(path, opening_patience=0.1), root) as memory:
            await answers_again(memory)
            assert memory.statistics().temporary
    assert [line.endswith("locked; a temporary catalog is used") for line in warnings(caplog)] == [True]


async def test_an_opening_that_never_ends_elsewhere_is_not_waited_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A stopped process that holds the lock of the opening does not hold the start of this one."""
    root = (tmp_path / "notes").resolve()
    write_notes(root)
    path = tmp_path / "catalog.sqlite3"
    with another_process(LOCKER, str(path.with_suffix(".lock"))):
        async with over(Catalog(path, opening_patience=0.1), root) as memory:
            await answers_again(memory)
    assert len(warnings(caplog)) == 1


async def test_a_writer_elsewhere_stops_no_recall(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """While another process holds a write, recall answers from what is there; afterwards the catalog catches up."""
    root = (tmp_path / "notes").resolve()
    write_notes(root)
    path = tmp_path / "catalog.sqlite3"
    await build(path, root)
    async with over(Catalog(path, patience=0.1), root) as memory:
        with another_process(HOLDER, str(path), "BEGIN IMMEDIATE"):
            (root / "n3.md").write_text("# Walrus colony")
            await memory.sync()
            assert [await found(memory, query) for query in ("word7", "word3", "walrus")] == [["n7.md"], [], []]
        await memory.sync()
        assert await found(memory, "walrus colony") == ["n3.md"]
    assert [line.endswith("cannot be written: database is locked") for line in warnings(caplog)] == [True]


async def test_a_catalog_locked_while_open_is_bypassed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A process that takes the file for itself costs one recall: then a temporary catalog answers."""
    root = (tmp_path / "notes").resolve()
    write_notes(root)
    path = tmp_path / "catalog.sqlite3"
    async with over(Catalog(path, patience=0.1, opening_patience=0.1), root) as memory:
        assert await found(memory, "word7") == ["n7.md"]
        for file in files_of(path):
            file.unlink()
        await build(tmp_path / "other.sqlite3", root)
        (tmp_path / "other.sqlite3").replace(path)
        with another_process(HOLDER, str(path), "PRAGMA locking_mode = EXCLUSIVE", "BEGIN EXCLUSIVE"):
            await answers_again(memory)
            assert memory.statistics().temporary
    assert [line.endswith("a temporary catalog is used") for line in warnings(caplog)] == [True]


# Where nothing can be written


@contextmanager
def private_folder() -> Generator[Path, None, None]:
    """Lend a folder of a person who may not do everything: root is somebody else for the length of the block."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        if os.geteuid() != 0:
            yield folder
            return
        os.chown(folder, NOBODY, NOBODY)
        os.seteuid(NOBODY)
        try:
            yield folder
        finally:
            os.seteuid(0)


@pytest.mark.parametrize("modes", [(0o400, 0o700), (0o400, 0o500), (0o600, 0o500)])
async def test_a_catalog_that_may_only_be_read_is_bypassed(
    modes: tuple[int, int], caplog: pytest.LogCaptureFixture
) -> None:
    """A read-only file, or one in a read-only folder, costs one line."""
    with private_folder() as folder:
        root = folder / "notes"
        write_notes(root)
        cache = folder / "cache"
        await build(cache / "catalog.sqlite3", root)
        (root / "n3.md").write_text("# Walrus colony")
        (cache / "catalog.sqlite3").chmod(modes[0])
        (cache / "catalog.lock").chmod(modes[0])
        cache.chmod(modes[1])
        async with over(Catalog(cache / "catalog.sqlite3"), root) as memory:
            await answers_again(memory)
            await answers_again(memory, "walrus colony", "n3.md")
        cache.chmod(0o700)
    assert [line.endswith("a temporary catalog is used") for line in warnings(caplog)] == [True]


async def test_a_full_disk_stops_no_recall(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What the catalog holds already is found, a changed note is left out, and with room again it catches up."""
    root = (tmp_path / "notes").resolve()
    write_notes(root)
    catalog = Catalog(tmp_path / "catalog.sqlite3")
    async with over(catalog, root) as memory:
        with catalog.writing() as writer:
            (pages,) = writer.execute("PRAGMA page_count").fetchone()
            writer.execute(f"PRAGMA max_page_count = {pages}")
        (root / "n3.md").write_text(f"# Walrus colony\n{'ice ' * 20_000}")
        await memory.sync()
        assert [await found(memory, query) for query in ("word7", "word3", "walrus")] == [["n7.md"], [], []]
        with catalog.writing() as writer:
            writer.execute("PRAGMA max_page_count = 1000000")
        await memory.sync()
        assert await found(memory, "walrus colony") == ["n3.md"]
    assert [line.endswith("database or disk is full") for line in warnings(caplog)] == [True]


async def test_without_any_place_for_a_catalog_memory_is_unavailable_and_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where not even a temporary file can be made the session starts, recall says so, and comes back by itself."""
    root = (tmp_path / "notes").resolve()
    write_notes(root)
    cache = tmp_path / "cache"
    cache.write_text("a file in the way")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    async with open_memory(
        MemoryRoots(project=root), observers=Observers(), catalog_path=cache / "catalog.sqlite3"
    ) as memory:
        await memory.wait_synced()
        with pytest.raises(StoreUnavailableError):
            await memory.search("word7", exclude=frozenset(), recent_tools=())
        cache.unlink()
        await memory.sync()
        assert await found(memory, "word7") == ["n7.md"]


@pytest.mark.parametrize(
    "harm",
    [
        "DELETE FROM notes WHERE relative < 'n5'",
        "UPDATE roots SET notes = notes + 3",
        "UPDATE terms SET documents = documents + 40",
        "UPDATE terms SET documents = 0, t = 0, d = 0, b = 0",
    ],
)
async def test_a_catalog_that_counts_wrongly_is_made_anew_by_the_next_sync(
    harm: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Numbers that do not belong to the rows are seen by one sync, which builds the catalog anew with one line."""
    path, root = tmp_path / "c.sqlite3", tmp_path / "notes"
    write_notes(root)
    await build(path, root)
    with closing(sqlite3.connect(path)) as other, other:
        other.execute(harm)
    catalog = Catalog(path)
    async with over(catalog, root) as memory:
        assert memory.notes == 12
        assert catalog.miscount(catalog.root_id(root)) is None
        assert await found(memory, "word7") == ["n7.md"]
        await memory.sync()
    assert len(warnings(caplog)) == 1
    assert "is rebuilt from the notes: it is broken (of" in warnings(caplog)[0]


async def test_a_catalog_without_the_bodies_of_its_notes_is_made_anew_once_one_changes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A row that cannot be replaced, since half of it is gone, costs the catalog and no more."""
    path, root = tmp_path / "c.sqlite3", tmp_path / "notes"
    write_notes(root)
    await build(path, root)
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("DELETE FROM bodies")
    (root / "n7.md").write_text("---\nname: Fact changed7\nkeywords: [k7]\n---\nanother body\n")
    async with over(Catalog(path), root) as memory:
        assert memory.notes == 12
        assert await found(memory, "changed7") == ["n7.md"]
    assert any("is rebuilt from the notes" in line for line in warnings(caplog))
