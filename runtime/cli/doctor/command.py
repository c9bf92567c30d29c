"""`recallscope doctor`: every check, its outcome and what to do."""

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence

import anyio
import click
from anyio import to_thread

from recallscope.runtime.cli.compose import policy_split
from recallscope.runtime.cli.doctor.clock import check_against_others, check_steps, read_clocks, servers
from recallscope.runtime.cli.doctor.contradictions import contradictions
from recallscope.runtime.cli.doctor.finding import Finding, State, worst
from recallscope.runtime.cli.doctor.memory import check_memory, check_recall
from recallscope.runtime.cli.doctor.models import check_models
from recallscope.runtime.cli.doctor.outward import check_exports, check_journal, check_metrics
from recallscope.runtime.cli.output import complain, for_stdout, one_line
from recallscope.runtime.cli.settings import settings_in_force
from recallscope.runtime.config import Settings

__all__ = ["doctor"]

SCHEMA = 1
FAILED = 1

SILENCE_SECONDS = 4.0
"""After so long without an answer a line says what is awaited: a model may be given a minute to begin."""

_MARKS = {State.OK: "ok", State.WARNING: "warning", State.FAILED: "FAILED", State.NOT_APPLICABLE: "-"}


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def doctor(context: click.Context, *, as_json: bool) -> int:
    """Check what an agent needs: models, memory, telemetry, clocks, and whether the settings agree with each other.

    The models are asked one short question each, and the OTLP endpoint gets one span. Exit code 1: a check failed.
    """
    settings = settings_in_force(context)
    findings = anyio.run(_examine, settings, os.environ)
    if as_json:
        click.echo(json.dumps(_as_data(findings), indent=2, ensure_ascii=False))
    else:
        click.echo(for_stdout(_as_text(findings)))
    return FAILED if worst(findings) is State.FAILED else 0


async def _examine(settings: Settings, environ: Mapping[str, str]) -> tuple[Finding, ...]:
    """Make all checks; those that wait for others run at once."""
    split = policy_split(settings)
    before = read_clocks()
    parts: dict[str, Sequence[Finding]] = {}

    async def models() -> None:
        parts["models"] = await check_models(settings)

    async def exports() -> None:
        parts["exports"] = await _in_thread(lambda: tuple(check_exports(environ)))

    async def clocks() -> None:
        urls = servers(settings, environ)
        parts["clocks"] = await _in_thread(lambda: (check_against_others(urls),))

    async def here() -> None:
        parts["memory"] = await check_memory(settings)
        parts["metrics"] = await _in_thread(lambda: (check_metrics(settings, environ),))

    async def say_what_is_awaited() -> None:
        await anyio.sleep(SILENCE_SECONDS)
        waiting = [name for name in ("models", "exports", "clocks", "memory", "metrics") if name not in parts]
        complain(f"recallscope: still waiting for {', '.join(waiting)}, at most as long as their timeouts say")

    async with anyio.create_task_group() as patience:
        patience.start_soon(say_what_is_awaited)
        async with anyio.create_task_group() as tasks:
            for check in (models, exports, clocks, here):
                tasks.start_soon(check)
        patience.cancel_scope.cancel()
    return (
        *contradictions(settings, split, environ),
        *parts["models"],
        check_recall(settings, split, parts["memory"]),
        *parts["memory"],
        check_journal(settings),
        *parts["metrics"],
        *parts["exports"],
        check_steps(before, read_clocks()),
        *parts["clocks"],
    )


async def _in_thread(check: Callable[[], tuple[Finding, ...]]) -> tuple[Finding, ...]:
    """Run what blocks; Ctrl-C does not wait for it."""
    return await to_thread.run_sync(check, abandon_on_cancel=True)


def _as_data(findings: Sequence[Finding]) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "verdict": worst(findings).value,
        "checks": [
            {"check": finding.check, "state": finding.state.value, "text": one_line(finding.text)}
            for finding in findings
        ],
    }


def _as_text(findings: Sequence[Finding]) -> str:
    mark_width = max(len(mark) for mark in _MARKS.values())
    name_width = max(len(finding.check) for finding in findings)
    lines = [
        f"{_MARKS[finding.state]:{mark_width}}  {finding.check:{name_width}}  {one_line(finding.text)}"
        for finding in findings
    ]
    return "\n".join((*lines, "", _sum(findings)))


def _sum(findings: Iterable[Finding]) -> str:
    states = [finding.state for finding in findings]
    failed, warned = states.count(State.FAILED), states.count(State.WARNING)
    if not failed and not warned:
        return "Nothing is wrong."
    return f"{failed} failed, {warned} warning{'s' if warned != 1 else ''}."
