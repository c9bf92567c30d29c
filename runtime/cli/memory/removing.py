"""`recallscope memory remove`: erases notes, and says exactly what was erased and what still knows of them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

import anyio
import click
from anyio import to_thread

from recallscope.runtime.cli.memory.editor import has_terminal
from recallscope.runtime.cli.memory.place import Place, json_option, note_named, place_options, read_current
from recallscope.runtime.cli.memory.printing import print_json, print_text
from recallscope.runtime.cli.observed import telemetry_settings
from recallscope.runtime.cli.output import one_line
from recallscope.runtime.errors import NoteError
from recallscope.runtime.memory.erase import erase_from_catalogs
from recallscope.runtime.memory.note import Note
from recallscope.runtime.memory.scopes import INDEX_NAME
from recallscope.runtime.memory.store import INDEX_MARK, read_bytes
from recallscope.telemetry.journal import FILE_PATTERN

__all__ = ["remove"]


@dataclass(slots=True)
class _Removed:
    """What was erased of one note, and what still names it."""

    note: Note
    index: bool = False
    catalogs: int = 0
    journal: int = 0
    problems: list[str] = field(default_factory=list[str])


@click.command("remove")
@click.argument("names", metavar="NOTE...", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Do not ask; needed where there is no terminal.")
@place_options
@json_option
@click.pass_context
def remove(
    context: click.Context,
    *,
    names: Sequence[str],
    yes: bool,
    scope: str | None,
    directory: Path | None,
    as_json: bool,
) -> int:
    """Erase each NOTE: its file, its line in MEMORY.md, and its rows in the catalogs, whose bytes are overwritten.

    The journal of this machine holds ids of notes and never their text; it is left as it is, and its lines that name
    the note are counted. Exit code 1: something could not be erased, or still names the note.
    """
    place = Place.of(context, directory, scope)
    notes = anyio.run(_named, place, names)
    if not yes and not _confirmed(notes):
        click.echo("nothing was erased", err=True)
        return 1
    removed = anyio.run(_remove, place, notes)
    journal = telemetry_settings(place.settings, "memory", serves_metrics=False, journal=True).journal_folder
    _count_in_journal(journal, removed)
    for one in removed:
        _tell(one, as_json=as_json)
    return 1 if any(one.problems for one in removed) else 0


def _confirmed(notes: Sequence[Note]) -> bool:
    if not has_terminal():
        raise click.UsageError("removing asks first, and here is no terminal: add --yes if you are sure")
    for note in notes:
        click.echo(f"{one_line(note.id)}  {one_line(note.title)}", err=True)
    question = "Erase this note?" if len(notes) == 1 else f"Erase these {len(notes)} notes?"
    return click.confirm(question, err=True)


async def _named(place: Place, names: Sequence[str]) -> list[Note]:
    async with place.opened() as memory:
        scopes = await place.overview(memory)
        found = {note.id: note for note in (note_named(name, scopes) for name in names)}
        return [await read_current(place, note) for note in found.values()]


async def _remove(place: Place, notes: Sequence[Note]) -> list[_Removed]:
    removed: list[_Removed] = []
    try:
        async with place.opened(write=True) as memory:
            for note in notes:
                others = await to_thread.run_sync(_other_names, note.path)
                listed = await to_thread.run_sync(_is_listed, place, note)
                await memory.edit.delete(note)
                removed.append(_Removed(note, index=listed))
                if others:
                    removed[-1].problems.append(f"the file has other names (hard links: {others}), which still hold it")
    finally:
        with anyio.CancelScope(shield=True):  # what is deleted is erased, also when the next one fails
            await to_thread.run_sync(_erase, place, removed)
    return removed


def _is_listed(place: Place, note: Note) -> bool:
    """Say whether `MEMORY.md` is ours and has a line for `note`."""
    ours, lines = _in_index(place.root(note.scope).path, note.relative)
    return ours and bool(lines)


def _other_names(path: Path) -> int:
    """Count the hard links to a file beside the one at `path`."""
    try:
        return path.stat(follow_symlinks=False).st_nlink - 1
    except OSError:  # it is gone, which the removal will tell
        return 0


def _erase(place: Place, removed: Sequence[_Removed]) -> None:
    for root in place.asked:
        here = [one for one in removed if one.note.scope == root.scope]
        if not here:
            continue
        relatives = frozenset(one.note.relative for one in here)
        erased = erase_from_catalogs(place.catalog, place.settings.memory.cache_dir, root.path, relatives)
        for one in here:
            one.catalogs = len(erased.catalogs)
            one.problems += [
                f"the catalog {problem}; delete that file, it is made anew from the notes"
                for problem in erased.problems
            ]
            _look_at_index(root.path, one)


def _look_at_index(root: Path, one: _Removed) -> None:
    """Say whether the note's line in `MEMORY.md` is gone, and which lines name it still."""
    ours, lines = _in_index(root, one.note.relative)
    one.index = one.index and not lines
    whose = "it is brought up to date at the next write" if ours else "a person wrote that file"
    one.problems += [f"line {number} of {INDEX_NAME} still names it; {whose}" for number in lines]


def _in_index(root: Path, relative: str) -> tuple[bool, list[int]]:
    """Say whether `MEMORY.md` is ours, and give the numbers of its lines that name `relative`."""
    try:
        data, _ = read_bytes(root, INDEX_NAME)
    except (FileNotFoundError, NoteError):
        return False, []
    text = data.decode(errors="replace")
    lines = [
        number
        for number, line in enumerate(text.splitlines(), start=1)
        if f"({relative})" in line or f"({relative})" in unquote(line)
    ]
    return text.startswith(INDEX_MARK), lines


def _count_in_journal(folder: Path, removed: Sequence[_Removed]) -> None:
    """Count the lines of the journal that name each note, however the id is escaped there."""
    ids = [{json.dumps(one.note.id, ensure_ascii=escaped).encode() for escaped in (True, False)} for one in removed]
    for file in sorted(folder.glob(FILE_PATTERN)):
        try:
            with file.open("rb") as lines:
                for line in lines:
                    for one, forms in zip(removed, ids, strict=True):
                        one.journal += any(form in line for form in forms)
        except OSError as error:
            for one in removed:
                one.problems.append(f"the journal {file} cannot be read: {error.strerror}")


def _tell(one: _Removed, *, as_json: bool) -> None:
    note = one.note
    if as_json:
        print_json(
            {
                "done": "removed",
                "id": note.id,
                "file": str(note.path),
                "index_line": one.index,
                "catalogs": one.catalogs,
                "journal_lines_with_its_id": one.journal,
                "problems": one.problems,
            }
        )
        return
    catalogs = "1 catalog" if one.catalogs == 1 else f"{one.catalogs} catalogs"
    lines = "1 line" if one.journal == 1 else f"{one.journal} lines"
    erased = ["the file", *([f"its line in {INDEX_NAME}"] if one.index else [])]
    if one.catalogs:
        erased.append(f"its rows in {catalogs} and the bytes that held them")
    print_text(
        f"removed {one_line(note.id)}  {one_line(note.title)}\n"
        f"  erased: {', '.join(erased)}\n"
        f"  left: its id, without title or text, in {lines} of the journal"
    )
    for problem in one.problems:
        click.echo(f"recallscope: {one_line(note.id)}: {one_line(problem)}", err=True)
