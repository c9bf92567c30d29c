"""The sections of where the time of turns went, and of the model and the tools."""

from typing import Final

from recallscope.runtime.events import Status, TurnPhase
from recallscope.telemetry import names
from recallscope.telemetry.read.counts import Counts, Key
from recallscope.telemetry.read.quantile import EMPTY, Buckets
from recallscope.telemetry.report.blocks import (
    Bar,
    Bars,
    Block,
    Column,
    Figure,
    Grid,
    Remark,
    Row,
    Section,
    Stack,
    Tone,
)
from recallscope.telemetry.report.words import NONE, count, duration, seconds, share

__all__ = ["PHASE_TONES", "calls_section", "phases_section"]

PHASE_TONES: Final = {
    TurnPhase.QUEUE: Tone.WAITING,
    TurnPhase.PREPARE: Tone.PREPARE,
    TurnPhase.RECALL_WAIT: Tone.MEMORY,
    TurnPhase.MODEL: Tone.MODEL,
    TurnPhase.BACKOFF: Tone.BACKOFF,
    TurnPhase.TOOL: Tone.TOOL,
    TurnPhase.PERMISSION: Tone.WAITING,
    TurnPhase.HOOK: Tone.PREPARE,
    TurnPhase.COMPACTION: Tone.PREPARE,
    TurnPhase.OTHER: Tone.OTHER,
}
"""The colour of each phase."""

_PHASES: Final = {
    TurnPhase.QUEUE: "waiting to be admitted",
    TurnPhase.PREPARE: "before the first send: prompt, reminders",
    TurnPhase.RECALL_WAIT: "held for memory",
    TurnPhase.MODEL: "waiting for the model and reading it",
    TurnPhase.BACKOFF: "pauses between attempts",
    TurnPhase.TOOL: "tools",
    TurnPhase.PERMISSION: "waiting for a person's permission",
    TurnPhase.HOOK: "hooks",
    TurnPhase.COMPACTION: "compaction of the history",
    TurnPhase.OTHER: "everything else",
}


def phases_section(counts: Counts) -> Section:
    """Return the section of the time of all turns together, by phase."""
    spent = {name: total for (name,), total in counts.seconds(names.TURN_PHASE_DURATION, names.PHASE).items()}
    found = counts.histogram(names.TURN_PHASE_DURATION, names.PHASE)
    known = [phase for phase in TurnPhase if spent.get(phase.value, 0.0) > 0]
    whole = sum(spent[phase.value] for phase in known)
    parts = tuple(
        Bar(label=phase.value, value=spent[phase.value], text=share(spent[phase.value], whole), tone=PHASE_TONES[phase])
        for phase in known
    )
    rows = tuple(
        Row(
            cells=(
                phase.value,
                _PHASES[phase],
                share(spent[phase.value], whole),
                duration(spent[phase.value]) if spent[phase.value] >= 1 else seconds(spent[phase.value]),
                count((turns := found.get((phase.value,), EMPTY)).count),
                seconds(spent[phase.value] / turns.count if turns.count else None),
                seconds(turns.quantile(0.95)),
            ),
            data={"phase": phase.value, "seconds": spent[phase.value]},
        )
        for phase in known
    )
    columns = (
        Column(title="phase"),
        Column(title="what it is"),
        Column(title="share", numeric=True),
        Column(title="in all", numeric=True),
        Column(title="turns", numeric=True),
        Column(title="mean", numeric=True),
        Column(title="p95", numeric=True),
    )
    grid = Grid(caption="Time of turns, by phase", columns=columns, rows=rows)
    plot = Stack(
        title="Time of all turns, by phase",
        about="One bar for the wall time of all turns together, divided into phases.",
        parts=parts,
    )
    return Section(
        key="phases",
        title="Where the time went",
        intro="The phases of a turn add up to its wall time; here they are added over all turns.",
        blocks=(Figure(key="phases-plot", plot=plot, grid=grid),) if rows else (Remark(text="No turn was counted."),),
    )


def calls_section(counts: Counts) -> Section:
    """Return the section of the requests to models and the tool calls."""
    blocks = (*_models(counts), *_tools(counts))
    return Section(
        key="calls",
        title="Model and tools",
        intro="How often each was called, how it ended, and how long it took, attempts and pauses included.",
        blocks=blocks or (Remark(text="No call was counted."),),
    )


def _models(counts: Counts) -> tuple[Block, ...]:
    labels = (names.REQUEST_MODEL, names.PURPOSE)
    found = counts.histogram(names.INFERENCE_DURATION, *labels)
    ends = counts.by(names.INFERENCE_DURATION, *labels, names.STATUS)
    chunks = counts.histogram(names.INFERENCE_FIRST_CHUNK, *labels)
    tokens = [counts.by(metric, *labels) for metric in (names.INFERENCE_INPUT_TOKENS, names.INFERENCE_OUTPUT_TOKENS)]
    rows = tuple(
        Row(
            cells=(
                *key,
                count(calls.count),
                *_bad(ends, key),
                seconds(calls.quantile(0.5)),
                seconds(calls.quantile(0.95)),
                seconds(chunks.get(key, EMPTY).quantile(0.95)),
                *(count(used[key]) if key in used else NONE for used in tokens),
            ),
            data={"model": key[0], "purpose": key[1], "calls": calls.count},
        )
        for key, calls in _ordered(found)
    )
    columns = (
        Column(title="model"),
        Column(title="purpose"),
        *_CALLS,
        Column(title="first chunk p95", numeric=True),
        Column(title="tokens in", numeric=True),
        Column(title="out", numeric=True),
    )
    grid = Grid(caption="Requests to models", columns=columns, rows=rows)
    plot = _slowness(
        "Requests to models: 95th percentile",
        {f"{model}, {purpose}": calls for (model, purpose), calls in _ordered(found)},
        Tone.MODEL,
    )
    return (Figure(key="models", plot=plot, grid=grid),) if rows else ()


def _tools(counts: Counts) -> tuple[Block, ...]:
    found = counts.histogram(names.EXECUTE_TOOL_DURATION, names.TOOL_NAME)
    ends = counts.by(names.EXECUTE_TOOL_DURATION, names.TOOL_NAME, names.STATUS)
    rows = tuple(
        Row(
            cells=(
                *key,
                count(calls.count),
                *_bad(ends, key),
                seconds(calls.quantile(0.5)),
                seconds(calls.quantile(0.95)),
            ),
            data={"tool": key[0], "calls": calls.count},
        )
        for key, calls in _ordered(found)
    )
    grid = Grid(caption="Tool calls", columns=(Column(title="tool"), *_CALLS), rows=rows)
    plot = _slowness("Tool calls: 95th percentile", {key[0]: calls for key, calls in _ordered(found)}, Tone.TOOL)
    return (Figure(key="tools", plot=plot, grid=grid),) if rows else ()


_CALLS: Final = (
    Column(title="calls", numeric=True),
    Column(title="failed", numeric=True),
    Column(title="cancelled", numeric=True),
    Column(title="p50", numeric=True),
    Column(title="p95", numeric=True),
)


def _ordered(found: dict[Key, Buckets]) -> list[tuple[Key, Buckets]]:
    """Put what was called most often first."""
    return sorted(found.items(), key=lambda item: (-item[1].count, item[0]))


def _bad(ends: dict[Key, float], key: Key) -> tuple[str, str]:
    failed, cancelled = (ends.get((*key, status.value), 0.0) for status in (Status.FAILED, Status.CANCELLED))
    return count(failed), count(cancelled)


def _slowness(title: str, found: dict[str, Buckets], tone: Tone) -> Bars:
    quantiles = {name: calls.quantile(0.95) or 0.0 for name, calls in found.items()}
    return Bars(
        title=title,
        about="A bar for each, as long as the time that 95 of 100 calls did not exceed.",
        bars=tuple(Bar(label=name, value=p95, text=seconds(p95), tone=tone) for name, p95 in quantiles.items()),
    )
