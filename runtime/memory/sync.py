"""How the catalog catches up with the files of a root: list, compare, read what changed, forget what is gone."""

import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from recallscope.runtime.errors import NoteError, StoreUnavailableError
from recallscope.runtime.memory.catalog import Catalog, Changes
from recallscope.runtime.memory.scopes import Listing, NoteFile, Root, Skipped, is_note_path, list_notes
from recallscope.runtime.memory.store import read_note

__all__ = ["FolderUnavailableError", "Synced", "sync_files", "sync_root"]

_BATCH = 100
"""Notes in one transaction: a write of our own waits no longer than for one of these."""

_WORTH_MERGING = 500
"""Changes after which the index is merged: 25 µs a note."""


class FolderUnavailableError(StoreUnavailableError):
    """A memory folder is there and cannot be listed: nothing certain can be said of its notes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced:
    """What a sync came to. `complete` is False if a folder could not be listed or the sync was stopped."""

    notes: int
    changed: int
    skipped: tuple[Skipped, ...]
    complete: bool


def sync_root(catalog: Catalog, root: Root, *, stopped: Callable[[], bool] = lambda: False) -> Synced:
    """Bring the rows of `root` up to its files; the newest files come first. Runs in a thread.

    A folder that cannot be listed keeps its rows: not seen is not gone. What others write into the catalog meanwhile
    stays: the rows are asked for before the files, so that a note made in between is not taken for one that is gone.
    A catalog whose numbers do not belong to its rows is doubted, so that its next opening makes it anew.

    Raises:
        FolderUnavailableError: the root cannot be listed.
        StoreUnavailableError: the catalog cannot be read or written.
    """
    number = catalog.root_id(root.path)
    notes, skipped = catalog.seen(number)
    if not root.is_in_place:
        raise FolderUnavailableError(f"a folder above the memory folder {root.path} was replaced by a symbolic link")
    try:
        listing = list_notes(root.path)
    except OSError as error:
        raise FolderUnavailableError(f"the memory folder {root.path} cannot be listed: {error.strerror}") from error
    known = {**skipped, **notes}
    todo = [file for file in listing.files.values() if _differs(known.get(file.relative), file)]
    todo.sort(key=lambda file: (-file.mtime_ns, file.relative))
    gone = [relative for relative in known if relative not in listing.files and not _hidden(relative, listing)]
    gone = [relative for relative in gone if not (is_note_path(relative) and _is_there(root, relative))]
    changed = _apply(catalog, (number, root), Changes(gone=gone), (file.relative for file in todo), stopped)
    if changed >= _WORTH_MERGING:
        catalog.optimize()
    wrong = None if stopped() else catalog.miscount(number)
    if wrong is not None:
        catalog.doubt(sqlite3.DatabaseError(f"of {root.path} {wrong}"))
    return Synced(
        notes=catalog.count(number),
        changed=changed,
        skipped=tuple(sorted((*listing.skipped, *catalog.skipped(number)), key=lambda skip: skip.path)),
        complete=not listing.unlisted and not stopped(),
    )


def sync_files(catalog: Catalog, root: Root, relatives: Iterable[str]) -> int:
    """Read these files of `root` again, whatever the catalog knows of them, and return how many notes it now holds.

    A file that is gone, is no regular one any more, or lies behind a symbolic link now, is forgotten.

    Raises:
        StoreUnavailableError: the catalog cannot be read or written.
    """
    number = catalog.root_id(root.path)
    changes = Changes()
    there: list[str] = []
    for relative in relatives:
        (there if _is_there(root, relative) else changes.gone).append(relative)
    _apply(catalog, (number, root), changes, there, lambda: False)
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
        now = time.time_ns()
        file = NoteFile.of(relative, (root.path / relative).stat(follow_symlinks=False), asked_at_ns=now)
        changes.notes.append(read_note(root, relative))
    except FileNotFoundError:
        changes.gone.append(relative)
    except NoteError as error:
        changes.skipped.append((Skipped(relative, error.problem), file))
    except OSError as error:
        changes.skipped.append((Skipped(relative, f"it cannot be read: {error.strerror}"), file))


def _is_there(root: Root, relative: str) -> bool:
    """Say whether a scan would find a regular file at `relative`: no part of its way is a link."""
    path = str(root.path)
    *folders, name = relative.split("/")
    try:
        for folder in folders:
            path = f"{path}/{folder}"
            if not stat.S_ISDIR(os.lstat(path).st_mode):
                return False
        return stat.S_ISREG(os.lstat(f"{path}/{name}").st_mode)
    except OSError:
        return False


def _differs(known: NoteFile | None, file: NoteFile) -> bool:
    return known is None or known.racy or known != file


def _hidden(relative: str, listing: Listing) -> bool:
    return any(relative.startswith(f"{folder}/") for folder in listing.unlisted)
