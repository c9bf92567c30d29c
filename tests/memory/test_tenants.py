"""Tenants: many people's memory below one base directory, and that none ever reaches another's."""

import os
import re
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallscope.runtime.errors import MemoryWriteError, NoteError, StoreUnavailableError
from recallscope.runtime.memory.edit import Draft
from recallscope.runtime.memory.memory import Memory, open_memory
from recallscope.runtime.memory.scopes import MemoryRoots, catalog_path, confined, tenant_key
from recallscope.runtime.memory.search import Found
from recallscope.runtime.memory.store import read_bytes
from recallscope.runtime.observe import Observers
from recallscope.runtime.terms import ScopeName

DRAFT = Draft(title="Zebra canary", body="The zebra canary stands in Oslo.")
OWN = Draft(title="Yellow heron", body="It nests by the lake.")

_hostile = st.sampled_from(
    (
        *(
            "..",
            ".",
            "/",
            "\\",
            "a/b",
            "../b",
            "~",
            "$HOME",
            "%2e%2e",
            "-",
            "a-",
            "con",
            "NUL",
            "a\0",
            "a\n",
            " a",
            "a ",
        ),
        *("a", "A", "\u0430", "\uff41", "a\u0301", "\u00e1", "i", "I", "\u0131", "\u0130", "ss", "s\u017f", "\u00df"),
        *("a" * 300, "a" * 301, "\ud800", "\U0001f642"),
    )
)
_tenants = _hostile | st.text(min_size=1, max_size=12) | st.lists(_hostile, min_size=1, max_size=3).map("".join)


@given(_tenants, _tenants)
def test_two_tenants_never_share_or_nest_a_folder_or_a_catalog(one: str, other: str) -> None:
    """Whatever their names, also on a file system that ignores case; the same name has the same folders."""
    base, work = Path("/base"), Path("/work")
    first, second = MemoryRoots.below(base, work, tenant=one), MemoryRoots.below(base, work, tenant=other)
    places = [str(path).casefold() for path in (first.project, first.user, first.base)]
    others = [str(path).casefold() for path in (second.project, second.user, second.base)]
    catalogs = [catalog_path(roots, Path("/cache")).parent for roots in (first, second)]
    if one == other:
        assert (places, catalogs[0]) == (others, catalogs[1])
        return
    assert catalogs[0] != catalogs[1]
    for place in places:
        for foreign in others:
            assert not Path(place).is_relative_to(foreign)
            assert not Path(foreign).is_relative_to(place)


@given(_tenants)
def test_a_tenants_folder_has_a_plain_short_name(tenant: str) -> None:
    """Lower-case ASCII letters, digits and `-`, at most 73 of them: no name leads anywhere else."""
    assert re.fullmatch(r"(?:[0-9a-z](?:[0-9a-z-]{0,38}[0-9a-z])?-)?[0-9a-f]{32}", tenant_key(tenant))


@given(
    st.lists(
        st.sampled_from(("..", ".", "", "up", "bob", "project", "x.md", "\0", "\ud800", "..\\bob", "~")), max_size=8
    )
)
def test_no_spelling_of_a_path_leads_to_the_other(parts: list[str]) -> None:
    """A write is refused or stays below; a read is refused or finds nothing. `up` is a link to the other."""
    with tempfile.TemporaryDirectory() as name:
        base = Path(name).resolve()
        own, other = base / "mallory", base / "bob"
        for folder in (own / "project", other / "project"):
            folder.mkdir(parents=True)
        (other / "x.md").write_text("secret")
        (other / "project" / "x.md").write_text("secret")
        (own / "up").symlink_to(other)
        (own / "project" / "x.md").symlink_to(other / "x.md")
        for relative in ("/".join(parts), f"{base}/" + "/".join(parts)):
            with suppress(MemoryWriteError):
                path = confined(own, relative)
                assert path.resolve().is_relative_to(own)
            with pytest.raises((NoteError, FileNotFoundError)):
                read_bytes(own, relative)


def test_a_tenant_lies_apart_from_the_memory_without_tenants() -> None:
    """No root of the base directory itself holds a tenant's, or lies in one."""
    plain, tenant = MemoryRoots.below(Path("/b"), Path("/w")), MemoryRoots.below(Path("/b"), Path("/w"), tenant="a")
    pairs = [(a.path, b.path) for a in plain.roots for b in tenant.roots]
    assert [a.is_relative_to(b) or b.is_relative_to(a) for a, b in pairs] == [False] * 4
    assert catalog_path(plain, Path("/c")) != catalog_path(tenant, Path("/c"))


def test_an_empty_name_is_no_tenant() -> None:
    """A service that lost the name of its user fails, and does not fall back to a memory for everybody."""
    with pytest.raises(ValueError, match="a tenant has a name"):
        MemoryRoots.below(Path("/b"), Path("/w"), tenant="")
    with pytest.raises(ValueError, match="every tenant"):
        MemoryRoots.below(Path("/b"), Path("/w"), tenant="a", team=Path("/team"))


@pytest.fixture
def places(tmp_path: Path) -> dict[str, MemoryRoots]:
    """Return the roots of two tenants who work in the same folder."""
    return {name: MemoryRoots.below(tmp_path / "base", tmp_path, tenant=name) for name in ("mallory", "bob")}


@asynccontextmanager
async def opened(roots: MemoryRoots, tmp_path: Path) -> AsyncGenerator[Memory, None]:
    """Open the memory of one tenant, synced."""
    path = catalog_path(roots, tmp_path / "cache")
    async with open_memory(roots, observers=Observers(), catalog_path=path) as memory:
        await memory.wait_synced()
        yield memory


async def found_by(memory: Memory) -> list[str]:
    """Return the ids of all that a search for the other's words brings, at whatever score."""
    found: Found = await memory.search("zebra canary Oslo", exclude=frozenset(), recent_tools=())
    return [hit.note.id for hit in (*found.fast, *found.lexical)] + [note.id for note in found.candidates]


def steps(target: Path, start: Path) -> str:
    """Return the way from one folder to another, with `..`."""
    return os.path.relpath(target, start)


@pytest.mark.anyio
async def test_searches_checks_and_edits_of_one_never_reach_a_note_of_the_other(
    places: dict[str, MemoryRoots], tmp_path: Path
) -> None:
    """By name, by `..`, by an absolute path: the other's note is neither found, nor current, nor changed."""
    async with opened(places["bob"], tmp_path) as bob, opened(places["mallory"], tmp_path) as mallory:
        note = await bob.edit.create(ScopeName.PROJECT, DRAFT)
        before = note.path.read_bytes()
        await mallory.sync()
        assert await found_by(bob) != []
        assert await found_by(mallory) == []
        assert await mallory.stale([note]) == {note.note_version}
        assert await mallory.load([note]) == ()
        own = places["mallory"].roots[0].path
        for relative in (steps(note.path, own), str(note.path), f"../{note.path.name}"):
            with pytest.raises(MemoryWriteError):
                await mallory.edit.create(ScopeName.PROJECT, DRAFT, relative=relative)
        with pytest.raises(MemoryWriteError, match="the file is gone"):
            await mallory.edit.update(note, DRAFT)
        with pytest.raises(MemoryWriteError, match="the file is gone"):
            await mallory.edit.delete(note)
        assert note.path.read_bytes() == before


@pytest.mark.anyio
@pytest.mark.parametrize("way", ["file", "folder", "deep folder", "through dots", "loop"])
async def test_a_link_into_the_others_folder_brings_nothing(
    places: dict[str, MemoryRoots], tmp_path: Path, way: str
) -> None:
    """A symbolic link that one tenant makes shows no note of the other and takes no write to him."""
    async with opened(places["bob"], tmp_path) as bob:
        note = await bob.edit.create(ScopeName.PROJECT, DRAFT)
    theirs, own = places["bob"].roots[0].path, places["mallory"].roots[0].path
    (own / "project" / "deep").mkdir(parents=True)
    match way:
        case "file":
            (own / "project" / "zebra-canary.md").symlink_to(note.path)
            target = "project/zebra-canary.md"
        case "folder":
            (own / "theirs").symlink_to(theirs)
            target = f"theirs/{note.relative}"
        case "deep folder":
            (own / "project" / "deep" / "x").symlink_to(theirs / "project")
            target = f"project/deep/x/{note.path.name}"
        case "through dots":
            (own / "up").symlink_to(steps(theirs, own))
            target = f"up/{note.relative}"
        case _:
            (own / "loop.md").symlink_to(own / "loop.md")
            target = "loop.md"
    before = note.path.read_bytes()
    async with opened(places["mallory"], tmp_path) as mallory:
        assert await found_by(mallory) == []
        assert [skip.why for skip in mallory.skipped] == ["it is a symbolic link that leaves the memory folder"]
        with pytest.raises(MemoryWriteError, match="symbolic link"):
            await mallory.edit.create(ScopeName.PROJECT, DRAFT, relative=target)
    assert note.path.read_bytes() == before


@pytest.mark.anyio
@pytest.mark.parametrize("part", ["memory", "projects"])
async def test_a_root_that_is_made_a_link_is_refused_at_the_start_and_later(
    places: dict[str, MemoryRoots], tmp_path: Path, part: str
) -> None:
    """A tenant who puts a link to the other's folder in the place of his own finds a closed door, not the notes."""
    async with opened(places["bob"], tmp_path) as bob:
        for scope in (ScopeName.PROJECT, ScopeName.USER):
            await bob.edit.create(scope, DRAFT)
    theirs, own = places["bob"].base, places["mallory"].base
    assert theirs is not None
    assert own is not None
    async with opened(places["mallory"], tmp_path) as mallory:
        mine = await mallory.edit.create(ScopeName.USER if part == "memory" else ScopeName.PROJECT, OWN)
        (own / part).rename(own / "aside")
        (own / part).symlink_to(theirs / part)
        assert await mallory.stale([mine]) == {mine.note_version}
        await mallory.sync()
        problems = [scope.problem for scope in mallory.statistics().scopes if scope.problem is not None]
        assert len(problems) == 1
        assert "replaced by a symbolic link" in problems[0]
        with pytest.raises(MemoryWriteError, match="replaced by a symbolic link"):
            await mallory.edit.create(mine.scope, DRAFT, relative="project/new.md")
        assert await found_by(mallory) == []
    with pytest.raises(StoreUnavailableError, match="holds all of this tenant"):
        _ = places["mallory"].roots


@pytest.mark.anyio
async def test_one_catalog_file_keeps_two_roots_apart_as_well(places: dict[str, MemoryRoots], tmp_path: Path) -> None:
    """Even where somebody gave both the same catalog, a root sees its own rows alone."""
    shared = tmp_path / "cache" / "shared.sqlite3"
    async with (
        open_memory(places["bob"], observers=Observers(), catalog_path=shared) as bob,
        open_memory(places["mallory"], observers=Observers(), catalog_path=shared) as mallory,
    ):
        await bob.wait_synced()
        await mallory.wait_synced()
        note = await bob.edit.create(ScopeName.USER, DRAFT)
        assert await found_by(mallory) == []
        assert await mallory.load([note]) == ()
