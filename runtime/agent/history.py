"""The history of a session: what the model has accepted and what it answered, in order."""

from collections.abc import Iterable

from recallscope.runtime.messages import AssistantMessage, Message, NoteVersion, UserMessage, surfaced

__all__ = ["History"]


class History:
    """Messages that the model has seen, and its answers; what was never accepted is not in it."""

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._messages: list[Message] = list(messages)

    def __len__(self) -> int:
        return len(self._messages)

    def sent(self, message: UserMessage) -> None:
        """Add a message that the model accepted (or tool results that must answer their calls)."""
        self._messages.append(message)

    def answered(self, message: AssistantMessage) -> None:
        """Add an answer of the model."""
        self._messages.append(message)

    def snapshot(self) -> tuple[Message, ...]:
        """Return the messages as they are now."""
        return tuple(self._messages)

    def surfaced(self) -> frozenset[NoteVersion]:
        """Return the versions of notes that stand in this history."""
        return surfaced(self._messages)

    def replace(self, messages: Iterable[Message] = ()) -> None:
        """Put other messages in the place of all; recalled notes that are gone with them may be delivered again."""
        self._messages = list(messages)
