"""Reminders: context that the runtime adds to the first message of a turn, from awaited sources.

The time that they take is free for the recall, which is under way meanwhile.
"""

import platform
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import anyio.to_thread

from recallscope.runtime.messages import Message, ReminderPart, UserMessage
from recallscope.runtime.observe import Clock

__all__ = ["ReminderSource", "build_reminders", "workspace_snapshot"]

ReminderSource = Callable[[Sequence[Message]], Awaitable[ReminderPart | None]]
"""Makes a reminder for a turn from the history so far, or None when there is nothing new to say."""

LISTED_ENTRIES = 60


async def build_reminders(sources: Sequence[ReminderSource], history: Sequence[Message]) -> tuple[ReminderPart, ...]:
    """Await each source in order and return what is not already standing in `history` word for word."""
    made = [await source(history) for source in sources]
    standing = {part for message in history if isinstance(message, UserMessage) for part in message.parts}
    return tuple(part for part in made if part is not None and part not in standing)


def workspace_snapshot(root: Path, *, wall: Clock) -> ReminderSource:
    """Tell the model once where it works: the folder, its top entries, the date (UTC) and the platform."""

    async def snapshot(_: Sequence[Message]) -> ReminderPart:
        entries = await anyio.to_thread.run_sync(_top_entries, root)
        day = datetime.fromtimestamp(wall(), UTC).date().isoformat()
        text = f"Workspace: {root.name}\nDate: {day}\nPlatform: {platform.system()}\nTop entries:\n{entries}"
        return ReminderPart(text, "workspace")

    return snapshot


def _top_entries(root: Path) -> str:
    try:
        names = sorted(f"{entry.name}/" if entry.is_dir() else entry.name for entry in root.iterdir())
    except OSError as error:
        return f"(could not be listed: {error.strerror})"
    shown = [name for name in names if not name.startswith(".")]
    rest = len(shown) - LISTED_ENTRIES
    return "\n".join([*shown[:LISTED_ENTRIES], *([f"({rest} more)"] if rest > 0 else [])]) or "(empty)"
