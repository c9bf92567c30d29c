"""`recallscope memory export` and `import`: notes out and in, and what is refused."""

import json
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

Says = Callable[..., tuple[int, str, str]]


@pytest.fixture
def sample(notes: Path) -> Path:
    """Write a note."""
    path = notes / "a.md"
    path.write_text("# A")
    return path


@pytest.mark.parametrize("target", ["out.tar.gz", "out.TGZ", "folder"])
def test_what_is_exported_is_imported(memory_says: Says, sample: Path, target: str) -> None:
    """Told in one line each way; the second import changes nothing."""
    assert memory_says("export", target) == (0, f"exported 1 note, 3 bytes, to {target}\n", "")
    sample.unlink()
    assert memory_says("import", target, "--dry-run") == (
        0,
        "created project/a.md\n",
        "1 created (nothing was written: --dry-run)\n",
    )
    assert not sample.exists()
    assert memory_says("import", target) == (0, "created project/a.md\n", "1 created\n")
    assert sample.read_text() == "# A"
    code, out, err = memory_says("import", target, "--json")
    assert (code, json.loads(out), err) == (
        0,
        {"name": "project/a.md", "fate": "unchanged", "note": "project:a.md", "why": None},
        "",
    )


@pytest.mark.usefixtures("sample")
def test_an_export_keeps_what_stands_there(memory_says: Says, tmp_path: Path, notes: Path) -> None:
    """An archive is replaced with --force alone, a folder never; nothing goes into the memory folder."""
    (tmp_path / "work/out.tgz").write_text("mine")
    code, _, err = memory_says("export", "out.tgz")
    assert (code, "add --force" in err, (tmp_path / "work/out.tgz").read_text()) == (1, True, "mine")
    assert memory_says("export", "out.tgz", "--force")[0] == 0
    assert tarfile.is_tarfile(tmp_path / "work/out.tgz")
    code, _, err = memory_says("export", ".")
    assert (code, "the folder is not empty" in err) == (1, True)
    code, _, err = memory_says("export", f"{notes}/backup")
    assert (code, "lies in the memory folder" in err, (notes / "backup").exists()) == (2, True, False)
    code, _, err = memory_says("export", "out.zip")
    assert (code, "a file .tar.gz or a folder" in err) == (2, True)
    code, _, err = memory_says("export", "no/such/folder.tgz")
    assert (code, "it cannot be written: No such file" in err) == (1, True)
    code, _, err = memory_says("export", "-", "--json")
    assert (code, "stdout" in err) == (2, True)
    assert sorted(path.name for path in (tmp_path / "work").iterdir()) == ["out.tgz"]


def test_what_an_export_leaves_out_is_told(memory_says: Says, sample: Path) -> None:
    """A backup that lacks a file is a failure, and says which."""
    sample.with_name("secret.md").write_text("# S\n\nAKIA" + "IOSFODNN7EXAMPLQ")
    code, out, err = memory_says("export", "out.tgz")

    assert (code, out) == (1, "exported 1 note, 3 bytes, to out.tgz\n")
    assert err.startswith("left out project/secret.md: ")
    assert ["AKIA" in err, err.count("\n")] == [False, 1]


def test_a_folder_of_markdown_goes_where_it_is_told(memory_says: Says, tmp_path: Path, notes: Path) -> None:
    """To project, or to the scope that is named; refused notes make exit code 1."""
    (tmp_path / "work/wiki").mkdir()
    (tmp_path / "work/wiki/x.md").write_text("# X")
    assert memory_says("import", "wiki")[0] == 0
    assert memory_says("import", "wiki", "--scope", "user")[0] == 0
    assert [(notes / "x.md").exists(), (tmp_path / "home/.recallscope/memory/x.md").exists()] == [True, True]
    (tmp_path / "work/wiki/evil\x1b[2J\n.md").write_text("")
    code, out, err = memory_says("import", "wiki")
    assert (code, out.splitlines(), err) == (
        1,
        ["refused evil[2J .md: it is empty", "unchanged x.md"],
        "1 unchanged, 1 refused\n",
    )


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("import", "nothing"), 1, "nothing: there is no such file or folder"),
        (("import", "/dev/null"), 1, "neither a file nor a folder"),
        (("import", "text.tgz"), 1, "text.tgz: it is no .tar.gz archive"),
        (("import", "-"), 1, "stdin: it is no .tar.gz archive"),
        (("import", "text.tgz", "--on-conflict", "guess"), 2, "'guess' is not one of"),
    ],
)
def test_a_source_that_is_none_is_refused(
    memory_says: Says, tmp_path: Path, arguments: tuple[str, ...], code: int, says: str
) -> None:
    """One line that names it."""
    (tmp_path / "work/text.tgz").write_text("no archive")
    got, out, err = memory_says(*arguments, stdin=b"no archive")

    assert (got, out, says in err) == (code, "", True)


def test_a_scope_that_others_share_is_written_to_when_it_is_named(
    memory_says: Says, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An export's notes of the team do not go there by themselves, nor is its MEMORY.md touched in passing."""
    team = tmp_path / "team"
    team.mkdir()
    monkeypatch.setenv("RECALLSCOPE_MEMORY_TEAM_DIR", str(team))
    code, out, _ = memory_says("add", "--scope", "team", "--title", "Ours", "--body", "x")
    assert (code, out) == (0, "added team:project/ours.md  Ours\n")
    assert memory_says("export", "out.tgz")[0] == 0
    (team / "project/ours.md").unlink()
    code, out, _ = memory_says("import", "out.tgz")
    assert (code, out.partition(": ")[0]) == (1, "refused team/project/ours.md")
    assert out.endswith("others share the scope team, so it is written to only when it is named: add --scope team\n")
    before = (team / "MEMORY.md").read_text()
    memory_says("index")
    assert ["ours.md" in before, (team / "MEMORY.md").read_text() == before] == [True, True]
    memory_says("index", "--scope", "team")
    assert "ours.md" not in (team / "MEMORY.md").read_text()
    assert memory_says("import", "out.tgz", "--scope", "team")[:2] == (0, "created team/project/ours.md\n")
