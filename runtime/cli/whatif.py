"""`recallscope whatif`: what another ceiling, policy, limit or selector would have given, from recorded turns."""

import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

import click
from rich.console import Console

from recallscope.runtime.cli.number import finite
from recallscope.runtime.cli.page_file import check_place, write_whole
from recallscope.runtime.cli.settings import settings_in_force
from recallscope.runtime.cli.since import SINCE, Since
from recallscope.runtime.cli.turn_source import tell_broken
from recallscope.runtime.config import Settings
from recallscope.runtime.errors import LabError
from recallscope.runtime.lab.whatif import Record, Setting
from recallscope.runtime.lab.whatif_answer import Answer, Axis, Question, in_words
from recallscope.runtime.lab.whatif_page import html_page, svg_plot
from recallscope.runtime.lab.whatif_table import WIDTH, WhatIfTable
from recallscope.runtime.lab.worlds import Speed
from recallscope.runtime.recall.handle import Budget
from recallscope.runtime.terms import PolicyName
from recallscope.telemetry.read.figures import ReadError
from recallscope.telemetry.read.open_source import open_source
from recallscope.telemetry.read.recorded import RecordedTurn
from recallscope.telemetry.read.sources import TurnSource

__all__ = ["whatif"]

DIFFERS = 1
MOST_TURNS = 20_000
CEILINGS = (0.0, 0.025, 0.05, 0.1, 0.2, 0.5)
LONGEST_SECONDS = 60.0
_UNITS = {"ms": 0.001, "s": 1.0}


class _Times(click.ParamType[tuple[float, ...]]):
    """Times, one or several: milliseconds, or with their unit (`25`, `25ms`, `0.2s`)."""

    name = "times"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, ...]:
        """Return the times in seconds, each once."""
        return tuple(dict.fromkeys(self._seconds(part.strip(), param, ctx) for part in str(value).split(",")))

    def _seconds(self, text: str, param: click.Parameter | None, ctx: click.Context | None) -> float:
        unit = next((unit for unit in _UNITS if text.endswith(unit)), "")
        number = finite(text.removesuffix(unit))
        if number is None:
            self.fail(f"{text!r} is no time such as 25, 25ms or 0.2s", param, ctx)
        seconds = number * _UNITS[unit or "ms"]
        if not 0 <= seconds <= LONGEST_SECONDS:
            self.fail(f"{text!r}: it must be between 0 and {LONGEST_SECONDS:g} s", param, ctx)
        if not unit and 0 < number < 1:
            self.fail(f"{text!r} would be less than a millisecond; write {text}s or {number * 1000:g}ms", param, ctx)
        return round(seconds, 9)


class _Factors(click.ParamType[tuple[float, ...]]):
    """Factors of a time, one or several."""

    name = "factors"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, ...]:
        """Return the factors, each once."""
        factors: list[float] = []
        for part in str(value).split(","):
            factor = finite(part)
            if factor is None:
                self.fail(f"{part.strip()!r} is no factor such as 0.5", param, ctx)
            if not 0 < factor <= 1000:  # noqa: PLR2004 - beyond that no selector is meant
                self.fail(f"{part.strip()!r}: it must be above 0 and at most 1000", param, ctx)
            factors.append(factor)
        return tuple(dict.fromkeys(factors))


@click.command("whatif")
@click.option(
    "--ceiling", "ceilings", type=_Times(), metavar="MS,…", help="Ceilings of tiered (default: 0,25,50,100,200,500)."
)
@click.option(
    "--policy",
    "policies",
    multiple=True,
    type=click.Choice([policy.value for policy in PolicyName]),
    help="A policy; may be repeated (default: as recorded, with --ceiling tiered).",
)
@click.option("--fast-limit", "limits", type=_Times(), metavar="MS,…", help="Time limits of the search.")
@click.option(
    "--selector-speed",
    "factors",
    type=_Factors(),
    metavar="F,…",
    help="The selector's time as a factor of the recorded one: 0.5 is twice as fast.",
)
@click.option("--selector-delay", "delays", type=_Times(), metavar="MS,…", help="One time for every selector call.")
@click.option("--from", "place", metavar="PLACE", help="The journal: a folder or a file (default: your own).")
@click.option("--since", type=SINCE, metavar="TIME", help="Only turns that ended within TIME, such as 24h.")
@click.option(
    "--recorded-under",
    "recorded",
    type=click.Choice([policy.value for policy in PolicyName if policy is not PolicyName.OFF]),
    help="Only turns that were recorded under this policy.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the table.")
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write a page as well.")
@click.option("--svg", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write the plot as well.")
@click.option("--verify", is_flag=True, help="Only replay each turn as it was recorded, and say which differ.")
@click.pass_context
def whatif(
    context: click.Context,
    *,
    ceilings: tuple[float, ...] | None,
    policies: Sequence[str],
    limits: tuple[float, ...] | None,
    factors: tuple[float, ...] | None,
    delays: tuple[float, ...] | None,
    place: str | None,
    since: Since | None,
    recorded: str | None,
    as_json: bool,
    html: Path | None,
    svg: Path | None,
    verify: bool,
) -> int:
    """Say what another setting would have given the turns in the journal.

    Recorded moments are fed through the rules of recall. One of the settings may have several values; what is not given
    stays as it was recorded. Turns of all policies are replayed as the one that is asked for. Exit code 1: nothing to
    replay, or with --verify a turn that the rules do not reproduce.
    """
    settings = settings_in_force(context)
    given = {
        Axis.CEILING: ceilings,
        Axis.SEARCH_LIMIT: limits,
        Axis.SELECTOR_SPEED: factors,
        Axis.SELECTOR_DELAY: delays,
    }
    question = _question(given, tuple(PolicyName(name) for name in policies))
    for path, option in ((html, "--html"), (svg, "--svg")):
        if path is not None:
            check_place(path, option)
    source, record = _read(settings, place, since, None if recorded is None else PolicyName(recorded))
    if verify:
        return _verify(record)
    answer = Answer.of(question, record)
    if html is not None:
        write_whole(html_page(answer, source=f"From {source.where}."), html, "--html")
        click.echo(f"wrote {html}", err=True)
    if svg is not None:
        write_whole(svg_plot(answer), svg, "--svg")
        click.echo(f"wrote {svg}", err=True)
    if as_json:
        click.echo(json.dumps(answer.as_data(), indent=2))
    else:
        _show(answer)
    return 0


def _question(given: dict[Axis, tuple[float, ...] | None], policies: tuple[PolicyName, ...]) -> Question:
    if given[Axis.SELECTOR_SPEED] and given[Axis.SELECTOR_DELAY]:
        raise click.UsageError("--selector-speed and --selector-delay both say how long the selector takes; give one")
    ranges = [axis for axis, values in given.items() if values is not None and len(values) > 1]
    if len(ranges) > 1:
        names = " and ".join(f"--{axis.replace(' ', '-')}" for axis in ranges)
        raise click.UsageError(f"{names} have several values each; only one setting may have a range")
    if not any(given.values()) and not policies:
        given = {**given, Axis.CEILING: CEILINGS}
    if given[Axis.CEILING] is not None and not policies:
        policies = (PolicyName.TIERED,)
    axis = next(iter(ranges), None) or next((axis for axis, values in given.items() if values), Axis.CEILING)
    single = {one: values[0] for one, values in given.items() if values and one is not axis}
    factor, delay = single.get(Axis.SELECTOR_SPEED), single.get(Axis.SELECTOR_DELAY)
    return Question(
        axis=axis,
        values=given[axis] or (),
        policies=policies or (None,),
        base=Setting(
            ceiling=single.get(Axis.CEILING),
            search_limit=single.get(Axis.SEARCH_LIMIT),
            speed=Speed(factor=1.0 if factor is None else factor, delay=delay),
        ),
    )


def _read(
    settings: Settings, place: str | None, since: Since | None, recorded: PolicyName | None
) -> tuple[TurnSource, Record]:
    recall = settings.recall
    try:
        source = open_source(place, journal=settings.telemetry.journal_dir)
        turns = source.turns(since=None if since is None else time.time() - since.seconds)
        record = Record.of(
            _kept(turns, recorded),
            budget=Budget(notes=recall.budget_notes, characters=recall.budget_characters),
            safety=recall.selector_safety_seconds,
        )
    except ReadError as error:
        raise LabError(str(error)) from error
    tell_broken(source)
    if not record.courses and not record.differing:
        told = " ".join(in_words(record)[1:])
        raise LabError(f"no turn in {source.where} can be replayed; check --from and --since. {told}".strip())
    return source, record


def _kept(turns: Iterator[RecordedTurn], recorded: PolicyName | None) -> Iterator[RecordedTurn]:
    """Yield the turns that are asked for, at most so many as can be held."""
    for number, turn in enumerate(turns):
        if number >= MOST_TURNS:
            click.echo(f"only the first {MOST_TURNS} turns are replayed; choose with --since", err=True)
            return
        if recorded is None or (turn.recall is not None and turn.recall.policy is recorded):
            yield turn


def _verify(record: Record) -> int:
    good = len(record.courses)
    click.echo(f"{good} of {good + len(record.differing)} turns are reproduced.")
    for each in record.differing:
        click.echo(f"{each.turn}: recorded {each.recorded}; replayed {each.replayed}")
    return DIFFERS if record.differing else 0


def _show(answer: Answer) -> None:
    out: TextIO = sys.stdout
    reconfigure = getattr(out, "reconfigure", None)
    if callable(reconfigure):
        reconfigure(errors="replace")  # a mark that an old terminal cannot show is no reason to fail
    Console(width=None if out.isatty() else WIDTH, highlight=False).print(WhatIfTable(answer))
