"""Whether memory can be recalled from: switched on, folders there, catalog sound, notes in order; and who observes it.

The search is a turn like any other without a model (`agent/rehearsal`), watched by the observers of a process, whose
journal is a temporary one and which exports nothing: so it also shows whether one of them fails.
"""

import re
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
from anyio import to_thread

from recallscope.runtime import __version__
from recallscope.runtime.agent.rehearsal import rehearse
from recallscope.runtime.cli.compose import memory_roots
from recallscope.runtime.cli.doctor.finding import Finding, State, failed, fine, not_applicable, warning
from recallscope.runtime.cli.doctor.heard import heard
from recallscope.runtime.cli.vectors import open_vectors
from recallscope.runtime.config import Settings
from recallscope.runtime.errors import ConfigError, RecallscopeError, StoreUnavailableError
from recallscope.runtime.memory import catalog_file, keeper
from recallscope.runtime.memory.check import Problem, ProblemKind, check_root
from recallscope.runtime.memory.memory import Memory, open_memory
from recallscope.runtime.memory.scopes import MemoryRoots, Root, catalog_path
from recallscope.runtime.observe import Observers, ObserverStatistics
from recallscope.runtime.recall.handle import Budget
from recallscope.runtime.recall.policy import PolicySplit
from recallscope.runtime.terms import PolicyName
from recallscope.telemetry.sdk import TelemetrySettings, open_telemetry

__all__ = ["check_memory", "check_recall"]

RECALL, FOLDERS, CATALOG, NOTES, OBSERVERS = "recall", "memory", "catalog", "notes", "observers"

SYNC_SECONDS = 30.0
"""How long the doctor waits for the first sync; a large memory that is new to this machine takes longer."""

QUERY = "Which notes does the doctor find?"


def check_recall(settings: Settings, split: PolicySplit, memory: Sequence[Finding] = ()) -> Finding:
    """Say whether turns recall at all, and how; `memory`: what `check_memory` found, which may be nothing to recall."""
    if not settings.memory.enabled:
        return warning(RECALL, "recall is off: memory.enabled is false; set it to true")
    if set(split.policies) == {PolicyName.OFF}:
        return warning(RECALL, "recall is off: recall.policy is off; set it to tiered")
    ceiling = f", ceiling {settings.recall.ceiling_seconds * 1000:g} ms" if PolicyName.TIERED in split.policies else ""
    how = f"under {settings.recall.policy}{ceiling}"
    wanting = [each.check for each in memory if each.check in {FOLDERS, CATALOG} and _nothing_to_recall(each)]
    if wanting:
        return not_applicable(RECALL, f"turns would recall {how}, and there is nothing to recall: see {wanting[0]}")
    return fine(RECALL, f"turns recall {how}")


def _nothing_to_recall(finding: Finding) -> bool:
    """Say whether a finding on the folders or the catalog means that no turn recalls anything."""
    return finding.state is State.FAILED or "nothing is recalled" in finding.text


async def check_memory(settings: Settings) -> tuple[Finding, ...]:
    """Look at the folders, open the catalog as a turn does, search it, and read every note."""
    if not settings.memory.enabled:
        off = "memory is switched off"
        return tuple(not_applicable(check, off) for check in (FOLDERS, CATALOG, NOTES, OBSERVERS))
    try:
        roots = memory_roots(settings)
        folders = _folders(roots.roots)
        catalog, observers = await _catalog(settings, roots)
    except ConfigError as error:
        asked = "the memory folders cannot be told"
        return failed(FOLDERS, str(error)), *(not_applicable(each, asked) for each in (CATALOG, NOTES, OBSERVERS))
    return folders, catalog, await to_thread.run_sync(_notes, roots.roots), observers


def _folders(roots: Sequence[Root]) -> Finding:
    for root in roots:
        if root.path.exists() and not root.path.is_dir():
            return failed(FOLDERS, f"{root.path} (scope {root.scope}) is no folder; name another one as its memory")
    there = [root for root in roots if root.path.is_dir()]
    if not there:
        missing = ", ".join(str(root.path) for root in roots)
        return warning(
            FOLDERS,
            f"no usable memory root: none of {missing} is there, so nothing is recalled; "
            "write a note with `recallscope memory add`",
        )
    for root in there:
        try:
            next(root.path.iterdir(), None)
        except OSError as error:
            return failed(
                FOLDERS,
                f"{root.path} (scope {root.scope}) cannot be listed: {error.strerror}; "
                "give this user the right to read it",
            )
    return fine(FOLDERS, ", ".join(f"{root.scope} at {root.path}" for root in there))


async def _catalog(settings: Settings, roots: MemoryRoots) -> tuple[Finding, Finding]:
    """Open the catalog, search it, and say what became of the facts that the search stated."""
    async with AsyncExitStack() as stack:
        said = stack.enter_context(heard(catalog_file.__name__, keeper.__name__))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="recallscope-doctor-")))
        telemetry = stack.enter_context(
            open_telemetry(
                TelemetrySettings(
                    version=__version__,
                    front_end="doctor",
                    serve_metrics=True,
                    metrics_port=0,
                    journal_directory=folder,
                    environ={},
                )
            )
        )
        observers = Observers(telemetry.observers)
        vectors = await stack.enter_async_context(open_vectors(settings, lambda _: {}, observers))
        path = catalog_path(roots, settings.memory.cache_dir)
        memory = await stack.enter_async_context(
            open_memory(roots, observers=observers, catalog_path=path, read_only=True, vectors=vectors)
        )
        found = await _searched(memory, observers, path, said)
        return found, _observed(observers.statistics())


def _observed(observers: Sequence[ObserverStatistics]) -> Finding:
    off = [each.name for each in observers if each.switched_off]
    failing = [f"{each.name} ({each.failures})" for each in observers if each.failures]
    if off or failing:
        what = f"{', '.join(off)} was switched off" if off else f"events were lost by {', '.join(failing)}"
        return failed(OBSERVERS, f"{what} during one recall; the log above says why, please report it")
    return fine(OBSERVERS, f"{', '.join(each.name for each in observers)} took the facts of a recall")


async def _searched(memory: Memory, observers: Observers, path: Path, said: Sequence[str]) -> Finding:
    with anyio.move_on_after(SYNC_SECONDS) as limit:
        await memory.wait_synced()
    statistics = memory.statistics()
    if limit.cancelled_caught:
        return warning(
            CATALOG,
            f"the first sync did not end within {SYNC_SECONDS:g} s, so a recall finds what is there "
            "by then; run `recallscope memory index` once",
        )
    problem = next((scope.problem for scope in statistics.scopes if scope.problem is not None), None)
    if problem is not None:
        return failed(CATALOG, f"{problem}; see to that folder, or name another one")
    started = time.monotonic()
    try:
        await rehearse(
            memory,
            QUERY,
            selector=None,
            policy=PolicyName.TIERED,
            observers=observers,
            budget=Budget(),
            safety=1.0,
        )
    except StoreUnavailableError as error:
        return failed(CATALOG, f"{error}; `recallscope memory index --rebuild` makes the catalog anew")
    seconds = time.monotonic() - started
    notes = f"{memory.notes} note{'s' if memory.notes != 1 else ''}"
    if statistics.temporary:
        return warning(
            CATALOG,
            f"{notes}, in a temporary catalog, since {path} cannot be used{_why(said)}; "
            "set memory.cache_dir to a folder on a local disk",
        )
    if not memory.notes:
        return warning(CATALOG, "there is no note yet, so nothing is recalled; write one with `recallscope memory add`")
    return fine(CATALOG, f"{notes}, searched in {seconds * 1000:.0f} ms")


def _why(said: Sequence[str]) -> str:
    """Return what the system said of the catalog that could not be opened, from what was logged of it."""
    found = next((text for text in said if "a temporary catalog is used" in text), "")
    why = re.search(r"\[Errno \d+\] ([^:;]+)", found)
    return f" ({why[1].strip()})" if why else ""


def _notes(roots: Sequence[Root]) -> Finding:
    problems: list[Problem] = []
    if not any(root.path.is_dir() for root in roots):
        return not_applicable(NOTES, "no folder of notes is there")
    for root in roots:
        if not root.path.is_dir():
            continue
        try:
            problems.extend(problem for problem in check_root(root) if problem.kind is not ProblemKind.INDEX)
        except RecallscopeError as error:
            return failed(NOTES, str(error))
    counted = {kind: sum(problem.kind is kind for problem in problems) for kind in ProblemKind}
    if not problems:
        return fine(NOTES, "every file is in order")
    told = ", ".join(f"{number} {kind.replace('_', ' ')}" for kind, number in counted.items() if number)
    return warning(NOTES, f"problems in the files: {told}; `recallscope memory check` lists them")
