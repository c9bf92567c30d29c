"""What a write to memory is refused for, in the words of its error."""

from recallscope.runtime.errors import MemoryWriteError, NoteError

__all__ = ["changed", "refused", "taken", "unusable"]


def unusable(relative: str, error: FileNotFoundError | NoteError) -> MemoryWriteError:
    """Say that the file of a note is gone, or is none that can be read."""
    if isinstance(error, NoteError):
        return MemoryWriteError(path=relative, problem=error.problem, remedy="repair the file by hand")
    return MemoryWriteError(
        path=relative, problem="the file is gone", remedy="create the note again if it is still true"
    )


def changed(relative: str) -> MemoryWriteError:
    """Say that a file is another version than the one that the caller read."""
    return MemoryWriteError(
        path=relative, problem="the file was changed since it was read", remedy="read it again, then write"
    )


def taken(relative: str) -> MemoryWriteError:
    """Say that a new note would take the place of a file."""
    return MemoryWriteError(
        path=relative, problem="a file of this name exists", remedy="update that note or choose another name"
    )


def refused(relative: str, error: Exception) -> MemoryWriteError:
    """Say what the file system refused."""
    problem = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return MemoryWriteError(
        path=relative, problem=f"it could not be written: {problem}", remedy="check the folder's permissions and space"
    )
