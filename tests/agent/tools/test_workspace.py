"""The confinement of the tools, on a real file system."""

import os
from pathlib import Path

import pytest

from recallscope.runtime.agent.tools.workspace import FileText, Workspace, shown
from recallscope.runtime.errors import ToolError


def never() -> bool:
    """Let a walk go to its end."""
    return False


@pytest.mark.parametrize("path", ["a/b.txt", "./a/../a/b.txt", "a//b.txt", "link.txt", "folder/b.txt"])
def test_what_is_inside_can_be_named_in_any_way(root: Path, path: str) -> None:
    """Dots, and symlinks that stay inside, lead to the file."""
    (root / "a").mkdir()
    (root / "a" / "b.txt").write_text("x")
    (root / "link.txt").symlink_to("a/b.txt")
    (root / "folder").symlink_to("a")
    assert Workspace(root).resolve(path) == root / "a" / "b.txt"
    assert Workspace(root).resolve(str(root / path)) == root / "a" / "b.txt"


@pytest.mark.parametrize(
    "path",
    ["..", "../secret.txt", "a/../../secret.txt", "out.txt", "out/secret.txt", "/etc/passwd", "chain", "gone", "../no"],
)
def test_what_leads_outside_is_refused(root: Path, path: str) -> None:
    """Whatever leads out gets the same answer, whether something is there or not."""
    (root / "a").mkdir()
    (root / "out.txt").symlink_to("../secret.txt")
    (root / "out").symlink_to("..")
    (root / "chain").symlink_to("out.txt")
    (root / "gone").symlink_to("../no/such/file")
    with pytest.raises(ToolError, match=f"leads outside of the workspace; only what is below {root} is allowed"):
        Workspace(root).resolve(path)


def test_a_neighbour_with_the_same_beginning_is_outside(root: Path) -> None:
    """The check is by folders, not by letters."""
    beside = root.parent / "workspace-two"
    beside.mkdir()
    with pytest.raises(ToolError, match="leads outside"):
        Workspace(root).resolve(str(beside))


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("no.txt", "there is nothing at 'no.txt' in the workspace; look with list_directory or glob"),
        ("a.txt/b", "there is nothing at 'a.txt/b'"),
        ("a\0b", "cannot be a path"),
        ("\ud800", "cannot be a path"),
        ("x" * 5000, "cannot be looked at: File name too long"),
    ],
)
def test_what_is_not_there_is_explained(root: Path, path: str, problem: str) -> None:
    """Missing, impossible and overlong paths each have their text."""
    (root / "a.txt").write_text("x")
    with pytest.raises(ToolError) as caught:
        Workspace(root).resolve(path)
    assert problem in str(caught.value)


def test_a_workspace_behind_a_link_is_the_folder_itself(root: Path) -> None:
    """A root that is a symlink confines to where it leads."""
    (root.parent / "alias").symlink_to(root)
    (root / "a.txt").write_text("x")
    assert Workspace(root.parent / "alias").resolve("a.txt") == root / "a.txt"


@pytest.mark.parametrize(
    ("data", "text", "encoding"),
    [
        ("grün 木".encode(), "grün 木", "UTF-8"),
        ("\ufeffa".encode(), "a", "UTF-8"),
        ("grün".encode("utf-16"), "grün", "UTF-16"),
        ("grün".encode("latin-1"), "grün", "Latin-1"),
        (b"", "", "UTF-8"),
    ],
)
def test_text_is_read_in_its_encoding(root: Path, data: bytes, text: str, encoding: str) -> None:
    """UTF-8 with and without mark, UTF-16 with mark, and Latin-1 for the rest."""
    (root / "a").write_bytes(data)
    assert Workspace(root).read("a") == FileText(text, encoding, len(data), cut=False)


def test_a_cut_inside_a_character_is_still_utf_8(root: Path) -> None:
    """The limit may fall into the middle of a character; that one is left out."""
    (root / "a").write_text("aää", encoding="utf-8")
    assert Workspace(root).read("a", limit=4) == FileText("aä", "UTF-8", 5, cut=True)


def test_what_is_no_text_file_is_refused(root: Path) -> None:
    """Binary files, folders, FIFOs and devices are named for what they are, and nothing waits."""
    (root / "binary").write_bytes(b"ab\0c")
    (root / "folder").mkdir()
    os.mkfifo(root / "fifo")
    problems: list[str] = []
    for name in ("binary", "folder", "fifo"):
        with pytest.raises(ToolError) as caught:
            Workspace(root).read(name)
        problems.append(str(caught.value))
    assert problems == [
        "'binary' is a binary file and cannot be shown",
        "'folder' is a folder, not a file",
        "'fifo' is a FIFO, not a file",
    ]


def test_a_walk_gives_what_is_inside(root: Path) -> None:
    """Sorted, without version control, without following folder links, without links that lead out."""
    for name in ("b/c.txt", "a.txt", ".git/config", "b/node_modules/x.js"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x")
    (root / "loop").symlink_to(".")
    (root / "inside").symlink_to("a.txt")
    (root / "outside").symlink_to("../secret.txt")
    workspace = Workspace(root)
    assert [workspace.relative(path) for path in workspace.walk(root, never)] == ["a.txt", "inside", "b/c.txt"]
    assert [workspace.relative(path) for path in workspace.walk(root / ".git", never)] == [".git/config"]
    assert list(workspace.walk(root, lambda: True)) == []


def test_names_are_shown_on_one_line() -> None:
    """Control characters and undecodable bytes become escapes, letters of any script stay."""
    assert shown("grün 木\n\x1b[31m\udcff") == "grün 木\\n\\x1b[31m\\udcff"
