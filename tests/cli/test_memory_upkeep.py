"""`recallscope memory index`, `check` and `stats`: whether memory is in order."""

import json
import os
from collections.abc import Callable
from pathlib import Path

Says = Callable[..., tuple[int, str, str]]


def test_index_says_what_changed(memory_says: Says, notes: Path) -> None:
    """Added, changed, gone and skipped, by name, since the catalog was last brought up to date."""
    for name in ("a", "b", "c"):
        (notes / f"{name}.md").write_text(f"# {name}")
    code, out, err = memory_says("index", "--scope", "project")
    assert (code, err, out.splitlines()[1:]) == (0, "", ["  added: a.md", "  added: b.md", "  added: c.md"])
    (notes / "a.md").write_text("# another")
    (notes / "b.md").unlink()
    (notes / "d.md").write_text("# d")
    (notes / "e.md").write_text("")
    code, out, _ = memory_says("index", "--scope", "project")
    lines = out.splitlines()
    assert (code, lines[0].partition(" in ")[0], lines[0].partition(": ")[2].partition(": ")[2]) == (
        0,
        "project: 3 notes indexed",
        "1 added, 1 changed, 1 gone, 1 skipped",
    )
    assert lines[1:] == ["  added: d.md", "  changed: a.md", "  gone: b.md", "  skipped: e.md: it is empty"]


def test_index_rebuilds_the_catalog(memory_says: Says, notes: Path, tmp_path: Path) -> None:
    """A broken catalog is thrown away too, and the answer is the same as before."""
    (notes / "a.md").write_text("# A")
    memory_says("index")
    (catalog,) = (tmp_path / "home/.cache/recallscope").glob("*/catalog*.sqlite3")
    catalog.write_bytes(b"broken")
    code, out, _ = memory_says("index", "--rebuild", "--json", "--scope", "project")
    answer = json.loads(out)

    assert (code, answer.pop("seconds") >= 0) == (0, True)
    assert answer == {
        "scope": "project",
        "folder": str(notes),
        "notes": 1,
        "added": ["a.md"],
        "changed": [],
        "gone": [],
        "skipped": [],
        "rebuilt": True,
    }


def test_index_brings_our_index_up_to_date_and_makes_none(memory_says: Says, notes: Path) -> None:
    """`check` finds a stale MEMORY.md, `index` mends it; a folder without one, or with a person's, stays as it is."""
    (notes / "a.md").write_text("# A")
    memory_says("index")
    assert sorted(path.name for path in notes.iterdir()) == ["a.md"]
    memory_says("add", "--title", "B", "--body", "b")
    (notes / "a.md").unlink()
    assert memory_says("check")[0] == 1
    memory_says("index")
    assert memory_says("check") == (0, "", "no problem\n")
    (notes / "MEMORY.md").write_text("# Mine\n")
    memory_says("index")
    assert (notes / "MEMORY.md").read_text() == "# Mine\n"


def test_check_tells_every_problem(memory_says: Says, notes: Path) -> None:
    """One line each, with its place; exit code 1; the value of a credential is not told, nor does it reach JSON."""
    (notes / "empty.md").write_text("")
    (notes / "secret.md").write_text("# S\n\nAKIA" + "IOSFODNN7EXAMPLQ")
    code, out, err = memory_says("check")
    assert (code, err) == (1, "2 problems\n")
    assert [line.split("\t")[:2] for line in out.splitlines()] == [
        ["skipped", "project:empty.md"],
        ["credential", "project:secret.md line 3"],
    ]
    code, text, _ = memory_says("check", "--json")
    first = json.loads(text.splitlines()[0])
    assert (code, "AKIA" in out + text) == (1, False)
    assert first == {"kind": "skipped", "scope": "project", "path": "empty.md", "line": None, "problem": "it is empty"}


def test_stats_count(memory_says: Says, notes: Path, tmp_path: Path) -> None:
    """Notes by scope, type, source and age, their bytes, and the catalog."""
    (notes / "a.md").write_text("---\nname: A\ntype: user\nsource: extract\nupdated: 2001-01-01\npinned: on\n---\n")
    (notes / "b.md").write_text("---\nname: B\nsuperseded_by: a\n---\n")
    (notes / "c.md").write_text("")
    code, out, _ = memory_says("stats", "--json")
    answer = json.loads(out)
    catalog = answer.pop("catalog")

    assert (code, catalog["temporary"], catalog["bytes"] > 0) == (0, False, True)
    assert Path(catalog["file"]).is_relative_to(tmp_path / "home/.cache/recallscope")
    assert answer == {
        "notes": 2,
        "bytes": sum((notes / name).stat().st_size for name in ("a.md", "b.md")),
        "skipped": 1,
        "pinned": 1,
        "superseded": 1,
        "by_scope": {"project": 2, "user": 0},
        "by_type": {"project": 1, "user": 1},
        "by_source": {"extract": 1, "not stated": 1},
        "by_age": {"within a day": 1, "within a week": 0, "within a month": 0, "within a year": 0, "older": 1},
    }
    code, out, _ = memory_says("stats")
    assert (code, out.splitlines()[0], "by_type: user\t1" in out.splitlines()) == (0, "notes\t2", True)


def test_stats_check_and_index_skip_the_same_files(memory_says: Says, notes: Path) -> None:
    """Pipes and links that lead out count as what cannot be read does; none of them counts in the bytes."""
    (notes / "a.md").write_text("# A")
    (notes / "empty.md").write_text("")
    (notes / "large.md").write_bytes(b"x" * 1_048_577)
    (notes / "out.md").symlink_to("/etc/passwd")
    os.mkfifo(notes / "pipe.md")
    stats = json.loads(memory_says("stats", "--json")[1])
    checked = [json.loads(line) for line in memory_says("check", "--json")[1].splitlines()]
    indexed = json.loads(memory_says("index", "--json", "--scope", "project")[1])

    skipped = ["empty.md", "large.md", "out.md", "pipe.md"]
    assert (stats["notes"], stats["bytes"], stats["skipped"]) == (1, 3, len(skipped))
    assert [problem["path"] for problem in checked if problem["kind"] == "skipped"] == skipped
    assert [skip["path"] for skip in indexed["skipped"]] == skipped
    assert memory_says("show", "pipe.md")[2] == (
        "recallscope: pipe.md: the file is skipped, it is no note: it is no regular file\n"
    )
