"""Erasing: no byte of a removed note is left in any catalog."""

import sqlite3
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, closing
from dataclasses import replace
from pathlib import Path

import pytest

from recallscope.runtime.memory.draft import Draft
from recallscope.runtime.memory.erase import Erased, erase_from_catalogs
from recallscope.runtime.memory.memory import Memory, open_memory
from recallscope.runtime.memory.scopes import MemoryRoots
from recallscope.runtime.observe import Observers
from recallscope.runtime.terms import ScopeName

pytestmark = pytest.mark.anyio

Write = Callable[[str, str], Path]
Opened = Callable[..., AbstractAsyncContextManager[Memory]]

WORD = b"xylotomous"


def holding(folder: Path) -> list[str]:
    """Return the names of the files below `folder` in which the word stands."""
    return sorted(path.name for path in folder.rglob("*") if path.is_file() and WORD in path.read_bytes().lower())


async def test_no_byte_of_an_erased_note_is_left(
    opened: Opened, root: Path, write: Write, tmp_path: Path, catalog_file: Path
) -> None:
    """Neither of its last version nor of earlier ones, in no catalog over the folder, their logs included."""
    for number in range(40):
        write(f"{number}.md", f"# Fact w{chr(97 + number % 26)}{chr(97 + number // 26)}q\nabout deployment")
    word = WORD.decode()
    other = tmp_path / "cache" / "other" / "catalog-1.sqlite3"
    async with opened() as memory:
        draft = Draft(title=f"{word.title()} rules", body=f"{word} " * 500, keywords=(word,), usage_scenarios=(word,))
        note = await memory.edit.create(ScopeName.PROJECT, draft)
        for number in range(3):
            note = await memory.edit.update(note, replace(Draft.of(note), body=f"{word} {number} " * (400 - number)))
        async with open_memory(MemoryRoots(project=root), observers=Observers(), catalog_path=other) as second:
            await second.wait_synced()
            assert second.notes == 41
        later = other.with_name("catalog-2.sqlite3")
        with closing(sqlite3.connect(other)) as copied, closing(sqlite3.connect(later)) as copy:
            copied.backup(copy)
            copy.execute("PRAGMA user_version = 1")
        assert holding(tmp_path / "cache") != []
        await memory.edit.delete(note)
        assert holding(root) == []
        assert holding(catalog_file.parent) != []
        erased = erase_from_catalogs(catalog_file, catalog_file.parent, root, frozenset({note.relative}))
        assert erased == Erased(catalogs=(catalog_file, other, later), problems=())
        assert (other.exists(), later.exists()) == (True, False)
        assert holding(tmp_path) == []
        result = await memory.search("waaq", exclude=frozenset(), recent_tools=())
        assert [hit.note.relative for hit in result.fast] == ["0.md"]
        assert memory.notes == 40


async def test_what_cannot_be_cleaned_is_told(opened: Opened, root: Path, write: Write, catalog_file: Path) -> None:
    """A catalog that another reader holds, and a file that is none, are named; catalogs of others are left alone."""
    write("a.md", "# Canary rules")
    folder = catalog_file.parent
    for name, content in (("broken", b"no database at all"), ("foreign", b"")):
        (folder / name).mkdir(parents=True)
        (folder / name / "catalog.sqlite3").write_bytes(content)
    async with opened() as memory:
        with closing(sqlite3.connect(catalog_file, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM notes").fetchone()
            erased = erase_from_catalogs(catalog_file, folder, root, frozenset({"a.md"}), patience=0.01)
        assert memory.notes == 1
    broken = folder / "broken" / "catalog.sqlite3"
    assert erased == Erased(
        catalogs=(),
        problems=(
            f"{catalog_file}: another process is reading it, so its log could not be emptied",
            f"{broken}: file is not a database",
        ),
    )
    assert (folder / "foreign" / "catalog.sqlite3").read_bytes() == b""
