"""Notes out of memory and into it: an archive or a folder with a manifest, or any folder of Markdown.

An export holds `<scope>/<path>` for each note, byte for byte, and a manifest at its end; equal notes make an equal
archive. An import writes through `memory/edit` alone; what is there already stays, so that one that was interrupted is
simply started again.
"""

import contextlib
import gzip
import io
import tarfile
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from enum import StrEnum, unique
from pathlib import Path
from typing import IO

import anyio
from anyio import to_thread

from recallscope.runtime.errors import MemoryWriteError, NoteError, TransferError
from recallscope.runtime.memory.draft import vet
from recallscope.runtime.memory.edit import Editor
from recallscope.runtime.memory.note import note_id, version_of
from recallscope.runtime.memory.packed import MANIFEST, Listed, Packed, manifest, packed_notes
from recallscope.runtime.memory.scopes import Root, Skipped, confined, list_notes
from recallscope.runtime.memory.store import read_bytes, write_bytes
from recallscope.runtime.terms import ScopeName

__all__ = ["OWN_SCOPES", "Exported", "Fate", "Imported", "OnConflict"]
__all__ += ["archive_writer", "export_notes", "folder_writer", "import_notes"]

_MOST_NAMESAKES = 1_000

OWN_SCOPES = frozenset({ScopeName.PROJECT, ScopeName.USER})
"""The scopes that a person shares with nobody: what concerns all scopes may write there without naming them."""

Write = Callable[[str, bytes, float], object]
"""Takes a name with forward slashes, the bytes of its file, and its time in seconds since 1970."""


@unique
class OnConflict(StrEnum):
    """What an import does where another note stands at the same path."""

    SKIP = "skip"
    REPLACE = "replace"
    RENAME = "rename"


@unique
class Fate(StrEnum):
    """What became of a note that an import brought."""

    CREATED = "created"
    REPLACED = "replaced"
    RENAMED = "renamed"
    UNCHANGED = "unchanged"
    SKIPPED = "skipped"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """How many notes went out, how many bytes they have, and what did not go, with the reasons."""

    notes: int
    size: int
    left_out: tuple[Skipped, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What became of the note `name`; `note` is the id under which it stands or would stand, `why` says more."""

    name: str
    fate: Fate
    note: str | None = None
    why: str | None = None


def export_notes(roots: Sequence[Root], write: Write) -> Exported:
    """Hand every note of `roots` to `write`, sorted by path, and then the manifest. Runs in a thread.

    What is no note, or holds a credential, is left out and named: no import would take it.

    Raises:
        TransferError: a root cannot be listed.
    """
    lines: list[Listed] = []
    left_out: list[Skipped] = []
    size = 0
    for root in roots:
        try:
            listing = list_notes(root.path)
        except OSError as error:
            raise TransferError(
                where=str(root.path), problem=f"it cannot be listed: {error.strerror}", remedy="check its permissions"
            ) from error
        left_out += [Skipped(f"{root.scope}/{skip.path}", skip.why) for skip in listing.skipped]
        for relative in sorted(listing.files):
            name = f"{root.scope}/{relative}"
            try:
                data, file = read_bytes(root.path, relative)
                vet(data, root.scope, relative)
            except FileNotFoundError:
                continue
            except (NoteError, MemoryWriteError) as error:
                left_out.append(Skipped(name, error.problem))
                continue
            write(name, data, float(file.mtime_ns // 1_000_000_000))
            size += len(data)
            lines.append(Listed.of(name, data))
    write(MANIFEST, manifest(lines), 0.0)
    return Exported(notes=len(lines), size=size, left_out=tuple(left_out))


@contextlib.contextmanager
def archive_writer(stream: IO[bytes]) -> Generator[Write]:
    """Write a `.tar.gz` to `stream`: the same bytes for the same notes, whoever makes it and when."""
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):

        def write(name: str, data: bytes, modified: float) -> None:
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.mode = len(data), int(modified), 0o600
            archive.addfile(member, io.BytesIO(data))

        yield write


def folder_writer(folder: Path) -> Write:
    """Return what writes an export into `folder`, which is new or empty.

    Raises:
        TransferError: it is neither.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        taken = next(folder.iterdir(), None) is not None
    except OSError as error:
        raise TransferError(
            where=str(folder), problem=f"it cannot be used: {error.strerror}", remedy="name another folder"
        ) from error
    if taken:
        raise TransferError(
            where=str(folder), problem="the folder is not empty", remedy="name a new folder, or a file .tar.gz"
        )
    return lambda name, data, _modified: write_bytes(folder / name, data)


async def import_notes(
    source: Path,
    edit: Editor,
    roots: Sequence[Root],
    *,
    into: ScopeName | None,
    on_conflict: OnConflict,
    dry_run: bool,
    tell: Callable[[Imported], object],
) -> None:
    """Bring the notes of `source` in and `tell` what became of each.

    `into` is the scope that takes them; without it each goes where the export says (to a scope that others share none
    does), and to `project` where it says nothing. `dry_run` decides and tells the same and writes nothing.

    Raises:
        TransferError: see `packed_notes`.
    """
    importer = _Importer(edit, roots, into, on_conflict, dry_run=dry_run)
    notes = packed_notes(source)
    try:
        while (packed := await to_thread.run_sync(next, notes, None)) is not None:
            tell(await importer.take(packed))
    finally:
        with anyio.CancelScope(shield=True):
            await importer.close()


class _Importer:
    """Decides where each note goes, and brings it there."""

    def __init__(
        self, edit: Editor, roots: Sequence[Root], into: ScopeName | None, on_conflict: OnConflict, *, dry_run: bool
    ) -> None:
        self._edit = edit
        self._roots = {root.scope.value: root for root in roots}
        self._into = into
        self._on_conflict = on_conflict
        self._dry_run = dry_run
        self._touched: dict[ScopeName, None] = {}
        self._planned: dict[str, bytes] = {}

    async def take(self, packed: Packed | Skipped) -> Imported:
        if isinstance(packed, Skipped):
            return Imported(name=packed.path, fate=Fate.REFUSED, why=packed.why)
        scope = self._into.value if self._into is not None else packed.scope or ScopeName.PROJECT.value
        root = self._roots.get(scope)
        if root is None:
            return Imported(name=packed.name, fate=Fate.REFUSED, why=f"no memory of scope {scope} is configured")
        if self._into is None and root.scope not in OWN_SCOPES:
            why = f"others share the scope {scope}, so it is written to only when it is named: add --scope {scope}"
            return Imported(name=packed.name, fate=Fate.REFUSED, why=why)
        try:
            place = await to_thread.run_sync(self._place, root, packed)
            if place.fate in {Fate.UNCHANGED, Fate.SKIPPED}:
                return place.told(packed, root)
            await self._write(root, packed, place)
        except (MemoryWriteError, NoteError) as error:
            return Imported(name=packed.name, fate=Fate.REFUSED, why=error.problem)
        return place.told(packed, root)

    async def close(self) -> None:
        """Bring the indexes of the scopes that were written to up to date."""
        for scope in self._touched:
            await self._edit.write_index(scope)

    async def _write(self, root: Root, packed: Packed, place: "_Place") -> None:
        if self._dry_run:
            vet(packed.data, root.scope, place.relative)
            self._planned[note_id(root.scope, place.relative)] = packed.data
            return
        self._touched[root.scope] = None
        await self._edit.restore(
            root.scope,
            place.relative,
            packed.data,
            replaces=place.replaces,
            modified=packed.modified,
            index=False,
        )

    def _place(self, root: Root, packed: Packed) -> "_Place":
        """Say where `packed` goes and what that is.

        Raises:
            MemoryWriteError: its path leaves the scope, or no name is free.
            NoteError: something that is no file of memory stands there.
        """
        for number in range(1, _MOST_NAMESAKES):
            relative = packed.relative if number == 1 else _numbered(packed.relative, number)
            standing = self._standing(root, relative)
            if standing is None:
                return _Place(relative, Fate.CREATED if number == 1 else Fate.RENAMED)
            if standing == packed.data:
                return _Place(relative, Fate.UNCHANGED)
            match self._on_conflict:
                case OnConflict.SKIP:
                    return _Place(relative, Fate.SKIPPED, why="another note stands there")
                case OnConflict.REPLACE:
                    return _Place(relative, Fate.REPLACED, replaces=version_of(standing))
                case OnConflict.RENAME:
                    continue
        raise MemoryWriteError(path=packed.relative, problem="too many notes of this name", remedy="rename the file")

    def _standing(self, root: Root, relative: str) -> bytes | None:
        confined(root.path, relative)
        planned = self._planned.get(note_id(root.scope, relative))
        if planned is not None:
            return planned
        try:
            data, _ = read_bytes(root.path, relative)
        except FileNotFoundError:
            return None
        return data


@dataclass(frozen=True, slots=True)
class _Place:
    relative: str
    fate: Fate
    replaces: str | None = None
    why: str | None = None

    def told(self, packed: Packed, root: Root) -> Imported:
        return Imported(name=packed.name, fate=self.fate, note=note_id(root.scope, self.relative), why=self.why)


def _numbered(relative: str, number: int) -> str:
    stem, dot, suffix = relative.rpartition(".")
    return f"{stem}-{number}{dot}{suffix}"
