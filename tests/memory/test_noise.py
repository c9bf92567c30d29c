"""Noise: usage notes about tools just used are told apart from what lasts."""

from pathlib import Path

import pytest

from recallscope.runtime.memory.noise import aliases, is_usage_note, mentions
from recallscope.runtime.memory.note import Note
from recallscope.runtime.terms import NoteType, ScopeName


def note(title: str, body: str = "") -> Note:
    """Return a note with this text."""
    return Note(
        id="project:a.md",
        version="1",
        scope=ScopeName.PROJECT,
        path=Path("a.md"),
        relative="a.md",
        title=title,
        description="",
        type=NoteType.REFERENCE,
        body=body,
        updated=0.0,
    )


def test_a_tool_has_the_names_under_which_notes_speak_of_it() -> None:
    """The whole name, what follows `::`, and of an MCP tool what follows the server."""
    assert aliases(["Grep", "core::Read", "mcp__jira__create_issue"]) == {
        "grep",
        "core::read",
        "read",
        "mcp__jira__create_issue",
        "jira__create_issue",
        "create_issue",
    }


def test_the_last_twenty_distinct_tools_count() -> None:
    """A repeated tool counts once, at its last place."""
    names = aliases(["old", "again", *(f"t{number}" for number in range(19)), "again"])
    assert names == {"again", *(f"t{number}" for number in range(19))}


@pytest.mark.parametrize(
    ("title", "body", "usage"),
    [
        ("grep tool usage", "parameters: pattern, path", True),
        ("Failed call of create_issue", "the field mapping was wrong", True),
        ("create_issue 参数说明", "", True),
        ("grep tool usage", "Warning: it follows links", False),
        ("create_issue parameter schema", "The owner is team Blue", False),
        ("API docs of billing", "credentials lie in the vault", False),
        ("Deploys", "We deploy on Fridays", False),
    ],
)
def test_a_usage_note_documents_calls_and_nothing_that_lasts(title: str, body: str, usage: bool) -> None:
    """Warnings, owners, places of credentials and workarounds are never noise."""
    assert is_usage_note(note(title, body)) is usage


def test_a_name_is_matched_as_a_whole_word() -> None:
    """A tool called `edit` is not mentioned by "credit" or "edited"."""
    assert not mentions(note("credit cards are edited"), frozenset({"edit"}))
    assert mentions(note("How to call: Edit(path)"), frozenset({"edit"}))
    assert not mentions(note("anything"), frozenset())
