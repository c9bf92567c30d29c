"""The catalog's file: opened, checked, rebuilt when it is of another version or broken, read by a pool of connections.

The catalog is derived, so nothing is lost when it is thrown away. Two processes may share it (WAL); one that finds it
replaced by the other opens it anew. Where it cannot be opened or read, a temporary file takes its place until the end
of the process.
"""

import contextlib
import fcntl
import logging
import math
import os
import secrets
import sqlite3
import tempfile
import threading
import time
from collections.abc import Generator
from pathlib import Path

from recallscope.runtime.errors import StoreUnavailableError
from recallscope.runtime.memory.catalog_readers import UNREADABLE, Identity, Readers, files_of, identity_of
from recallscope.runtime.memory.catalog_schema import SCHEMA, TABLES

__all__ = ["OPENING_PATIENCE", "WRITER_PATIENCE", "CatalogFile", "file_lock"]

_log = logging.getLogger(__name__)

WRITER_PATIENCE = 10.0
OPENING_PATIENCE = 2.0
"""Seconds for another process to let go of the file; then it is as good as unusable, and the start goes on without."""

_BETWEEN_REBUILDS = 60.0
"""Seconds: a file found broken again so soon is thrown away only if a check of all of it says so as well."""

_FORGOTTEN_AFTER = 30 * 86_400
"""Seconds since the last opening after which the catalog of another version is removed."""

_WORLD = frozenset(
    {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}
    | {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_PERM, sqlite3.SQLITE_INTERRUPT}
)
"""Errors that say nothing about the file's content: throwing it away would not help."""

_BROKEN = frozenset(
    {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_FORMAT}
    | {sqlite3.SQLITE_CONSTRAINT}  # rows that are not there where others say so: our writes break no rule themselves
)


@contextlib.contextmanager
def file_lock(path: Path, *, patience: float) -> Generator[None, None, None]:
    """Hold a lock between processes for the length of the block; `path` is made if it is not there.

    Raises:
        OSError: the lock's file cannot be made; `TimeoutError` if another process holds it for `patience` seconds.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _lock_within(descriptor, patience)
        yield
    finally:
        os.close(descriptor)


def _lock_within(descriptor: int, patience: float) -> None:
    until = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                raise TimeoutError(f"another process has been opening it for {patience} s") from None
            time.sleep(0.01)
        else:
            return


class CatalogFile:
    """The file under a catalog: one writing connection behind a lock, and a pool of readers.

    `patience`: seconds that a write waits for those of other processes; `opening_patience`: the same for the opening.
    """

    def __init__(
        self, path: Path, *, patience: float = WRITER_PATIENCE, opening_patience: float = OPENING_PATIENCE
    ) -> None:
        self.path = path
        self._patience = patience
        self._opening_patience = opening_patience
        self.readers = Readers(path)
        self._lock = threading.Lock()
        self._writer: sqlite3.Connection | None = None
        self._identity: Identity = ()
        self._doubt: BaseException | None = None
        self._rebuilt_at = -math.inf
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    @property
    def temporary(self) -> bool:
        """Say whether a temporary file took the place of the one that was asked for."""
        return self._folder is not None

    @property
    def doubtful(self) -> bool:
        """Say whether something was found wrong with the file since it was opened."""
        return self._doubt is not None

    def open(self) -> bool:
        """Open or make the file, again if it was replaced or found broken; say whether an old one was thrown away.

        Raises:
            StoreUnavailableError: it can be neither opened nor made, or another process holds it.
        """
        with self._lock:
            try:
                if self._is_sound():
                    return False
                self._close_writer()
                broken = _is_broken(self._doubt) and time.monotonic() > self._rebuilt_at + _BETWEEN_REBUILDS
                problem = f"it is broken ({self._doubt})" if broken else None
                self._writer, rebuilt = _open_for_writing(
                    self.path, problem, thorough=self._doubt is not None, patience=self._opening_patience
                )
                self._writer.execute(f"PRAGMA busy_timeout = {int(self._patience * 1_000)}")
            except (OSError, sqlite3.Error) as error:
                raise StoreUnavailableError(f"the memory catalog {self.path} cannot be opened: {error}") from error
            self._identity, self._doubt = identity_of(self.path), None
            if rebuilt:
                self._rebuilt_at = time.monotonic()
            return rebuilt

    def open_or_bypass(self) -> bool:
        """Open the file as `open` does, or for good a temporary one in its place, with a warning.

        Raises:
            StoreUnavailableError: no temporary file can be made either.
        """
        try:
            return self.open()
        except StoreUnavailableError as error:
            if self.temporary:
                raise
            self._bypass(error)
            return self.open()

    def close(self) -> None:
        """Close every connection; a temporary file is removed."""
        self.readers.close()
        with self._lock:
            self._close_writer()
            folder, self._folder = self._folder, None
        if folder is not None:
            folder.cleanup()

    @contextlib.contextmanager
    def writing(self) -> Generator[sqlite3.Connection, None, None]:
        """Lend the writing connection inside one transaction; a broken file is marked to be rebuilt at the next `open`.

        Raises:
            StoreUnavailableError: the catalog cannot be written.
        """
        with self._lock:
            writer = self._writer
            if writer is None:
                raise StoreUnavailableError(f"the memory catalog {self.path} is not open")
            try:
                writer.execute("BEGIN IMMEDIATE")
                try:
                    yield writer
                    writer.execute("COMMIT")
                except BaseException:
                    if writer.in_transaction:  # a full disk ends it by itself
                        writer.execute("ROLLBACK")
                    raise
            except sqlite3.Error as error:
                self.doubt(error)
                raise StoreUnavailableError(f"the memory catalog {self.path} cannot be written: {error}") from error

    def doubt(self, error: BaseException | None) -> None:
        """Take note of an error that says, or may say, that the content is broken: the next `open` sees to it.

        An error from a file that has been replaced since says nothing of the new one.
        """
        if identity_of(self.path) != self._identity:
            return
        if isinstance(error, (sqlite3.DatabaseError, *UNREADABLE)) and not _is_of_the_world(error):
            self._doubt = error

    def _is_sound(self) -> bool:
        if self._writer is None or self._doubt is not None or identity_of(self.path) != self._identity:
            return False
        try:
            return _problem(self._writer) is None
        except (sqlite3.DatabaseError, *UNREADABLE) as error:
            if _is_of_the_world(error):
                raise
            self._doubt = error
            return False

    def _bypass(self, error: StoreUnavailableError) -> None:
        try:
            folder = tempfile.TemporaryDirectory(prefix="recallscope-", ignore_cleanup_errors=True)
        except OSError as unusable:
            raise StoreUnavailableError(f"{error}; a temporary one cannot be made: {unusable.strerror}") from error
        _log.warning("%s; a temporary catalog is used", error)
        readers = self.readers
        with self._lock:
            self._close_writer()
            self._folder, self._doubt = folder, None
            self.path = Path(folder.name) / "catalog.sqlite3"
            self.readers = Readers(self.path)
        readers.close()

    def _close_writer(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def _open_for_writing(
    path: Path, problem: str | None, *, thorough: bool, patience: float
) -> tuple[sqlite3.Connection, bool]:
    """Open the catalog and say whether an old one had to be thrown away; `problem` is what is known to be wrong."""
    with file_lock(path.with_suffix(".lock"), patience=patience):
        existed = path.exists()
        connection = None
        if existed and problem is None:
            connection, problem = _try(path, thorough=thorough, patience=patience)
        if connection is None:
            if existed and problem:
                _log.warning("the memory catalog %s is rebuilt from the notes: %s", path, problem)
            for file in files_of(path):  # a log of another file would be taken for this one's
                file.unlink(missing_ok=True)
            connection = _create(path, patience)
        _forget_old_versions(path)
        return connection, existed and bool(problem)


def _try(path: Path, *, thorough: bool, patience: float) -> tuple[sqlite3.Connection | None, str | None]:
    """Open a catalog that is there, or say why it must be made anew: the empty string for an empty file."""
    connection = None
    try:
        connection = _connect(path, patience)
        problem = _problem(connection, thorough=thorough)
        if problem is None and _tables_in(connection) != _tables():
            problem = "its tables are not those of this program"
    except (sqlite3.DatabaseError, *UNREADABLE) as error:
        if connection is not None:
            connection.close()
        if _is_of_the_world(error):
            raise
        return None, f"it is broken ({error})"
    if problem is None:
        return connection, None
    connection.close()
    return None, problem


def _create(path: Path, patience: float) -> sqlite3.Connection:
    connection = _connect(path, patience)
    try:
        generation = secrets.randbelow(2**31 - 1) + 1
        pragmas = f"PRAGMA user_version = {SCHEMA}; PRAGMA application_id = {generation};"
        connection.executescript(f"BEGIN; {TABLES} {pragmas} COMMIT;")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _connect(path: Path, patience: float) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=patience, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _problem(connection: sqlite3.Connection, *, thorough: bool = False) -> str | None:
    """Return None for a catalog of this version, the empty string for an empty file, else what is wrong."""
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if version == 0 and tables == 0:
        return ""
    if version != SCHEMA:
        return f"it has version {version}, this program works with version {SCHEMA}"
    connection.execute("SELECT count(*) FROM roots").fetchone()
    connection.execute("SELECT rowid FROM words WHERE words MATCH '\"x\"' LIMIT 1").fetchone()
    if thorough:
        answer = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
        connection.execute("INSERT INTO words (words) VALUES ('integrity-check')")
        return None if answer == "ok" else f"it is broken ({answer})"
    return None


def _tables() -> list[tuple[str, str | None]]:
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(TABLES)
        return _tables_in(connection)


def _tables_in(connection: sqlite3.Connection) -> list[tuple[str, str | None]]:
    return connection.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()


def _is_of_the_world(error: BaseException) -> bool:
    return _code(error) in _WORLD


def _is_broken(error: BaseException | None) -> bool:
    return error is not None and _code(error) in _BROKEN


def _code(error: BaseException) -> int:
    """Return the primary code; an error without one is about a value: text that is no UTF-8, a row that is no note."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF


def _forget_old_versions(path: Path) -> None:
    """Mark this catalog as used, and remove those of other versions that nobody has opened for long."""
    base = path.name.partition("-")[0]
    if base == path.name:
        return
    with contextlib.suppress(OSError):
        os.utime(path)
        for other in path.parent.glob(f"{base}-*.sqlite3"):
            if other != path and other.stat().st_mtime < time.time() - _FORGOTTEN_AFTER:
                for file in (*files_of(other), other.with_suffix(".lock")):
                    file.unlink(missing_ok=True)
