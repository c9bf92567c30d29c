"""The one order of a message's parts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallscope.runtime.agent.assemble import Outgoing, assemble
from recallscope.runtime.messages import MemoryPart, NoteVersion, ReminderPart, TextPart, ToolResultPart
from recallscope.runtime.terms import Point

RESULTS = st.lists(st.builds(ToolResultPart, st.text(max_size=3), st.just("t"), st.text(max_size=5)), max_size=4)
REMINDERS = st.lists(st.builds(ReminderPart, st.text(max_size=5), st.just("todo")), max_size=3)
TEXTS = st.lists(st.builds(TextPart, st.text(max_size=5)), max_size=3)
MEMORY = st.none() | st.builds(MemoryPart, st.text(max_size=5), st.just((NoteVersion("n", "1"),)))


@given(RESULTS, REMINDERS, TEXTS, MEMORY)
def test_the_order_of_the_parts(
    results: list[ToolResultPart], reminders: list[ReminderPart], texts: list[TextPart], memory: MemoryPart | None
) -> None:
    """All tool results in call order, then memory, then reminders, then the person's text; nothing lost or added."""
    message = assemble(Outgoing(results=results, reminders=reminders, text=texts), memory)

    assert list(message.parts) == [*results, *([memory] if memory else []), *reminders, *texts]


@pytest.mark.parametrize(
    ("outgoing", "first", "point"),
    [
        (Outgoing(text=[TextPart("hi")]), True, Point.INITIAL),
        (Outgoing(text=[TextPart("hi")]), False, Point.NONE),
        (Outgoing(results=[ToolResultPart("c", "t", "r")]), False, Point.TOOL_RESULT),
        (Outgoing(results=[ToolResultPart("c", "t", "r")], text=[TextPart("go on")]), False, Point.TOOL_RESULT),
        (Outgoing(), False, Point.NONE),
    ],
)
def test_where_memory_may_enter(outgoing: Outgoing, *, first: bool, point: Point) -> None:
    """A send that begins with tool results is a point, the first of a fresh turn is one, other text is none."""
    assert outgoing.point(first=first) is point
