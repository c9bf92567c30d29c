"""`recallscope memory index`, `check` and `stats`: whether memory is in order, and how much of it there is."""

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import click

from recallscope.runtime.cli.memory.place import Place, json_option, place_options
from recallscope.runtime.cli.memory.printing import moment, print_json, print_rows, print_text
from recallscope.runtime.cli.output import one_line
from recallscope.runtime.errors import StoreUnavailableError
from recallscope.runtime.memory.check import Problem, check_root
from recallscope.runtime.memory.memory import MemoryStatistics
from recallscope.runtime.memory.note import Note
from recallscope.runtime.memory.overview import ScopeOverview, discard_catalog, overview
from recallscope.runtime.memory.scopes import INDEX_NAME, list_notes
from recallscope.runtime.memory.transfer import OWN_SCOPES
from recallscope.runtime.terms import ScopeName

__all__ = ["check", "index", "stats"]

_MOST_NAMES = 20
_AGES = (("a day", 86_400.0), ("a week", 604_800.0), ("a month", 2_629_800.0), ("a year", 31_557_600.0))

_Overviews = tuple[ScopeOverview, ...]


@click.command("index")
@click.option("--rebuild", is_flag=True, help="Throw the catalog away first, and build it anew from the files.")
@place_options
@json_option
@click.pass_context
def index(context: click.Context, *, rebuild: bool, scope: str | None, directory: Path | None, as_json: bool) -> int:
    """Bring the catalog and a MEMORY.md of ours up to the files now, and say what changed.

    A MEMORY.md that others share is written only where its scope is named. A catalog holds all projects of a base
    directory; after --rebuild each comes back when it is next worked on.
    """
    place = Place.of(context, directory, scope)
    started = time.monotonic()
    before = _known(place)
    if rebuild:
        discard_catalog(place.catalog)
    own = OWN_SCOPES if scope is None else {ScopeName(scope)}
    after = anyio.run(_index, place, own)
    seconds = time.monotonic() - started
    for old, new in zip(before, after, strict=True):
        answer = _changes(old, new)
        if as_json:
            print_json(answer | {"rebuilt": rebuild, "seconds": round(seconds, 3)})
        else:
            _tell_changes(answer, rebuild=rebuild, seconds=seconds)
    return 0


@click.command("check")
@place_options
@json_option
@click.pass_context
def check(context: click.Context, *, scope: str | None, directory: Path | None, as_json: bool) -> int:
    """Read every file and say what is wrong: exit code 1 if anything is.

    Files that are skipped, credentials, fields that cannot be read, notes that say the same, superseded_by that leads
    nowhere, names that collide where cases are not told apart, a MEMORY.md that is not ours or out of date.
    """
    place = Place.of(context, directory, scope)
    found = [(root.scope.value, problem) for root in place.asked for problem in check_root(root)]
    if as_json:
        for name, problem in found:
            print_json(
                {
                    "kind": str(problem.kind),
                    "scope": name,
                    "path": problem.path,
                    "line": problem.line,
                    "problem": problem.text,
                }
            )
    else:
        columns = ("problem", "where", "what")
        print_rows(columns, ((problem.kind, _where(name, problem), problem.text) for name, problem in found))
        counts = "no problem" if not found else "1 problem" if len(found) == 1 else f"{len(found)} problems"
        click.echo(counts, err=True)
    return 1 if found else 0


@click.command("stats")
@place_options
@json_option
@click.pass_context
def stats(context: click.Context, *, scope: str | None, directory: Path | None, as_json: bool) -> int:
    """Count the notes by scope, type, source and age; say how large they and the catalog are.

    Skipped are the files that `check` and `recall` name so; their bytes do not count. With --json one object.
    """
    place = Place.of(context, directory, scope)
    scopes, statistics = anyio.run(_statistics, place)
    answer = _counted(scopes, statistics, time.time())
    if as_json:
        print_json(answer)
        return 0
    rows: list[tuple[str, str]] = []
    for name, value in answer.items():
        if isinstance(value, dict):
            rows += [(f"{name}: {key}", str(number)) for key, number in value.items()]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - JSON
        else:
            rows.append((name, str(value)))
    print_rows(("", ""), rows)
    return 0


def _known(place: Place) -> _Overviews:
    """Return what the catalog held before; one that cannot be read held nothing."""
    try:
        return overview(place.catalog, place.asked)
    except StoreUnavailableError:
        return tuple(ScopeOverview(root=root, notes=(), skipped=()) for root in place.asked)


async def _index(place: Place, own: Collection[ScopeName]) -> _Overviews:
    async with place.opened(write=True) as memory:
        for root in place.asked:
            if root.scope in own and (root.path / INDEX_NAME).exists():
                await memory.edit.write_index(root.scope)
        return await place.overview(memory)


async def _statistics(place: Place) -> tuple[_Overviews, MemoryStatistics]:
    async with place.opened() as memory:
        return await place.overview(memory), memory.statistics()


def _changes(before: ScopeOverview, after: ScopeOverview) -> dict[str, Any]:
    old = {note.relative: note.version for note in before.notes}
    new = {note.relative: note.version for note in after.notes}
    return {
        "scope": str(after.root.scope),
        "folder": str(after.root.path),
        "notes": len(new),
        "added": sorted(set(new) - set(old)),
        "changed": sorted(path for path in set(new) & set(old) if new[path] != old[path]),
        "gone": sorted(set(old) - set(new)),
        "skipped": [{"path": skip.path, "why": skip.why} for skip in after.skipped],
    }


def _tell_changes(answer: Mapping[str, Any], *, rebuild: bool, seconds: float) -> None:
    kinds = ("added", "changed", "gone", "skipped")
    counts = ", ".join(f"{len(answer[kind])} {kind}" for kind in kinds)
    how = "rebuilt" if rebuild else "indexed"
    print_text(f"{answer['scope']}: {answer['notes']} notes {how} in {seconds:.1f} s: {counts}")
    for kind in kinds[:-1]:
        names: Sequence[str] = answer[kind]
        for name in names[:_MOST_NAMES]:
            print_text(f"  {kind}: {one_line(name)}")
        if len(names) > _MOST_NAMES:
            print_text(f"  {kind}: and {len(names) - _MOST_NAMES} more")
    for skip in answer["skipped"]:
        print_text(f"  skipped: {one_line(skip['path'])}: {one_line(skip['why'])}")


def _where(scope: str, problem: Problem) -> str:
    return f"{scope}:{problem.path}" + (f" line {problem.line}" if problem.line is not None else "")


def _counted(scopes: _Overviews, statistics: MemoryStatistics, now: float) -> dict[str, Any]:
    notes = [note for scope in scopes for note in scope.notes]
    files = [path for path in (statistics.catalog, Path(f"{statistics.catalog}-wal")) if path.exists()]
    return {
        "notes": len(notes),
        "bytes": sum(_bytes(scope) for scope in scopes),
        "skipped": sum(len(scope.skipped) for scope in scopes),
        "pinned": sum(note.pinned for note in notes),
        "superseded": sum(note.superseded_by is not None for note in notes),
        "by_scope": {str(scope.root.scope): len(scope.notes) for scope in scopes},
        "by_type": _count(notes, lambda note: str(note.type)),
        "by_source": _count(notes, lambda note: str(note.source) if note.source else "not stated"),
        "by_age": _ages(notes, now),
        "catalog": {
            "file": str(statistics.catalog),
            "temporary": statistics.temporary,
            "bytes": sum(path.stat().st_size for path in files),
            "written": moment(max((path.stat().st_mtime for path in files), default=None)),
        },
    }


def _bytes(scope: ScopeOverview) -> int:
    """Return how large the notes' files are; what is skipped is no note."""
    files = list_notes(scope.root.path).files
    return sum(files[note.relative].size for note in scope.notes if note.relative in files)


def _count(notes: Iterable[Note], kind: Callable[[Note], str]) -> dict[str, int]:
    return dict(sorted(Counter(kind(note) for note in notes).items()))


def _ages(notes: Sequence[Note], now: float) -> dict[str, int]:
    """Count the notes by the age of their last change, each in the first class that it fits."""
    counts = dict.fromkeys((*(f"within {name}" for name, _ in _AGES), "older"), 0)
    for note in notes:
        fits = (f"within {name}" for name, seconds in _AGES if now - note.updated <= seconds)
        counts[next(fits, "older")] += 1
    return counts
