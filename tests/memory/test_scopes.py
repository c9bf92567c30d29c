"""Scopes: where notes live, and what is and what is not taken for a note below a root."""

import os
import socket
from pathlib import Path

import pytest

from recallscope.runtime.errors import MemoryWriteError, NoteError
from recallscope.runtime.memory.scopes import (
    MemoryRoots,
    Root,
    Skipped,
    catalog_path,
    confined,
    default_cache,
    list_notes,
    open_folder,
    project_key,
)
from recallscope.runtime.memory.store import read_bytes
from recallscope.runtime.terms import ScopeName


def test_a_project_is_known_by_its_git_root(tmp_path: Path) -> None:
    """Every folder of a checkout has the same key; `by="workspace"` tells them apart."""
    (tmp_path / ".git").mkdir()
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    assert project_key(below) == project_key(tmp_path)
    assert project_key(below, by="workspace") != project_key(tmp_path, by="workspace")


def test_a_worktree_and_a_submodule_are_projects_of_their_own(tmp_path: Path) -> None:
    """Their `.git` is a file; the nearest entry counts, whatever its kind."""
    (tmp_path / ".git").mkdir()
    for name in ("worktree", "module"):
        (tmp_path / name / "deep").mkdir(parents=True)
        (tmp_path / name / ".git").write_text("gitdir: elsewhere\n")
    keys = [project_key(tmp_path / name / "deep") for name in ("worktree", "module")]
    assert len({project_key(tmp_path), *keys}) == 3
    assert keys[0] == project_key(tmp_path / "worktree")


def test_a_workspace_is_known_by_where_it_lies_and_not_by_the_link_to_it(tmp_path: Path) -> None:
    """A linked workspace, one with `..` and one with a slash at its end have the key of the folder itself."""
    (tmp_path / "App" / "sub").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "App")
    ways = [tmp_path / "link", tmp_path / "App" / "sub" / "..", Path(f"{tmp_path}/App/")]
    assert {project_key(way) for way in ways} == {project_key(tmp_path / "App")}


def test_keys_are_apart_where_the_file_system_ignores_case(tmp_path: Path) -> None:
    """`App` and `app` are two folders here, and their memory does not fall together when it is copied elsewhere."""
    keys = [project_key(tmp_path / name).lower() for name in ("App", "app")]
    assert keys[0] != keys[1]


def test_keys_of_names_that_differ_in_punctuation_differ(tmp_path: Path) -> None:
    """`my-app` and `my.app` do not share their memory."""
    folders = [tmp_path / name for name in ("my-app", "my.app", "my_app")]
    for folder in folders:
        folder.mkdir()
    assert len({project_key(folder) for folder in folders}) == 3


def test_roots_lie_below_the_base(tmp_path: Path) -> None:
    """The project's notes and the person's are two roots, project first."""
    roots = MemoryRoots.below(tmp_path / "base", tmp_path)
    base = (tmp_path / "base").resolve()
    assert roots.roots == (
        Root(ScopeName.PROJECT, base / "projects" / project_key(tmp_path) / "memory"),
        Root(ScopeName.USER, base / "memory"),
    )


def test_the_catalog_lies_in_the_cache_and_never_in_the_notes(tmp_path: Path) -> None:
    """One file per base directory below the cache directory, whatever project is asked for."""
    one = MemoryRoots(project=tmp_path / "p1", base=tmp_path)
    two = MemoryRoots(project=tmp_path / "p2", base=tmp_path)
    alone = MemoryRoots(project=tmp_path / "p1")
    cache = tmp_path / "cache"
    assert catalog_path(one, cache) == catalog_path(two, cache) != catalog_path(alone, cache)
    assert catalog_path(alone, cache).is_relative_to(cache)


def test_the_cache_directory_is_that_of_the_desktop_standard() -> None:
    """An absolute `XDG_CACHE_HOME` counts, a relative one is ignored."""
    assert default_cache({"XDG_CACHE_HOME": "/var/c"}) == Path("/var/c/recallscope")
    home = Path.home() / ".cache" / "recallscope"
    assert [default_cache({}), default_cache({"XDG_CACHE_HOME": "c"})] == [home, home]


def test_notes_are_listed_and_everything_else_is_left_out(root: Path) -> None:
    """`.md` in any folder; the index, hidden names and other files are no notes."""
    for name in ("a.md", "deep/er/b.MD", "MEMORY.md", "deep/MEMORY.md", ".hidden.md", ".git/c.md", "d.txt"):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    listing = list_notes(root)
    assert (sorted(listing.files), listing.skipped) == (["a.md", "deep/er/b.MD"], ())


def test_a_missing_root_has_no_notes(root: Path) -> None:
    """Before the first write there is nothing, and that is no error."""
    assert list_notes(root / "nowhere").files == {}


def test_links_pipes_and_odd_names_are_skipped_by_name(root: Path, tmp_path: Path) -> None:
    """What leaves the root or cannot be read without waiting is named; a link inside the root is passed over."""
    outside = tmp_path / "secret.md"
    outside.write_text("secret")
    (root / "real.md").write_text("x")
    (root / "inside.md").symlink_to(root / "real.md")
    (root / "out.md").symlink_to(outside)
    (root / "outdir").symlink_to(tmp_path)
    (root / "loop.md").symlink_to(root / "loop.md")
    os.mkfifo(root / "pipe.md")
    with socket.socket(socket.AF_UNIX) as endpoint:
        endpoint.bind(str(root / "sock.md"))
    (root / "line\nbreak 🙂.md").write_text("x")
    (Path(os.fsdecode(os.fsencode(root) + b"/caf\xe9.md"))).write_text("x")
    listing = list_notes(root)
    assert sorted(listing.files) == ["line\nbreak 🙂.md", "real.md"]
    leaves = "it is a symbolic link that leaves the memory folder"
    expected = {
        Skipped("caf\\xe9.md", "its name is not UTF-8"),
        Skipped("out.md", leaves),
        Skipped("outdir", leaves),
        Skipped("pipe.md", "it is no regular file"),
        Skipped("sock.md", "it is no regular file"),
    }
    assert expected <= set(listing.skipped)


def test_folders_nested_without_end_are_named(root: Path) -> None:
    """A tree deeper than any memory is cut off and said so."""
    deep = root.joinpath(*["d"] * 30)
    deep.mkdir(parents=True)
    (deep / "x.md").write_text("x")
    listing = list_notes(root)
    assert (listing.files, [skip.why for skip in listing.skipped]) == ({}, ["it lies more than 16 folders deep"])


@pytest.mark.parametrize(
    "relative",
    [
        "",
        "/etc/passwd.md",
        "../out.md",
        "a/../../out.md",
        "a//b.md",
        "./a.md",
        "a\\b.md",
        "a\0.md",
        ".hidden.md",
        ".git/a.md",
        "a.txt",
        "MEMORY.md",
        "x/MEMORY.md",
        "a" * 300 + ".md",
        "/".join(["d"] * 20) + "/a.md",
    ],
)
def test_a_write_outside_the_scope_is_refused(root: Path, relative: str) -> None:
    """No spelling of a path leads out of the root, or to a file that would not be read as a note."""
    with pytest.raises(MemoryWriteError):
        confined(root, relative)


def test_a_folder_that_becomes_a_link_while_it_is_read_is_not_followed(root: Path, tmp_path: Path) -> None:
    """Every folder is opened from the one before: what is exchanged in between cannot lead out of the root."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "secret.md").write_text("x")
    (root / "a").mkdir()
    with open_folder(root, "a"):
        (root / "a").rename(root / "b")
    (root / "a").symlink_to(tmp_path / "out")
    with pytest.raises(NotADirectoryError), open_folder(root, "a"):
        pass
    with pytest.raises(NoteError, match="cannot be opened"):
        read_bytes(root, "a/secret.md")


def test_a_write_through_a_link_is_refused(root: Path, tmp_path: Path) -> None:
    """A linked folder or file could lie anywhere."""
    (root / "out").symlink_to(tmp_path)
    (root / "a.md").symlink_to(tmp_path / "b.md")
    for relative in ("out/x.md", "a.md"):
        with pytest.raises(MemoryWriteError, match="symbolic link"):
            confined(root, relative)
    assert confined(root, "project/a.md") == root / "project/a.md"
