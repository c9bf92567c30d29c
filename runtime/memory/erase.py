"""Makes sure that what was removed is gone from the catalogs' bytes, not only from their answers.

SQLite leaves removed text in free pages and in its write-ahead log, and the full-text index writes a removal as one
more entry. Here the index is merged into one piece, the file is written anew without free pages, and the log emptied.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

from recallscope.runtime.errors import StoreUnavailableError
from recallscope.runtime.memory.catalog import Catalog, Changes
from recallscope.runtime.memory.catalog_schema import SCHEMA
from recallscope.runtime.memory.overview import PATIENCE, discard_catalog

__all__ = ["Erased", "erase_from_catalogs"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """In which catalogs nothing is left, and which of them could not be cleaned, with the reasons."""

    catalogs: tuple[Path, ...]
    problems: tuple[str, ...]


def erase_from_catalogs(
    own: Path, cache: Path, root: Path, relatives: frozenset[str], *, patience: float = PATIENCE
) -> Erased:
    """Remove the rows of `relatives` from every catalog that knows `root`, and overwrite what they held.

    `own` is the catalog in use; others over the same folder lie in folders of `cache`, and those of another version of
    this program are removed whole. Takes seconds for 100,000 notes, and other processes that write wait meanwhile.
    """
    cleaned: list[Path] = []
    problems: list[str] = []
    for path in dict.fromkeys((own, *sorted(cache.glob("**/catalog*.sqlite3")))):
        try:
            known = _known(path, root, patience) if path.exists() else _Known.NOT
            if path == own or known is _Known.HERE:
                _forget(path, root, relatives)
                _rewrite(path, patience)
            elif known is _Known.OTHER_VERSION:
                discard_catalog(path, patience=patience)
            else:
                continue
            cleaned.append(path)
        except (StoreUnavailableError, sqlite3.Error, OSError) as error:
            problems.append(f"{path}: {error}")
    return Erased(catalogs=tuple(cleaned), problems=tuple(problems))


class _Known(Enum):
    """Whether a catalog is over a root, and whether this program can work with it."""

    NOT = auto()
    HERE = auto()
    OTHER_VERSION = auto()


def _known(path: Path, root: Path, patience: float) -> _Known:
    """Say how the catalog at `path` knows `root`; a file without the tables of a catalog does not."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=patience)) as connection:
            if connection.execute("SELECT 1 FROM roots WHERE path = ?", (str(root),)).fetchone() is None:
                return _Known.NOT
            version = connection.execute("PRAGMA user_version").fetchone()[0]
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_ERROR:  # it has no such table
            return _Known.NOT
        raise
    return _Known.HERE if version == SCHEMA else _Known.OTHER_VERSION


def _forget(path: Path, root: Path, relatives: frozenset[str]) -> None:
    catalog = Catalog(path)
    try:
        catalog.open()
        catalog.apply(catalog.root_id(root), Changes(gone=sorted(relatives)))
    finally:
        catalog.close()


def _rewrite(path: Path, patience: float) -> None:
    """Write the file anew, so that no byte of a removed row is left in it or in its log."""
    with closing(sqlite3.connect(path, timeout=patience, isolation_level=None)) as connection:
        for table in _indexes(connection):
            connection.execute(f"INSERT INTO {table} ({table}) VALUES ('optimize')")  # noqa: S608 - a table of this file
        connection.execute("VACUUM")
        held, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if held:
        raise StoreUnavailableError("another process is reading it, so its log could not be emptied")


def _indexes(connection: sqlite3.Connection) -> Iterator[str]:
    rows = connection.execute("SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL TABLE%fts5%'").fetchall()
    return (str(name) for (name,) in rows)
