"""All notes of a memory at once, from its catalog: what people list and count. No recall reads this."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from recallscope.runtime.errors import StoreUnavailableError
from recallscope.runtime.memory.catalog import Catalog
from recallscope.runtime.memory.note import Note
from recallscope.runtime.memory.scopes import Root, Skipped

__all__ = ["ScopeOverview", "discard_catalog", "overview"]

_ALL = -1


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


def discard_catalog(path: Path) -> bool:
    """Remove the catalog's file, so that the next opening makes it anew from the notes; say whether there was one.

    Raises:
        StoreUnavailableError: the file system refused.
    """
    try:
        existed = path.exists()
        for name in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
            name.unlink(missing_ok=True)
    except OSError as error:
        raise StoreUnavailableError(f"the memory catalog {path} cannot be removed: {error.strerror}") from error
    return existed
