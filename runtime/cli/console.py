"""How what rich draws gets to stdout: in colours and as wide as the terminal, or as plain text of one width."""

import io
import sys

import click
from rich.console import Console, RenderableType

__all__ = ["PIPED_WIDTH", "show"]

PIPED_WIDTH = 100
"""Columns where stdout is no terminal."""


def show(drawing: RenderableType) -> None:
    """Write `drawing` to stdout; where that is no terminal, without colours and without spaces at the ends of lines."""
    if sys.stdout.isatty():
        Console(highlight=False).print(drawing)
        return
    text = io.StringIO()
    Console(file=text, width=PIPED_WIDTH, highlight=False, color_system=None).print(drawing)
    for line in text.getvalue().splitlines():
        click.echo(line.rstrip())
