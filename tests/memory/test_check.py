"""The check: every problem of a memory folder, once, with its place."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from recallscope.runtime.errors import StoreUnavailableError
from recallscope.runtime.memory.check import check_root
from recallscope.runtime.memory.note import MAX_NOTE_BYTES
from recallscope.runtime.memory.scopes import Root
from recallscope.runtime.memory.store import INDEX_MARK
from recallscope.runtime.terms import ScopeName

Write = Callable[[str, str], Path]


def checked(root: Path) -> list[tuple[str, str, int | None, str]]:
    """Return kind, path, line and text of each problem."""
    problems = check_root(Root(ScopeName.PROJECT, root))
    return [(problem.kind.value, problem.path, problem.line, problem.text) for problem in problems]


def test_a_folder_in_order_has_no_problem(root: Path, write: Write) -> None:
    """Unknown fields, nested metadata, notes without front matter and a missing index are none."""
    write("a.md", "---\nname: A\nticket: 42\nmetadata: {type: user}\nsuperseded_by: b\n---\nbody a")
    write("b.md", "# B\nbody b")
    write("c.md", "---\nname: C\nsuperseded_by: https://wiki.example/c\n---\n")
    write("e.md", "---\nname: E\nsuperseded_by: user:user/e.md\n---\n")
    write("d.md", "---\nname: D\ntitle: D too\n---\n")
    assert checked(root) == []
    assert checked(root / "none") == []


def test_every_problem_is_told_with_its_place(root: Path, write: Write) -> None:
    """Each kind once, in their order; the value of a credential is not told."""
    write("empty.md", "")
    write("large.md", "x" * (MAX_NOTE_BYTES + 1))
    write("secret.md", "---\nkeywords: [\n---\n\nAKIA" + "IOSFODNN7EXAMPLQ")
    write("field.md", "---\nname: F\ntype: webhook\npinned: perhaps\nupdated: soon\n---\nf")
    write("one.md", "---\nname: One\n---\n\nthe same\nwords")
    write("two.md", "---\nname: Two\n---\nthe   same words\n")
    write("gone.md", "---\nname: G\nsuperseded_by: nowhere.md\n---\ng")
    write("self.md", "---\nname: S\nsuperseded_by: self.md\n---\ns")
    write("Case.md", "# 1\n1")
    write("case.md", "# 2\n2")
    write("MEMORY.md", f"{INDEX_MARK}\n- [Old](old.md) — project\n")
    (root / "out.md").symlink_to("/etc/passwd")
    found = checked(root)
    assert [(kind, path, line) for kind, path, line, _ in found] == [
        ("skipped", "empty.md", None),
        ("skipped", "large.md", None),
        ("skipped", "out.md", None),
        ("skipped", "secret.md", None),
        ("credential", "secret.md", 5),
        ("field", "field.md", None),
        ("field", "field.md", None),
        ("field", "field.md", None),
        ("duplicate", "two.md", None),
        ("superseded_by", "gone.md", None),
        ("superseded_by", "self.md", None),
        ("name", "case.md", None),
        ("index", "MEMORY.md", None),
    ]
    assert "AKIA" not in str(found)
    assert [text.split(",")[0] for kind, _, _, text in found if kind == "field"] == [
        f"the field {name} has a value that cannot be read" for name in ("type", "pinned", "updated")
    ]


@pytest.mark.parametrize("target", ["x/One.md", "./x/One.md", "project:x/One.md", "x/one", "One.md", "ONE", "First"])
def test_a_note_that_supersedes_itself_is_found_however_it_is_spelled(root: Path, write: Write, target: str) -> None:
    """By path, id, file name with and without its ending, and title, in any case."""
    write("x/One.md", f"---\nname: First\nsuperseded_by: {target}\n---\n1")
    assert checked(root) == [
        ("superseded_by", "x/One.md", None, "superseded_by names the note itself; it is never recalled")
    ]


def test_notes_that_supersede_each_other_in_a_circle_are_told_once(root: Path, write: Write) -> None:
    """The circle is told at its first path; what only leads into it, and a name that means several, are no part."""
    for name, target in (
        ("c", "Note a"),
        ("a", "b.md"),
        ("b", "project:c.md"),
        ("into", "b"),
        ("x/d", "e"),
        ("e", "d"),
    ):
        write(f"{name}.md", f"---\nname: Note {name}\nsuperseded_by: {target}\n---\n{name}")
    write("y/d.md", "# Another\nd too")
    (problem,) = checked(root)
    assert problem[:3] == ("superseded_by", "a.md", None)
    assert "a.md -> b.md -> c.md -> a.md" in problem[3]


@pytest.mark.parametrize(
    ("text", "problem"), [("# By hand\n", "it was written by a person"), (f"{INDEX_MARK}\n", "it is out of date")]
)
def test_an_index_that_is_not_as_it_should_be_is_told(root: Path, write: Write, text: str, problem: str) -> None:
    """A person's own, and one that does not name what there is."""
    write("a.md", "# A")
    write("MEMORY.md", text)
    ((kind, path, _, told),) = checked(root)
    assert (kind, path) == ("index", "MEMORY.md")
    assert told.startswith(problem)
    write("MEMORY.md", f"{INDEX_MARK}\n- [A](a.md) — project\n")
    assert checked(root) == []


def test_an_index_that_is_a_pipe_is_told(root: Path) -> None:
    """Nothing waits for it."""
    os.mkfifo(root / "MEMORY.md")
    assert checked(root) == [("index", "MEMORY.md", None, "it is no regular file")]


def test_a_root_that_cannot_be_listed_is_unavailable(root: Path) -> None:
    """Not listed is not in order."""
    (root / "file").write_text("x")
    with pytest.raises(StoreUnavailableError, match="cannot be listed"):
        check_root(Root(ScopeName.PROJECT, root / "file"))
