"""The team scope: a shared folder that is read like the others, and written to only where somebody names it."""

from pathlib import Path

import pytest

from recallscope.runtime.errors import MemoryWriteError
from recallscope.runtime.memory.edit import Draft
from recallscope.runtime.memory.memory import open_memory
from recallscope.runtime.memory.scopes import MemoryRoots
from recallscope.runtime.observe import Observers
from recallscope.runtime.terms import ScopeName

pytestmark = pytest.mark.anyio


def files_below(folder: Path) -> list[Path]:
    """Return the notes and indexes anywhere below a folder."""
    return list(folder.rglob("*.md"))


async def test_notes_of_the_team_are_found_beside_those_of_project_and_person(tmp_path: Path) -> None:
    """One search answers from all three; the same path in two scopes is two notes."""
    roots = MemoryRoots.below(tmp_path / "base", tmp_path, team=tmp_path / "team")
    for root in roots.roots:
        (root.path / "project").mkdir(parents=True)
        (root.path / "project" / "zebra.md").write_text(f"# Zebra of the {root.scope}\nIt stands in Oslo.")
    async with open_memory(roots, observers=Observers(), catalog_path=tmp_path / "c" / "c.sqlite3") as memory:
        await memory.wait_synced()
        found = await memory.search("zebra", exclude=frozenset(), recent_tools=())
        ids = {note.id for note in found.candidates}
    assert ids == {f"{scope}:project/zebra.md" for scope in ("project", "team", "user")}


async def test_nothing_is_written_to_the_team_unless_the_scope_is_named(tmp_path: Path) -> None:
    """Writes to other scopes leave the folder as it is; a write that names it stands there, with the index."""
    team = tmp_path / "team"
    roots = MemoryRoots.below(tmp_path / "base", tmp_path, team=team)
    async with open_memory(roots, observers=Observers(), catalog_path=tmp_path / "c" / "c.sqlite3") as memory:
        await memory.wait_synced()
        for scope in (ScopeName.PROJECT, ScopeName.USER):
            await memory.edit.create(scope, Draft(title="Mine", body="text"))
        assert not team.exists()
        note = await memory.edit.create(ScopeName.TEAM, Draft(title="Ours", body="text"))
        assert (note.id, note.path) == ("team:project/ours.md", team.resolve() / "project" / "ours.md")
        assert sorted(path.name for path in team.iterdir()) == ["MEMORY.md", "project"]


async def test_a_credential_is_refused_in_every_scope(tmp_path: Path) -> None:
    """Project, team and person alike; the message has the rule and the line and not the value."""
    roots = MemoryRoots.below(tmp_path / "base", tmp_path, team=tmp_path / "team")
    secret = "hunter2" + "Zx81kQ"
    async with open_memory(roots, observers=Observers(), catalog_path=tmp_path / "c" / "c.sqlite3") as memory:
        for scope in ScopeName:
            with pytest.raises(MemoryWriteError) as caught:
                await memory.edit.create(scope, Draft(title="Staging", body=f"password: {secret}"))
            assert "(assigned-password)" in str(caught.value)
            assert "line " in str(caught.value)
            assert secret not in str(caught.value)
    assert files_below(tmp_path) == []
