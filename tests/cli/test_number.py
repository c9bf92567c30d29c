"""The numbers of options: what is no number is refused by every command that takes one."""

import importlib
from collections.abc import Iterator

import click
import pytest

from recallscope.runtime.cli.group import LazyGroup
from recallscope.runtime.cli.main import COMMANDS, main
from recallscope.runtime.cli.number import Number, Whole, finite


def _options(command: click.Command) -> Iterator[click.Parameter]:
    yield from command.params
    if isinstance(command, LazyGroup):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from _options(below)


def test_every_number_of_every_command_is_of_one_kind() -> None:
    """No option takes the numbers of the library, which let through what is no number."""
    commands: list[click.Command] = []
    for lazy in COMMANDS.values():
        module, _, name = lazy.target.partition(":")
        commands.append(getattr(importlib.import_module(module), name))

    numbers = [
        option.type
        for command in commands
        for option in _options(command)
        if isinstance(option.type, click.IntRange | click.FloatRange | type(click.INT) | type(click.FLOAT))
    ]

    assert len(numbers) >= 12
    assert [type(kind).__name__ for kind in numbers if not isinstance(kind, Number | Whole)] == []


@pytest.mark.parametrize(
    ("kind", "text", "problem"),
    [
        (Number(0, 1), "nan", "'nan' is no number"),
        (Number(0), "inf", "'inf' is no number"),
        (Number(), "-inf", "'-inf' is no number"),
        (Number(0, 1), "1e999", "'1e999' is no number"),
        (Number(0, 1), "half", "'half' is no number"),
        (Number(0, 1), "2", "0<=x<=1"),
        (Whole(1, 10), "nan", "'nan' is no whole number"),
        (Whole(1, 10), "1.5", "'1.5' is no whole number"),
        (Whole(1), "0", "x>=1"),
        (Whole(1, 10), "", "'' is no whole number"),
    ],
)
def test_what_is_no_number_or_out_of_range_is_refused(kind: Number | Whole, text: str, problem: str) -> None:
    """The sentence says which it is."""
    with pytest.raises(click.BadParameter) as refused:
        kind.convert(text, None, None)

    assert problem in str(refused.value)


def test_a_number_is_read() -> None:
    """Within its bounds, as a number or a whole one."""
    assert (Number(0, 1).convert("0.5", None, None), Whole(1, 10).convert("10", None, None)) == (0.5, 10)
    assert (finite("1e3"), finite("nan"), finite("x")) == (1000.0, None, None)


@pytest.mark.parametrize(
    "arguments",
    [
        ("whatif", "--ceiling", "nan"),
        ("whatif", "--selector-speed", "inf"),
        ("slow", "--top", "inf"),
        ("compare", "--turns", "nan"),
        ("report", "--top", "nan"),
        ("model-server", "--script", "x.yaml", "--port", "nan"),
        ("memory", "enrich", "--limit", "nan"),
    ],
)
def test_a_command_refuses_what_is_no_number(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, and the word is repeated with what it is not."""
    code = main(arguments)

    said = capsys.readouterr()
    assert (code, said.out) == (2, "")
    assert f"'{arguments[-1]}' is no " in said.err
