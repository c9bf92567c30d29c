"""`recallscope memory`: what its writing commands refuse in one sentence, and that they state what they did alone."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Says = Callable[..., tuple[int, str, str]]

NOTE = "---\nname: Canary first\nupdated: 2021-01-02\n---\n\nfive percent\n"


@pytest.fixture
def canary(notes: Path) -> Path:
    """Write a note by hand."""
    path = notes / "canary.md"
    path.write_text(NOTE)
    return path


@pytest.mark.parametrize("stdin", [b"", b"\xef\xbb\xbf", b" \n"])
def test_an_empty_stdin_empties_no_note(memory_says: Says, canary: Path, stdin: bytes) -> None:
    """The program before it may have failed; who means it says so with an empty text."""
    says = '--body -: stdin holds no text; for a note without text say --body ""'
    for command in (("edit", "canary"), ("add", "--title", "Other")):
        code, out, err = memory_says(*command, "--body", "-", stdin=stdin)
        assert (code, out, says in err) == (2, "", True)
    assert (canary.read_text(), list(canary.parent.iterdir())) == (NOTE, [canary])
    assert memory_says("edit", "canary", "--body", "")[0] == 0
    assert "five" not in canary.read_text()


@pytest.mark.usefixtures("memory_says")
def test_a_closed_stdin_is_told(notes: Path) -> None:
    """One line and exit code 2, as for every wrong use."""
    command = [sys.executable, "-m", "recallscope.runtime.cli", "memory", "add", "--title", "T", "--body", "-"]
    done = subprocess.run(["/bin/sh", "-c", '"$@" <&-', "sh", *command], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout, list(notes.iterdir())) == (2, "", [])
    assert "--body -: stdin is closed; give the text with --body TEXT or send it to stdin" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_long_title_is_refused(memory_says: Says, canary: Path) -> None:
    """When a note is added and when it is changed: what, where, the limit, and what to do."""
    says = "the title has 201 characters, at most 200 are taken; shorten it, and put the rest into the text\n"
    title = ("--title", "x" * 201)
    added = memory_says("add", *title, "--body", "x")
    assert added == (1, "", f"recallscope: project/{'x' * 80}.md: {says}")
    assert memory_says("edit", "canary", *title) == (1, "", f"recallscope: canary.md: {says}")
    assert (canary.read_text(), list(canary.parent.iterdir())) == (NOTE, [canary])


def test_remove_states_no_line_where_none_was(memory_says: Says, canary: Path) -> None:
    """A folder without `MEMORY.md` has none afterwards, and nothing is said of it."""
    code, out, err = memory_says("remove", "canary", "--yes")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "removed project:canary.md  Canary first",
        "  erased: the file, its rows in 1 catalog and the bytes that held them",
        "  left: its id, without title or text, in 0 lines of the journal",
    ]
    assert list(canary.parent.iterdir()) == []


def test_remove_states_a_line_only_of_the_note_that_had_one(memory_says: Says, canary: Path) -> None:
    """Ours was written before the other note was: one line is gone, and JSON says of which."""
    assert memory_says("add", "--title", "Listed", "--body", "x")[0] == 0
    index = canary.parent / "MEMORY.md"
    index.write_text("".join(line for line in index.read_text().splitlines(keepends=True) if "canary.md" not in line))
    code, out, _ = memory_says("remove", "canary", "listed", "--yes", "--json")
    told = {one["id"]: one["index_line"] for one in map(json.loads, out.splitlines())}
    assert (code, told) == (0, {"project:canary.md": False, "project:project/listed.md": True})


@pytest.mark.usefixtures("canary")
def test_an_empty_place_is_refused(memory_says: Says, notes: Path) -> None:
    """A shell's variable that is not set must not mean the working folder, whose notes it would copy or bring in."""
    for command, what in (("export", "TARGET is empty; name a file"), ("import", "SOURCE is empty; name an archive")):
        code, out, err = memory_says(command, "")
        assert (code, out, what in err) == (2, "", True)
    assert [path.name for path in notes.iterdir()] == ["canary.md"]
