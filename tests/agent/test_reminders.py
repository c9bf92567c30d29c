"""Reminders: what the runtime adds to the first message of a turn."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from recallscope.runtime.agent.recent_tools import KEPT, RecentTools
from recallscope.runtime.agent.reminders import LISTED_ENTRIES, build_reminders, workspace_snapshot
from recallscope.runtime.messages import Message, ReminderPart, TextPart, UserMessage

pytestmark = pytest.mark.anyio


async def _todo(_: Sequence[Message]) -> ReminderPart:
    return ReminderPart("three things", "todo")


async def _nothing(_: Sequence[Message]) -> None:
    return None


async def test_sources_are_asked_in_order() -> None:
    """Each source is awaited with the history; one that has nothing to say adds nothing."""
    asked: list[Sequence[Message]] = []

    async def look(history: Sequence[Message]) -> ReminderPart:
        asked.append(history)
        return ReminderPart("seen", "look")

    history = (UserMessage((TextPart("hi"),)),)

    assert await build_reminders([look, _nothing, _todo], history) == (
        ReminderPart("seen", "look"),
        ReminderPart("three things", "todo"),
    )
    assert asked == [history]


async def test_what_stands_in_the_conversation_is_not_repeated() -> None:
    """A reminder that the model has seen word for word is left out; a changed one is not."""
    standing = (UserMessage((ReminderPart("three things", "todo"), TextPart("hi"))),)
    changed = (UserMessage((ReminderPart("two things", "todo"), TextPart("hi"))),)

    assert await build_reminders([_todo], standing) == ()
    assert await build_reminders([_todo], changed) == (ReminderPart("three things", "todo"),)


async def test_the_workspace_is_shown_once(tmp_path: Path) -> None:
    """Folder, date, platform and top entries, without what is hidden."""
    (tmp_path / "src").mkdir()
    (tmp_path / "README.md").write_text("hi")
    (tmp_path / ".secret").write_text("no")
    part = await workspace_snapshot(tmp_path, wall=lambda: 86_400.0)(())

    assert part is not None
    lines = part.text.splitlines()
    assert lines[:2] == [f"Workspace: {tmp_path.name}", "Date: 1970-01-02"]
    assert lines[-2:] == ["README.md", "src/"]
    assert ".secret" not in part.text


async def test_a_large_workspace_is_cut(tmp_path: Path) -> None:
    """The list of entries is bounded and says what it leaves out."""
    for number in range(LISTED_ENTRIES + 7):
        (tmp_path / f"{number:03}").write_text("")
    part = await workspace_snapshot(tmp_path, wall=lambda: 0.0)(())

    assert part is not None
    assert part.text.endswith("059\n(7 more)")


async def test_an_unreadable_workspace_is_said(tmp_path: Path) -> None:
    """A folder that is gone is a line of the reminder and no failure of the turn."""
    part = await workspace_snapshot(tmp_path / "gone", wall=lambda: 0.0)(())

    assert part is not None
    assert part.text.endswith("(could not be listed: No such file or directory)")


def test_the_last_distinct_tools_are_remembered() -> None:
    """Twenty names, each once, the latest last; a name used again moves to the end."""
    recent = RecentTools()
    for number in range(KEPT + 5):
        recent.record(f"t{number}")
    recent.record("t10")

    assert recent.names() == (*(f"t{number}" for number in range(5, 25) if number != 10), "t10")
    recent.clear()
    assert recent.names() == ()
