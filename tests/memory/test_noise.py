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
        root=Path(),
        relative="a.md",
        title=title,
        description="",
        type=NoteType.REFERENCE,
        body=body,
        updated=0.0,
    )


def test_a_tool_has_the_names_under_which_notes_speak_of_it() -> None:
    """The whole name, what follows `::`, and of an MCP tool what follows the server, and its last part."""
    assert aliases(["mcp__hub__jira__search"]) == {
        "mcp__hub__jira__search",
        "hub__jira__search",
        "jira__search",
        "search",
    }
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
        ("How to call edit", "", True),
        ("Wrong tool calls to plan_route", "", True),
        ("create_issue 参数说明", "", True),
        ("Aufrufparameter von create_issue", "", True),
        ("Parameters of edit", "path, old, new", True),
        ("Arguments for edit", "", True),
        ("Parameter von edit", "Der Stand ist im Mai 2026 geprüft.", True),
        ("Paramètres de edit", "", True),
        ("Parámetros de edit", "", True),
        ("Parâmetros do edit", "", True),
        ("Parametri di edit", "", True),
        ("Параметры edit", "", True),
        ("Παράμετροι της edit", "", True),
        ("Μορφή κλήσης του edit", "", True),
        ("معاملات edit", "", True),
        ("edit 的参数", "", True),
        ("edit の引数", "", True),
        ("edit의 매개변수", "", True),
        ("พารามิเตอร์ของ edit", "", True),
        ("Parameters of edit", "It pays attention to the case of the text.", True),
        ("Parameters of edit", "Checked with Mai in the office.", True),
        ("Parameters of edit", "The window is called aviso in the program.", True),
        ("Parameters of edit", "Attention: it follows links.", False),
        ("Parametri di edit", "Non usare mai con i link.", False),
        ("Parámetros de edit", "Aviso para los que lo usan con enlaces.", False),
        ("Parâmetros do edit", "Há um contorno para os links.", False),
        ("Paramètres de l'outil edit", "", True),
        ("Parámetros de la herramienta edit", "", True),
        ("Parâmetros da ferramenta edit", "", True),
        ("Parametri dello strumento edit", "", True),
        ("Параметры инструмента edit", "", True),
        ("Παράμετροι του εργαλείου edit", "", True),
        ("معاملات الأداة edit", "", True),
        ("editツールの使い方", "", True),
        ("edit 도구 사용법", "", True),
        ("พารามิเตอร์ของเครื่องมือ edit", "", True),
        ("grep tool usage", "Warning: it follows links", False),
        ("create_issue parameter schema", "The owner is team Blue", False),
        ("API docs of billing", "credentials lie in the vault", False),
        ("Tool usage of edit", "Known issue: it hangs", False),
        ("Aufrufparameter von create_issue", "Zuständig ist Katrin.", False),
        ("Paramètres de l'outil edit", "Attention aux liens.", False),
        ("Параметры инструмента edit", "Ответственный: Иван", False),
        ("editツールの使い方", "担当者は佐藤", False),
        ("create_issue 参数说明", "负责人是小李", False),
        ("Deploys", "We deploy on Fridays", False),
        ("The recall of toolusages", "", False),
    ],
)
def test_a_usage_note_documents_calls_and_nothing_that_lasts(title: str, body: str, usage: bool) -> None:
    """Warnings, owners, places of credentials and workarounds are never noise, in each language of the corpus."""
    assert is_usage_note(note(title, body)) is usage


@pytest.mark.parametrize(
    ("title", "body", "tool", "about"),
    [
        ("credit cards are edited", "", "edit", False),
        ("How to call: Edit(path)", "", "edit", True),
        ("How to read a file", "", "read_file", False),
        ("The read file tool", "", "read_file", True),
        ("ReadFile parameters", "", "read_file", True),
        ("read-file parameters", "", "read_file", True),
        ("write_file tool usage", "Then edit the text and search for it.", "edit", False),
        ("Tool usage", "Call `edit` with a path.", "edit", True),
        ("Tool usage", "edit(path) changes a file.", "edit", True),
        ("Tool usage", "run_shell takes one string", "run_shell", True),
        ("Usage of jira::create", "", "jira::create", True),
        ("Usage of create_issue", "", "mcp__jira__create_issue", True),
        ("C++ tool usage", "", "c++", True),
        ("edit 参数说明", "", "edit", True),
        ("edit参数说明", "", "edit", True),
    ],
)
def test_a_note_is_about_a_tool_that_it_names(title: str, body: str, tool: str, about: bool) -> None:
    """A name is a whole word in what heads the note; in the body a word of prose counts only as code."""
    assert mentions(note(title, body), aliases([tool])) is about


def test_no_tool_is_mentioned_where_none_was_used() -> None:
    """Without recent tools no note is noise."""
    assert not mentions(note("edit tool usage"), frozenset())
