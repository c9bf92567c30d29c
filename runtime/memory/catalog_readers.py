"""A pool of connections that only read the catalog, and what tells one file at its path from the next."""

import contextlib
import os
import sqlite3
import threading
from collections.abc import Generator, Iterable
from pathlib import Path

from recallscope.runtime.errors import NoteError, StoreUnavailableError
from recallscope.runtime.memory.catalog_schema import SCHEMA

__all__ = ["UNREADABLE", "Identity", "Reader", "Readers", "files_of", "identity_of"]

_READER_PATIENCE = 0.05

UNREADABLE = (ValueError, TypeError, NoteError)
"""What comes of rows with other values than were written: text that is no UTF-8, no JSON, no number."""

Identity = tuple[int | None, ...]
"""Which files stand at a catalog's path, its log and the log's index: the log of another file would be poison."""


def files_of(path: Path) -> tuple[Path, Path, Path]:
    """Return the catalog's file, its log and the log's index."""
    return path, Path(f"{path}-wal"), Path(f"{path}-shm")


def identity_of(path: Path) -> Identity:
    """Say which files stand there now."""
    return _inode(f"{path}"), _inode(f"{path}-wal"), _inode(f"{path}-shm")


def _inode(path: str) -> int | None:
    try:
        return os.stat(path).st_ino  # noqa: PTH116 - every use of a catalog asks; path objects made it three times as dear
    except OSError:
        return None


class Reader(sqlite3.Connection):
    """A read-only connection that knows which file it reads; no two files are of the same generation."""

    identity: Identity = ()
    generation: int = 0
    _known: frozenset[tuple[int, str]] = frozenset()

    def verify(self, roots: Iterable[tuple[int, Path]]) -> None:
        """Make sure that each number stands for that root in this very file: elsewhere it may be another project.

        Raises:
            sqlite3.DatabaseError: it does not; the file has been replaced since the numbers were read, or is broken.
        """
        for number, path in roots:
            if (number, str(path)) in self._known:
                continue
            row = self.execute("SELECT path FROM roots WHERE id = ?", (number,)).fetchone()
            if row is None or row[0] != str(path):
                raise sqlite3.DatabaseError(f"number {number} does not stand for {path} in it")
            self._known = self._known | {(number, str(path))}


class Readers:
    """A pool of read-only connections; each is used by one thread at a time and none outlives `close`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._idle: list[Reader] = []
        self._busy: set[Reader] = set()
        self._closed = False

    @contextlib.contextmanager
    def borrow(self) -> Generator[Reader, None, None]:
        """Lend a connection to the calling thread.

        Raises:
            StoreUnavailableError: there is no catalog, it cannot be read, or the pool is closed.
        """
        identity = identity_of(self._path)
        connection = self._take(identity) or self._connect(identity)
        with self._lock:
            self._busy.add(connection)
        usable = False
        try:
            yield connection
            usable = True
        except (sqlite3.Error, *UNREADABLE) as error:
            raise StoreUnavailableError(f"the memory catalog {self._path} cannot be read: {error}") from error
        finally:
            with self._lock:
                self._busy.discard(connection)
                keep = usable and not self._closed
                if keep:
                    self._idle.append(connection)
            if not keep:
                connection.close()

    def close(self) -> None:
        """Close what is idle, interrupt what is busy; a busy connection is closed by its thread."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            for connection in self._busy:
                connection.interrupt()
        for connection in idle:
            connection.close()

    def _take(self, identity: Identity) -> Reader | None:
        with self._lock:
            while self._idle:
                connection = self._idle.pop()
                if connection.identity == identity:
                    return connection
                connection.close()
        return None

    def _connect(self, identity: Identity) -> Reader:
        if self._closed:
            raise StoreUnavailableError("the memory is closed")
        connection = None
        try:
            uri = f"{self._path.absolute().as_uri()}?mode=ro"
            connection = sqlite3.connect(
                uri,
                uri=True,
                timeout=_READER_PATIENCE,
                isolation_level=None,
                check_same_thread=False,
                factory=Reader,
            )
            connection.identity = identity
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            connection.generation = connection.execute("PRAGMA application_id").fetchone()[0]
        except sqlite3.Error as error:
            if connection is not None:
                connection.close()
            raise StoreUnavailableError(f"the memory catalog {self._path} cannot be read: {error}") from error
        if version != SCHEMA:
            connection.close()
            raise StoreUnavailableError(f"the memory catalog {self._path} has version {version}, not {SCHEMA}")
        return connection
