"""`recallscope compare`: every scenario under every policy, measured from the process's own metrics, as one table."""

import json
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TextIO

import anyio
import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as ProgressBar

from recallscope.runtime.cli.number import Whole
from recallscope.runtime.cli.observed import observers_of, telemetry_settings
from recallscope.runtime.cli.output import complain
from recallscope.runtime.cli.prometheus import DEFAULT_JOB, read_traffic, without_login
from recallscope.runtime.cli.settings import settings_in_force
from recallscope.runtime.cli.since import SINCE, Since
from recallscope.runtime.config import Settings
from recallscope.runtime.config.load import Origin
from recallscope.runtime.lab.compare import AT_ONCE, Plan, Progress, play
from recallscope.runtime.lab.comparison import Comparison
from recallscope.runtime.lab.expectations import POLICIES, Verdict
from recallscope.runtime.lab.live import LiveTraffic, compare_counts
from recallscope.runtime.lab.table import WIDTH, ComparisonTable
from recallscope.runtime.terms import PolicyName
from recallscope.telemetry.queries import TABLE_SCENARIOS
from recallscope.telemetry.read.counts import TABLE
from recallscope.telemetry.sdk import TelemetrySettings, open_telemetry

__all__ = ["compare"]

FRONT_END = "compare"
DIFFERS = 1
DEFAULT_TURNS = 5
DEFAULT_SINCE = Since("1h", 3_600)


@click.command("compare")
@click.option("--turns", type=Whole(1, 1000), metavar="N", help="Turns in each cell (default: 5).")
@click.option(
    "--policy",
    "policies",
    multiple=True,
    type=click.Choice([policy.value for policy in POLICIES]),
    help="A column; may be repeated (default: all).",
)
@click.option(
    "--scenario",
    "scenarios",
    multiple=True,
    type=click.Choice([scenario.value for scenario in TABLE_SCENARIOS]),
    help="A row; may be repeated (default: all).",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the table.")
@click.option("--from-prometheus", "prometheus", metavar="URL", help="Draw the table from live traffic instead.")
@click.option("--job", metavar="NAME", help=f"The job in Prometheus (default: {DEFAULT_JOB}).")
@click.option("--since", type=SINCE, metavar="TIME", help=f"How far back, such as 24h (default: {DEFAULT_SINCE}).")
@click.pass_context
def compare(
    context: click.Context,
    *,
    turns: int | None,
    policies: Sequence[str],
    scenarios: Sequence[str],
    as_json: bool,
    prometheus: str | None,
    job: str | None,
    since: Since | None,
) -> int:
    """Play every scenario under every recall policy and print the table of what was measured.

    The turns are real (HTTP, streaming, tools) against a scripted model server on loopback; the figures come from this
    process's own /metrics. Exit code 1: a cell is not as stated, or live traffic does not keep the hold of tiered.
    """
    settings = settings_in_force(context)
    plan = Plan(
        turns=turns or DEFAULT_TURNS,
        policies=tuple(policy for policy in POLICIES if policy in policies) or POLICIES,
        scenarios=tuple(scenario for scenario in TABLE_SCENARIOS if scenario in scenarios) or TABLE_SCENARIOS,
        ceiling=settings.recall.ceiling_seconds,
    )
    if prometheus is None:
        if job is not None or since is not None:
            raise click.UsageError("--job and --since say what to read from a Prometheus; add --from-prometheus URL")
        comparison = _play(plan, settings)
        _show(comparison, _number_of_turns(plan), as_json=as_json)
    else:
        if turns is not None:
            raise click.UsageError("--turns says how much is played; with --from-prometheus nothing is")
        traffic = _read(plan, prometheus, job or DEFAULT_JOB, since or DEFAULT_SINCE, settings)
        comparison = traffic.comparison
        title = (
            f"Live traffic of job {traffic.job} in the last {since or DEFAULT_SINCE}, from {without_login(prometheus)}"
        )
        _show(comparison, title, traffic, as_json=as_json)
        if traffic.differs and comparison.verdict is not Verdict.DIFFERS:
            complain("recallscope: the hold of tiered is not as stated, though no cell differs: exit code 1")
        return DIFFERS if traffic.differs else 0
    return DIFFERS if comparison.verdict is not Verdict.AS_STATED else 0


def _play(plan: Plan, settings: Settings) -> Comparison:
    with open_telemetry(_telemetry(settings, plan.policies)) as telemetry, _shown(plan.total) as progress:
        observers = observers_of(telemetry, FRONT_END)

        async def main() -> Comparison:
            return await play(plan, telemetry, observers, progress=progress)

        return anyio.run(main)


def _read(plan: Plan, url: str, job: str, since: Since, settings: Settings) -> LiveTraffic:
    reading = read_traffic(url, job=job, seconds=since.seconds, settings=settings, wanted=TABLE)
    comparison = compare_counts(
        reading.counts, configured=plan.ceiling, policies=plan.policies, scenarios=plan.scenarios
    )
    return LiveTraffic(comparison=comparison, reading=reading, job=job)


def _telemetry(settings: Settings, policies: tuple[PolicyName, ...]) -> TelemetrySettings:
    """Return the settings of telemetry: any free port unless one was asked for, nothing in the person's journal."""
    telemetry = telemetry_settings(settings, FRONT_END, serves_metrics=True, journal=False)
    asked = settings.sources["telemetry.metrics_port"].origin is not Origin.DEFAULT
    port = settings.telemetry.metrics_port if asked else 0
    return replace(telemetry, policies=policies, serve_metrics=True, metrics_port=port)


def _show(comparison: Comparison, title: str, traffic: LiveTraffic | None = None, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps((traffic or comparison).as_data(), indent=2))
        if comparison.readings > 1:
            click.echo(f"reading {comparison.readings} is shown: the loop was held up in those before it", err=True)
        for cell in comparison.cells.values():
            if cell.remarks and (comparison.played or cell.verdict is Verdict.DIFFERS):
                click.echo(f"{cell.row.scenario} under {cell.row.policy}: {'; '.join(cell.remarks)}", err=True)
    else:
        out: TextIO = sys.stdout
        reconfigure = getattr(out, "reconfigure", None)
        if callable(reconfigure):
            reconfigure(errors="replace")  # a mark that an old terminal cannot show is no reason to fail
        console = Console(width=None if out.isatty() else WIDTH, highlight=False)
        console.print(ComparisonTable(comparison, title=title, notes=traffic.notes if traffic is not None else ()))
    if comparison.verdict is Verdict.NOT_MEASURED and not comparison.played:
        click.echo("recallscope: no turn of the table was found there; check --job and --since", err=True)


def _number_of_turns(plan: Plan) -> str:
    if plan.total == 1:
        return "1 turn against the scripted model server"
    return f"{plan.total} turns against the scripted model server, {min(AT_ONCE, plan.total)} sessions at a time"


@contextmanager
def _shown(total: int) -> Generator[Callable[[Progress], None]]:
    """Show on stderr how far the turns have come: a bar in a terminal, a line per fifth elsewhere."""
    if not sys.stderr.isatty():
        yield _Lines(parts=5)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("turns"),
        TimeElapsedColumn(),
    )
    with ProgressBar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("turns", total=total)
        yield lambda progress: bar.update(
            task, completed=progress.done, total=progress.total, description=_what(progress)
        )


class _Lines:
    """Prints a line whenever another part of the turns is done."""

    def __init__(self, *, parts: int) -> None:
        self._parts = parts
        self._shown = -1

    def __call__(self, progress: Progress) -> None:
        part = self._parts * progress.done // progress.total
        if part > self._shown or progress.done == 0:
            self._shown = part
            click.echo(f"{_what(progress)}: {progress.done} of {progress.total} turns", err=True)


def _what(progress: Progress) -> str:
    return "playing" if progress.reading == 1 else f"playing again, reading {progress.reading} (the machine was busy)"
