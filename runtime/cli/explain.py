"""`recallscope explain`: one recorded turn as a waterfall, with the verdict in words."""

import json
from pathlib import Path

import click

from recallscope.runtime.cli.console import show
from recallscope.runtime.cli.page_file import check_place, write_whole
from recallscope.runtime.cli.turn_source import source_of, source_options, tell_broken
from recallscope.runtime.errors import LabError
from recallscope.telemetry.explain.data import explained
from recallscope.telemetry.explain.page import page_of
from recallscope.telemetry.explain.terminal import ExplainedTurn
from recallscope.telemetry.read.figures import ReadError

__all__ = ["explain"]


@click.command("explain")
@click.argument("name", metavar="TURN_OR_TRACE")
@source_options
@click.option("--html", "page", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write a page.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead.")
@click.pass_context
def explain(
    context: click.Context, *, name: str, place: str | None, service: str, page: Path | None, as_json: bool
) -> int:
    """Explain a recorded turn: what held it, whether memory did, and why memory came or did not.

    TURN_OR_TRACE is the id of a turn or of its trace, the begin of either, or `last`. The turn is read from the
    journal, or from where --from says. --html writes one page that needs nothing else.
    """
    if not name.strip():
        raise click.BadArgumentUsage("TURN_OR_TRACE is empty; give the id of a turn or of its trace, or last")
    if page is not None:
        check_place(page, "--html")
    source = source_of(context, place, service)
    try:
        turn = source.find(name.strip())
    except ReadError as error:
        tell_broken(source)
        raise LabError(str(error)) from error
    tell_broken(source)
    if page is not None:
        write_whole(page_of(turn), page, "--html")
        click.echo(f"{page}: turn {turn.turn} of {source.where}", err=True)
    if as_json:
        click.echo(json.dumps(explained(turn), indent=2))
    elif page is None:
        show(ExplainedTurn(turn))
    return 0
