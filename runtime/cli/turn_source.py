"""Where the commands that read recorded turns read them from: the options that they share, and the source itself."""

from collections.abc import Callable
from typing import TypeVar

import click

from recallscope.runtime.cli.output import complain
from recallscope.runtime.cli.settings import settings_in_force
from recallscope.runtime.errors import LabError
from recallscope.telemetry.read.figures import ReadError
from recallscope.telemetry.read.open_source import open_source
from recallscope.telemetry.read.sources import TurnSource

__all__ = ["source_of", "source_options", "tell_broken"]

CommandT = TypeVar("CommandT", bound=Callable[..., object])

DEFAULT_SERVICE = "recallscope"


def source_options(command: CommandT) -> CommandT:
    """Give a command the options `--from` and `--service`, as the arguments `place` and `service`."""
    service = click.option(
        "--service", metavar="NAME", default=DEFAULT_SERVICE, help=f"The service in a Jaeger ({DEFAULT_SERVICE})."
    )
    place = click.option(
        "--from",
        "place",
        metavar="PLACE",
        help="A journal, a file of spans (the collector's, or a saved trace), or the address of a Tempo or a Jaeger "
        "(default: the journal of the configuration).",
    )
    return place(service(command))


def tell_broken(source: TurnSource) -> None:
    """Say on stderr, in one line, that broken lines were left out, if there were any in what was read."""
    if source.broken:
        lines, were = ("1 broken line", "was") if source.broken == 1 else (f"{source.broken} broken lines", "were")
        complain(
            f"recallscope: {lines} in {source.where} {were} left out, so turns may lack parts; a full disk, or another "
            "program that wrote there, leaves such"
        )


def source_of(context: click.Context, place: str | None, service: str) -> TurnSource:
    """Return the source that the options name.

    Raises:
        LabError: there is nothing to read there.
        ConfigError: the configuration is wrong.
    """
    settings = settings_in_force(context)
    try:
        return open_source(place, journal=settings.telemetry.journal_dir, service=service)
    except ReadError as error:
        raise LabError(str(error)) from error
