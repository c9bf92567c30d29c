"""How the commands of `recallscope memory` print: tables in a terminal, lines with tabs elsewhere, JSON where asked."""

import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

import click

from recallscope.runtime.cli.output import for_stdout, one_line
from recallscope.runtime.memory.note import Note

__all__ = ["day", "moment", "note_as_json", "plain", "print_json", "print_rows", "print_text"]


def print_json(value: Mapping[str, Any]) -> None:
    """Print one JSON object on one line."""
    click.echo(for_stdout(json.dumps(value, ensure_ascii=False)))


def print_text(text: str) -> None:
    """Print text that may hold anything."""
    click.echo(for_stdout(text))


def print_rows(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table in a terminal; elsewhere a line per row, without a head, its cells parted by tabs."""
    clean = [[one_line(cell) for cell in row] for row in rows]
    if not clean:
        return
    if not sys.stdout.isatty():
        for row in clean:
            click.echo("\t".join(row))
        return
    from rich.console import Console  # noqa: PLC0415 - only a terminal pays for the import
    from rich.table import Table  # noqa: PLC0415 - as above
    from rich.text import Text  # noqa: PLC0415 - as above

    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in clean:
        table.add_row(*(Text(cell) for cell in row))  # text: a note's title is no markup
    Console(highlight=False).print(table)


def note_as_json(note: Note) -> dict[str, Any]:
    """Return what `--json` prints of a note, without its body."""
    return {
        "id": note.id,
        "scope": str(note.scope),
        "path": note.relative,
        "version": note.version,
        "title": note.title,
        "description": note.description,
        "type": str(note.type),
        "keywords": list(note.keywords),
        "usage_scenarios": list(note.usage_scenarios),
        "pinned": note.pinned,
        "created": moment(note.created),
        "updated": moment(note.updated),
        "superseded_by": note.superseded_by,
        "source": str(note.source) if note.source else None,
        "evidence": note.evidence,
    }


def plain(value: object) -> Any:
    """Return a value of a note's front matter as JSON has it; what JSON has not, such as a date, as text."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case Mapping():
            return {str(name): plain(item) for name, item in cast("Mapping[object, object]", value).items()}
        case list() | tuple():
            return [plain(item) for item in cast("Sequence[object]", value)]
        case _:
            return str(value)


def moment(seconds: float | None) -> str | None:
    """Return a time in seconds since 1970 as an ISO time in UTC."""
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, tz=UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def day(seconds: float) -> str:
    """Return the day of a time in seconds since 1970, in UTC."""
    return datetime.fromtimestamp(seconds, tz=UTC).date().isoformat()
