"""What `superseded_by` of a note says: the note that a person names, by its path or its id, and never a circle."""

import json
import posixpath
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from anyio import to_thread

from recallscope.runtime.cli.memory.place import Place, note_named
from recallscope.runtime.cli.output import one_line
from recallscope.runtime.errors import NoteError
from recallscope.runtime.memory.note import Note, parse
from recallscope.runtime.memory.overview import ScopeOverview, overview
from recallscope.runtime.terms import ScopeName

__all__ = ["replacement", "with_replacement"]

_LINE = re.compile(rb"^superseded_by[ \t]*:[^\r\n]*", re.MULTILINE)
_PLAIN = re.compile(r"[\w./-]+", re.ASCII)


async def replacement(place: Place, name: str, *, scope: ScopeName, note: Note | None = None) -> str:
    """Return what `superseded_by` of `note`, or of a new note of `scope`, says for the note that `name` means.

    That is its path below the root, or its id where it lies in another scope of the memory. `name` may also be a path
    from the folder of `note`. An address (`https://...`) is no note and stays as it is.

    Raises:
        NoteError: `name` means no note, several, `note` itself, or one that `note` supersedes in the end.
    """
    if "://" in name:
        return name
    async with place.opened() as memory:
        scopes = await to_thread.run_sync(overview, memory.statistics().catalog, place.roots.roots)
    found = _found(name, scopes, note)
    if note is not None and found.id == note.id:
        raise NoteError(
            path=note.relative, problem="a note cannot be superseded by itself; name the one to use instead"
        )
    if note is not None and (circle := _circle(note, found, scopes)):
        raise NoteError(
            path=note.relative,
            problem=f"that would lead in a circle, and none of these would ever be recalled: {' -> '.join(circle)}; "
            "name another one, or empty superseded_by of one of them first",
        )
    return found.relative if found.scope == scope else found.id


async def with_replacement(place: Place, note: Note, written: bytes) -> bytes:
    """Return `written`, what a person made of the file of `note`, with the path or id in `superseded_by`.

    Nothing else of the text changes, and nothing at all where `superseded_by` did not.

    Raises:
        NoteError: as `replacement`.
    """
    new = _parsed(note, written)
    if new.superseded_by is None or new.superseded_by == note.superseded_by:
        return written
    meant = await replacement(place, new.superseded_by, scope=note.scope, note=note)
    value = meant if _PLAIN.fullmatch(meant) else json.dumps(meant, ensure_ascii=False)
    changed = _LINE.sub(lambda _: f"superseded_by: {value}".encode(), written, count=1)
    try:
        read = _parsed(note, changed)
    except NoteError:  # the value ran on over several lines
        return written
    return changed if replace(read, version=new.version) == replace(new, superseded_by=meant) else written


def _parsed(note: Note, data: bytes) -> Note:
    return parse(data, scope=note.scope, root=Path(), relative=note.relative, modified=0.0)


def _found(name: str, scopes: Sequence[ScopeOverview], note: Note | None) -> Note:
    """Return the note that `name` means: as everywhere, else as a path from the folder of `note`."""
    try:
        return note_named(name, scopes)
    except NoteError:
        if note is None:
            raise
        path = posixpath.normpath(PurePosixPath(note.relative).parent / name)
        own = (one for scope in scopes if scope.root.scope == note.scope for one in scope.notes)
        there = next((one for one in own if one.relative == path), None)
        if there is None:
            raise
        return there


def _circle(note: Note, target: Note, scopes: Sequence[ScopeOverview]) -> list[str]:
    """Return the way from `note` over `target` back to it, as it would be; empty if there is none."""
    way = [note.relative]
    known = {note.id}
    at: Note | None = target
    while at is not None and at.id not in known:
        way.append(one_line(at.relative))
        known.add(at.id)
        at = _next(at, scopes)
    return [*way, note.relative] if at is not None and at.id == note.id else []


def _next(note: Note, scopes: Sequence[ScopeOverview]) -> Note | None:
    if note.superseded_by is None or "://" in note.superseded_by:
        return None
    own = [scope for scope in scopes if scope.root.scope == note.scope]
    for among in (own, scopes):
        try:
            return _found(note.superseded_by, among, note)
        except NoteError:  # it leads nowhere, which `check` tells of
            continue
    return None
