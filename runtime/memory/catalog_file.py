"""The catalog's file: opened, checked, rebuilt when it is of another version or broken, read by a pool of connections.

The catalog is derived, so nothing is lost when it is thrown away. Two processes may share it (WAL); one that finds it
replaced by the other opens it anew.
"""

import contextlib
import fcntl
import hashlib
import logging
import os
import sqlite3
import threading
from collections.abc import Generator
from pathlib import Path

from recallscope.runtime.errors import StoreUnavailableError
from recallscope.runtime.memory.tokens import TOKENS_VERSION

__all__ = ["SCHEMA", "Reader", "Readers", "file_lock", "inode_of", "open_for_writing"]

_log = logging.getLogger(__name__)

_WRITER_PATIENCE = 10.0
_READER_PATIENCE = 0.05

_WORLD = frozenset(
    {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}
    | {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_PERM, sqlite3.SQLITE_INTERRUPT}
)
"""Errors that say nothing about the file's content: throwing it away would not help."""

_TABLES = """
CREATE TABLE roots (id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, notes INTEGER NOT NULL DEFAULT 0);
CREATE TABLE notes (
    id INTEGER PRIMARY KEY AUTOINCREMENT, root INTEGER NOT NULL, relative TEXT NOT NULL,
    mtime_ns INTEGER NOT NULL, size INTEGER NOT NULL, inode INTEGER NOT NULL, racy INTEGER NOT NULL,
    version TEXT NOT NULL, title TEXT NOT NULL, description TEXT NOT NULL, type TEXT NOT NULL,
    keywords TEXT NOT NULL, usage_scenarios TEXT NOT NULL, pinned INTEGER NOT NULL,
    created REAL, updated REAL NOT NULL, superseded_by TEXT, source TEXT, evidence TEXT, extra TEXT,
    usage_note INTEGER NOT NULL, head TEXT NOT NULL, UNIQUE (root, relative)
);
CREATE INDEX notes_recent ON notes (root, updated);
CREATE TABLE bodies (id INTEGER PRIMARY KEY, body TEXT NOT NULL);
CREATE TABLE skipped (
    root INTEGER NOT NULL, relative TEXT NOT NULL, mtime_ns INTEGER NOT NULL, size INTEGER NOT NULL,
    inode INTEGER NOT NULL, why TEXT NOT NULL, PRIMARY KEY (root, relative)
) WITHOUT ROWID;
CREATE TABLE terms (
    root INTEGER NOT NULL, term TEXT NOT NULL, documents INTEGER NOT NULL,
    t INTEGER NOT NULL, d INTEGER NOT NULL, b INTEGER NOT NULL, PRIMARY KEY (root, term)
) WITHOUT ROWID;
CREATE VIRTUAL TABLE words USING fts5 (
    tokens, content='', detail=none, columnsize=0,
    tokenize="unicode61 remove_diacritics 0 categories 'L* M* N* P* S* C*'"
);
"""

SCHEMA = int.from_bytes(hashlib.blake2b(f"{_TABLES} {TOKENS_VERSION}".encode(), digest_size=4).digest()) >> 1
"""Stands for the tables and for how words are cut: a file with another `user_version` is rebuilt."""


@contextlib.contextmanager
def file_lock(path: Path) -> Generator[None, None, None]:
    """Hold a lock between processes for the length of the block; `path` is made if it is not there."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def inode_of(path: Path) -> int | None:
    """Return which file stands at `path`, None if there is none."""
    try:
        return path.stat().st_ino
    except OSError:
        return None


def open_for_writing(path: Path) -> tuple[sqlite3.Connection, bool]:
    """Open the catalog and say whether an old one had to be thrown away.

    Raises:
        StoreUnavailableError: the file cannot be opened or made, or another process holds it.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with file_lock(path.with_suffix(".lock")):
            return _open(path)
    except (OSError, sqlite3.Error) as error:
        raise StoreUnavailableError(f"the memory catalog {path} cannot be opened: {error}") from error


def _open(path: Path) -> tuple[sqlite3.Connection, bool]:
    existed = path.exists()
    try:
        connection = _connect(path)
        problem = _problem(connection)
        if problem is None:
            return connection, False
        connection.close()
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF in _WORLD:
            raise
        problem = f"it is broken ({error})"
    if existed and problem != "":
        _log.warning("the memory catalog %s is rebuilt from the notes: %s", path, problem)
    for name in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
        name.unlink(missing_ok=True)
    connection = _connect(path)
    connection.executescript(f"BEGIN; {_TABLES} PRAGMA user_version = {SCHEMA};")
    connection.execute("COMMIT")
    return connection, existed and problem != ""


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_WRITER_PATIENCE, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _problem(connection: sqlite3.Connection) -> str | None:
    """Return None for a catalog of this version, the empty string for an empty file, else what is wrong."""
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if version == 0 and tables == 0:
        return ""
    if version != SCHEMA:
        return f"it has version {version}, this program works with version {SCHEMA}"
    connection.execute("SELECT count(*) FROM roots").fetchone()
    connection.execute("SELECT rowid FROM words WHERE words MATCH '\"x\"' LIMIT 1").fetchone()
    return None


class Reader(sqlite3.Connection):
    """A read-only connection that knows which file it reads."""

    inode: int | None = None


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
        inode = inode_of(self._path)
        connection = self._take(inode) or self._connect(inode)
        with self._lock:
            self._busy.add(connection)
        usable = False
        try:
            yield connection
            usable = True
        except sqlite3.Error as error:
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

    def _take(self, inode: int | None) -> Reader | None:
        with self._lock:
            while self._idle:
                connection = self._idle.pop()
                if connection.inode == inode:
                    return connection
                connection.close()
        return None

    def _connect(self, inode: int | None) -> Reader:
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
            connection.inode = inode
            version = connection.execute("PRAGMA user_version").fetchone()[0]
        except sqlite3.Error as error:
            if connection is not None:
                connection.close()
            raise StoreUnavailableError(f"the memory catalog {self._path} cannot be read: {error}") from error
        if version != SCHEMA:
            connection.close()
            raise StoreUnavailableError(f"the memory catalog {self._path} has version {version}, not {SCHEMA}")
        return connection
