"""What a search found, as the JSON that `recallscope recall --json` prints."""

from typing import Any

from recallscope.runtime.memory.memory import Memory
from recallscope.runtime.memory.note import Note
from recallscope.runtime.memory.search import Found, Hit

__all__ = ["describe", "describe_note"]


def describe_note(note: Note, score: float | None) -> dict[str, Any]:
    """Return one note: path below its root, title, type, and score (None: no word of the query is in it)."""
    rounded = None if score is None else round(score, 4)
    return {"path": note.relative, "title": note.title, "type": str(note.type), "score": rounded}


def _describe_hit(hit: Hit) -> dict[str, Any]:
    return describe_note(hit.note, hit.score)


def describe(found: Found, seconds: float, memory: Memory) -> dict[str, Any]:
    """Return `fast`, `runners_up` and `catalog`; `seconds` is the time from begin to the fast result.

    The runners-up are the best of the notes that were looked at and left out of the fast result.
    """
    return {
        "fast": {"notes": [_describe_hit(hit) for hit in found.fast], "seconds": seconds},
        "runners_up": [_describe_hit(left.hit) for left in found.left_out],
        "catalog": {
            "notes": memory.notes,
            "skipped": [{"path": skip.path, "why": skip.why} for skip in memory.skipped],
        },
    }
