"""`recallscope slow`: the slowest recorded turns, with where their time went."""

import json
import time

import click

from recallscope.runtime.cli.console import show
from recallscope.runtime.cli.number import Whole
from recallscope.runtime.cli.since import SINCE, Since
from recallscope.runtime.cli.turn_source import source_of, source_options, tell_broken
from recallscope.runtime.errors import LabError
from recallscope.telemetry.explain.data import SCHEMA, summary
from recallscope.telemetry.explain.slow import SlowTurns
from recallscope.telemetry.read.figures import ReadError

__all__ = ["slow"]

DEFAULT_SINCE = "1h"
DEFAULT_TOP = 20
NOTHING = 1


@click.command("slow")
@click.option("--since", type=SINCE, default=DEFAULT_SINCE, metavar="TIME", help="How far back: 30m, 1h (default), 7d.")
@click.option("--top", type=Whole(1, 1000), default=DEFAULT_TOP, metavar="N", help="How many (default: 20).")
@source_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead.")
@click.pass_context
def slow(context: click.Context, *, since: Since, top: int, place: str | None, service: str, as_json: bool) -> int:
    """List the slowest turns that ended within --since, and where their time went.

    The bar shows each phase by a letter: m model, t tool, R wait for memory, p preparation, b pause between attempts,
    q queue, u permission, h hook, c compaction. Exit code 1: no turn was found.
    """
    source = source_of(context, place, service)
    try:
        turns = source.slowest(top=top, since=time.time() - since.seconds)
    except ReadError as error:
        raise LabError(str(error)) from error
    tell_broken(source)
    if as_json:
        told = {"schema": SCHEMA, "since": str(since), "turns": [summary(turn) for turn in turns]}
        click.echo(json.dumps(told, indent=2))
    elif turns:
        show(SlowTurns(turns))
    if not turns:
        click.echo(f"recallscope: no turn of the last {since} was found in {source.where}; try --since 7d", err=True)
        return NOTHING
    return 0
