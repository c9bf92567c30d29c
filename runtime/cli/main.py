"""The entry point: the table of commands, and what exit code each ending gets.

0: done. 1: it failed, or a comparison differs. 2: wrong use, a wrong configuration or script. 130: Ctrl-C. 141: the
reader of stdout left, as `head` does; nothing is said about it.
"""

import sys
from collections.abc import Iterator, Sequence
from typing import cast

import click

from recallscope.runtime import __version__
from recallscope.runtime.cli.group import Given, LazyCommand, LazyGroup
from recallscope.runtime.cli.output import READER_LEFT, StdoutError, complain, discard_stdout, guarded_stdout

__all__ = ["COMMANDS", "main"]

FAILED = 1
WRONG_USE = 2
INTERRUPTED = 130

COMMANDS = {
    "compare": LazyCommand(
        "recallscope.runtime.cli.compare:compare", "Play every scenario under every recall policy and print the table."
    ),
    "run": LazyCommand("recallscope.runtime.cli.run:run", "Run one turn; say what memory did."),
    "load": LazyCommand(
        "recallscope.runtime.cli.load:load", "Play scripted traffic, endless if wanted, and serve its metrics."
    ),
    "whatif": LazyCommand(
        "recallscope.runtime.cli.whatif:whatif", "Say what other settings would have given the recorded turns."
    ),
    "recall": LazyCommand("recallscope.runtime.cli.recall:recall", "Say which notes a query recalls, and which not."),
    "memory": LazyCommand(
        "recallscope.runtime.cli.memory.group:memory",
        "Look after notes: list, search, write, remove, check, export and import them.",
    ),
    "model-server": LazyCommand(
        "recallscope.runtime.cli.model_server:model_server", "Serve the scripted model server on loopback."
    ),
    "report": LazyCommand(
        "recallscope.runtime.cli.report:report",
        "Write one HTML page: service levels, the comparison, waits, slow turns, with plots.",
    ),
    "slow": LazyCommand(
        "recallscope.runtime.cli.slow:slow", "List the slowest recorded turns, and where their time went."
    ),
    "explain": LazyCommand(
        "recallscope.runtime.cli.explain:explain", "Explain a recorded turn: what held it, and what memory did."
    ),
    "dashboards": LazyCommand(
        "recallscope.runtime.cli.dashboards:dashboards",
        "Write dashboards, alert rules, runbooks and a stack to run them into a folder.",
    ),
    "doctor": LazyCommand(
        "recallscope.runtime.cli.doctor.command:doctor", "Check models, memory, telemetry, clocks and settings."
    ),
    "config": LazyCommand(
        "recallscope.runtime.cli.config:config", "Print the configuration in force and where each value came from."
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line with `arguments` (default: the process's) and return the exit code.

    A command tells its exit code by its return value or by `ctx.exit`. Errors of this package become one line on
    stderr, and so does a stdout that takes nothing; any other exception is a defect and keeps its traceback.
    """
    try:
        with guarded_stdout():
            return _main(arguments)
    except StdoutError as error:
        complain(f"recallscope: {error.message}")
        return FAILED


def _main(arguments: Sequence[str] | None) -> int:
    try:
        code = _group().main(arguments, prog_name="recallscope", standalone_mode=False)
        sys.stdout.flush()
    except (StdoutError, BrokenPipeError) as error:
        return _told([error])
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except _ours() as error:
        return _told([error])
    except BaseExceptionGroup as group:
        # A task group wraps what its tasks raise; unwrapped, it is one of the cases above.
        kinds: tuple[type[BaseException], ...] = (*_ours(), KeyboardInterrupt, BrokenPipeError, StdoutError)
        ours, others = group.split(kinds)
        if others is not None or ours is None:
            raise
        return _told(list(_leaves(ours)))
    return code if isinstance(code, int) else 0


def _told(errors: Sequence[BaseException]) -> int:
    if any(isinstance(error, KeyboardInterrupt) for error in errors):
        return INTERRUPTED
    if any(isinstance(error, BrokenPipeError) for error in errors):
        discard_stdout()
        return READER_LEFT
    if any(isinstance(error, StdoutError) for error in errors):
        discard_stdout()
    for error in errors:
        complain(f"recallscope: {error}")
    return WRONG_USE if any(isinstance(error, _yours()) for error in errors) else FAILED


def _ours() -> tuple[type[Exception], ...]:
    from recallscope.runtime.errors import RecallscopeError  # noqa: PLC0415 - only a failure pays for the import

    return (RecallscopeError,)


def _yours() -> tuple[type[Exception], ...]:
    from recallscope.runtime.errors import ConfigError, ScriptError  # noqa: PLC0415 - only a failure pays for it

    return (ConfigError, ScriptError)


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(cast("BaseExceptionGroup[BaseException]", error))
        else:
            yield error


def _group() -> click.Group:
    return LazyGroup(
        name="recallscope",
        table=COMMANDS,
        callback=_remember,
        params=[
            click.Option(
                ["--config", "file"],
                type=click.Path(),
                metavar="FILE",
                help="Read FILE instead of recallscope.toml.",
            ),
            click.Option(
                ["--set", "assignments"],
                multiple=True,
                metavar="KEY=VALUE",
                help="Set a key of the configuration, such as recall.policy=prefetch; may be repeated.",
            ),
            _version_option(),
        ],
        help="An agent runtime whose memory recall never holds a turn back, and whose every recall can be explained.",
        context_settings={"help_option_names": ["-h", "--help"]},
    )


@click.pass_context
def _remember(context: click.Context, file: str | None, assignments: tuple[str, ...]) -> None:
    context.obj = Given(file, assignments)


def _version_option() -> click.Option:
    def show(context: click.Context, _option: click.Parameter, value: bool) -> None:
        if value and not context.resilient_parsing:
            click.echo(f"recallscope {__version__}")
            context.exit()

    return click.Option(
        ["--version"], is_flag=True, expose_value=False, is_eager=True, callback=show, help="Show the version and exit."
    )
