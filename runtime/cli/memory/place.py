"""Where a command of `recallscope memory` works: the options that say so, the memory there, and a note by its name."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

import click
from anyio import to_thread

from recallscope.runtime.cli.compose import memory_roots
from recallscope.runtime.cli.output import one_line
from recallscope.runtime.cli.settings import settings_in_force
from recallscope.runtime.config import Flag, Settings
from recallscope.runtime.errors import NoteError, StoreUnavailableError
from recallscope.runtime.events import Event
from recallscope.runtime.memory.memory import Memory, open_memory
from recallscope.runtime.memory.note import Note
from recallscope.runtime.memory.overview import ScopeOverview, overview
from recallscope.runtime.memory.scopes import MemoryRoots, Root, catalog_path
from recallscope.runtime.memory.store import read_note
from recallscope.runtime.observe import Observers
from recallscope.runtime.terms import ScopeName

__all__ = ["Place", "json_option", "note_named", "place_options", "read_current"]

_CommandT = TypeVar("_CommandT", bound=Callable[..., Any])

_MOST_CHOICES = 10

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The memory that a command works on. `asked` are the scopes that it is about, of those in `roots`."""

    settings: Settings
    roots: MemoryRoots
    asked: tuple[Root, ...]
    catalog: Path

    @classmethod
    def of(cls, context: click.Context, directory: Path | None, scope: str | None) -> "Place":
        """Return the place that the options name.

        Raises:
            ConfigError: the configuration is wrong, or a tenant is configured and a folder is named.
            click.UsageError: the scope has no folder here.
        """
        flags = {"memory.project_dir": Flag("--memory", str(directory) if directory is not None else None)}
        settings = settings_in_force(context, flags)
        roots = memory_roots(settings, directory)
        asked = tuple(root for root in roots.roots if scope is None or root.scope == scope)
        if not asked:
            known = ", ".join(root.scope for root in roots.roots)
            raise click.UsageError(f"--scope {scope}: this memory has no such scope; it has {known}")
        return cls(settings=settings, roots=roots, asked=asked, catalog=catalog_path(roots, settings.memory.cache_dir))

    def target(self, scope: str | None) -> ScopeName:
        """Return the scope that a new note goes to: the one that was named, else `project`, else the first."""
        if scope is not None:
            return ScopeName(scope)
        names = [root.scope for root in self.asked]
        return ScopeName.PROJECT if ScopeName.PROJECT in names else names[0]

    def root(self, scope: ScopeName) -> Root:
        """Return the root of one of the scopes asked for."""
        return next(root for root in self.asked if root.scope == scope)

    @asynccontextmanager
    async def opened(
        self, *, write: bool = False, events: Sequence[Callable[[Event], None]] = ()
    ) -> AsyncGenerator[Memory]:
        """Open the memory, synced; `events` observe it.

        Raises:
            StoreUnavailableError: a scope that was asked for cannot be read.
        """
        async with open_memory(
            self.roots, observers=Observers(events), catalog_path=self.catalog, read_only=not write
        ) as memory:
            await memory.wait_synced()
            asked = {root.scope for root in self.asked}
            for scope in memory.statistics().scopes:
                if scope.problem is not None and scope.scope in asked:
                    raise StoreUnavailableError(scope.problem)
            yield memory

    async def overview(self, memory: Memory) -> tuple[ScopeOverview, ...]:
        """Return what the catalog of `memory` holds of the scopes asked for, and all that its sync skipped there."""
        found = await to_thread.run_sync(overview, memory.statistics().catalog, self.asked)
        return tuple(replace(scope, skipped=memory.skipped_in(scope.root.scope)) for scope in found)


def place_options(command: _CommandT) -> _CommandT:
    """Add `--scope` and `--memory`, as the arguments `scope` and `directory`."""
    scope = click.option("--scope", type=click.Choice([name.value for name in ScopeName]), help="Only this scope.")
    directory = click.option(
        "--memory",
        "directory",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        metavar="DIR",
        help="Work on the notes below DIR instead of the configured memory.",
    )
    return scope(directory(command))


def note_named(name: str, scopes: Sequence[ScopeOverview]) -> Note:
    """Return the note that a person means, without its body: by id, by path below the root, or by the file's name.

    Each also as it is printed: in one line, without controls.

    Raises:
        NoteError: there is none, there are several, or the file is none that can be read.
    """
    printed = one_line(name)
    if not printed:
        raise NoteError(
            path="NOTE", problem="the name that was given is empty; `recallscope memory list` shows what there is"
        )
    for matches in _ways(name):
        found = [note for scope in scopes for note in scope.notes if matches(note)]
        if len(found) == 1:
            return found[0]
        if found:
            raise NoteError(path=printed, problem=_several(found))
    for scope in scopes:
        for skip in scope.skipped:
            names = {skip.path, f"{scope.root.scope}:{skip.path}"}
            if name in names or name in map(one_line, names):
                raise NoteError(path=printed, problem=f"the file is skipped, it is no note: {skip.why}")
    raise NoteError(
        path=printed, problem="no note has this id, path or name; `recallscope memory list` shows what there is"
    )


def _several(found: Sequence[Note]) -> str:
    names = list(dict.fromkeys(one_line(note.id) for note in found))
    if len(names) < len(found):
        return (
            f"several files have names that are printed so; rename all but one of: {', '.join(names[:_MOST_CHOICES])}"
        )
    more = f" and {len(names) - _MOST_CHOICES} more" if len(names) > _MOST_CHOICES else ""
    return f"several notes are named so; give one of: {', '.join(names[:_MOST_CHOICES])}{more}"


async def read_current(place: Place, note: Note) -> Note:
    """Return `note` as its file is now, with its body.

    Raises:
        NoteError: the file is gone, or is no note any more.
    """
    try:
        current, _ = await to_thread.run_sync(read_note, place.root(note.scope), note.relative)
    except FileNotFoundError:
        raise NoteError(path=note.relative, problem="the file is gone") from None
    return current


def _ways(name: str) -> tuple[Callable[[Note], bool], ...]:
    """Return the ways in which `name` may mean a note, the most exact first."""
    relative = name.removeprefix("./")
    return (
        lambda note: note.id == name,
        lambda note: note.relative == relative or str(note.path) == name,
        lambda note: PurePosixPath(note.relative).name == name or PurePosixPath(note.relative).stem == name,
        lambda note: name in {one_line(note.id), one_line(str(note.path))} or one_line(note.relative) == relative,
        lambda note: name in {one_line(PurePosixPath(note.relative).name), one_line(PurePosixPath(note.relative).stem)},
    )
