"""A command group that imports a command's module only when that command is invoked.

`--help` and `--version` must stay quick, so the group knows its commands by a table of names and summaries; what a
command needs (the model client, OpenTelemetry, rich) is imported by the command's own module.
"""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import click

from recallscope.runtime.cli.output import READER_LEFT, discard_stdout

__all__ = ["Given", "LazyCommand", "LazyGroup"]


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

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Read the arguments; where `--help` and `--version` print, their reader may leave, too."""
        try:
            return super().make_context(info_name, args, parent, **extra)
        except BrokenPipeError:
            discard_stdout()
            raise click.exceptions.Exit(READER_LEFT) from None

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a reader of stdout that leaves, as `head` does, ends it without a word."""
        try:
            return super().invoke(ctx)
        except click.NoSuchOption as error:
            if error.option_name in {"--set", "--config"}:
                command = " ".join((*ctx.command_path.split()[1:], ctx.invoked_subcommand or ""))
                raise click.UsageError(
                    f"{error.option_name} stands before the command: recallscope {error.option_name} … {command} …", ctx
                ) from None
            raise
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
