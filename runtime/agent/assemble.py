"""The one function that assembles a message to the model."""

from collections.abc import Sequence
from dataclasses import dataclass

from recallscope.runtime.messages import MemoryPart, ReminderPart, TextPart, ToolResultPart, UserMessage
from recallscope.runtime.terms import Point

__all__ = ["Outgoing", "assemble"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """What the next send says, before memory enters it."""

    results: Sequence[ToolResultPart] = ()
    reminders: Sequence[ReminderPart] = ()
    text: Sequence[TextPart] = ()

    def point(self, *, first: bool) -> Point:
        """Return the delivery point of this send: `first` says that it is the first of a fresh user turn."""
        if self.results:
            return Point.TOOL_RESULT
        return Point.INITIAL if first else Point.NONE


def assemble(outgoing: Outgoing, memory: MemoryPart | None) -> UserMessage:
    """Return the message: leading tool results in call order, memory, other reminders, the person's text.

    Providers require that results follow their calls at once; memory leads what comes after them (docs/recall.md).
    """
    return UserMessage(
        (*outgoing.results, *((memory,) if memory is not None else ()), *outgoing.reminders, *outgoing.text)
    )
