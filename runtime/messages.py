"""What a conversation is made of: frozen messages of typed parts.

A user-side message may begin with tool results; memory and reminders are parts of their own type, so that nobody
mistakes them for what the person said, and so that `surfaced` is a plain function over history.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

__all__ = [
    "AssistantMessage",
    "MemoryPart",
    "Message",
    "NoteVersion",
    "Part",
    "ReminderPart",
    "TextPart",
    "ToolCall",
    "ToolResultPart",
    "UserMessage",
    "prompt_text",
    "surfaced",
]


@dataclass(frozen=True, slots=True, order=True)
class NoteVersion:
    """One version of a note: its id (stable across edits) and the hash of its content."""

    note: str
    version: str


@dataclass(frozen=True, slots=True)
class TextPart:
    """What the person wrote, or text that continues their turn."""

    text: str


@dataclass(frozen=True, slots=True)
class MemoryPart:
    """Recalled notes as one fenced text, and which versions they are."""

    text: str
    versions: tuple[NoteVersion, ...]


@dataclass(frozen=True, slots=True)
class ReminderPart:
    """Context that the runtime adds (a workspace snapshot, a notice); `source` names who."""

    text: str
    source: str


@dataclass(frozen=True, slots=True)
class ToolResultPart:
    """The answer to one tool call."""

    call_id: str
    tool: str
    text: str
    is_error: bool = False


Part = TextPart | MemoryPart | ReminderPart | ToolResultPart


@dataclass(frozen=True, slots=True)
class UserMessage:
    """One message to the model: leading tool results, memory, reminders, text (the order of `agent/assemble`)."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call as the model wrote it; `arguments` is its JSON text, unchecked."""

    call_id: str
    tool: str
    arguments: str


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    """One answer of the model; `complete` is False for an answer that was cut off."""

    text: str
    tool_calls: tuple[ToolCall, ...] = field(default=())
    complete: bool = True


Message = UserMessage | AssistantMessage


def surfaced(history: Iterable[Message]) -> frozenset[NoteVersion]:
    """Return the versions of notes that stand in `history` as memory parts: derived, never stored."""
    return frozenset(
        version
        for message in history
        if isinstance(message, UserMessage)
        for part in message.parts
        if isinstance(part, MemoryPart)
        for version in part.versions
    )


def prompt_text(parts: Sequence[Part]) -> str:
    """Return what the person wrote in `parts`, without memory, reminders and tool results."""
    return "\n".join(part.text for part in parts if isinstance(part, TextPart))
