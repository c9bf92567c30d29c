"""The workspace: the one folder that the tools may see, and how they read in it.

A path is resolved, symlinks and `..` included, before anything is opened, and must then lie inside the root. Only
regular files are read: opening a FIFO or a device would wait for ever. (Somebody who swaps folders for symlinks between
the check and the opening is on this machine already; that is not guarded against.)
"""

import codecs
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from recallscope.runtime.errors import ToolError

__all__ = ["IGNORED_FOLDERS", "FileText", "Workspace", "shown"]

IGNORED_FOLDERS = frozenset({".git", ".hg", ".svn", ".venv", "__pycache__", "node_modules"})
"""Folders that a walk leaves out below the folder where it starts."""

READ_LIMIT = 16 * 1024 * 1024
SNIFFED = 8192
NOTHING_THERE = "there is nothing at {path!r} in the workspace; look with list_directory or glob"


@dataclass(frozen=True, slots=True)
class FileText:
    """The text of a file: how it was encoded, how many bytes it has, and whether the text is only its beginning."""

    text: str
    encoding: str
    size: int
    cut: bool


class Workspace:
    """A folder and everything below it. All methods block: call them in a thread."""

    def __init__(self, root: Path) -> None:
        self.root = Path(os.path.realpath(root))

    def resolve(self, path: str) -> Path:
        """Return the real path of `path`, which is relative to the root or absolute inside of it.

        Raises:
            ToolError: it leads outside of the workspace, there is nothing, or it cannot be a path.
        """
        try:
            real = Path(os.path.realpath(self.root / path))
            real.lstat()
        except ValueError:
            raise ToolError(f"{path!r} cannot be a path; use characters that file names have") from None
        except OSError as error:
            if not self._holds(Path(os.path.realpath(self.root / path))):
                raise self._outside(path) from None
            if isinstance(error, FileNotFoundError | NotADirectoryError):
                raise ToolError(NOTHING_THERE.format(path=path)) from None
            raise ToolError(f"{path!r} cannot be looked at: {error.strerror}") from None
        if not self._holds(real):
            raise self._outside(path)
        return real

    def relative(self, path: Path) -> str:
        """Return how the model may name `path`, one that is inside."""
        return shown(path.relative_to(self.root).as_posix())

    def read(self, path: str, *, limit: int = READ_LIMIT) -> FileText:
        """Return the text of the file at `path`, at most its first `limit` bytes.

        UTF-8 and UTF-16 with a byte order mark, UTF-8 without one; what is neither is read as Latin-1.

        Raises:
            ToolError: as `resolve`; it is no regular file, or it is binary.
        """
        return read_text(self.resolve(path), shown(path), limit=limit)

    def walk(self, start: Path, stop: Callable[[], bool]) -> Iterator[Path]:
        """Yield the files below the folder `start` in order of their names, until `stop` says so.

        Symlinks to files are given only if they lead to a file inside; symlinks to folders are not followed.
        `IGNORED_FOLDERS` and folders that cannot be read are left out.
        """
        for folder, folders, names in os.walk(start):
            if stop():
                return
            folders[:] = sorted(name for name in folders if name not in IGNORED_FOLDERS)
            for name in sorted(names):
                if stop():
                    return
                path = Path(folder, name)
                if not path.is_symlink() or self._holds(Path(os.path.realpath(path))):
                    yield path

    def _holds(self, real: Path) -> bool:
        return real.is_relative_to(self.root)

    def _outside(self, path: str) -> ToolError:
        return ToolError(
            f"{path!r} leads outside of the workspace; only what is below {shown(str(self.root))} is allowed"
        )


def read_text(real: Path, name: str, *, limit: int) -> FileText:
    """Return the text of the regular file `real`, which errors call `name`: see `Workspace.read`."""
    # O_NONBLOCK: a FIFO that took the place of the file must not hold the thread.
    handle = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode):
            raise ToolError(f"{name!r} is {_kind(facts.st_mode)}, not a file")
        with os.fdopen(handle, "rb", closefd=False) as file:
            data = file.read(limit + 1)
    finally:
        os.close(handle)
    cut = len(data) > limit
    text, encoding = _decoded(data[:limit], name, final=not cut)
    return FileText(text, encoding, facts.st_size, cut)


def _decoded(data: bytes, name: str, *, final: bool) -> tuple[str, str]:
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return codecs.getincrementaldecoder("utf-16")("replace").decode(data, final), "UTF-16"
    if b"\0" in data[:SNIFFED]:
        raise ToolError(f"{name!r} is a binary file and cannot be shown")
    try:
        return codecs.getincrementaldecoder("utf-8-sig")().decode(data, final), "UTF-8"
    except UnicodeDecodeError:
        return data.decode("latin-1"), "Latin-1"


def _kind(mode: int) -> str:
    kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket"}
    return kinds.get(stat.S_IFMT(mode), "a device")


def shown(name: str) -> str:
    """Return a file name as text of one line: control characters and undecodable bytes become escapes."""
    text = name.encode("utf-8", "backslashreplace").decode("utf-8")
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)
