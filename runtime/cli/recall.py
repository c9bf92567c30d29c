"""`recallscope recall`: what memory would answer to a query, and what it would leave out."""

import json
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import click
from anyio import to_thread

from recallscope.runtime.agent.rehearsal import rehearse
from recallscope.runtime.cli.compose import memory_roots, open_models, policy_split
from recallscope.runtime.cli.memory.place import note_named
from recallscope.runtime.cli.output import for_stdout
from recallscope.runtime.cli.recall_answer import as_object, as_text, explanation
from recallscope.runtime.cli.settings import settings_in_force
from recallscope.runtime.cli.vectors import open_vectors
from recallscope.runtime.config import Flag, Settings
from recallscope.runtime.memory.memory import Memory, open_memory
from recallscope.runtime.memory.overview import overview
from recallscope.runtime.memory.scopes import MemoryRoots, catalog_path
from recallscope.runtime.messages import NoteVersion
from recallscope.runtime.observe import Observers
from recallscope.runtime.recall.handle import Budget
from recallscope.runtime.recall.policy import Policy, policy_named
from recallscope.runtime.terms import PolicyName

__all__ = ["recall"]


VECTORS_SECONDS = 10.0
"""How long the answer waits for vectors of notes that lack one, where an embedding model is configured."""


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
@click.option("--explain", is_flag=True, help="Say of every note what its score is made of and what dropped it.")
@click.option("--tool", "tools", multiple=True, metavar="NAME", help="Recall as after this tool (may be repeated).")
@click.option("--surfaced", multiple=True, metavar="NOTE", help="Recall as if this note stood in the conversation.")
@click.pass_context
def recall(context: click.Context, /, query: str | None, directory: Path | None, file: str | None, **how: Any) -> int:
    """Say which notes QUERY recalls: the fast result, the refined one where a model is configured, and the runners-up.

    The answer waits for the first sync of a new catalog. With --explain this is how to ask why a note was not recalled:
    the recall is the one of a turn, which is in no hurry.
    """
    if (query is None) == (file is None):
        raise click.UsageError("give either a QUERY or --queries FILE")
    flags = {"memory.project_dir": Flag("--memory", str(directory) if directory is not None else None)}
    settings = settings_in_force(context, flags)
    queries = [query] if query is not None else list(_lines(file or "-"))
    return anyio.run(_recall, settings, queries, directory, _How(**how))


@dataclass(frozen=True, slots=True, kw_only=True)
class _How:
    """What the options say of the recall and of its answer."""

    as_json: bool
    explain: bool
    tools: tuple[str, ...]
    surfaced: tuple[str, ...]


def _lines(file: str) -> Iterator[str]:
    if file == "-" and sys.stdin is None:  # so it is where it was closed
        raise click.UsageError("--queries -: stdin is closed; pipe the queries into it, or name a readable text file")
    try:
        with click.open_file(file, encoding="utf-8", errors="replace") as lines:
            yield from (line.strip() for line in lines if line.strip())
    except OSError as error:
        raise click.UsageError(f"--queries {file}: {error.strerror}; name a readable text file, or -") from error


async def _recall(settings: Settings, queries: list[str], directory: Path | None, how: _How) -> int:
    observers = Observers()
    roots = memory_roots(settings, directory)
    path = catalog_path(roots, settings.memory.cache_dir)
    async with AsyncExitStack() as stack:
        vectors = await stack.enter_async_context(open_vectors(settings, lambda _: {}, observers))
        memory = await stack.enter_async_context(
            open_memory(roots, catalog_path=path, observers=observers, read_only=True, vectors=vectors)
        )
        selector = None
        if settings.model.name is not None:
            models = await stack.enter_async_context(open_models(settings, lambda _: {}))
            selector = models.selector
        await memory.wait_synced()
        if vectors is not None:
            with anyio.move_on_after(VECTORS_SECONDS):
                await vectors.wait_filled()
        policy = _policy(settings)
        budget = Budget(settings.recall.budget_notes, settings.recall.budget_characters)
        surfaced = await _surfaced(memory, roots, how.surfaced)
        for query in queries:
            told = await rehearse(
                memory,
                query,
                selector=selector,
                policy=policy.name,
                observers=observers,
                budget=budget,
                safety=settings.recall.selector_safety_seconds,
                surfaced=surfaced,
                recent_tools=how.tools,
            )
            answer = as_object(query, told, memory, refined=settings.model.name is not None)
            if how.explain:
                answer["explain"] = explanation(told, policy, budget)
            click.echo(for_stdout(json.dumps(answer, ensure_ascii=False) if how.as_json else as_text(answer)))
    return 0


def _policy(settings: Settings) -> Policy:
    """Return the first policy in force; where recall is off, what `tiered` would do."""
    name = policy_split(settings).policies[0]
    return policy_named(PolicyName.TIERED if name is PolicyName.OFF else name, ceiling=settings.recall.ceiling_seconds)


async def _surfaced(memory: Memory, roots: MemoryRoots, names: tuple[str, ...]) -> frozenset[NoteVersion]:
    if not names:
        return frozenset()
    known = await to_thread.run_sync(overview, memory.statistics().catalog, roots.roots)
    return frozenset(note_named(name, known).note_version for name in names)
