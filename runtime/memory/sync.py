"""How the catalog catches up with the files of a root: list, compare, read what changed, forget what is gone."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from recallscope.runtime.errors import NoteError, StoreUnavailableError
from recallscope.runtime.memory.catalog import Catalog, Changes, Seen
from recallscope.runtime.memory.scopes import Listing, NoteFile, Root, Skipped, list_notes
from recallscope.runtime.memory.store import read_note

__all__ = ["Synced", "sync_files", "sync_root"]

_BATCH = 100
"""Notes in one transaction: a write of our own waits no longer than for one of these."""

_WORTH_MERGING = 500
"""Changes after which the index is merged: 25 µs a note."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced:
    """What a sync came to. `complete` is False if a folder could not be listed or the sync was stopped."""

    notes: int
    changed: int
    skipped: tuple[Skipped, ...]
    complete: bool


def sync_root(catalog: Catalog, root: Root, *, stopped: Callable[[], bool] = lambda: False) -> Synced:
    """Bring the rows of `root` up to its files; the newest files come first. Runs in a thread.

    A folder that cannot be listed keeps its rows: not seen is not gone.

    Raises:
        StoreUnavailableError: the root cannot be listed, or the catalog cannot be read or written.
    """
    try:
        listing = list_notes(root.path)
    except OSError as error:
        raise StoreUnavailableError(f"the memory folder {root.path} cannot be listed: {error.strerror}") from error
    number = catalog.root_id(root.path)
    notes, skipped = catalog.seen(number)
    known = {**skipped, **notes}
    gone = [relative for relative in known if relative not in listing.files and not _hidden(relative, listing)]
    todo = [file for file in listing.files.values() if _differs(known.get(file.relative), file)]
    todo.sort(key=lambda file: (-file.mtime_ns, file.relative))
    changed = _apply(catalog, (number, root), Changes(gone=gone), (file.relative for file in todo), stopped)
    if changed >= _WORTH_MERGING:
        catalog.optimize()
    return Synced(
        notes=catalog.count(number),
        changed=changed,
        skipped=tuple(sorted((*listing.skipped, *catalog.skipped(number)), key=lambda skip: skip.path)),
        complete=not listing.unlisted and not stopped(),
    )


def sync_files(catalog: Catalog, root: Root, relatives: Iterable[str]) -> int:
    """Read these files of `root` again, whatever the catalog knows of them, and return how many notes it now holds.

    Raises:
        StoreUnavailableError: the catalog cannot be read or written.
    """
    number = catalog.root_id(root.path)
    _apply(catalog, (number, root), Changes(), relatives, lambda: False)
    return catalog.count(number)


def _apply(
    catalog: Catalog,
    numbered: tuple[int, Root],
    changes: Changes,
    relatives: Iterable[str],
    stopped: Callable[[], bool],
) -> int:
    number, root = numbered
    changed = 0
    for relative in relatives:
        if stopped():
            break
        _read(root, relative, changes)
        if len(changes) >= _BATCH:
            catalog.apply(number, changes)
            changed += len(changes)
            changes = Changes()
    if len(changes):
        catalog.apply(number, changes)
        changed += len(changes)
    return changed


def _read(root: Root, relative: str, changes: Changes) -> None:
    file = NoteFile(relative, 0, 0, 0)
    try:
        file = NoteFile.of(relative, (root.path / relative).stat(follow_symlinks=False))
        changes.notes.append(read_note(root, relative))
    except FileNotFoundError:
        changes.gone.append(relative)
    except NoteError as error:
        changes.skipped.append((Skipped(relative, error.problem), file))
    except OSError as error:
        changes.skipped.append((Skipped(relative, f"it cannot be read: {error.strerror}"), file))


def _differs(seen: Seen | None, file: NoteFile) -> bool:
    return seen is None or seen.racy or seen.file != file


def _hidden(relative: str, listing: Listing) -> bool:
    return any(relative.startswith(f"{folder}/") for folder in listing.unlisted)
