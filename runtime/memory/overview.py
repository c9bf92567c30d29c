"""All notes of a memory at once, from its catalog: what people list and count. No recall reads this."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from recallscope.runtime.errors import StoreUnavailableError
from recallscope.runtime.memory.catalog import Catalog
from recallscope.runtime.memory.catalog_file import file_lock
from recallscope.runtime.memory.catalog_readers import files_of
from recallscope.runtime.memory.note import Note
from recallscope.runtime.memory.scopes import Root, Skipped

__all__ = ["PATIENCE", "ScopeOverview", "discard_catalog", "overview"]

_ALL = -1

PATIENCE = 10.0
"""Seconds to wait for other processes that work on the same catalog."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeOverview:
    """What the catalog holds of one root: its notes without bodies, newest first, and the rest."""

    root: Root
    notes: tuple[Note, ...]
    skipped: tuple[Skipped, ...]


def overview(catalog: Path, roots: Sequence[Root]) -> tuple[ScopeOverview, ...]:
    """Return what the catalog at this path holds of `roots`; one that it does not know has nothing. Runs in a thread.

    Raises:
        StoreUnavailableError: there is no catalog, or it cannot be read.
    """
    reading = Catalog(catalog)
    try:
        return tuple(_scope(reading, root) for root in roots)
    finally:
        reading.close()


def _scope(catalog: Catalog, root: Root) -> ScopeOverview:
    with catalog.readers.borrow() as reader:
        row = reader.execute("SELECT id FROM roots WHERE path = ?", (str(root.path),)).fetchone()
    if row is None:
        return ScopeOverview(root=root, notes=(), skipped=())
    number = int(row[0])
    return ScopeOverview(
        root=root,
        notes=catalog.newest(number, root, _ALL),
        skipped=catalog.skipped(number),
    )


def discard_catalog(path: Path, *, patience: float = PATIENCE) -> bool:
    """Remove the catalog's files, so that the next opening makes it anew from the notes; say whether there were any.

    Raises:
        StoreUnavailableError: the file system refused, or another process has been opening it for `patience` seconds.
    """
    if not path.parent.exists():
        return False
    try:
        with file_lock(path.with_suffix(".lock"), patience=patience):
            existed = path.exists()
            for file in files_of(path):
                file.unlink(missing_ok=True)
    except OSError as error:
        why = error.strerror or str(error)
        raise StoreUnavailableError(f"the memory catalog {path} cannot be removed: {why}") from error
    return existed
