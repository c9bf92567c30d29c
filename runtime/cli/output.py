"""How the commands write: stdout that fails with one error of its own, stderr that cannot fail, neither with controls.

What comes from a model, a note or a server may hold anything; a terminal must show it, not obey it.
"""

import io
import os
import select
import sys
import unicodedata
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TextIO, cast

import click

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["READER_LEFT", "StdoutError", "complain", "discard_stdout", "for_stdout", "guarded_stdout", "one_line"]

READER_LEFT = 141
"""The exit code when the reader of stdout left: what a shell says of a program that SIGPIPE ended."""

_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""The Unicode categories that show nothing: controls, formats (such as turned directions), surrogates, separators."""


class StdoutError(click.ClickException):
    """Stdout does not take what is written: closed, the disk full; a reader that left is a `BrokenPipeError`."""

    def __init__(self, why: str) -> None:
        super().__init__(f"cannot write to stdout: {why}")


class _RawStdout(io.FileIO):
    """The file below stdout: tells its errors from those of other files, and waits where it would block."""

    def write(self, data: "ReadableBuffer", /) -> int:
        try:
            while (written := cast("int | None", super().write(data))) is None:
                select.select([], [self.fileno()], [])
        except BrokenPipeError:
            raise
        except OSError as error:
            raise StdoutError(error.strerror or str(error)) from error
        return written


@contextmanager
def guarded_stdout() -> Generator[None]:
    """Let `sys.stdout` raise `StdoutError` where it fails, and write `?` for what it cannot encode, within the block.

    A stdout without a file below, as of a test, stays as it is.

    Raises:
        StdoutError: there is no stdout.
    """
    stream = cast("TextIO | None", sys.stdout)  # None where the process was started without one
    if stream is None:
        raise StdoutError("it is closed")
    try:
        raw = _RawStdout(stream.fileno(), "wb", closefd=False)
    except (OSError, ValueError):
        yield
        return
    stream.flush()
    guarded = io.TextIOWrapper(
        io.BufferedWriter(raw), encoding=stream.encoding, errors="replace", line_buffering=stream.isatty()
    )
    sys.stdout = guarded
    try:
        yield
    finally:
        sys.stdout = stream
        with suppress(OSError, StdoutError):
            guarded.close()


def discard_stdout() -> None:
    """Let stdout lead nowhere: it takes nothing more, and Python flushes it once more at the end."""
    _discard(sys.stdout)


def _discard(stream: TextIO) -> None:
    try:
        number = stream.fileno()
    except (OSError, ValueError):
        return  # there is no file below that could fail again
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)


def for_stdout(text: str) -> str:
    """Return `text` as stdout gets it: a terminal without controls but line ends and tabs, anything else as it is."""
    if not sys.stdout.isatty():
        return text
    return "".join(character for character in text if character in "\n\t" or unicodedata.category(character) != "Cc")


def one_line(text: str) -> str:
    """Return `text` in one line, without what a terminal would obey or not show."""
    return "".join(character for character in " ".join(text.split()) if unicodedata.category(character) not in _UNSEEN)


def complain(text: str) -> None:
    """Write one line to stderr; where stderr takes nothing, nobody can be told, and the work goes on."""
    try:
        click.echo(one_line(text), err=True)
    except OSError:
        _discard(sys.stderr)
