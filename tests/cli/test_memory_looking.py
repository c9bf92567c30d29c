"""`recallscope memory list`, `show` and `search`: what there is, and what recall makes of it."""

import importlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from recallscope.runtime.cli.memory.group import MEMORY_COMMANDS

Says = Callable[..., tuple[int, str, str]]

OLD = (
    "---\nname: Old way\nzz: {a: [1, 2.5, 2020-01-01, .nan, null]}\ntype: reference\nupdated: 2020-01-02\n"
    "superseded_by: feedback/canary.md\n---\n\nold"
)
CANARY = "---\nname: Canary first\ntype: feedback\nupdated: 2021-01-02\nkeywords: [canary]\nzz: 1\n---\n\nfive percent"


@pytest.fixture
def samples(notes: Path, tmp_path: Path) -> None:
    """Write three notes, one of them of the person, and a file that is none."""
    (notes / "feedback").mkdir()
    (notes / "feedback/canary.md").write_text(CANARY)
    (notes / "old.md").write_text(OLD)
    (notes / "broken.md").write_text("---\nkeywords: [\n---\n")
    user = tmp_path / "home/.recallscope/memory/user"
    user.mkdir(parents=True)
    (user / "me.md").write_text("---\nname: Me\npinned: yes\n---\n\nI like tests")


def objects(out: str) -> list[dict[str, Any]]:
    """Return the lines of `out` as JSON objects."""
    return [json.loads(line) for line in out.splitlines()]


@pytest.mark.parametrize("name", sorted(MEMORY_COMMANDS))
def test_every_command_of_the_table_is_there(name: str) -> None:
    """Each entry of the table names a click command of the same name, whose help says what it does."""
    module, _, attribute = MEMORY_COMMANDS[name].target.partition(":")
    command = getattr(importlib.import_module(module), attribute)

    assert isinstance(command, click.Command)
    assert (command.name, bool(command.help)) == (name, True)


def test_an_empty_memory_has_no_notes(memory_says: Says) -> None:
    """Nothing on stdout, one line on stderr, and that is no failure."""
    assert memory_says("list") == (0, "", "no notes\n")
    assert memory_says("list", "--json") == (0, "", "")
    assert memory_says("search", "canary") == (0, "", "no notes\n")


@pytest.mark.usefixtures("samples")
def test_list_is_sorted_by_the_last_change(memory_says: Says) -> None:
    """One line per note, parted by tabs: id, type, day, marks, title."""
    code, out, err = memory_says("list")
    today = time.strftime("%Y-%m-%d", time.gmtime())

    assert (code, err) == (0, "")
    assert out.splitlines() == [
        f"user:user/me.md\tuser\t{today}\tpinned\tMe",
        "project:feedback/canary.md\tfeedback\t2021-01-02\t\tCanary first",
        "project:old.md\treference\t2020-01-02\tsuperseded\tOld way",
    ]


@pytest.mark.usefixtures("samples")
@pytest.mark.parametrize(
    ("filters", "titles"),
    [
        (("--scope", "project"), ["Canary first", "Old way"]),
        (("--type", "feedback", "--type", "user"), ["Me", "Canary first"]),
        (("--pinned",), ["Me"]),
        (("--not-pinned", "--not-superseded"), ["Canary first"]),
        (("--superseded",), ["Old way"]),
        (("--since", "2020-06-01"), ["Me", "Canary first"]),
        (("--since", "2020-01-02T00:00:01+00:00"), ["Me", "Canary first"]),
        (("--since", "24h"), ["Me"]),
    ],
)
def test_list_filters(memory_says: Says, filters: tuple[str, ...], titles: list[str]) -> None:
    """Filters narrow each other."""
    code, out, _ = memory_says("list", "--json", *filters)

    assert (code, [note["title"] for note in objects(out)]) == (0, titles)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("list", "--since", "soon"), "--since soon: it must be a date"),
        (("list", "--scope", "nowhere"), "'nowhere' is not one of"),
        (("list", "--memory", "no-such-folder"), "does not exist"),
        (("list", "--scope", "user", "--memory", "."), "--scope user: this memory has no such scope; it has project"),
        (("show",), "Missing argument"),
        (("shwo",), "No such command 'shwo'"),
    ],
)
def test_wrong_use_is_told(memory_says: Says, arguments: tuple[str, ...], says: str) -> None:
    """Exit code 2 and what is allowed."""
    code, out, err = memory_says(*arguments)

    assert (code, out) == (2, "")
    assert says in err


@pytest.mark.usefixtures("samples")
@pytest.mark.parametrize(
    "name", ["project:feedback/canary.md", "feedback/canary.md", "./feedback/canary.md", "canary.md", "canary"]
)
def test_show_tells_what_the_file_holds_and_what_recall_knows(memory_says: Says, notes: Path, name: str) -> None:
    """A note is named by its id, its path, or its file's name."""
    code, out, err = memory_says("show", name)

    assert (code, err) == (0, "")
    version = out.splitlines()[2].removeprefix("version: ")
    assert out.splitlines() == [
        "id:      project:feedback/canary.md",
        f"file:    {notes}/feedback/canary.md",
        f"version: {version}",
        "type:    feedback",
        "updated: 2021-01-02T00:00:00Z",
        "recall:  indexed in this version",
        "",
        *CANARY.splitlines(),
    ]


@pytest.mark.usefixtures("samples")
def test_show_as_json_has_every_field(memory_says: Says, notes: Path) -> None:
    """One object, unknown fields included."""
    code, out, _ = memory_says("show", "old", "--json")
    (note,) = objects(out)

    assert code == 0
    assert len(note.pop("version")) == 24
    assert note == {
        "id": "project:old.md",
        "scope": "project",
        "path": "old.md",
        "title": "Old way",
        "description": "",
        "type": "reference",
        "keywords": [],
        "usage_scenarios": [],
        "pinned": False,
        "created": None,
        "updated": "2020-01-02T00:00:00Z",
        "superseded_by": "feedback/canary.md",
        "source": None,
        "evidence": None,
        "extra": {"zz": {"a": [1, 2.5, "2020-01-01", "nan", None]}},
        "body": "old",
        "file": f"{notes}/old.md",
        "recall": "never delivered, it is superseded by feedback/canary.md",
    }


@pytest.mark.usefixtures("samples")
def test_a_name_that_means_no_note_or_several_is_told(memory_says: Says, notes: Path) -> None:
    """The line says what to name instead, or why the file is no note."""
    (notes / "canary.md").write_text("# Another")
    (notes / "x").mkdir()
    (notes / "x/old.md").write_text("# Third")

    assert memory_says("show", "nothing") == (
        1,
        "",
        "recallscope: nothing: no note has this id, path or name; `recallscope memory list` shows what there is\n",
    )
    code, _, err = memory_says("show", "canary")
    assert (code, "several notes" in err, "project:canary.md" in err) == (1, True, True)
    assert memory_says("show", "old.md")[0] == 0  # the path is more exact than the name
    code, _, err = memory_says("show", "broken.md")
    assert (code, "it is no note: the front matter is no YAML" in err) == (1, True)


@pytest.mark.usefixtures("samples")
def test_search_says_what_recall_would_deliver(memory_says: Says) -> None:
    """The fast result first, then what was left out, and why."""
    code, out, err = memory_says("search", "canary")
    assert (code, err) == (0, "")
    assert [line.split("\t")[1:] for line in out.splitlines()] == [
        ["fast", "project:feedback/canary.md", "Canary first"]
    ]
    _, out, _ = memory_says("search", "old way", "--json")
    assert [(note["id"], note["result"]) for note in objects(out)] == [("project:old.md", "superseded")]
    assert memory_says("search", "canary", "--scope", "user") == (0, "", "no notes\n")
    assert memory_says("search", '" OR * NEAR(') == (0, "", "no notes\n")


def test_what_a_note_holds_moves_no_column(memory_says: Says, notes: Path) -> None:
    """Names with line ends, tabs and controls stay in their cell."""
    (notes / "a\tb\nc\x1b[2J.md").write_text("# T\tx\x1b]0;evil\x07")
    code, out, _ = memory_says("list")

    assert code == 0
    (line,) = out.splitlines()
    assert [line.count("\t"), "\x1b" in line, "\x07" in line] == [4, False, False]


ODD = "a\tb\nc\x1b[2J  d.md"


@pytest.mark.parametrize("name", ["project:x/a b c[2J d.md", "x/a b c[2J d.md", "./x/a b c[2J d.md", "a b c[2J d"])
def test_a_note_is_named_as_it_is_printed(memory_says: Says, notes: Path, name: str) -> None:
    """What `list` shows of a name with line ends and controls means that note, and `show` keeps it in its line."""
    (notes / "x").mkdir()
    (notes / "x" / ODD).write_text("# Odd")
    code, out, err = memory_says("show", name)

    assert (code, err) == (0, "")
    assert out.splitlines()[:2] == ["id:      project:x/a b c[2J d.md", f"file:    {notes}/x/a b c[2J d.md"]
    assert memory_says("pin", name) == (0, "pinned project:x/a b c[2J d.md  Odd\n", "")
    assert memory_says("remove", "--yes", name)[0] == 0
    assert list((notes / "x").iterdir()) == []


def test_names_that_are_printed_alike_are_told_apart_by_nobody(memory_says: Says, notes: Path) -> None:
    """Each exact name still means its note; what both are printed as means neither, and the line says what to do."""
    (notes / "a b.md").write_text("# Plain")
    (notes / "a\nb.md").write_text("# Broken")
    (notes / "a\tb.md").write_text("# Parted")
    assert json.loads(memory_says("show", "a\nb.md", "--json")[1])["title"] == "Broken"
    assert json.loads(memory_says("show", "a b.md", "--json")[1])["title"] == "Plain"
    (notes / "a b.md").unlink()
    assert memory_says("show", "a b.md") == (
        1,
        "",
        "recallscope: a b.md: several files have names that are printed so; rename all but one of: project:a b.md\n",
    )


@pytest.mark.parametrize("name", ["", " ", "\x1b"])
def test_an_empty_name_is_told(memory_says: Says, name: str) -> None:
    """The line does not begin with nothing."""
    assert memory_says("show", name) == (
        1,
        "",
        "recallscope: NOTE: the name that was given is empty; `recallscope memory list` shows what there is\n",
    )


def test_another_folder_is_worked_on_where_it_is_named(memory_says: Says, tmp_path: Path) -> None:
    """`--memory DIR` reads those notes, and listing writes nothing there."""
    folder = tmp_path / "else"
    folder.mkdir()
    (folder / "a.md").write_text("# A")
    code, out, _ = memory_says("list", "--memory", str(folder))

    assert (code, out.split("\t")[0]) == (0, "project:a.md")
    assert [path.name for path in folder.iterdir()] == ["a.md"]


def test_a_folder_that_cannot_be_listed_is_a_failure(memory_says: Says, notes: Path) -> None:
    """Not listed is not empty."""
    notes.rmdir()
    notes.write_text("a file")
    code, out, err = memory_says("list")

    assert (code, out) == (1, "")
    assert f"the memory folder {notes} cannot be listed" in err
