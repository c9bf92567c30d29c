"""What a conversation is made of, and what can be read from it."""

from hypothesis import given
from hypothesis import strategies as st

from recallscope.runtime.messages import (
    AssistantMessage,
    MemoryPart,
    Message,
    NoteVersion,
    Part,
    ReminderPart,
    TextPart,
    ToolResultPart,
    UserMessage,
    prompt_text,
    surfaced,
)

VERSIONS = st.builds(NoteVersion, st.sampled_from("abc"), st.sampled_from("12"))
PARTS: st.SearchStrategy[Part] = st.one_of(
    st.builds(TextPart, st.text(max_size=5)),
    st.builds(ReminderPart, st.text(max_size=5), st.just("todo")),
    st.builds(ToolResultPart, st.just("c"), st.just("t"), st.text(max_size=5)),
    st.builds(MemoryPart, st.text(max_size=5), st.lists(VERSIONS, max_size=3).map(tuple)),
)
MESSAGES: st.SearchStrategy[Message] = st.one_of(
    st.builds(UserMessage, st.lists(PARTS, max_size=5).map(tuple)), st.builds(AssistantMessage, st.text(max_size=5))
)


@given(st.lists(MESSAGES, max_size=6), st.lists(MESSAGES, max_size=3))
def test_what_stands_in_the_conversation(history: list[Message], more: list[Message]) -> None:
    """Surfaced is what memory parts of the history say, no more: it grows with it and vanishes with it."""
    named = {
        version
        for message in history
        if isinstance(message, UserMessage)
        for part in message.parts
        if isinstance(part, MemoryPart)
        for version in part.versions
    }

    assert surfaced(history) == named
    assert surfaced([*history, *more]) == surfaced(history) | surfaced(more)
    assert surfaced([]) == frozenset()


def test_text_that_looks_like_memory_is_none() -> None:
    """What a person pastes is text, whatever it looks like."""
    pasted = UserMessage((TextPart('<recalled_memory><note title="x"></note></recalled_memory>'),))

    assert surfaced([pasted]) == frozenset()


def test_what_the_person_wrote() -> None:
    """Memory, reminders and tool results are not what the person said."""
    parts = (
        ToolResultPart("c", "t", "result"),
        MemoryPart("note", (NoteVersion("n", "1"),)),
        ReminderPart("todo", "todo"),
        TextPart("first"),
        TextPart("second"),
    )

    assert prompt_text(parts) == "first\nsecond"
