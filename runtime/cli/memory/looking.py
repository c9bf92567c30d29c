"""`recallscope memory list`, `show` and `search`: they read and never write."""

import re
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import anyio
import click

from recallscope.runtime.cli.memory.place import Place, json_option, note_named, place_options, read_current
from recallscope.runtime.cli.memory.printing import day, moment, note_as_json, plain, print_json, print_rows, print_text
from recallscope.runtime.cli.output import one_line
from recallscope.runtime.memory.note import Note
from recallscope.runtime.memory.overview import ScopeOverview
from recallscope.runtime.memory.search import Found
from recallscope.runtime.memory.store import read_bytes
from recallscope.runtime.terms import NoteType

__all__ = ["list_", "search", "show"]

_SPAN = re.compile(r"(\d{1,6})([hdw])")
_SECONDS = {"h": 3_600.0, "d": 86_400.0, "w": 604_800.0}


@click.command("list")
@place_options
@click.option(
    "--type",
    "types",
    multiple=True,
    type=click.Choice([name.value for name in NoteType]),
    help="Only this type; may be repeated.",
)
@click.option("--pinned/--not-pinned", default=None, help="Only pinned notes, or only others.")
@click.option(
    "--superseded/--not-superseded", default=None, help="Only notes that another one replaced, or only others."
)
@click.option(
    "--since", metavar="WHEN", help="Only notes updated since a date (2026-01-31) or within a time (12h, 7d, 4w)."
)
@json_option
@click.pass_context
def list_(
    context: click.Context,
    *,
    scope: str | None,
    directory: Path | None,
    types: tuple[str, ...],
    pinned: bool | None,
    superseded: bool | None,
    since: str | None,
    as_json: bool,
) -> int:
    """List notes, the newest first.

    In a terminal a table; elsewhere a line per note: id, type, day of the last change, pinned or superseded, title,
    parted by tabs. With --json one object per line.
    """
    place = Place.of(context, directory, scope)
    earliest = None if since is None else _earliest(since)

    def wanted(note: Note) -> bool:
        return (
            (not types or note.type in types)
            and (pinned is None or note.pinned is pinned)
            and (superseded is None or (note.superseded_by is not None) is superseded)
            and (earliest is None or note.updated >= earliest)
        )

    notes = [note for scope in anyio.run(_overview, place) for note in scope.notes if wanted(note)]
    notes.sort(key=lambda note: (-note.updated, note.id))
    if as_json:
        for note in notes:
            print_json(note_as_json(note))
    else:
        columns = ("id", "type", "updated", "", "title")
        print_rows(columns, ((note.id, note.type, day(note.updated), _marks(note), note.title) for note in notes))
        _tell_none(notes)
    return 0


@click.command("show")
@click.argument("name", metavar="NOTE")
@place_options
@json_option
@click.pass_context
def show(context: click.Context, *, name: str, scope: str | None, directory: Path | None, as_json: bool) -> int:
    """Show NOTE: its file, its version, and what recall knows of it.

    NOTE is an id (project:feedback/canary.md), a path below the root (feedback/canary.md) or a file's name (canary).
    """
    place = Place.of(context, directory, scope)
    scopes = anyio.run(_overview, place)
    known = note_named(name, scopes)
    note = anyio.run(read_current, place, known)
    recall = _recall(note, known)
    if as_json:
        more = {"extra": plain(note.extra), "body": note.body, "file": str(note.path), "recall": recall}
        print_json(note_as_json(note) | more)
        return 0
    data, _ = read_bytes(place.root(note.scope).path, note.relative)
    lines = [
        f"id:      {one_line(note.id)}",
        f"file:    {one_line(str(note.path))}",
        f"version: {note.version}",
        f"type:    {note.type}{', pinned' if note.pinned else ''}",
        f"updated: {moment(note.updated)}",
        f"recall:  {one_line(recall)}",
        "",
    ]
    print_text("\n".join([*lines, data.decode("utf-8-sig", errors="replace").strip("\n")]))
    return 0


@click.command("search")
@click.argument("query")
@place_options
@json_option
@click.pass_context
def search(context: click.Context, *, query: str, scope: str | None, directory: Path | None, as_json: bool) -> int:
    """Search for QUERY as a recall does, without any model: what it would deliver at once, and what it leaves out.

    With --json one object per note: the note, its score, and `result`, which is fast, or why the note is left out:
    threshold, unrelated, place, superseded, noise. `recallscope recall` tells more, and asks the model.
    """
    place = Place.of(context, directory, scope)
    found = anyio.run(_search, place, query)
    scopes = {root.scope for root in place.asked}
    hits = [*((hit, "fast") for hit in found.fast), *((left.hit, str(left.why)) for left in found.left_out)]
    hits = [(hit, result) for hit, result in hits if hit.note.scope in scopes]
    if as_json:
        for hit, result in hits:
            print_json(note_as_json(hit.note) | {"score": round(hit.score, 4), "result": result})
    else:
        columns = ("score", "result", "id", "title")
        print_rows(columns, ((f"{hit.score:.2f}", result, hit.note.id, hit.note.title) for hit, result in hits))
        _tell_none(hits)
    return 0


def _tell_none(found: Sequence[object]) -> None:
    if not found:
        click.echo("no notes", err=True)


async def _overview(place: Place) -> tuple[ScopeOverview, ...]:
    async with place.opened() as memory:
        return await place.overview(memory)


async def _search(place: Place, query: str) -> Found:
    async with place.opened() as memory:
        return await memory.search(query, exclude=frozenset(), recent_tools=())


def _recall(note: Note, known: Note) -> str:
    if note.superseded_by is not None:
        return f"never delivered, it is superseded by {note.superseded_by}"
    if known.version != note.version:
        return "an older version is indexed; the file changed a moment ago"
    return "indexed in this version"


def _marks(note: Note) -> str:
    marks = (("pinned", note.pinned), ("superseded", note.superseded_by is not None))
    return ", ".join(mark for mark, is_so in marks if is_so)


def _earliest(since: str) -> float:
    span = _SPAN.fullmatch(since)
    if span is not None:
        return time.time() - int(span[1]) * _SECONDS[span[2]]
    try:
        moment = datetime.fromisoformat(since)
    except ValueError:
        raise click.UsageError(f"--since {since}: it must be a date such as 2026-01-31, or a time such as 7d") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
