"""Edits: the one write path, what it refuses, and that its effects are there when it returns."""

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path

import pytest
from anyio import to_thread

from recallscope.runtime.errors import MemoryWriteError
from recallscope.runtime.events import Event, MemoryWriteFinished, MemoryWriteStarted, OpId, Status
from recallscope.runtime.memory.edit import Draft
from recallscope.runtime.memory.memory import Memory
from recallscope.runtime.memory.note import MAX_NOTE_BYTES, Note, version_of
from recallscope.runtime.memory.store import INDEX_MARK
from recallscope.runtime.terms import NoteSource, NoteType, ScopeName

pytestmark = pytest.mark.anyio

Write = Callable[[str, str], Path]
Opened = Callable[..., AbstractAsyncContextManager[Memory]]

DRAFT = Draft(title="Canary rules", body="Roll out to 5 % first.", type=NoteType.FEEDBACK, source=NoteSource.PERSON)


async def found(memory: Memory, query: str) -> list[Note]:
    """Return the fast notes for `query`."""
    result = await memory.search(query, exclude=frozenset(), recent_tools=())
    return [hit.note for hit in result.fast]


def text_of(path: Path) -> str:
    """Return a file's text."""
    return path.read_text(encoding="utf-8")


def tree(root: Path) -> list[str]:
    """Return the files below `root`."""
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


async def test_a_new_note_is_a_file_a_hit_and_a_line_of_the_index(opened: Opened, root: Path) -> None:
    """All three are there when `create` returns."""
    async with opened() as memory:
        note = await memory.edit.create(ScopeName.PROJECT, DRAFT)
        assert await found(memory, "canary") == [note]
        assert (memory.notes, await memory.stale([note])) == (1, frozenset())
    assert note.relative == "feedback/canary-rules.md"
    assert (note.created, note.updated) == (1_000.0, 1_000.0)
    assert text_of(root / note.relative) == (
        "---\nname: Canary rules\ndescription: ''\ntype: feedback\ncreated: '1970-01-01T00:16:40Z'\n"
        "updated: '1970-01-01T00:16:40Z'\nsource: person\n---\n\nRoll out to 5 % first.\n"
    )
    assert text_of(root / "MEMORY.md") == f"{INDEX_MARK}\n- [Canary rules](feedback/canary-rules.md) — feedback\n"


async def test_an_update_keeps_what_it_does_not_know(opened: Opened, root: Path, write: Write) -> None:
    """Unknown fields and the time of creation survive; the old text is not found any more."""
    write("a.md", "---\nname: Canary rules\ncreated: 2020-01-01\nticket: 42\nnested: {a: [1]}\n---\nbody")
    async with opened() as memory:
        (note,) = await found(memory, "canary")
        changed = await memory.edit.update(note, replace(Draft.of(note), title="Zebra crossing"))
        assert (await found(memory, "canary"), await found(memory, "zebra")) == ([], [changed])
    assert changed.extra == {"ticket": 42, "nested": {"a": [1]}}
    assert (changed.created, changed.updated) == (1_577_836_800.0, 1_000.0)
    assert "ticket: 42\n" in text_of(root / "a.md")


async def test_a_deleted_note_is_gone_everywhere(opened: Opened, root: Path) -> None:
    """File, hit and line of the index."""
    async with opened() as memory:
        note = await memory.edit.create(ScopeName.PROJECT, DRAFT)
        await memory.edit.delete(note)
        assert (await found(memory, "canary"), memory.notes) == ([], 0)
    assert tree(root) == ["MEMORY.md"]
    assert text_of(root / "MEMORY.md") == f"{INDEX_MARK}\n"


async def test_the_memory_folder_is_made_at_the_first_write(opened: Opened, root: Path) -> None:
    """A missing folder is no error, neither for a search nor for a write."""
    os.rmdir(root)  # noqa: PTH106 - a plain call inside an asynchronous test
    async with opened() as memory:
        assert await found(memory, "canary") == []
        await memory.edit.create(ScopeName.PROJECT, DRAFT)
    assert tree(root) == ["MEMORY.md", "feedback/canary-rules.md"]


async def test_namesakes_get_a_number(opened: Opened) -> None:
    """A title that is taken does not overwrite, and odd titles become file names."""
    async with opened() as memory:
        titles = ["Same!", "same", "../../etc/passwd", "部署 流程", "???", "x" * 200]
        notes = [await memory.edit.create(ScopeName.PROJECT, replace(DRAFT, title=title)) for title in titles]
    assert [note.relative.removeprefix("feedback/") for note in notes] == [
        "same.md",
        "same-2.md",
        "etc-passwd.md",
        "部署-流程.md",
        "note.md",
        "x" * 80 + ".md",
    ]


@pytest.mark.parametrize(
    ("draft", "problem"),
    [
        (replace(DRAFT, title="  "), "needs a title"),
        (replace(DRAFT, body="x" * MAX_NOTE_BYTES), "at most"),
        (replace(DRAFT, title="x" * 201), "the title has 201 characters, at most 200 are taken; shorten it"),
        (replace(DRAFT, body="a\0b"), "NUL"),
        (replace(DRAFT, body="half \ud800"), "surrogate"),
        (replace(DRAFT, body="line\npassword = hunter2Hunter3!"), r"line 11 \(assigned-password\)"),
        (replace(DRAFT, description="ghp_" + "a1B2" * 9), r"line 3 \(github-token\)"),
        (replace(DRAFT, extra={"key": "AKIA" + "IOSFODNN7EXAMPLQ"}), r"\(aws-access-key\)"),
    ],
)
async def test_a_draft_that_may_not_be_written_is_refused(
    opened: Opened, root: Path, draft: Draft, problem: str
) -> None:
    """Nothing is changed, the reason is told, and a credential's value is not."""
    async with opened() as memory:
        with pytest.raises(MemoryWriteError, match=problem) as caught:
            await memory.edit.create(ScopeName.PROJECT, draft)
    assert tree(root) == []
    assert not any(secret in str(caught.value) for secret in ("hunter2", "a1B2", "AKIA"))


async def test_writes_stay_below_the_scope(opened: Opened, root: Path, tmp_path: Path) -> None:
    """Neither `..` nor a link leads out, and a scope that is not configured takes nothing."""
    (root / "out").symlink_to(tmp_path)
    async with opened() as memory:
        for relative in ("../out.md", "out/x.md", "/tmp/x.md", "MEMORY.md"):  # noqa: S108 - refused
            with pytest.raises(MemoryWriteError):
                await memory.edit.create(ScopeName.PROJECT, DRAFT, relative=relative)
        with pytest.raises(MemoryWriteError, match="scope user"):
            await memory.edit.create(ScopeName.USER, DRAFT)
    assert not [name for name in tree(tmp_path) if name.endswith(".md")]


async def test_what_the_writer_has_not_seen_is_not_overwritten(opened: Opened, root: Path, write: Write) -> None:
    """A file that appeared, changed or went since it was read makes the write fail, with the file as it is."""
    write("a.md", "# Canary rules\nold")
    async with opened() as memory:
        (note,) = await found(memory, "canary")
        write("a.md", "# Canary rules\nsomebody else's")
        with pytest.raises(MemoryWriteError, match="changed since"):
            await memory.edit.update(note, DRAFT)
        with pytest.raises(MemoryWriteError, match="changed since"):
            await memory.edit.delete(note)
        with pytest.raises(MemoryWriteError, match="exists"):
            await memory.edit.create(ScopeName.PROJECT, DRAFT, relative="a.md")
        assert text_of(root / "a.md") == "# Canary rules\nsomebody else's"
        os.unlink(root / "a.md")  # noqa: PTH108 - a plain call inside an asynchronous test
        with pytest.raises(MemoryWriteError, match="gone"):
            await memory.edit.update(note, DRAFT)


async def test_memory_opened_for_reading_takes_no_write(opened: Opened, root: Path) -> None:
    """`read_only` refuses every write."""
    async with opened(read_only=True) as memory:
        with pytest.raises(MemoryWriteError, match="reading only"):
            await memory.edit.create(ScopeName.PROJECT, DRAFT)
    assert tree(root) == []


async def test_an_index_that_a_person_wrote_is_left_alone(opened: Opened, root: Path, write: Write) -> None:
    """A `MEMORY.md` without our mark belongs to somebody else."""
    write("MEMORY.md", "# My own index\n")
    async with opened() as memory:
        await memory.edit.create(ScopeName.PROJECT, DRAFT)
    assert text_of(root / "MEMORY.md") == "# My own index\n"


async def test_each_write_is_stated_from_start_to_finish(opened: Opened, events: list[Event]) -> None:
    """A pair of events per write, with the operation that asked for it; a refused one has failed."""
    async with opened() as memory:
        note = await memory.edit.create(ScopeName.PROJECT, DRAFT, parent=OpId("turn"))
        await memory.edit.update(note, replace(DRAFT, body="other"))
        with pytest.raises(MemoryWriteError):
            await memory.edit.delete(note)
    started = [event for event in events if isinstance(event, MemoryWriteStarted)]
    finished = [event for event in events if isinstance(event, MemoryWriteFinished)]
    assert [(event.operation, event.note, event.parent) for event in started] == [
        ("create", "project:feedback/canary-rules.md", "turn"),
        ("update", "project:feedback/canary-rules.md", None),
        ("delete", "project:feedback/canary-rules.md", None),
    ]
    assert [(event.op, event.status, event.error_type) for event in finished] == [
        (started[0].op, Status.OK, None),
        (started[1].op, Status.OK, None),
        (started[2].op, Status.FAILED, "MemoryWriteError"),
    ]


WRITER = """
import sys, pathlib, anyio
from recallscope.runtime.memory.edit import Draft
from recallscope.runtime.memory.memory import open_memory
from recallscope.runtime.memory.scopes import MemoryRoots
from recallscope.runtime.observe import Observers
from recallscope.runtime.terms import ScopeName

async def main():
    async with open_memory(MemoryRoots(project=pathlib.Path(sys.argv[1])), observers=Observers(),
                           catalog_path=pathlib.Path(sys.argv[2])) as memory:
        await memory.wait_synced()
        for number in range(10):
            await memory.edit.create(ScopeName.PROJECT, Draft(title=f"{sys.argv[3]}{number} fact", body="x"))

anyio.run(main)
"""


async def test_two_processes_write_through_one_catalog(opened: Opened, root: Path, catalog_file: Path) -> None:
    """Both work, no note is lost, and the index of the last one holds every note."""

    def run_both() -> list[int]:
        command = [sys.executable, "-c", WRITER, str(root), str(catalog_file)]
        return [worker.wait(50) for worker in [subprocess.Popen([*command, name]) for name in ("anna", "bert")]]

    assert await to_thread.run_sync(run_both) == [0, 0]
    async with opened() as memory:
        assert memory.notes == 20
        assert [note.title for note in await found(memory, "anna7")] == ["anna7 fact"]
    assert len(text_of(root / "MEMORY.md").splitlines()) == 21


async def test_a_pin_changes_the_pin_alone(opened: Opened, root: Path, write: Write) -> None:
    """Age, time of creation and unknown fields stay; the pin of the folder `pinned/` cannot be taken away."""
    write("a.md", "---\nname: Canary rules\ncreated: 2020-01-01\nupdated: 2020-01-02\nticket: 42\n---\nbody")
    write("pinned/b.md", "# Zebra crossing\nbody")
    async with opened() as memory:
        (note,) = await found(memory, "canary")
        pinned = await memory.edit.pin(note, pinned=True)
        assert (pinned.pinned, pinned.updated, pinned.created) == (True, note.updated, note.created)
        assert "ticket: 42\n" in text_of(root / "a.md")
        free = await memory.edit.pin(pinned, pinned=False)
        assert (free.pinned, free.updated) == (False, note.updated)
        (below,) = await found(memory, "zebra")
        with pytest.raises(MemoryWriteError, match="move the file"):
            await memory.edit.pin(below, pinned=False)


async def test_a_restored_note_is_the_same_bytes(opened: Opened, root: Path) -> None:
    """Comments, order and time stay; a path that is taken needs the version that stands there."""
    data = b"---\nname: Canary rules   # as written\nzz: 1\n---\n\nbody\r\n"
    async with opened() as memory:
        note = await memory.edit.restore(ScopeName.PROJECT, "x/a.md", data, modified=500.0)
        assert await found(memory, "canary") == [note]
        assert ((root / "x/a.md").read_bytes(), note.updated) == (data, 500.0)
        with pytest.raises(MemoryWriteError, match="exists"):
            await memory.edit.restore(ScopeName.PROJECT, "x/a.md", b"# other")
        with pytest.raises(MemoryWriteError, match="changed since"):
            await memory.edit.restore(ScopeName.PROJECT, "x/a.md", b"# other", replaces="other version")
        other = await memory.edit.restore(ScopeName.PROJECT, "x/a.md", b"# Zebra crossing", replaces=note.version)
        assert await found(memory, "zebra") == [other]


async def test_a_broken_file_can_be_replaced_by_a_note(opened: Opened, root: Path, write: Write) -> None:
    """What stands there need not be readable, only known."""
    write("a.md", "---\nkeywords: [\n---\n")
    async with opened() as memory:
        version = version_of((root / "a.md").read_bytes())
        note = await memory.edit.restore(ScopeName.PROJECT, "a.md", b"# Canary rules", replaces=version)
        assert (await found(memory, "canary"), memory.notes) == ([note], 1)


@pytest.mark.parametrize(
    ("relative", "data", "problem"),
    [
        ("../a.md", b"# x", "`..` folder"),
        ("a.md", b"", "empty"),
        ("a.md", b"\xff", "not UTF-8"),
        ("a.md", b"a\0b", "NUL"),
        ("a.md", b"x" * (MAX_NOTE_BYTES + 1), "at most"),
        ("a.md", b"---\nkeywords: [\n---\n", "no YAML"),
        ("a.md", b"# x\n\nAKIA" + b"IOSFODNN7EXAMPLQ", r"line 3 \(aws-access-key\)"),
    ],
)
async def test_what_may_not_be_written_is_not_restored(
    opened: Opened, root: Path, relative: str, data: bytes, problem: str
) -> None:
    """Restoring asks what every write asks."""
    async with opened() as memory:
        with pytest.raises(MemoryWriteError, match=problem):
            await memory.edit.restore(ScopeName.PROJECT, relative, data)
    assert tree(root) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("updated: 1970-01-01  # c\nname: Canary", "updated: '1970-01-01T00:16:40Z'\nname: Canary"),
        ("name: Canary", "name: Canary"),
        ("name: Canary\nupdated: >\n 1970-01-01", "name: Canary\nupdated: >\n 1970-01-01"),
        ("name: Canary\nupdated: soon", "name: Canary\nupdated: soon"),
    ],
)
async def test_a_rewritten_note_is_the_persons_but_for_the_time(
    opened: Opened, root: Path, write: Write, old: str, new: str
) -> None:
    """The line `updated` is set to now where the person left it; every other byte is theirs."""
    write("a.md", f"---\n{old}\n---\nold")
    async with opened() as memory:
        (note,) = await found(memory, "canary")
        await memory.edit.rewrite(note, f"---\n{old}\n---\nnew".encode())
        assert text_of(root / "a.md") == f"---\n{new}\n---\nnew"
        with pytest.raises(MemoryWriteError, match="changed since"):
            await memory.edit.rewrite(note, b"# other")


async def test_a_time_that_the_person_states_stays(opened: Opened, root: Path, write: Write) -> None:
    """Who changes `updated` means it."""
    write("a.md", "---\nname: Canary\nupdated: 1970-01-01\n---\n")
    async with opened() as memory:
        (note,) = await found(memory, "canary")
        await memory.edit.rewrite(note, b"---\nname: Canary\nupdated: 1970-01-03\n---\n")
    assert text_of(root / "a.md") == "---\nname: Canary\nupdated: 1970-01-03\n---\n"


async def test_many_notes_are_indexed_once(opened: Opened, root: Path) -> None:
    """`index=False` leaves `MEMORY.md` to one `write_index` at the end; reading memory has none."""
    async with opened() as memory:
        for name in ("a", "b"):
            await memory.edit.restore(ScopeName.PROJECT, f"{name}.md", f"# {name}".encode(), modified=1.0, index=False)
        assert tree(root) == ["a.md", "b.md"]
        await memory.edit.write_index(ScopeName.PROJECT)
        assert text_of(root / "MEMORY.md") == f"{INDEX_MARK}\n- [a](a.md) — project\n- [b](b.md) — project\n"
        assert memory.notes == 2
    async with opened(read_only=True) as memory:
        with pytest.raises(MemoryWriteError, match="reading only"):
            await memory.edit.write_index(ScopeName.PROJECT)


async def test_a_long_title_may_stay_and_not_come(opened: Opened, write: Write) -> None:
    """One that a file has is kept by every write; another one is refused, from a draft and from a person's text."""
    path = write("a.md", f"---\nname: {'x' * 300}\n---\n\nThe canary sings of deployment.\n")
    async with opened() as memory:
        (note,) = await found(memory, "canary deployment")
        note = await memory.edit.update(note, replace(Draft.of(note), body="other"))
        note = await memory.edit.rewrite(note, path.read_bytes().replace(b"other", b"third"))
        before = path.read_bytes()
        with pytest.raises(MemoryWriteError, match="the title has 201 characters"):
            await memory.edit.update(note, replace(Draft.of(note), title="y" * 201))
        with pytest.raises(MemoryWriteError, match="the title has 301 characters"):
            await memory.edit.rewrite(note, before.replace(b"x" * 300, b"x" * 301))
    assert (path.read_bytes(), b"third" in before) == (before, True)
