"""The files: whole or not at all, and an index that fits."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from recallscope.runtime.errors import NoteError
from recallscope.runtime.memory.note import MAX_NOTE_BYTES, Note
from recallscope.runtime.memory.scopes import Root
from recallscope.runtime.memory.store import INDEX_MARK, memory_index, read_bytes, read_note, write_bytes
from recallscope.runtime.terms import NoteType, ScopeName

WRITER = """
import pathlib, signal, sys
from recallscope.runtime.memory.store import write_bytes

def stop_before_rename(source, target):
    print(source, flush=True)
    signal.pause()

write_bytes(pathlib.Path(sys.argv[1]), b"new " * 1000, replace=stop_before_rename)
"""


def test_a_writer_killed_before_its_rename_leaves_the_old_file(tmp_path: Path) -> None:
    """A process killed between the temporary file and the rename has changed nothing; the next write goes through."""
    target = tmp_path / "a.md"
    target.write_text("old")
    with subprocess.Popen([sys.executable, "-c", WRITER, str(target)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        temporary = Path(process.stdout.readline().strip())
        process.send_signal(signal.SIGKILL)
    assert (target.read_text(), temporary.read_bytes()) == ("old", b"new " * 1000)
    write_bytes(target, b"newer")
    assert target.read_text() == "newer"
    os.utime(temporary, (0, 0))
    write_bytes(target, b"newest")
    assert [path.name for path in tmp_path.iterdir()] == ["a.md"]


def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    """An error in the last step is raised, and its temporary file is gone."""
    target = tmp_path / "a.md"
    target.write_text("old")

    def refuse(_source: Path, _target: Path) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        write_bytes(target, b"new", replace=refuse)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a.md", "old")]


def test_a_new_file_is_private_and_an_old_one_keeps_its_permissions(tmp_path: Path) -> None:
    """Notes are for their owner unless somebody said otherwise; missing folders are made."""
    target = tmp_path / "new" / "a.md"
    write_bytes(target, b"1")
    assert target.stat().st_mode & 0o777 == 0o600
    target.chmod(0o640)
    write_bytes(target, b"2")
    assert target.stat().st_mode & 0o777 == 0o640


def test_only_regular_files_of_a_bounded_size_are_read(tmp_path: Path) -> None:
    """A pipe does not make the reader wait, a link is not followed, and a huge file is not read."""
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "target.txt").write_text("x")
    (tmp_path / "link.md").symlink_to(tmp_path / "target.txt")
    with (tmp_path / "big.md").open("wb") as stream:
        stream.truncate(5 * MAX_NOTE_BYTES)
    (tmp_path / "folder.md").mkdir()
    problems: dict[str, str] = {}
    for name in ("pipe.md", "link.md", "big.md", "folder.md"):
        with pytest.raises(NoteError) as caught:
            read_bytes(tmp_path, name)
        problems[name] = caught.value.problem
    assert problems == {
        "pipe.md": "it is no regular file",
        "link.md": "it cannot be opened: Too many levels of symbolic links",
        "big.md": "it has 5242880 bytes, at most 1048576 are read",
        "folder.md": "it is no regular file",
    }


def test_a_note_is_read_with_the_look_of_its_file(tmp_path: Path) -> None:
    """What the catalog compares later is what the file looked like when it was read."""
    path = tmp_path / "a.md"
    path.write_text("# T\nbody")
    note, file = read_note(Root(ScopeName.USER, tmp_path), "a.md")
    status = path.stat()
    assert (note.title, note.id) == ("T", "user:a.md")
    assert (file.mtime_ns, file.size, file.inode) == (status.st_mtime_ns, 8, status.st_ino)
    assert (file.ctime_ns, file.racy) == (status.st_ctime_ns, True)


def test_a_file_that_is_written_to_while_it_is_read_is_read_again(tmp_path: Path) -> None:
    """What is returned was there at one moment; a file that never rests is no note for now."""
    path = tmp_path / "a.md"
    path.write_text("one")
    writes = iter([b"two, longer", b"three, longest of all"])

    def disturbed(descriptor: int, size: int) -> bytes:
        data = os.read(descriptor, size)
        if not data and (later := next(writes, None)) is not None:
            path.write_bytes(later)
        return data

    assert read_bytes(tmp_path, "a.md", read=disturbed)[0] == b"three, longest of all"

    def restless(descriptor: int, size: int) -> bytes:
        data = os.read(descriptor, size)
        with path.open("ab") as stream:
            stream.write(b"" if data else b"+")
        return data

    with pytest.raises(NoteError, match="written to while it was read"):
        read_bytes(tmp_path, "a.md", read=restless)


def test_a_file_that_is_replaced_while_it_is_read_is_read_whole(tmp_path: Path) -> None:
    """The file that was opened is read to its end; the new one is another, which the next look finds."""
    path = tmp_path / "a.md"
    path.write_text("old")

    def replaced(descriptor: int, size: int) -> bytes:
        (tmp_path / "new").write_text("newer text")
        (tmp_path / "new").replace(path)
        return os.read(descriptor, size)

    data, file = read_bytes(tmp_path, "a.md", read=replaced)
    assert (data, file.inode == path.stat().st_ino) == (b"old", False)


def _note(number: int, title: str = "T") -> Note:
    return Note(
        id=f"project:{number}.md",
        version="1",
        scope=ScopeName.PROJECT,
        root=Path(),
        relative=f"a b/{number}.md",
        title=title,
        description="d" * 40 if number else "",
        type=NoteType.PROJECT,
        body="",
        updated=0.0,
    )


def test_the_index_links_each_note_on_one_line() -> None:
    """The link's text is the title, its target the path, behind it the description or else the type."""
    assert memory_index([_note(0, "A [x]"), _note(1)], 2) == (
        f"{INDEX_MARK}\n- [A (x)](a%20b/0.md) — project\n- [T](a%20b/1.md) — {'d' * 40}\n"
    )


def test_the_index_holds_no_line_break_and_no_control_of_a_files_name() -> None:
    """A name that people may not see on their terminal as it is stands percent-encoded in the link."""
    odd = replace(_note(1), relative="a\nb \x1b[2J(é🙂).md")
    assert memory_index([odd], 1).split("\n")[1].startswith("- [T](a%0Ab%20%1B[2J%28é🙂%29.md) — ")


@pytest.mark.parametrize("title", ["T", "long " * 60])
def test_the_index_keeps_its_limits_with_whole_lines(title: str) -> None:
    """At most 200 lines and 25,000 bytes; the last line counts what had no room."""
    text = memory_index((_note(number, title) for number in range(1, 400)), 399)
    lines = text.splitlines()
    assert len(lines) <= 200
    assert len(text.encode()) <= 25_000
    assert lines[-1] == f"… and {399 - (len(lines) - 2)} more notes"
    assert all(line.endswith("d" * 40) for line in lines[1:-1])
