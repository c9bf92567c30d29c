"""`recallscope memory add`, `edit` and `pin`: every write goes through `memory/edit`."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import anyio
import click

from recallscope.runtime.cli.memory.editor import edited, has_terminal
from recallscope.runtime.cli.memory.place import (
    Place,
    json_option,
    note_named,
    place_options,
    read_current,
)
from recallscope.runtime.cli.memory.printing import note_as_json, print_json, print_text
from recallscope.runtime.cli.memory.superseding import replacement, with_replacement
from recallscope.runtime.cli.output import one_line
from recallscope.runtime.errors import MemoryWriteError, NoteError
from recallscope.runtime.memory.draft import Draft
from recallscope.runtime.memory.frontmatter import dump
from recallscope.runtime.memory.note import MAX_NOTE_BYTES, Note, parse
from recallscope.runtime.memory.store import read_bytes
from recallscope.runtime.terms import NoteSource, NoteType, ScopeName

__all__ = ["add", "edit", "pin"]


def _content_options(command: Any) -> Any:
    """Add the flags that say what a note holds."""
    options = (
        click.option("--title", help="The title, in one line."),
        click.option("--description", help="What it is about, in one line."),
        click.option("--type", "type_", type=click.Choice([name.value for name in NoteType]), help="The type."),
        click.option("--keyword", "keywords", multiple=True, help="A word to be found by; may be repeated."),
        click.option("--scenario", "scenarios", multiple=True, help="A way to ask for it; may be repeated."),
        click.option("--body", metavar="TEXT", help="The text; - reads it from stdin."),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command("add")
@place_options
@_content_options
@click.option("--pinned", is_flag=True, help="Pin it.")
@click.option("--superseded-by", "superseded_by", metavar="NOTE", help="What replaced it already.")
@json_option
@click.pass_context
def add(
    context: click.Context,
    /,
    *,
    scope: str | None,
    directory: Path | None,
    pinned: bool,
    superseded_by: str | None,
    as_json: bool,
    **content: Any,
) -> int:
    """Write a new note and print its id.

    Without --body an editor opens. The scope is project unless --scope says another.
    """
    place = Place.of(context, directory, scope)
    changes = _changes(content)
    draft = replace(Draft(title="", body="", source=NoteSource.PERSON, pinned=pinned), **changes)
    target = place.target(scope)
    if superseded_by:
        draft = replace(draft, superseded_by=anyio.run(_replacement, place, target, superseded_by))
    if "body" in changes:
        if not draft.title.strip():
            raise click.UsageError("a note needs a title: add --title TEXT")
        note = anyio.run(_create, place, target, draft)
    else:
        if not has_terminal():
            raise click.UsageError("give the text with --body TEXT, or with --body - from stdin: here is no terminal")
        template = _template(draft)
        with edited(template, "note.md") as written:
            if written == template:
                click.echo("recallscope: nothing was written, so there is no new note", err=True)
                return 1
            read = _parsed(written, target, "note.md")
            draft = replace(Draft.of(read), extra=read.extra, source=read.source or NoteSource.PERSON)
            if draft.superseded_by is not None:
                draft = replace(draft, superseded_by=anyio.run(_replacement, place, target, draft.superseded_by))
            note = anyio.run(_create, place, target, draft)
    _tell("added", note, as_json=as_json)
    return 0


@click.command("edit")
@click.argument("name", metavar="NOTE")
@place_options
@_content_options
@click.option(
    "--superseded-by", "superseded_by", metavar="NOTE", help="What replaces it; an empty text takes that back."
)
@json_option
@click.pass_context
def edit(
    context: click.Context,
    /,
    *,
    name: str,
    scope: str | None,
    directory: Path | None,
    superseded_by: str | None,
    as_json: bool,
    **content: Any,
) -> int:
    """Change NOTE with flags, or in an editor when there are none.

    --keyword and --scenario replace all that there are; an empty text stands for none. Unknown fields stay. If the file
    is changed by somebody else meanwhile, nothing is written.
    """
    place = Place.of(context, directory, scope)
    changes = _changes(content)
    note = anyio.run(_named, place, name)
    if superseded_by is not None:
        changes["superseded_by"] = (
            anyio.run(_replacement, place, note.scope, superseded_by, note) if superseded_by else None
        )
    if changes:
        changed = anyio.run(_update, place, note, replace(Draft.of(note), **changes))
    else:
        if not has_terminal():
            raise click.UsageError("say what to change, such as --title TEXT: here is no terminal for an editor")
        data, _ = read_bytes(place.root(note.scope).path, note.relative)
        _parsed(data, note.scope, note.relative)
        with edited(data, PurePosixPath(note.relative).name) as written:
            if written == data:
                click.echo("recallscope: nothing was changed", err=True)
                return 0
            _parsed(written, note.scope, note.relative)
            changed = anyio.run(_rewrite, place, note, written)
    _tell("changed", changed, as_json=as_json)
    return 0


@click.command("pin")
@click.argument("name", metavar="NOTE")
@click.option("--off", is_flag=True, help="Take the pin away.")
@place_options
@json_option
@click.pass_context
def pin(
    context: click.Context, *, name: str, off: bool, scope: str | None, directory: Path | None, as_json: bool
) -> int:
    """Pin NOTE, or with --off take its pin away. How old it is does not change."""
    place = Place.of(context, directory, scope)
    note = anyio.run(_pin, place, name, not off)
    _tell("unpinned" if off else "pinned", note, as_json=as_json)
    return 0


async def _create(place: Place, scope: ScopeName, draft: Draft) -> Note:
    async with place.opened(write=True) as memory:
        return await memory.edit.create(scope, draft)


async def _named(place: Place, name: str) -> Note:
    async with place.opened() as memory:
        return await read_current(place, note_named(name, await place.overview(memory)))


async def _update(place: Place, note: Note, draft: Draft) -> Note:
    async with place.opened(write=True) as memory:
        return await memory.edit.update(note, draft)


async def _replacement(place: Place, scope: ScopeName, name: str, note: Note | None = None) -> str:
    return await replacement(place, name, scope=scope, note=note)


async def _rewrite(place: Place, note: Note, written: bytes) -> Note:
    written = await with_replacement(place, note, written)
    async with place.opened(write=True) as memory:
        return await memory.edit.rewrite(note, written)


async def _pin(place: Place, name: str, pinned: bool) -> Note:
    async with place.opened(write=True) as memory:
        note = await read_current(place, note_named(name, await place.overview(memory)))
        return note if note.pinned is pinned else await memory.edit.pin(note, pinned=pinned)


def _changes(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a draft that the flags give."""
    changes: dict[str, Any] = {}
    for name, value in content.items():
        match name, value:
            case _, None | ():
                pass
            case "type_", str():
                changes["type"] = NoteType(value)
            case "keywords", words:
                changes["keywords"] = _given(words)
            case "scenarios", words:
                changes["usage_scenarios"] = _given(words)
            case "body", "-":
                changes["body"] = _stdin()
            case _:
                changes[name] = value
    return changes


def _given(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(word for word in words if word.strip())


def _stdin() -> str:
    """Read the text of a note from stdin; an empty one is more often a failed program before it than a wish.

    Raises:
        click.UsageError: stdin is closed, cannot be read, or holds no text, too much of it, or none in UTF-8.
    """
    if sys.stdin is None:  # so it is where it was closed at the start
        raise click.UsageError("--body -: stdin is closed; give the text with --body TEXT or send it to stdin")
    try:
        with click.open_file("-", "rb") as stream:
            data: bytes = stream.read(MAX_NOTE_BYTES + 1)
    except OSError as error:
        raise click.UsageError(
            f"--body -: stdin cannot be read ({error.strerror}); give the text with --body TEXT or send it to stdin"
        ) from None
    if len(data) > MAX_NOTE_BYTES:
        raise click.UsageError(
            f"--body -: stdin holds more than the {MAX_NOTE_BYTES} bytes of the largest note; split it"
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise click.UsageError(f"--body -: stdin is not UTF-8 (byte {error.start}); convert it first") from None
    if not text.strip():
        raise click.UsageError('--body -: stdin holds no text; for a note without text say --body ""')
    return text


def _template(draft: Draft) -> bytes:
    fields = {
        "name": draft.title,
        "description": draft.description,
        "type": str(draft.type),
        "keywords": list(draft.keywords),
        "usage_scenarios": list(draft.usage_scenarios),
        **({"pinned": True} if draft.pinned else {}),
        **({"superseded_by": draft.superseded_by} if draft.superseded_by is not None else {}),
    }
    return f"{dump(fields)}\n".encode(errors="replace")


def _parsed(data: bytes, scope: ScopeName, relative: str) -> Note:
    """Read what a person wrote.

    Raises:
        MemoryWriteError: it is no note.
    """
    try:
        return parse(data, scope=scope, root=Path(), relative=relative, modified=0.0)
    except NoteError as error:
        raise MemoryWriteError(path=relative, problem=error.problem, remedy="nothing was written; mend it") from None


def _tell(what: str, note: Note, *, as_json: bool) -> None:
    if as_json:
        print_json({"done": what} | note_as_json(note))
    else:
        print_text(f"{what} {one_line(note.id)}  {one_line(note.title)}")
