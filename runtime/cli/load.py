"""`recallscope load`: endless scripted traffic in one process, with `/metrics`, for dashboards, alerts and tests."""

import json
import random
import signal
import tempfile
from dataclasses import replace
from pathlib import Path

import anyio
import click

from recallscope.runtime.cli.compose import policy_split
from recallscope.runtime.cli.load_told import Told
from recallscope.runtime.cli.number import Number, Whole, finite
from recallscope.runtime.cli.observed import observers_of, telemetry_settings
from recallscope.runtime.cli.settings import settings_in_force
from recallscope.runtime.cli.signals import INTERRUPTED, on_signal
from recallscope.runtime.config import Flag, Settings
from recallscope.runtime.lab.load import LoadPlan, LoadResult, play_load
from recallscope.runtime.lab.traffic import BELIEVABLE, Kind, Mix, Ordinary
from recallscope.telemetry.sdk import TelemetrySettings, open_telemetry

__all__ = ["load"]

FRONT_END = "load"
DEFAULT_RATE = 2.0
DEFAULT_AT_ONCE = 100
_SPREAD = Ordinary()


class _Seconds(click.ParamType[tuple[float, float]]):
    """A range of seconds, `0.01-0.4`, or one value for both ends."""

    name = "range"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, float]:
        """Read the text; a pair is one already."""
        match value:
            case (float() as shortest, float() as longest):
                return shortest, longest
            case _:
                first, _, second = str(value).partition("-")
        lowest, highest = finite(first), finite(second or first)
        if lowest is None or highest is None:
            self.fail(f"{value!r} is no range of seconds such as 0.01-0.4", param, ctx)
        if not 0 <= lowest <= highest <= 60:  # noqa: PLR2004 - as long as a tool may take
            self.fail(f"{value!r}: from the shorter to the longer one, and at most 60 seconds", param, ctx)
        return lowest, highest


@click.command("load")
@click.option(
    "--rate",
    default=DEFAULT_RATE,
    show_default=True,
    type=Number(0.01, 1000),
    metavar="R",
    help="Turns per second on average; they arrive at random distances.",
)
@click.option("--policy", metavar="SPLIT", help="A recall policy or a split, tiered:90,prefetch:10 (default: yours).")
@click.option(
    "--scenarios",
    metavar="NAME[:WEIGHT],…",
    help=f"The kinds of turns (default: a believable mix): {', '.join(Kind)}.",
)
@click.option("--turns", type=Whole(1, 10_000_000), metavar="N", help="End after N turns (default: never).")
@click.option("--ceiling", type=Number(0, 10), metavar="SECONDS", help="The ceiling of tiered (default: yours).")
@click.option(
    "--selector-delay",
    default=_SPREAD.selector,
    type=_Seconds(),
    metavar="A-B",
    help="The selector's delay in ordinary turns, evenly from A to B seconds (default: 0.05-0.8).",
)
@click.option(
    "--unmatched",
    default=_SPREAD.unmatched,
    show_default=True,
    type=Number(0, 1),
    metavar="SHARE",
    help="The share of ordinary turns whose words match no note.",
)
@click.option(
    "--with-tool",
    default=_SPREAD.tools,
    show_default=True,
    type=Number(0, 1),
    metavar="SHARE",
    help="The share of ordinary turns that call a tool.",
)
@click.option(
    "--at-once",
    default=DEFAULT_AT_ONCE,
    show_default=True,
    type=Whole(1, 10_000),
    metavar="N",
    help="The most sessions at a time; turns that find no room come later.",
)
@click.option("--seed", type=Whole(0), metavar="N", help="Play the same turns again (default: a new seed).")
@click.option(
    "--journal",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Keep a journal in DIR (default: none; your own gets nothing of a play).",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on what was played at the end.")
@click.pass_context
def load(
    context: click.Context,
    *,
    rate: float,
    policy: str | None,
    scenarios: str | None,
    turns: int | None,
    ceiling: float | None,
    selector_delay: tuple[float, float],
    unmatched: float,
    with_tool: float,
    at_once: int,
    seed: int | None,
    journal: Path | None,
    as_json: bool,
) -> int:
    """Play scripted traffic until Ctrl-C, or for --turns N, and serve /metrics meanwhile.

    The turns are real (HTTP, streaming, tools, memory), the model is scripted, and each turn has a fresh session. After
    Ctrl-C no turn begins, and those under way get two seconds. Exit code 0: all was played, or SIGTERM came; 130:
    Ctrl-C.
    """
    flags = {
        "recall.policy": Flag("--policy", policy),
        "recall.ceiling_seconds": Flag("--ceiling", ceiling),
        "telemetry.journal_dir": Flag("--journal", None if journal is None else str(journal.absolute())),
    }
    settings = settings_in_force(context, flags)
    if journal is not None:
        _check_writable(journal)
    plan = LoadPlan(
        rate=rate,
        split=policy_split(settings),
        mix=BELIEVABLE if scenarios is None else Mix.parse(scenarios),
        ordinary=Ordinary(selector=selector_delay, unmatched=unmatched, tools=with_tool),
        turns=turns,
        ceiling=settings.recall.ceiling_seconds,
        at_once=at_once,
        seed=random.SystemRandom().getrandbits(32) if seed is None else seed,
    )
    result, received = anyio.run(_play, plan, _telemetry(settings, journal=journal is not None))
    if as_json:
        click.echo(json.dumps(result.as_data(), indent=2))
    return INTERRUPTED if signal.SIGINT in received else 0


def _check_writable(folder: Path) -> None:
    """Refuse a folder that takes no journal before anything is played; one that is not there is made.

    Raises:
        click.BadParameter: it cannot be made, or nothing can be written into it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise click.BadParameter(
            f"no journal can be written into {folder} ({error.strerror or error}); name a folder of yours",
            param_hint="'--journal'",
        ) from error


def _telemetry(settings: Settings, *, journal: bool) -> TelemetrySettings:
    """Return the settings of telemetry; the journal is written where it was asked for, whatever the settings say."""
    return replace(telemetry_settings(settings, FRONT_END, serves_metrics=True, journal=False), journal=journal)


async def _play(plan: LoadPlan, settings: TelemetrySettings) -> tuple[LoadResult, list[signal.Signals]]:
    told = Told(plan)
    with open_telemetry(settings) as telemetry:
        observers = observers_of(telemetry, FRONT_END)
        told.begin(telemetry.metrics_url)
        stop = anyio.Event()
        async with on_signal(lambda _: stop.set()) as received:
            result = await play_load(
                plan, telemetry, observers, stop=stop, on_progress=told.progress, on_otherwise=told.otherwise
            )
    told.end(result)
    return result, received
