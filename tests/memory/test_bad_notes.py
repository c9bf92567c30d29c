"""What stands in a memory folder and is no good note: each kind has one defined result, named, bounded, never fatal."""

import os
import socket
import tempfile
from collections.abc import Callable, Generator
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path

import pytest

from recallscope.runtime.errors import NoteError
from recallscope.runtime.memory.memory import Memory
from recallscope.runtime.memory.scopes import Root, Skipped, list_notes
from recallscope.runtime.memory.store import read_note
from recallscope.runtime.terms import ScopeName

Opened = Callable[..., AbstractAsyncContextManager[Memory]]

BOMB = "\n".join(
    ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    + [f"a{n}: &a{n} [" + ", ".join([f"*a{n - 1}"] * 10) + "]" for n in range(1, 12)]
)


def note(front: str, body: str = "body") -> bytes:
    """Return a file with this front matter."""
    return f"---\n{front}\n---\n{body}\n".encode()


READ: dict[str, tuple[bytes, str]] = {
    "100,000 lines": (b"# Many lines\n" + b"a b c\n" * 100_000, "Many lines"),
    "one line of 1 MB": (b"word " * 200_000, "one line of 1 MB"),
    "a heading of 1 MB": (b"# " + b"word " * 200_000, "word " * 39 + "word…"),
    "a heading full of closing marks": (b"# a" + b" #" * 400_000 + b" x", "a"),
    "a line of marks": (b"#" * 1_000_000, "a line of marks"),
    "a date as title": (note("name: 2026-01-02"), "2026-01-02"),
    "a date that is none": (note("name: 2026-13-45\nseen: 2026-13-45"), "2026-13-45"),
    "a number as name": (note("name: 007"), "007"),
    "a huge number": (note(f"name: 1\nx: {'9' * 60_000}"), "1"),
    "a truth value as name": (note("name: no"), "no"),
    "null as name": (note("name: null"), "null"),
    "hash and colon": (note("name: Fix #12: use C#: always"), "Fix #12: use C#: always"),
    "many fields": (note("name: x\n" + "".join(f"k{n}: v\n" for n in range(5_000))), "x"),
    "many keywords": (note(f"name: x\nkeywords: [{'a, ' * 20_000}]"), "x"),
    "controls in the title": (note('name: "a\\e[31mb\\u202e\\u0007c"'), "a [31mb\u202e c"),
    "windows": (b"\xef\xbb\xbf---\r\nname: From Windows\r\n---\r\nbody\r\n", "From Windows"),
    "no front matter": (b"just text", "no front matter"),
    "a rule and no front matter": (b"text\n---\nname: no\n---\n", "a rule and no front matter"),
}

SKIPPED: dict[str, tuple[bytes, str]] = {
    "0 bytes": (b"", "it is empty"),
    "blanks": (b" \n\t\n", "it is empty"),
    "5 MB": (b"x" * 5_242_880, "it has 5242880 bytes, at most 1048576 are read"),
    "invalid UTF-8": (b"# caf\xe9", "it is not UTF-8 (byte 5)"),
    "UTF-16": ("# Title".encode("utf-16"), "it is binary: it holds a NUL byte"),
    "a NUL byte": (b"# a\0b", "it is binary: it holds a NUL byte"),
    "a bomb": (note(BOMB), "the front matter uses the YAML anchor or tag &a0, which is not read"),
    "an alias": (note("keywords: *x"), "the front matter uses the YAML alias *x, which is not read"),
    "a tag": (
        note("x: !!python/object:os.system {}"),
        "the front matter uses the YAML anchor or tag tag:yaml.org,2002:python/object:os.system, which is not read",
    ),
    "deep": (note("x: " + "{a: " * 40 + "1" + "}" * 40), "the front matter is nested more than 16 levels deep"),
    "very deep": (
        note("x: " + "[" * 30_000 + "]" * 30_000),
        "the front matter is no YAML: exceeded maximum nesting depth in line 2",
    ),
    "double field": (note("name: a\nname: b"), "the front matter names the field 'name' twice"),
    "never closed": (b"---\n" + b"-- \n" * 250_000, "the front matter begins with --- and is never closed"),
    "too large front matter": (
        note("x: " + "a" * 70_000),
        "the front matter has 70004 characters, at most 65536 are read",
    ),
    "no mapping": (note("- a\n- b"), "the front matter is no mapping of fields to values"),
    "unclosed bracket": (note("x: [a"), ""),
    "nothing told": (b"---\ntype: user\n---\n", "it holds neither a name nor a description nor a body"),
}


@pytest.mark.timeout(30)
@pytest.mark.parametrize("name", READ)
def test_what_looks_odd_and_is_a_note_is_read(root: Path, name: str) -> None:
    """Its title is the text that stands there, without what would move a terminal's cursor."""
    data, title = READ[name]
    (root / f"{name}.md").write_bytes(data)
    assert read_note(Root(ScopeName.USER, root), f"{name}.md")[0].title == title


@pytest.mark.timeout(30)
@pytest.mark.parametrize("name", SKIPPED)
def test_what_is_no_note_has_its_reason(root: Path, name: str) -> None:
    """The reason says what is wrong in one line, and does not repeat the content."""
    data, why = SKIPPED[name]
    (root / f"{name}.md").write_bytes(data)
    with pytest.raises(NoteError) as caught:
        read_note(Root(ScopeName.USER, root), f"{name}.md")
    assert (caught.value.problem == why or not why, "\n" in caught.value.problem) == (True, False)


@pytest.mark.anyio
async def test_broken_files_are_counted_and_named_and_the_others_are_found(root: Path, opened: Opened) -> None:
    """A folder full of them costs nobody else: one sync ends, each is skipped by name, the good note is recalled."""
    kinds = {name: data for name, (data, _) in SKIPPED.items() if name != "5 MB"}
    for name, data in kinds.items():
        (root / f"{name}.md").write_bytes(data)
    (root / "good.md").write_text("# Zebra canary\nIt stands in Oslo.")
    async with opened() as memory:
        assert (memory.notes, {skip.path for skip in memory.skipped}) == (1, {f"{name}.md" for name in kinds})
        found = await memory.search("zebra canary", exclude=frozenset(), recent_tools=())
        assert [hit.note.title for hit in found.fast] == ["Zebra canary"]
        (root / "0 bytes.md").write_text("# Repaired")
        await memory.sync()
        assert (memory.notes, len(memory.skipped)) == (2, len(kinds) - 1)


@pytest.mark.anyio
async def test_what_is_no_file_of_this_folder_is_named(root: Path, opened: Opened, tmp_path: Path) -> None:
    """Links out, loops, pipes and sockets are skipped; nothing waits for a writer, nothing outside is read."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.md").write_text("# Secret")
    (root / "file.md").symlink_to(tmp_path / "outside" / "secret.md")
    (root / "folder").symlink_to(tmp_path / "outside")
    (root / "up").symlink_to("..")
    (root / "loop").symlink_to(root / "loop")
    (root / "ring").mkdir()
    (root / "ring" / "back").symlink_to(root)
    (root / "dangling.md").symlink_to(tmp_path / "nowhere.md")
    os.mkfifo(root / "pipe.md")
    with socket.socket(socket.AF_UNIX) as endpoint:
        endpoint.bind(str(root / "socket.md"))
    (root / "a folder.md").mkdir()
    async with opened() as memory:
        leaves = "it is a symbolic link that leaves the memory folder"
        names = ("dangling.md", "file.md", "folder", "loop", "up")
        assert memory.notes == 0
        assert memory.skipped == tuple(
            sorted(
                (
                    *(Skipped(name, leaves) for name in names),
                    *(Skipped(name, "it is no regular file") for name in ("pipe.md", "socket.md")),
                ),
                key=lambda skip: skip.path,
            )
        )


@pytest.mark.anyio
async def test_odd_names_are_notes_and_names_that_are_no_text_are_not(root: Path, opened: Opened) -> None:
    """A line break and a control are part of a path, never of a title; bytes that are no UTF-8 are shown escaped."""
    odd = ("line\nbreak.md", "🙂.md", "esc\x1b[2J.md", "A.md", "a.md", " space .md", "back\\slash.md", "-rf.md")
    for name in odd:
        (root / name).write_text("text")
    (root / os.fsdecode(b"caf\xe9.md")).write_text("text")
    async with opened() as memory:
        found = await memory.search("text", exclude=frozenset(), recent_tools=())
        titles = {note.relative: note.title for note in found.candidates}
        assert memory.notes == len(odd)
        assert memory.skipped == (Skipped("caf\\xe9.md", "its name is not UTF-8"),)
        assert {name: titles[name] for name in ("line\nbreak.md", "🙂.md", "esc\x1b[2J.md", "A.md", "a.md")} == {
            "line\nbreak.md": "line break",
            "🙂.md": "🙂",
            "esc\x1b[2J.md": "esc [2J",
            "A.md": "A",
            "a.md": "a",
        }


@pytest.mark.anyio
async def test_a_hard_link_is_a_file_and_a_write_parts_it_from_the_other(
    root: Path, opened: Opened, tmp_path: Path
) -> None:
    """Two names of one file are two notes; the rename of a write leaves the other name with the old text."""
    outside = tmp_path / "outside.md"
    outside.write_text("# Shared\ntext")
    for name in ("one.md", "two.md"):
        (root / name).hardlink_to(outside)
    async with opened() as memory:
        assert memory.notes == 2
        one = read_note(Root(ScopeName.PROJECT, root), "one.md")[0]
        await memory.edit.delete(one)
        assert (root / "two.md").read_text() == "# Shared\ntext"
        assert outside.read_text() == "# Shared\ntext"


@contextmanager
def without_privileges() -> Generator[None]:
    """Give up the rights of root, to which no folder is closed, for the length of the block."""
    was = os.geteuid()
    if was == 0:
        os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(was)


def test_a_folder_and_a_file_that_may_not_be_read_are_named() -> None:
    """The rest of the folder is listed; what was known below the closed one is not taken for gone."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name).resolve()
        root.chmod(0o755)
        for folder in ("closed", "open"):
            (root / folder).mkdir()
            (root / folder / "a.md").write_text("text")
        (root / "closed.md").write_text("text")
        (root / "closed.md").chmod(0)
        (root / "closed").chmod(0)
        try:
            with without_privileges():
                listing = list_notes(root)
                with pytest.raises(NoteError, match="cannot be opened: Permission denied"):
                    read_note(Root(ScopeName.USER, root), "closed.md")
        finally:
            (root / "closed").chmod(0o700)
    assert (sorted(listing.files), listing.unlisted) == (["closed.md", "open/a.md"], ("closed",))
    assert listing.skipped == (Skipped("closed", "the folder cannot be listed: Permission denied"),)
