"""Writes what a command makes into a file that a person named: whole or not at all, with advice where it cannot be."""

import os
import tempfile
from pathlib import Path

from recallscope.runtime.errors import LabError

__all__ = ["check_place", "write_whole"]


def check_place(path: Path, option: str) -> None:
    """Refuse a place that can take no file, before the work is done; `option` is what named it.

    Raises:
        LabError: it is a folder, its own folder is not there, or that cannot be written to.
    """
    folder = path.parent
    try:
        if path.is_dir():
            raise LabError(f"{path} is a folder; name a file with {option}, such as {path / 'page.html'}")
        if not folder.exists():
            raise LabError(f"{path} cannot be written: the folder {folder} is not there; make it, or change {option}")
        if not folder.is_dir():
            raise LabError(f"{path} cannot be written: {folder} is no folder; change {option}")
        if not os.access(folder, os.W_OK):
            raise LabError(f"{path} cannot be written: the folder {folder} is not yours to write to; change {option}")
    except OSError as error:
        raise _refused(path, option, error) from error


def write_whole(text: str, path: Path, option: str) -> None:
    """Write `text` to `path` as UTF-8, whole or not at all; the file has the rights of any new one.

    Raises:
        LabError: it cannot be written; the sentence says why, and `option` is what to change.
    """
    check_place(path, option)
    part: Path | None = None
    try:
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, suffix=".part", delete=False) as file:
            part = Path(file.name)
            file.write(text)
        part.chmod(0o644 & ~_umask())
        part.replace(path)
    except OSError as error:
        if part is not None:
            part.unlink(missing_ok=True)
        raise _refused(path, option, error) from error


def _refused(path: Path, option: str, error: OSError) -> LabError:
    return LabError(f"{path} cannot be written: {error.strerror or error}; name another file with {option}")


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
