"""`recallscope recall`: what memory would answer to a query, and what it would leave out."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import anyio
import click

from recallscope.runtime.cli.compose import memory_roots, open_models, policy_split
from recallscope.runtime.cli.output import for_stdout, one_line
from recallscope.runtime.cli.settings import settings_in_force
from recallscope.runtime.cli.vectors import open_vectors
from recallscope.runtime.config import Flag, Settings
from recallscope.runtime.memory.inspect import describe, describe_note
from recallscope.runtime.memory.memory import Memory, open_memory
from recallscope.runtime.memory.scopes import MemoryRoots, catalog_path
from recallscope.runtime.memory.search import Found
from recallscope.runtime.observe import Observers
from recallscope.runtime.recall.policy import policy_named
from recallscope.runtime.recall.refine import Refined, Refiner
from recallscope.runtime.recall.selector import Selector
from recallscope.runtime.terms import Cause

__all__ = ["recall"]


VECTORS_SECONDS = 10.0
"""How long the answer waits for vectors of notes that lack one, where an embedding model is configured."""


def _no_cause() -> Cause | None:
    return None


@click.command("recall")
@click.argument("query", required=False)
@click.option(
    "--memory",
    "directory",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Search the notes below DIR, which is never written to, instead of the configured memory.",
)
@click.option("--queries", "file", metavar="FILE", help="Read one query a line from FILE (- for stdin).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each query.")
@click.pass_context
def recall(context: click.Context, query: str | None, directory: Path | None, file: str | None, as_json: bool) -> int:
    """Say which notes QUERY recalls: the fast result, the refined one where a model is configured, and the runners-up.

    The answer waits for the first sync of a new catalog. This is also how to ask why a note was not recalled.
    """
    if (query is None) == (file is None):
        raise click.UsageError("give either a QUERY or --queries FILE")
    flags = {"memory.project_dir": Flag("--memory", str(directory) if directory is not None else None)}
    settings = settings_in_force(context, flags)
    queries = [query] if query is not None else list(_lines(file or "-"))
    return anyio.run(_recall, settings, queries, directory, as_json)


def _lines(file: str) -> Iterator[str]:
    try:
        with click.open_file(file, encoding="utf-8", errors="replace") as lines:
            yield from (line.strip() for line in lines if line.strip())
    except OSError as error:
        raise click.UsageError(f"--queries {file}: {error.strerror}; name a readable text file, or -") from error


async def _recall(settings: Settings, queries: list[str], directory: Path | None, as_json: bool) -> int:
    observers = Observers()
    roots = memory_roots(settings) if directory is None else MemoryRoots(project=directory)
    path = catalog_path(roots, settings.memory.cache_dir)
    async with AsyncExitStack() as stack:
        vectors = await stack.enter_async_context(open_vectors(settings, lambda _: {}, observers))
        memory = await stack.enter_async_context(
            open_memory(roots, catalog_path=path, observers=observers, read_only=True, vectors=vectors)
        )
        selector = None
        if settings.model.name is not None:
            models = await stack.enter_async_context(open_models(settings, lambda _: {}))
            selector = Selector(models.selector, observers) if models.selector is not None else None
        await memory.wait_synced()
        if vectors is not None:
            with anyio.move_on_after(VECTORS_SECONDS):
                await vectors.wait_filled()
        policy = policy_named(policy_split(settings).policies[0])
        refiner = Refiner(selector=selector, policy=policy, safety=settings.recall.selector_safety_seconds)
        for query in queries:
            found, seconds = await _search(memory, query, observers, policy.search_limit)
            refined = None
            if settings.model.name is not None:
                started = observers.now()
                chosen = await refiner.refine(
                    memory, found, op=observers.new_op(), query=query, recent_tools=(), cause=_no_cause
                )
                refined = _refined(chosen, found, observers.now() - started)
            described = describe(found, seconds, memory)
            answer = {"query": query, "fast": described.pop("fast"), "refined": refined, **described}
            click.echo(for_stdout(json.dumps(answer, ensure_ascii=False) if as_json else _text(answer)))
    return 0


async def _search(memory: Memory, query: str, observers: Observers, within: float | None) -> tuple[Found, float]:
    started = observers.now()
    found = await memory.search(query, exclude=frozenset(), recent_tools=(), within=within)
    return found, observers.now() - started


def _refined(refined: Refined, found: Found, seconds: float) -> dict[str, Any]:
    scores = {hit.note.id: hit.score for hit in (*found.fast, *found.lexical, *(left.hit for left in found.left_out))}
    return {
        "notes": [describe_note(note, scores.get(note.id)) for note in refined.notes],
        "seconds": seconds,
        "strategy": refined.strategy.value,
        "error": refined.error.value if refined.error is not None else None,
    }


def _text(answer: Mapping[str, Any]) -> str:
    fast, refined, catalog = answer["fast"], answer["refined"], answer["catalog"]
    lines = [f"{answer['query']}", f"  fast result, after {fast['seconds'] * 1000:.1f} ms:", *_notes(fast["notes"])]
    if refined is not None:
        chooser = f"{refined['strategy']}, {refined['error']}" if refined["error"] else refined["strategy"]
        lines += [f"  refined result ({chooser}), after {refined['seconds'] * 1000:.0f} ms:", *_notes(refined["notes"])]
    if answer["runners_up"]:
        lines += ["  left out (score too low, or further back):", *_notes(answer["runners_up"])]
    lines.append(f"  {catalog['notes']} notes in the catalog, {len(catalog['skipped'])} files skipped")
    lines += [f"    {one_line(skip['path'])}: {one_line(skip['why'])}" for skip in catalog["skipped"]]
    return "\n".join(lines)


def _notes(notes: Sequence[Mapping[str, Any]]) -> list[str]:
    if not notes:
        return ["    nothing"]
    return [
        f"    {_score(note['score'])}  {one_line(note['path'])}  {one_line(note['title'])} [{note['type']}]"
        for note in notes
    ]


def _score(score: float | None) -> str:
    return "     -" if score is None else f"{score:6.2f}"
