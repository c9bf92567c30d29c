"""Notes on their way in: what an archive or a folder holds, in one form, and the manifest that an export ends with."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recallscope.runtime.errors import NoteError, TransferError
from recallscope.runtime.memory.archive import MAX_PIECE_BYTES, archive_members, opened_archive, read_member
from recallscope.runtime.memory.note import MAX_NOTE_BYTES, version_of
from recallscope.runtime.memory.scopes import INDEX_NAME, Skipped, list_notes
from recallscope.runtime.memory.store import read_bytes

__all__ = ["MANIFEST", "Listed", "Packed", "manifest", "packed_notes"]

MANIFEST = "manifest.jsonl"
"""The list of what an export holds: a line that names the format, then one line per note."""

FORMAT = "recallscope-notes"
FORMAT_VERSION = 1

_YEAR_9999 = 253_370_764_800.0  # where the calendar of notes ends


@dataclass(frozen=True, slots=True)
class Packed:
    """A note on its way in: scope and time of the file as the source says them (None: it says none), path, bytes."""

    name: str
    scope: str | None
    relative: str
    data: bytes
    modified: float | None


@dataclass(frozen=True, slots=True)
class Listed:
    """A line of the manifest: name, size, the version as this program counts it, and a hash that anybody can check."""

    name: str
    size: int
    version: str
    sha256: str

    @classmethod
    def of(cls, name: str, data: bytes) -> "Listed":
        """Return the line for a file of this name with these bytes."""
        return cls(name, len(data), version_of(data), _sha256(data))


def manifest(lines: Iterable[Listed]) -> bytes:
    """Return the file that lists what an export holds."""
    notes = [{"name": line.name, "bytes": line.size, "version": line.version, "sha256": line.sha256} for line in lines]
    head = {"format": FORMAT, "version": FORMAT_VERSION, "notes": len(notes)}
    return "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in (head, *notes)).encode()


def packed_notes(source: Path) -> Iterator[Packed | Skipped]:
    """Yield the notes of an archive or a folder, and what of it is refused, with the reasons. Runs in a thread.

    Raises:
        TransferError: as a whole it is not usable; an archive is read through before its first note is handed out.
    """
    return _from_folder(source) if source.is_dir() else _from_archive(source)


def _from_folder(folder: Path) -> Iterator[Packed | Skipped]:
    """Yield the notes of a folder as they are now: people may have changed them since the export."""
    root = folder.resolve()
    try:
        listing = list_notes(root)
    except OSError as error:
        raise TransferError(
            where=str(folder), problem=f"it cannot be listed: {error.strerror}", remedy="check its permissions"
        ) from error
    try:
        manifest, _ = read_bytes(root, MANIFEST)
        scoped = _is_manifest(manifest.partition(b"\n")[0])
    except (FileNotFoundError, NoteError):
        scoped = (root / MANIFEST).is_file()  # larger than a note: it is ours all the same
    for skip in listing.skipped:
        yield Skipped(skip.path, skip.why)
    for relative in sorted(listing.files):
        try:
            data, file = read_bytes(root, relative)
        except FileNotFoundError:
            continue
        except NoteError as error:
            yield Skipped(relative, error.problem)
            continue
        yield _packed(relative, data, file.mtime_ns / 1e9, scoped=scoped)


def _from_archive(path: Path) -> Iterator[Packed | Skipped]:
    hashes = _inspected(path)
    with opened_archive(path) as archive:
        for member, name, refusal in archive_members(archive, path.name):
            listed = None if hashes is None else hashes.pop(name, "")
            if refusal is not None:
                yield Skipped(name, refusal)
            elif _is_note(name):
                if member.size > MAX_NOTE_BYTES:
                    why = f"it has {member.size} bytes, at most {MAX_NOTE_BYTES} are read"
                    yield Skipped(name, why)
                    continue
                data = read_member(archive, member)
                if listed is not None and listed != _sha256(data):
                    why = "it is not what the manifest says" if listed else "the manifest does not name it"
                    yield Skipped(name, why)
                    continue
                yield _packed(name, data, float(member.mtime), scoped=hashes is not None)
    for name in sorted(hashes or {}):
        yield Skipped(name, "the manifest names it and it is not there")


def _inspected(path: Path) -> dict[str, str] | None:
    """Read an archive through, and return the hashes of its manifest by name; None where it has none."""
    hashes = None
    with opened_archive(path) as archive:
        for member, name, refusal in archive_members(archive, path.name):
            if name == MANIFEST and refusal is None:
                data = read_member(archive, member, MAX_PIECE_BYTES)
                if _is_manifest(data.partition(b"\n")[0]):
                    hashes = dict(_hash_line(line) for line in data.splitlines()[1:])
    return hashes


def _is_manifest(first: bytes) -> bool:
    """Say whether a manifest begins so.

    Raises:
        TransferError: it is ours and of a later version.
    """
    head = _json(first)
    if head.get("format") != FORMAT:
        return False
    if head.get("version") != FORMAT_VERSION:
        raise TransferError(
            where=MANIFEST,
            problem=f"it has version {head.get('version')!r}, this program reads version {FORMAT_VERSION}",
            remedy="import it with the program that wrote it, or a newer one",
        )
    return True


def _hash_line(line: bytes) -> tuple[str, str]:
    fields = _json(line)
    name, sha256 = fields.get("name"), fields.get("sha256")
    if not isinstance(name, str) or not isinstance(sha256, str):
        raise TransferError(where=MANIFEST, problem="a line of it is broken", remedy="make the archive anew")
    return name, sha256


def _json(line: bytes) -> Mapping[str, Any]:
    try:
        value: object = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return {str(key): field for key, field in value.items()} if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - JSON


def _packed(name: str, data: bytes, modified: float, *, scoped: bool) -> Packed:
    scope, slash, relative = name.partition("/")
    known = modified if 0 <= modified < _YEAR_9999 else None
    if not scoped or not slash:
        return Packed(name, None, name, data, known)
    return Packed(name, scope, relative, data, known)


def _is_note(name: str) -> bool:
    """Say whether a file of this name would be read as a note in a folder."""
    parts = name.split("/")
    return name.lower().endswith(".md") and parts[-1] != INDEX_NAME and not any(part.startswith(".") for part in parts)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
