"""Makes sure that what was removed is gone from the catalogs' bytes, not only from their answers.

SQLite leaves removed text in free pages and in its write-ahead log, and the full-text index writes a removal as one
more entry. Here the index is merged into one piece, the file is written anew without free pages, and the log emptied.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from recallscope.runtime.errors import StoreUnavailableError
from recallscope.runtime.memory.catalog import Catalog, Changes

__all__ = ["Erased", "erase_from_catalogs"]

PATIENCE = 10.0
"""Seconds to wait for other processes that write to a catalog or read it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """In which catalogs nothing is left, and which of them could not be cleaned, with the reasons."""

    catalogs: tuple[Path, ...]
    problems: tuple[str, ...]


def erase_from_catalogs(
    own: Path, cache: Path, root: Path, relatives: frozenset[str], *, patience: float = PATIENCE
) -> Erased:
    """Remove the rows of `relatives` from every catalog that knows `root`, and overwrite what they held.

    `own` is the catalog in use; others over the same folder lie in folders beside it below `cache`. Takes seconds for a
    catalog of 100,000 notes, and other processes that write to it wait meanwhile.
    """
    cleaned: list[Path] = []
    problems: list[str] = []
    for path in dict.fromkeys((own, *sorted(cache.glob("*/catalog*.sqlite3")))):
        try:
            if path.exists() and (path == own or _knows(path, root, patience)):
                _forget(path, root, relatives)
                _rewrite(path, patience)
                cleaned.append(path)
        except (StoreUnavailableError, sqlite3.Error, OSError) as error:
            problems.append(f"{path}: {error}")
    return Erased(catalogs=tuple(cleaned), problems=tuple(problems))


def _knows(path: Path, root: Path, patience: float) -> bool:
    """Say whether the catalog at `path` is over `root`; a file that is no catalog is not."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=patience)) as connection:
            return connection.execute("SELECT 1 FROM roots WHERE path = ?", (str(root),)).fetchone() is not None
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_ERROR:  # it has no such table
            return False
        raise


def _forget(path: Path, root: Path, relatives: frozenset[str]) -> None:
    catalog = Catalog(path)
    try:
        catalog.open()  # one of another version is thrown away, which erases as well
        catalog.apply(catalog.root_id(root), Changes(gone=sorted(relatives)))
    finally:
        catalog.close()


def _rewrite(path: Path, patience: float) -> None:
    """Write the file anew, so that no byte of a removed row is left in it or in its log."""
    with closing(sqlite3.connect(path, timeout=patience, isolation_level=None)) as connection:
        connection.execute("PRAGMA secure_delete = ON")
        for table in _indexes(connection):
            connection.execute(f"INSERT INTO {table} ({table}) VALUES ('optimize')")  # noqa: S608 - a table of this file
        connection.execute("VACUUM")
        held, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if held:
        raise StoreUnavailableError("another process is reading it, so its log could not be emptied")


def _indexes(connection: sqlite3.Connection) -> Iterator[str]:
    rows = connection.execute("SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL TABLE%fts5%'").fetchall()
    return (str(name) for (name,) in rows)
