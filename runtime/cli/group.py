"""A command group that imports a command's module only when that command is invoked.

`--help` and `--version` must stay quick, so the group knows its commands by a table of names and summaries; what a
command needs (the model client, OpenTelemetry, rich) is imported by the command's own module.
"""

import importlib
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import click

__all__ = ["READER_LEFT", "Given", "LazyCommand", "LazyGroup", "discard_stdout"]

READER_LEFT = 141
"""The exit code when the reader of stdout left: what a shell says of a program that SIGPIPE ended."""


@dataclass(frozen=True, slots=True)
class LazyCommand:
    """Where a command is (`module:name`) and what the list of commands says about it."""

    target: str
    summary: str


@dataclass(frozen=True, slots=True)
class Given:
    """What stood before the command's name: the object of every command's context.

    `file` is that of `--config`, `assignments` are the `KEY=VALUE` texts of `--set` in their order.
    """

    file: str | None
    assignments: tuple[str, ...]


class LazyGroup(click.Group):
    """A group over a table of commands; `table` keeps its order in the help."""

    def __init__(self, *, table: Mapping[str, LazyCommand], **settings: Any) -> None:
        super().__init__(**settings)
        self._table = table

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a reader of stdout that leaves, as `head` does, ends it without a word."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            discard_stdout()
            ctx.exit(READER_LEFT)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, without importing any."""
        return list(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command named `cmd_name`; None when there is none of that name."""
        lazy = self._table.get(cmd_name)
        if lazy is None:
            return None
        module, _, name = lazy.target.partition(":")
        command = getattr(importlib.import_module(module), name)
        if not isinstance(command, click.Command):
            raise TypeError(f"{lazy.target} is a {type(command).__name__}, not a click command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from the table."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, lazy.summary) for name, lazy in self._table.items()])


def discard_stdout() -> None:
    """Let stdout lead nowhere: its reader has left, and Python flushes it once more at the end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
