"""A person's editor on a copy of a note: what was written is never lost, not even when it may not be saved."""

import shutil
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import click

from recallscope.runtime.cli.output import complain

__all__ = ["edited", "has_terminal"]


def has_terminal() -> bool:
    """Say whether a person can be asked."""
    return sys.stdin.isatty()


@contextmanager
def edited(text: bytes, name: str) -> Generator[bytes]:
    """Let a person edit `text` with `$VISUAL`, else `$EDITOR`, and lend what was written to the block.

    The copy can be read by its owner alone, and is gone when the block ends well. When the block fails and the copy was
    changed, it stays and its path is told.

    Raises:
        click.ClickException: the editor cannot be started, or ended with an error.
    """
    folder = Path(tempfile.mkdtemp(prefix="recallscope-"))
    copy = folder / name
    keep = False
    try:
        copy.write_bytes(text)
        click.edit(filename=str(copy))
        written = copy.read_bytes()
        try:
            yield written
        except BaseException:
            keep = written != text
            raise
    finally:
        if keep:
            complain(f"what you wrote is kept in {copy}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
