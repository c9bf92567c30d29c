"""The scripted scenarios mean what the table says: words, notes and times."""

from pathlib import Path

import anyio
import pytest

from recallscope.runtime.agent.tools.registry import ToolContext
from recallscope.runtime.lab.scenarios import SCENARIOS, build_script, job_tool, preparation, write_sample_notes
from recallscope.runtime.memory.memory import open_memory
from recallscope.runtime.memory.scopes import MemoryRoots
from recallscope.runtime.observe import Observers
from recallscope.runtime.terms import Scenario
from recallscope.runtime.testing.script_parser import parse_script
from recallscope.telemetry.queries import TABLE_SCENARIOS


def test_every_row_of_the_table_has_a_script() -> None:
    """The five scenarios, in the order of the table, with the times of the design."""
    assert tuple(SCENARIOS) == TABLE_SCENARIOS
    assert {scenario: play.times for scenario, play in SCENARIOS.items()} == {
        Scenario.SETTLED_BEFORE_SEND: ("selector 20 ms", "reminders 150 ms", "answer 200 ms"),
        Scenario.SLOW_WITH_TOOLS: ("selector 908 ms", "tool 1.5 s"),
        Scenario.TIMED_OUT: ("selector 1.6 s", "tool 2.5 s"),
        Scenario.SLOW_WITHOUT_TOOLS: ("selector 1.6 s", "answer 300 ms"),
        Scenario.SUPERSEDED: ("selector 1.6 s", "answer 2 s", "next prompt 300 ms"),
    }


def test_the_script_is_one_that_the_model_server_reads() -> None:
    """What another process gets is the same script."""
    script = build_script()

    assert parse_script(script.as_json()) == script


def test_prompts_are_told_apart() -> None:
    """No prompt stands within another one, nor in a note that a prompt could carry."""
    texts = [part.text for part in build_script().scenarios]

    assert [text for text in texts if sum(text in other for other in texts) > 1] == []


@pytest.mark.anyio
async def test_the_words_of_each_prompt_match_the_first_notes_and_not_the_last(tmp_path: Path) -> None:
    """The fast result has a note, the selector's answer holds all of it and one more; second prompts match nothing."""
    write_sample_notes(tmp_path / "notes")
    roots = MemoryRoots(project=tmp_path / "notes", base=tmp_path)
    fast: dict[str, list[str]] = {}
    async with open_memory(roots, observers=Observers(), catalog_path=tmp_path / "catalog") as memory:
        await memory.wait_synced()
        for play in SCENARIOS.values():
            for prompt in (play.prompt, *([play.second.text] if play.second is not None else [])):
                found = await memory.search(prompt, exclude=frozenset(), recent_tools=())
                fast[prompt] = [hit.note.title for hit in found.fast]
                assert set(play.notes) <= {note.title for note in found.candidates}
        skipped = memory.skipped

    assert skipped == ()
    assert {prompt: titles for prompt, titles in fast.items() if titles} == {
        play.prompt: list(play.notes[:-1]) for play in SCENARIOS.values()
    }


@pytest.mark.anyio
async def test_the_tool_takes_as_long_as_it_is_told() -> None:
    """The scripted tool call reaches a tool that sleeps."""
    tool = job_tool()
    started = anyio.current_time()

    answer = (await tool.run({"seconds": 0.01}, ToolContext())).text

    assert answer == "done after 0.01 s"
    assert anyio.current_time() - started >= 0.01


@pytest.mark.anyio
async def test_the_preparation_takes_its_time_and_says_nothing() -> None:
    """The reminders of a scenario only take time."""
    started = anyio.current_time()

    assert await preparation(0.01)(()) is None
    assert anyio.current_time() - started >= 0.01


def test_the_sample_notes_are_written_twice_without_harm(tmp_path: Path) -> None:
    """A folder that has the notes already gets them again."""
    write_sample_notes(tmp_path / "notes")
    write_sample_notes(tmp_path / "notes")

    assert len(list((tmp_path / "notes").rglob("*.md"))) == 8


def test_a_slow_selector_settles_before_the_last_tool_result() -> None:
    """The tools of both slow scenarios outlast their selectors, whatever the machine adds."""
    slow = [play for play in SCENARIOS.values() if play.tool is not None]

    assert [play.scenario for play in slow if (play.tool or 0) - play.selector < 0.5] == []
