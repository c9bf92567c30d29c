"""`recallscope report`: the comparison, the service levels and the slow turns as one self-contained HTML page."""

import time
from dataclasses import dataclass
from pathlib import Path

import click

from recallscope.runtime import __version__
from recallscope.runtime.cli.number import Whole
from recallscope.runtime.cli.output import complain
from recallscope.runtime.cli.page_file import check_place, write_whole
from recallscope.runtime.cli.prometheus import DEFAULT_JOB, read_traffic, without_login
from recallscope.runtime.cli.settings import settings_in_force
from recallscope.runtime.cli.since import SINCE, Since
from recallscope.runtime.cli.turn_source import tell_broken
from recallscope.runtime.config import Settings
from recallscope.runtime.errors import LabError
from recallscope.runtime.lab.expectations import POLICIES
from recallscope.runtime.lab.live import compare_counts, reading_notes, traffic_notes
from recallscope.runtime.lab.report_sections import comparison_section
from recallscope.runtime.lab.whatif import Record
from recallscope.runtime.lab.whatif_answer import Answer, Axis, Question
from recallscope.runtime.lab.whatif_page import whatif_section
from recallscope.runtime.recall.handle import Budget
from recallscope.runtime.terms import PolicyName
from recallscope.telemetry import names
from recallscope.telemetry.read.counts import Counts
from recallscope.telemetry.read.figures import ReadError
from recallscope.telemetry.read.gathered import Gathered, gather
from recallscope.telemetry.read.levels import service_levels
from recallscope.telemetry.read.open_source import open_source
from recallscope.telemetry.read.prometheus import Reading
from recallscope.telemetry.read.sources import TurnSource
from recallscope.telemetry.report.blocks import Level, Page, Remark
from recallscope.telemetry.report.levels import levels_section
from recallscope.telemetry.report.memory import recall_section
from recallscope.telemetry.report.page import render
from recallscope.telemetry.report.times import durations_section, waits_section
from recallscope.telemetry.report.turns import turns_section
from recallscope.telemetry.report.words import count, duration, instant, seconds, span
from recallscope.telemetry.report.work import calls_section, phases_section

__all__ = ["report", "report_page"]

DEFAULT_SINCE = Since("24h", 86_400)
DEFAULT_OUT = "recallscope-report.html"
DEFAULT_TOP = 10
MOST_TOP = 100
REPLAYED = 2_000
"""How many of the latest turns the what-if replays."""

CEILINGS = (0.0, 0.025, 0.05, 0.1, 0.2, 0.5)
"""The ceilings of `tiered` (seconds) that it asks for."""

STDOUT = "-"
NOTHING = 1


@click.command("report")
@click.option("--since", type=SINCE, metavar="TIME", help=f"How far back, such as 7d (default: {DEFAULT_SINCE}).")
@click.option("--from", "place", metavar="PLACE", help="Where the turns are: a journal, a file of spans, an address.")
@click.option("--from-prometheus", "prometheus", metavar="URL", help="Take the figures from a Prometheus.")
@click.option("--job", metavar="NAME", help=f"The job in Prometheus (default: {DEFAULT_JOB}).")
@click.option(
    "--top",
    type=Whole(0, MOST_TOP),
    default=DEFAULT_TOP,
    help=f"How many slow turns (default: {DEFAULT_TOP}).",
)
@click.option("--out", default=DEFAULT_OUT, metavar="FILE", help=f"The page; - is stdout (default: {DEFAULT_OUT}).")
@click.pass_context
def report(
    context: click.Context,
    *,
    since: Since | None,
    place: str | None,
    prometheus: str | None,
    job: str | None,
    top: int,
    out: str,
) -> int:
    """Write one HTML page with plots: service levels, comparison of the policies, waits, slow turns.

    The turns come from the journal (or --from), and so do the figures unless a Prometheus has them. The page needs
    neither network nor scripts. Exit code 1: no turn was found (the page says so), or it could not be written.
    """
    settings = settings_in_force(context)
    if job is not None and prometheus is None:
        raise click.UsageError("--job says what to read from a Prometheus; add --from-prometheus URL")
    if not out:
        raise click.BadParameter("it is empty; name a file, or - for stdout", param_hint="'--out'")
    if out != STDOUT:
        check_place(Path(out), "--out")
    asked = since or DEFAULT_SINCE
    now = time.time()
    try:
        source = open_source(place, journal=settings.telemetry.journal_dir)
        gathered = gather(source.turns(since=now - asked.seconds), top=top, keep=REPLAYED)
    except ReadError as error:
        raise LabError(str(error)) from error
    tell_broken(source)
    live = None
    if prometheus is not None:
        job = job or DEFAULT_JOB
        reading = read_traffic(prometheus, job=job, seconds=asked.seconds, settings=settings)
        live = _Live(reading, f"job {job} in {without_login(prometheus)}", job)
    page = report_page(source, gathered, live, settings=settings, asked=asked, now=now)
    if out == STDOUT:
        click.echo(render(page), nl=False)
    else:
        write_whole(render(page), Path(out), "--out")
        complain(f"{out}: {_turns(gathered.turns)} of {source.where}")
    if not gathered.turns and (live is None or not live.reading.counts.total(names.TURN_DURATION)):
        where = source.where if live is None else f"{source.where}, nor in {live.where}"
        complain(f"recallscope: no turn of the last {asked} was found in {where}; try --since 7d, or another --from")
        return NOTHING
    return 0


@dataclass(frozen=True, slots=True)
class _Live:
    """What a Prometheus told, and how that is called."""

    reading: Reading
    where: str
    job: str


def report_page(
    source: TurnSource, gathered: Gathered, live: _Live | None, *, settings: Settings, asked: Since, now: float
) -> Page:
    """Return the page: figures of `live` where there is one, else of `gathered`; turns of `gathered`."""
    counts = gathered.counts if live is None else live.reading.counts
    comparison = compare_counts(counts, configured=settings.recall.ceiling_seconds, policies=POLICIES)
    return Page(
        title="Recallscope report",
        facts=_facts(source, gathered, live, asked=asked, now=now),
        remarks=_remarks(source, gathered, live, asked),
        sections=(
            levels_section(service_levels(counts), loss_known=live is not None),
            comparison_section(comparison, notes=traffic_notes(counts, comparison)),
            durations_section(counts),
            waits_section(counts),
            recall_section(counts),
            phases_section(counts),
            turns_section(gathered.slowest, where=source.where),
            calls_section(counts),
            whatif_section(_what_if(gathered, settings), title="What another ceiling would have given"),
        ),
        footer=f"Recallscope {__version__}. Quantiles are interpolated within their buckets, as Prometheus does it.",
        data={"turns": gathered.turns, "figures": "journal" if live is None else "prometheus"},
    )


def _what_if(gathered: Gathered, settings: Settings) -> Answer:
    recall = settings.recall
    budget = Budget(notes=recall.budget_notes, characters=recall.budget_characters)
    record = Record.of(gathered.kept, budget=budget, safety=recall.selector_safety_seconds)
    return Answer.of(Question(axis=Axis.CEILING, values=CEILINGS, policies=(PolicyName.TIERED,)), record)


def _facts(
    source: TurnSource, gathered: Gathered, live: _Live | None, *, asked: Since, now: float
) -> tuple[tuple[str, str], ...]:
    counts = gathered.counts if live is None else live.reading.counts
    facts = [
        ("Figures", source.where if live is None else live.where),
        ("Turns", source.where),
        ("Span", f"the last {duration(asked.seconds)}, until {instant(now)}"),
        ("Found", _found(gathered)),
        ("Counted", _counted(counts)),
        ("Ceilings", _ceilings(counts)),
    ]
    if live is None:
        del facts[1]
        facts[0] = ("Source", source.where)
    return tuple((name, text) for name, text in facts if text)


def _found(gathered: Gathered) -> str:
    if gathered.first is None or gathered.last is None:
        return "no turn"
    sessions = "1 session" if gathered.sessions == 1 else f"{count(gathered.sessions)} sessions"
    return f"{_turns(gathered.turns)} in {sessions}, {span(gathered.first, gathered.last)}"


def _counted(counts: Counts) -> str:
    """Say how many turns the figures are of, by policy; a turn counts when it has ended."""
    turns = {policy: number for (policy,), number in counts.by(names.TURN_DURATION, names.POLICY).items()}
    by_policy = ", ".join(f"{policy} {count(turns[policy])}" for policy in PolicyName if policy in turns)
    return f"{_turns(round(sum(turns.values())))}: {by_policy}" if by_policy else ""


def _turns(number: int) -> str:
    return "1 turn" if number == 1 else f"{count(number)} turns"


def _ceilings(counts: Counts) -> str:
    return ", ".join(
        f"{policy} {seconds(each.highest)}"
        if each.one
        else f"{policy} {seconds(each.lowest)} to {seconds(each.highest)}"
        for policy, each in sorted(counts.ceilings.items())
    )


def _remarks(source: TurnSource, gathered: Gathered, live: _Live | None, asked: Since) -> tuple[Remark, ...]:
    """Say what a reader must know before believing the figures."""
    told: list[str] = []
    if live is not None:
        told += reading_notes(live.reading, live.job)
    if not gathered.turns:
        told.append(f"No turn of the last {duration(asked.seconds)} was found in {source.where}.")
    if gathered.unended:
        what = "1 turn has" if gathered.unended == 1 else f"{count(gathered.unended)} turns have"
        told.append(
            f"{what} no recorded end, as while it runs, or where its process ended before it: told among the slowest "
            "turns, counted in no duration."
        )
    if gathered.torn:
        told.append(f"The begin of {_turns(gathered.torn)} is not in the record; what is there is counted.")
    if gathered.sampled:
        told.append(
            "The turns come from traces, of which sampling may keep some and drop others; "
            "shares are those of the kept ones."
        )
    return tuple(Remark(text=text, level=Level.WARNING) for text in told)
