"""`recallscope memory enrich`: the small model writes into each note in which other words one might look for it."""

import json
import os
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import click

from recallscope.runtime.cli.compose import open_models
from recallscope.runtime.cli.memory.place import Place, json_option, place_options
from recallscope.runtime.cli.number import Whole
from recallscope.runtime.cli.observed import observers_of, telemetry_settings
from recallscope.runtime.cli.output import complain, for_stdout, one_line
from recallscope.runtime.errors import NoteError
from recallscope.runtime.jobs.enrich import AT_ONCE, Enriched, Enricher, Fate, lacking
from recallscope.runtime.memory.memory import open_memory
from recallscope.runtime.memory.note import Note
from recallscope.runtime.memory.scopes import INDEX_NAME, Root, Skipped, list_notes
from recallscope.runtime.memory.store import INDEX_MARK, read_bytes, read_note
from recallscope.runtime.terms import ScopeName
from recallscope.telemetry.sdk import open_telemetry

__all__ = ["enrich"]

FRONT_END = "enrich"
FAILED = 1
INTERRUPTED = 130

_NO_ANSWER = frozenset({Fate.FAILED, Fate.UNASKED})


@click.command("enrich")
@place_options
@click.option("--all", "everything", is_flag=True, help="Ask about every note; phrasings that it has are replaced.")
@click.option("--limit", type=Whole(min=1), metavar="N", help="Ask about N notes at most, the newest first.")
@click.option(
    "--at-once",
    type=Whole(1, 64),
    default=AT_ONCE,
    show_default=True,
    metavar="N",
    help="Ask about N notes at the same time.",
)
@click.option("--dry-run", is_flag=True, help="Only name the notes that would be asked about.")
@json_option
@click.pass_context
def enrich(
    context: click.Context,
    *,
    scope: str | None,
    directory: Path | None,
    everything: bool,
    limit: int | None,
    at_once: int,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Write alternative phrasings and keywords into the notes that have none, asking the small model once per note.

    They are found then by words that do not stand in them. The notes' text goes to the model's server. A run that is
    stopped with Ctrl-C keeps what is written; the next run asks about the rest. Notes below a folder whose MEMORY.md
    another program wrote are not written to, those of a team only with --scope team.
    """
    place = Place.of(context, directory, scope)
    chosen = _choose(place, everything=everything, limit=limit)
    if dry_run:
        for note in chosen:
            _print({"path": note.relative, "scope": note.scope.value, "fate": "planned", "why": ""}, as_json=as_json)
        complain(f"{len(chosen)} notes would be asked about; nothing was asked or written")
        return 0
    if not chosen:
        complain("no note lacks phrasings; --all asks about every one again")
        return 0
    return anyio.run(partial(_ask, place, chosen, at_once, as_json=as_json))


def _choose(place: Place, *, everything: bool, limit: int | None) -> Sequence[Note]:
    """Read the notes that are to be asked about, and say which folders and files are left out."""
    named = [root for root in place.asked if root.scope is not ScopeName.TEAM or len(place.asked) == 1]
    ours, others = _writable(named)
    for root in others:
        complain(f"{root.path}: not written to, since its {INDEX_NAME} is another program's or it may not be written")
    notes, skipped = _read(ours)
    for skip in skipped:
        complain(f"{skip.path}: {skip.why}")
    return lacking(notes, everything=everything)[:limit]


async def _ask(place: Place, chosen: Sequence[Note], at_once: int, *, as_json: bool) -> int:
    counts: Counter[Fate] = Counter()
    causes: set[str] = set()

    def told(done: Enriched) -> None:
        counts[done.fate] += 1
        if done.fate not in _NO_ANSWER or done.why not in causes:  # a server that is down is told of once
            complain(f"{counts.total()}/{len(chosen)} {done.note.relative}: {_said(done)}")
        causes.add(done.why)
        if as_json or done.fate is Fate.WRITTEN:
            _print(_described(done), as_json=as_json)

    settings = place.settings
    async with AsyncExitStack() as stack:
        telemetry = stack.enter_context(
            open_telemetry(telemetry_settings(settings, FRONT_END, serves_metrics=False, journal=True))
        )
        observers = observers_of(telemetry, FRONT_END)
        models = await stack.enter_async_context(open_models(settings, telemetry.trace_headers))
        memory = await stack.enter_async_context(
            open_memory(place.roots, catalog_path=place.catalog, observers=observers)
        )
        await memory.wait_synced()
        enricher = Enricher(models.selector or models.main, memory.edit, observers, at_once=at_once)
        interrupted = await _until_interrupted(enricher, chosen, told)
    complain(_sum(counts, len(chosen), interrupted=interrupted))
    if interrupted:
        return INTERRUPTED
    return FAILED if any(counts[fate] for fate in _NO_ANSWER) else 0


async def _until_interrupted(enricher: Enricher, chosen: Sequence[Note], told: Callable[[Enriched], None]) -> bool:
    """Enrich `chosen` until the end or until Ctrl-C or SIGTERM, and say whether it was stopped."""
    interrupted = False
    async with anyio.create_task_group() as tasks:

        async def listen() -> None:
            nonlocal interrupted
            with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
                async for _ in signals:
                    interrupted = True
                    tasks.cancel_scope.cancel()

        tasks.start_soon(listen)
        await enricher.enrich(chosen, told=told)
        tasks.cancel_scope.cancel()
    return interrupted


def _writable(roots: Sequence[Root]) -> tuple[list[Root], list[Root]]:
    """Part the roots that may be written to from those that may not; one that does not exist has no notes."""
    existing = [root for root in roots if root.path.is_dir()]
    ours = [root for root in existing if os.access(root.path, os.W_OK) and _is_ours(root.path)]
    return ours, [root for root in existing if root not in ours]


def _is_ours(root: Path) -> bool:
    """Tell whether no other program keeps its memory here, as Claude Code and Qwen Code do with an index of theirs."""
    try:
        data, _ = read_bytes(root, INDEX_NAME)
    except FileNotFoundError:
        return True
    except NoteError:
        return False
    return data.decode(errors="replace").startswith(INDEX_MARK)


def _read(roots: Sequence[Root]) -> tuple[list[Note], list[Skipped]]:
    notes: list[Note] = []
    skipped: list[Skipped] = []
    for root in roots:
        for relative in list_notes(root.path).files:
            try:
                notes.append(read_note(root, relative)[0])
            except (NoteError, OSError) as error:
                skipped.append(Skipped(relative, error.problem if isinstance(error, NoteError) else str(error)))
    return notes, skipped


def _described(done: Enriched) -> dict[str, Any]:
    written = done.phrasings
    return {
        "path": done.note.relative,
        "scope": done.note.scope.value,
        "fate": done.fate.value,
        "why": done.why,
        "phrasings": list(written.phrasings) if written else [],
        "keywords": list(written.keywords) if written else [],
    }


def _said(done: Enriched) -> str:
    if done.phrasings is None:
        return f"{done.fate}, {one_line(done.why)}"
    return f"{len(done.phrasings.phrasings)} phrasings, {len(done.phrasings.keywords)} keywords"


def _sum(counts: Counter[Fate], wanted: int, *, interrupted: bool) -> str:
    fates = ", ".join(f"{counts[fate]} {fate}" for fate in Fate if counts[fate]) or "none asked about"
    left = wanted - counts.total()
    return f"stopped: {fates}, {left} left; run it again for the rest" if interrupted else f"done: {fates}"


def _print(described: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(described, ensure_ascii=False))
        return
    click.echo(for_stdout(one_line(described["path"])))
    for phrasing in described.get("phrasings", ()):
        click.echo(for_stdout(f"  {one_line(phrasing)}"))
