"""`recallscope memory add`, `edit`, `pin` and `remove`: what is written and erased, and what is refused."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Says = Callable[..., tuple[int, str, str]]

NOTE = "---\nname: Canary first\nupdated: 2021-01-02\nkeywords: [canary]\nzz: 1\n---\n\nfive percent\n"


@pytest.fixture
def canary(notes: Path) -> Path:
    """Write a note by hand."""
    path = notes / "canary.md"
    path.write_text(NOTE)
    return path


def test_add_writes_a_note_that_is_found(memory_says: Says, notes: Path) -> None:
    """From flags and stdin; the source is a person."""
    flags = ("--title", "Deploys go to staging", "--type", "feedback", "--keyword", "release", "--keyword", "ship")
    flags += ("--scenario", "how do I ship this", "--description", "one day there", "--pinned")
    code, out, err = memory_says("add", *flags, "--body", "-", stdin="\ufeffEvery release.\n".encode())

    assert (code, err) == (0, "")
    assert out == "added project:feedback/deploys-go-to-staging.md  Deploys go to staging\n"
    lines = (notes / "feedback/deploys-go-to-staging.md").read_text().splitlines()
    assert [line for line in lines if not line.startswith(("created", "updated"))] == [
        "---",
        "name: Deploys go to staging",
        "description: one day there",
        "type: feedback",
        "keywords:",
        "- release",
        "- ship",
        "usage_scenarios:",
        "- how do I ship this",
        "pinned: true",
        "source: person",
        "---",
        "",
        "Every release.",
    ]
    _, out, _ = memory_says("search", "ship release")
    assert "fast\tproject:feedback/deploys-go-to-staging.md" in out


def test_add_goes_to_the_scope_that_is_named(memory_says: Says, tmp_path: Path) -> None:
    """The person's own memory lies in the base directory; JSON says where."""
    code, out, _ = memory_says("add", "--scope", "user", "--title", "Likes tests", "--body", "x", "--json")
    note = json.loads(out)

    assert (code, note["done"], note["id"]) == (0, "added", "user:project/likes-tests.md")
    assert (tmp_path / "home/.recallscope/memory/project/likes-tests.md").exists()


@pytest.mark.parametrize(
    ("flags", "stdin", "refusal"),
    [
        (("--title", "T"), b"", (2, "--body -")),
        (("--body", "x"), b"", (2, "a note needs a title")),
        (("--title", "T", "--body", "-"), b"\xff", (2, "stdin is not UTF-8 (byte 0)")),
        (("--title", "T", "--body", "-"), b"x" * 1_048_577, (2, "more than the 1048576 bytes")),
        (("--title", "T", "--body", "-"), b"a\0b", (1, "NUL")),
        (("--title", "T", "--body", "AKIA" + "IOSFODNN7EXAMPLQ"), b"", (1, "(aws-access-key)")),
        (("--title", "T", "--type", "fact", "--body", "x"), b"", (2, "'fact' is not one of")),
    ],
)
def test_what_may_not_be_added_is_refused(
    memory_says: Says, notes: Path, flags: tuple[str, ...], stdin: bytes, refusal: tuple[int, str]
) -> None:
    """Nothing is written, and the value of a credential is not told."""
    code, out, err = memory_says("add", *flags, stdin=stdin)

    assert (code, out, list(notes.iterdir())) == (refusal[0], "", [])
    assert refusal[1] in err
    assert "AKIA" not in err


def test_edit_changes_what_the_flags_say(memory_says: Says, canary: Path) -> None:
    """Unknown fields stay; a list is replaced, an empty text empties it; what replaces it is told by its path."""
    (canary.parent / "b.md").write_text("# B")
    code, out, _ = memory_says("edit", "canary", "--title", "Canaries", "--keyword", "", "--superseded-by", "b")
    text = canary.read_text()

    assert (code, out) == (0, "changed project:canary.md  Canaries\n")
    assert [
        part in text for part in ("name: Canaries", "keywords", "superseded_by: b.md", "zz: 1", "five percent")
    ] == [
        True,
        False,
        True,
        True,
        True,
    ]
    memory_says("edit", "canary", "--superseded-by", "", "--body", "-", stdin=b"ten percent")
    text = canary.read_text()
    assert ["superseded_by" in text, text.endswith("\n\nten percent\n")] == [False, True]


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("canary", "canary.md: a note cannot be superseded by itself; name the one to use instead"),
        ("project:canary.md", "canary.md: a note cannot be superseded by itself; name the one to use instead"),
        ("nope", "nope: no note has this id, path or name; `recallscope memory list` shows what there is"),
    ],
)
def test_a_note_is_superseded_by_another_one_that_there_is(
    memory_says: Says, canary: Path, target: str, says: str
) -> None:
    """Itself and a note that is missing are refused in one sentence, and nothing is written."""
    assert memory_says("edit", "canary", "--superseded-by", target) == (1, "", f"recallscope: {says}\n")
    assert canary.read_text() == NOTE


def test_a_note_of_another_scope_supersedes_by_its_id(memory_says: Says, canary: Path) -> None:
    """Its path would mean a note of the same scope; an address of a page stays as it is."""
    memory_says("add", "--scope", "user", "--title", "Mine", "--body", "x")
    memory_says("edit", "canary", "--superseded-by", "mine", "--scope", "project")
    assert "superseded_by: user:project/mine.md" in canary.read_text()
    memory_says("edit", "canary", "--superseded-by", "https://wiki.example/canary")
    assert "superseded_by: https://wiki.example/canary" in canary.read_text()


def test_a_new_note_may_say_what_replaced_it_already(memory_says: Says, canary: Path, notes: Path) -> None:
    """By its path, as `edit` writes it; what is no note is refused, and nothing is written."""
    flags = ("--title", "Old way", "--body", "by hand")
    refused = memory_says("add", *flags, "--superseded-by", "nope")
    assert memory_says("add", *flags, "--superseded-by", "canary")[0] == 0
    assert "superseded_by: canary.md\n" in (notes / "project/old-way.md").read_text()
    assert (refused[0], refused[1], "nope: no note has this id" in refused[2]) == (1, "", True)
    assert canary.exists()


def test_notes_do_not_supersede_each_other_in_a_circle(memory_says: Says, canary: Path, notes: Path) -> None:
    """The error draws the circle; whether a note on the way is named by its name or a relative path does not matter."""
    (notes / "sub").mkdir()
    (notes / "b.md").write_text("---\nname: B\nsuperseded_by: c\n---\nb\n")
    (notes / "sub/c.md").write_text("---\nname: C\nsuperseded_by: ../canary.md\n---\nc\n")
    says = (
        "canary.md: that would lead in a circle, and none of these would ever be recalled: canary.md -> b.md -> "
        "sub/c.md -> canary.md; name another one, or empty superseded_by of one of them first"
    )
    assert memory_says("edit", "canary", "--superseded-by", "b") == (1, "", f"recallscope: {says}\n")
    assert canary.read_text() == NOTE


def test_edit_without_flags_needs_a_terminal(memory_says: Says, canary: Path) -> None:
    """No editor opens where nobody sits."""
    code, out, err = memory_says("edit", "canary")

    assert (code, out, "no terminal" in err, canary.read_text()) == (2, "", True, NOTE)


def test_a_pin_leaves_the_age(memory_says: Says, canary: Path) -> None:
    """Pinned, pinned again, unpinned: the day of the last change stays."""
    assert memory_says("pin", "canary") == (0, "pinned project:canary.md  Canary first\n", "")
    pinned = canary.read_text()
    assert memory_says("pin", "canary")[0] == 0
    assert ["pinned: true" in pinned, canary.read_text() == pinned] == [True, True]
    assert memory_says("list")[1] == "project:canary.md\tproject\t2021-01-02\tpinned\tCanary first\n"
    assert memory_says("pin", "--off", "canary") == (0, "unpinned project:canary.md  Canary first\n", "")
    assert memory_says("list")[1] == "project:canary.md\tproject\t2021-01-02\t\tCanary first\n"


def test_remove_without_a_terminal_needs_yes(memory_says: Says, canary: Path) -> None:
    """Nobody can be asked, so nothing is erased."""
    code, out, err = memory_says("remove", "canary")

    assert (code, out, "--yes" in err, canary.exists()) == (2, "", True, True)


def test_remove_says_what_it_erased(memory_says: Says, notes: Path, tmp_path: Path) -> None:
    """File, line of the index, rows and their bytes; the journal keeps the id alone, and its lines are counted."""
    memory_says("add", "--title", "Xylotomous rules", "--body", "xylotomous " * 300, "--keyword", "xylotomous")
    memory_says("add", "--title", "Other", "--body", "stays")
    journal = tmp_path / "home/.local/state/recallscope/journal"
    journal.mkdir(parents=True)
    line = '{"event":"MemoryWriteStarted","note":"project:project/xylotomous-rules.md"}\n'
    (journal / "journal-1-2-3.jsonl").write_text(line + '{"event":"Other"}\n' + line)
    assert "ylotomous" in (notes / "MEMORY.md").read_text()

    code, out, err = memory_says("remove", "xylotomous-rules", "--yes")

    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "removed project:project/xylotomous-rules.md  Xylotomous rules",
        "  erased: the file, its line in MEMORY.md, its rows in 1 catalog and the bytes that held them",
        "  left: its id, without title or text, in 2 lines of the journal",
    ]
    places = [path for path in tmp_path.rglob("*") if path.is_file() and path.parent != journal]
    assert [path for path in places if b"ylotomous" in path.read_bytes()] == []
    assert memory_says("list")[1].count("\n") == 1


def test_remove_takes_several_and_tells_what_still_names_them(memory_says: Says, notes: Path, canary: Path) -> None:
    """A person's own index is left alone and named: exit code 1. A note that is not there erases none."""
    (notes / "b.md").write_text("# B")
    (notes / "copy.txt").hardlink_to(canary)
    (notes / "MEMORY.md").write_text("# Mine\n\n- [Canary](canary.md)\n")
    assert memory_says("remove", "canary", "nothing", "--yes")[0] == 1
    assert canary.exists()

    code, out, err = memory_says("remove", "canary", "b.md", "canary.md", "--yes", "--json")
    first, second = (json.loads(line) for line in out.splitlines())

    assert (code, canary.exists(), (notes / "b.md").exists()) == (1, False, False)
    assert first == {
        "done": "removed",
        "id": "project:canary.md",
        "file": str(canary),
        "index_line": False,
        "catalogs": 1,
        "journal_lines_with_its_id": 0,
        "problems": [
            "the file has other names (hard links: 1), which still hold it",
            "line 3 of MEMORY.md still names it; a person wrote that file",
        ],
    }
    assert (second["id"], second["problems"], err) == ("project:b.md", [], "")
