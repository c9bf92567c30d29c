"""The answer of `recallscope recall`: one JSON object a query, or the same as text."""

from collections.abc import Mapping, Sequence
from typing import Any

from recallscope.runtime.agent.rehearsal import Candidate, Rehearsal
from recallscope.runtime.cli.output import one_line
from recallscope.runtime.memory.inspect import describe, describe_note
from recallscope.runtime.memory.memory import Memory
from recallscope.runtime.recall.handle import Budget
from recallscope.runtime.recall.policy import Policy

__all__ = ["as_object", "as_text", "explanation"]


def as_object(query: str, told: Rehearsal, memory: Memory, *, refined: bool) -> dict[str, Any]:
    """Return `query`, `fast`, `refined` (None where no model is configured), `runners_up` and `catalog`.

    Each of the runners-up has `why`, its fate.
    """
    described = describe(told.found, told.fast.elapsed if told.fast is not None else 0.0, memory)
    fates = {candidate.hit.note.id: candidate.fate.value for candidate in told.candidates}
    for runner_up, left in zip(described["runners_up"], told.found.left_out, strict=True):
        runner_up["why"] = fates[left.hit.note.id]
    return {"query": query, "fast": described.pop("fast"), "refined": _refined(told) if refined else None, **described}


def _refined(told: Rehearsal) -> dict[str, Any] | None:
    if told.settled is None:
        return None
    scores = {candidate.hit.note.id: candidate.hit.score for candidate in told.candidates if candidate.hit.parts}
    return {
        "notes": [describe_note(note, scores.get(note.id)) for note in told.refined],
        "seconds": told.settled.elapsed,
        "strategy": told.settled.strategy.value,
        "error": told.settled.error_type.value if told.settled.error_type is not None else None,
    }


def explanation(told: Rehearsal, policy: Policy, budget: Budget) -> dict[str, Any]:
    """Return what the recall went by, and the score and the fate of each note that it looked at."""
    found = told.found
    not_asked = told.settled.not_asked if told.settled is not None else None
    return {
        "policy": policy.name.value,
        "ceiling_seconds": policy.ceiling,
        "budget": {"notes": budget.notes, "characters": budget.characters},
        "threshold": round(found.threshold, 4),
        "telling_words": sorted(found.asked),
        "sources": [source.value for source in found.sources],
        "selector_not_asked": not_asked.value if not_asked is not None else None,
        "candidates": [_candidate(candidate) for candidate in told.candidates],
    }


def _candidate(candidate: Candidate) -> dict[str, Any]:
    hit = candidate.hit
    return {
        **describe_note(hit.note, hit.score if hit.parts else None),
        "scope": hit.note.scope.value,
        "fate": candidate.fate.value,
        "fast": candidate.fast,
        "refined": candidate.refined,
        "point": candidate.point.value if candidate.point is not None else None,
        "by_source": _sums((part.source.value, part.value) for part in hit.parts),
        "by_field": _sums((part.field.name.lower(), part.value) for part in hit.parts if part.field is not None),
        "words": [
            {
                "word": part.word,
                "field": part.field.name.lower() if part.field is not None else None,
                "source": part.source.value,
                "value": round(part.value, 4),
            }
            for part in hit.parts
        ],
    }


def _sums(pairs: Any) -> dict[str, float]:
    sums: dict[str, float] = {}
    for name, value in pairs:
        sums[name] = sums.get(name, 0.0) + value
    return {name: round(value, 4) for name, value in sums.items()}


def as_text(answer: Mapping[str, Any]) -> str:
    """Return an answer for people; with `explain` in it, what each score is made of and what dropped a note."""
    fast, refined, catalog = answer["fast"], answer["refined"], answer["catalog"]
    lines = [
        one_line(answer["query"]),
        f"  fast result, after {fast['seconds'] * 1000:.1f} ms:",
        *_notes(fast["notes"]),
    ]
    if refined is not None:
        chooser = f"{refined['strategy']}, {refined['error']}" if refined["error"] else refined["strategy"]
        lines += [f"  refined result ({chooser}), after {refined['seconds'] * 1000:.0f} ms:", *_notes(refined["notes"])]
    if "explain" in answer:
        lines += _explained(answer["explain"])
    elif answer["runners_up"]:
        lines += ["  left out (--explain says why):", *_notes(answer["runners_up"])]
    lines.append(f"  {catalog['notes']} notes in the catalog, {len(catalog['skipped'])} files skipped")
    lines += [f"    {one_line(skip['path'])}: {one_line(skip['why'])}" for skip in catalog["skipped"]]
    return "\n".join(lines)


def _explained(explain: Mapping[str, Any]) -> list[str]:
    budget = explain["budget"]
    room = f"budget {budget['notes']} notes and {budget['characters']} characters"
    sources = ", ".join(explain["sources"])
    lines = [
        f"  policy {explain['policy']}, threshold {explain['threshold']:.2f}, sources {sources}, {room}",
        f"  telling words: {', '.join(explain['telling_words']) or 'none'}",
    ]
    if explain["selector_not_asked"]:
        lines.append(f"  the selector was not asked: {explain['selector_not_asked']}")
    lines.append("  every note that was looked at:")
    for candidate in explain["candidates"]:
        where = f" at {candidate['point']}" if candidate["point"] else ""
        lines += [*_notes([candidate]), f"            {candidate['fate']}{where}"]
        if candidate["words"]:
            lines.append(f"            {', '.join(_part(part) for part in candidate['words'])}")
    return lines if explain["candidates"] else [*lines, "    nothing"]


def _part(part: Mapping[str, Any]) -> str:
    if part["field"] is None:
        return f"{part['source']} {part['value']:.2f}"
    return f"{one_line(part['word'])} in {part['field']} {part['value']:.2f}"


def _notes(notes: Sequence[Mapping[str, Any]]) -> list[str]:
    if not notes:
        return ["    nothing"]
    return [
        f"    {_score(note['score'])}  {one_line(note['path'])}  {one_line(note['title'])} [{note['type']}]"
        for note in notes
    ]


def _score(score: float | None) -> str:
    return "     -" if score is None else f"{score:6.2f}"
