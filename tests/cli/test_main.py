"""The entry point: quick to start, and one exit code for each kind of ending."""

import importlib
import subprocess
import sys
from collections.abc import Callable, Sequence

import click
import pytest

from recallscope.runtime import __version__
from recallscope.runtime.cli import main as entry
from recallscope.runtime.cli.group import LazyCommand, LazyGroup
from recallscope.runtime.cli.output import StdoutError
from recallscope.runtime.errors import ConfigError, RecallscopeError, ScriptError, SessionClosedError

Run = Callable[..., "subprocess.CompletedProcess[str]"]

HEAVY = ("pydantic", "rich", "openai", "acp", "opentelemetry", "anyio", "prometheus_client", "yaml", "sqlite3")


def test_version(run: Run) -> None:
    """`--version` prints the name and the version."""
    done = run("--version")

    assert (done.returncode, done.stdout, done.stderr) == (0, f"recallscope {__version__}\n", "")


def test_help_lists_every_command_with_its_summary(run: Run) -> None:
    """`--help` names each command of the table."""
    done = run("--help")
    listed = done.stdout[done.stdout.index("Commands:") :].splitlines()[1:]

    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split()[0] for line in listed if line[2:3] != " "] == list(entry.COMMANDS)


@pytest.mark.parametrize("argument", ["--version", "--help"])
def test_version_and_help_import_nothing_heavy(argument: str) -> None:
    """What only a command needs is not imported for `--version` and `--help`."""
    program = (
        "import sys\n"
        "from recallscope.runtime.cli.main import main\n"
        f"code = main([{argument!r}])\n"
        f"print(code, sorted(set({HEAVY!r}) & set(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=50)

    assert done.stderr == "0 []\n"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("slow", "--set", "recall.policy=off"), "--set stands before the command: recallscope --set … slow …"),
        (
            ("memory", "list", "--config", "x"),
            "--config stands before the command: recallscope --config … memory list …",
        ),
    ],
)
def test_an_option_of_all_commands_behind_one_is_told(
    arguments: Sequence[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """No other option is guessed at; the sentence says where it stands."""
    assert entry.main(arguments) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("name", sorted(entry.COMMANDS))
def test_every_command_of_the_table_is_there(name: str) -> None:
    """Each entry of the table names a click command of the same name, whose help begins as its summary says."""
    module, _, attribute = entry.COMMANDS[name].target.partition(":")
    command = getattr(importlib.import_module(module), attribute)

    assert isinstance(command, click.Command)
    assert command.name == name
    assert command.help


def test_an_unknown_command_is_wrong_use(run: Run) -> None:
    """A command that does not exist is exit code 2 and a line that names it."""
    done = run("confg")

    assert (done.returncode, done.stdout) == (2, "")
    assert "No such command 'confg'" in done.stderr


def _ending_in(ending: BaseException | int | None, monkeypatch: pytest.MonkeyPatch) -> int:
    @click.command("end")
    def end() -> int | None:
        if isinstance(ending, BaseException):
            raise ending
        return ending

    group = click.Group(commands={"end": end})
    monkeypatch.setattr(entry, "_group", lambda: group)
    return entry.main(["end"])


WRONG = ConfigError(key="a.b", value=1, allowed="2", source="here")


@pytest.mark.parametrize(
    ("ending", "code", "lines"),
    [
        (None, 0, []),
        (3, 3, []),
        (KeyboardInterrupt(), 130, [""]),
        (WRONG, 2, [f"recallscope: {WRONG}"]),
        (ScriptError(where="s.yaml", problem="p"), 2, ["recallscope: s.yaml: p"]),
        (SessionClosedError("s"), 1, ["recallscope: session s is closed; open a new one"]),
        (ExceptionGroup("", [ExceptionGroup("", [RecallscopeError("inner")])]), 1, ["recallscope: inner"]),
        (ExceptionGroup("", [RecallscopeError("a"), WRONG]), 2, ["recallscope: a", f"recallscope: {WRONG}"]),
        (BaseExceptionGroup("", [KeyboardInterrupt(), RecallscopeError("a")]), 130, []),
        (StdoutError("why"), 1, ["recallscope: cannot write to stdout: why"]),
        (ExceptionGroup("", [StdoutError("why")]), 1, ["recallscope: cannot write to stdout: why"]),
        (RecallscopeError("evil\x1b[2J\nmemory: 9 notes"), 1, ["recallscope: evil[2J memory: 9 notes"]),
        (click.UsageError("wrong"), 2, ["Usage: recallscope end [OPTIONS]", "", "Error: wrong"]),
    ],
)
def test_each_ending_has_its_exit_code(
    ending: BaseException | int | None,
    code: int,
    lines: Sequence[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The exit code tells success, failure, wrong use and Ctrl-C apart; each error of ours is one line on stderr."""
    got = _ending_in(ending, monkeypatch)
    written = capsys.readouterr()

    assert (got, written.out) == (code, "")
    assert [line for line in written.err.splitlines() if not line.startswith("Try ")] == lines


@pytest.mark.parametrize("defect", [ZeroDivisionError(), ExceptionGroup("", [ZeroDivisionError(), WRONG])])
def test_a_defect_keeps_its_traceback(defect: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not an error of this package is not hidden, alone or among others."""
    with pytest.raises(type(defect)):
        _ending_in(defect, monkeypatch)


def test_a_table_that_names_no_command_is_a_defect() -> None:
    """An entry that points at something else than a command says so."""
    group = LazyGroup(table={"x": LazyCommand("recallscope.runtime:__version__", "Something.")})

    with pytest.raises(TypeError, match="not a click command"):
        group.get_command(click.Context(group), "x")
