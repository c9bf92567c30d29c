"""Archives of notes as they come from anywhere: nothing in one can reach outside, and none can grow without end.

Nothing is ever unpacked to the file system. The archive is read twice: once to see that it is whole and within the
limits, before anything is written, and once for its notes.
"""

import gzip
import tarfile
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from recallscope.runtime.errors import TransferError
from recallscope.runtime.memory.note import MAX_NOTE_BYTES

__all__ = ["MAX_MEMBERS", "MAX_UNPACKED_BYTES", "archive_members", "opened_archive", "read_member"]

MAX_UNPACKED_BYTES = 1 << 30
"""What an archive may unpack to."""

MAX_MEMBERS = 200_000

MAX_PIECE_BYTES = 64 << 20
"""The most that is ever held of an archive at once, its own headers included."""

_BLOCK_BYTES = 1 << 20

_REMEDY = "make the archive anew, or unpack it yourself, look at it, and import the folder"


class _Bounded:
    """The unpacked bytes of an archive, none beyond the limit and none in a piece that fills the memory."""

    def __init__(self, stream: gzip.GzipFile, name: str, limit: int) -> None:
        self._stream = stream
        self._name = name
        self._limit = limit

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= MAX_PIECE_BYTES:
            raise TransferError(where=self._name, problem="a header of it is larger than any note", remedy=_REMEDY)
        data = self._stream.read(size)
        self._check(self._stream.tell())
        return data

    def seek(self, position: int, whence: int = 0) -> int:
        if whence == 0:
            self._check(position)
        return self._stream.seek(position, whence)

    def tell(self) -> int:
        return self._stream.tell()

    def _check(self, position: int) -> None:
        if position > self._limit:
            raise TransferError(
                where=self._name, problem=f"it unpacks to more than {self._limit} bytes", remedy=_REMEDY
            )


@contextmanager
def opened_archive(path: Path, *, limit: int = MAX_UNPACKED_BYTES) -> Generator[tarfile.TarFile]:
    """Open a `.tar.gz` for reading its members in order; whatever it breaks on is one error.

    Raises:
        TransferError: it cannot be opened, is no such archive, is damaged or cut off, or passes a limit.
    """
    try:
        with gzip.open(path, "rb") as stream:
            bounded = cast("IO[bytes]", _Bounded(stream, path.name, limit))
            with tarfile.open(fileobj=bounded, mode="r:", errors="surrogateescape") as archive:
                yield archive
            while bounded.read(_BLOCK_BYTES):  # to the end, where the checksum of the whole stands
                pass
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error, ValueError, RecursionError) as error:
        problem = f"it is no .tar.gz archive, or a damaged one ({str(error) or type(error).__name__})"
        raise TransferError(where=path.name, problem=problem, remedy=_REMEDY) from None
    except OSError as error:
        raise TransferError(
            where=path.name, problem=f"it cannot be read: {error.strerror or error}", remedy="name a readable file"
        ) from None


def archive_members(archive: tarfile.TarFile, where: str) -> Iterator[tuple[tarfile.TarInfo, str, str | None]]:
    """Yield each member with its name and why it is refused (None: it is not); folders are passed over.

    `where` names the archive in errors.

    Raises:
        TransferError: there are too many members, or they do not stand one behind the other.
    """
    last = -1
    count = 0
    while (member := archive.next()) is not None:
        archive.members = []  # type: ignore[attr-defined] # its stub omits the list of every header so far
        count += 1
        if member.offset_data <= last or member.size < 0:
            raise TransferError(where=where, problem="its members overlap", remedy=_REMEDY)
        last = member.offset_data
        if count > MAX_MEMBERS:
            raise TransferError(where=where, problem=f"it has more than {MAX_MEMBERS} members", remedy=_REMEDY)
        name = member.name.removeprefix("./")
        if not member.isdir() or _unsafe(name):
            yield (
                member,
                name.encode(errors="surrogateescape").decode(errors="backslashreplace"),
                _refusal(name, member),
            )


def read_member(archive: tarfile.TarFile, member: tarfile.TarInfo, most: int = MAX_NOTE_BYTES) -> bytes:
    """Return the bytes of a regular member, `most` of them at most."""
    stream = archive.extractfile(member)
    if stream is None:
        return b""
    with stream:
        return stream.read(most)


def _refusal(name: str, member: tarfile.TarInfo) -> str | None:
    if _unsafe(name):
        return "its name leads out of the archive"
    if any(ord(character) < ord(" ") or "\x7f" <= character <= "\x9f" for character in name):
        return "its name holds control characters"
    if any("\ud800" <= character <= "\udfff" for character in name):
        return "its name is not UTF-8"
    if member.issym() or member.islnk():
        return "it is a link"
    if not member.isreg() or member.issparse():
        return "it is no regular file"
    return None


def _unsafe(name: str) -> bool:
    return name.startswith("/") or "\\" in name or "\0" in name or ".." in name.split("/")
