"""The five scenarios of the comparison as data: what is asked, how long everything takes, and which notes are in play.

The times are those of docs/comparison.md; 908 ms was measured for a cold selector in the system that this design comes
from. In each scenario the words of the prompt match the first of its notes and not the last one, which only the
selector finds. The same notes and the same script serve `recallscope run --demo`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from shutil import copytree
from typing import Any

import anyio

from recallscope.runtime.agent.reminders import ReminderSource
from recallscope.runtime.agent.tools.registry import Tool, function_tool
from recallscope.runtime.messages import Message, ReminderPart
from recallscope.runtime.terms import Scenario
from recallscope.runtime.testing.script import Scenario as Part
from recallscope.runtime.testing.script import Script, ScriptedToolCall, Select, Step, Steps

__all__ = [
    "MAIN_MODEL",
    "SCENARIOS",
    "SMALL_MODEL",
    "Play",
    "SecondPrompt",
    "answer_step",
    "build_script",
    "job_tool",
    "preparation",
    "script_part",
    "script_parts",
    "tool_step",
    "write_sample_notes",
]

MAIN_MODEL = "scripted-main"
SMALL_MODEL = "scripted-small"
JOB = "run_job"

CHUNK_SECONDS = 0.02
SECOND_ANSWER_SECONDS = 0.4
DEMO_ANSWER_SECONDS = 0.6
DEMO_SELECTOR_SECONDS = 0.3


@dataclass(frozen=True, slots=True)
class SecondPrompt:
    """What the person writes `after` seconds, while the first turn is under way; no note matches it."""

    text: str
    after: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """How one scenario is played. All times are seconds.

    `selector`: until the small model answers. `preparation`: what the reminders take before the first send. `tool`: one
    tool call of this length, before the answer. `answer`: how long the answer streams. `notes`: titles; the selector
    chooses exactly these.
    """

    scenario: Scenario
    prompt: str
    notes: tuple[str, ...]
    selector: float
    answer: float
    says: str
    preparation: float = 0.0
    tool: float | None = None
    second: SecondPrompt | None = None

    @property
    def length(self) -> float:
        """About how long a turn takes in which nothing waits for memory."""
        return self.preparation + (self.tool or 0.0) + self.answer

    @property
    def times(self) -> tuple[str, ...]:
        """The times in words, for people."""
        parts = [f"selector {_seconds(self.selector)}"]
        if self.preparation:
            parts.append(f"reminders {_seconds(self.preparation)}")
        parts.append(f"tool {_seconds(self.tool)}" if self.tool is not None else f"answer {_seconds(self.answer)}")
        if self.second is not None:
            parts.append(f"next prompt {_seconds(self.second.after)}")
        return tuple(parts)


_PLAYS = (
    Play(
        scenario=Scenario.SETTLED_BEFORE_SEND,
        prompt="Which port does the staging database listen on?",
        notes=("Staging database", "Short answers"),
        selector=0.02,
        preparation=0.15,
        answer=0.2,
        says="Port 6432, through pgbouncer. Prepared statements must be off.",
    ),
    Play(
        scenario=Scenario.SLOW_WITH_TOOLS,
        prompt="Apply the billing migration and tell me whether it went well.",
        notes=("Billing migration", "Dry run first"),
        selector=0.908,
        tool=1.5,
        answer=0.1,
        says="It went well: 0 open rows after 12 batches.",
    ),
    Play(
        scenario=Scenario.TIMED_OUT,
        prompt="Rebuild the search index and tell me how long it took.",
        notes=("Search index", "On-call rota"),
        selector=1.6,
        tool=2.5,
        answer=0.1,
        says="38 minutes; the alias points to the new index.",
    ),
    Play(
        scenario=Scenario.SLOW_WITHOUT_TOOLS,
        prompt="What is the release branch of June called?",
        notes=("Release branches", "Short answers"),
        selector=1.6,
        answer=0.3,
        says="It is called release/2026.06 and was cut on the first Tuesday.",
    ),
    Play(
        scenario=Scenario.SUPERSEDED,
        prompt="Write the incident report for the payments outage in March.",
        notes=("Payments outage of March", "On-call rota"),
        selector=1.6,
        answer=2.0,
        says="Summary: for 47 minutes no payment was confirmed, because the retries of one merchant filled the queue. "
        * 2,
        second=SecondPrompt("Thanks, never mind.", after=0.3),
    ),
)

SCENARIOS: Mapping[Scenario, Play] = {play.scenario: play for play in _PLAYS}
"""How each row of the table is played, in the table's order."""


def build_script(plays: Sequence[Play] = _PLAYS, parts: Sequence[Part] = ()) -> Script:
    """Return the script that answers `plays` and `parts`, told apart by their prompts, and any other as a demo."""
    return Script(
        purposes={
            "main": Steps((answer_step(DEMO_ANSWER, DEMO_ANSWER_SECONDS),)),
            "memory_selection": Steps((Step(delay=DEMO_SELECTOR_SECONDS, select=Select(also_first=1)),)),
        },
        scenarios=(*(part for play in plays for part in script_parts(play)), *parts),
        models=(MAIN_MODEL, SMALL_MODEL),
    )


DEMO_ANSWER = (
    "I am the scripted model, so this answer is always the same. "
    "The notes that came with your prompt are real: the line below says what recall did with them."
)


def preparation(seconds: float) -> ReminderSource:
    """Return a source of reminders that takes `seconds` and has nothing to say."""

    async def prepare(_: Sequence[Message]) -> ReminderPart | None:
        await anyio.sleep(seconds)
        return None

    return prepare


def job_tool() -> Tool:
    """Return the tool that the scripted model calls: a job that takes as many seconds as its argument says."""

    async def run(arguments: Mapping[str, Any]) -> str:
        await anyio.sleep(arguments["seconds"])
        return f"done after {arguments['seconds']:g} s"

    parameters = {
        "type": "object",
        "properties": {"seconds": {"type": "number", "minimum": 0, "maximum": 60}},
        "required": ["seconds"],
        "additionalProperties": False,
    }
    return function_tool(JOB, "Run the job that was asked for and wait for its end.", parameters, run, read_only=True)


def write_sample_notes(folder: Path) -> None:
    """Copy the sample notes, Markdown files by type, into `folder`, which is made if it is missing."""
    with as_file(files("recallscope.runtime.lab") / "notes") as notes:
        copytree(notes, folder, dirs_exist_ok=True)


def script_parts(play: Play) -> tuple[Part, ...]:
    """Return what the script says of one play: of its prompt, and of the second one if there is one."""
    main = [answer_step(play.says, play.answer)]
    if play.tool is not None:
        main.insert(0, tool_step(play.tool))
    selection = Step(delay=play.selector, select=Select(contains=play.notes))
    first = script_part(str(play.scenario), play.prompt, tuple(main), selection)
    if play.second is None:
        return (first,)
    answer = answer_step("You are welcome.", SECOND_ANSWER_SECONDS, chunks=10)
    name = f"{play.scenario}: second prompt"
    return first, script_part(name, play.second.text, (answer,), Step(select=Select()))


def script_part(name: str, text: str, main: tuple[Step, ...], selection: Step) -> Part:
    """Return what is answered where `text` stands in the prompt: `main`, send by send, and the `selection` of notes."""
    return Part(name=name, text=text, purposes={"main": Steps(main), "memory_selection": Steps((selection,))})


def answer_step(text: str, seconds: float, *, chunks: int | None = None) -> Step:
    """Return an answer of `text` that streams for `seconds`, in chunks of 20 ms unless their number is given."""
    number = chunks or max(1, round(seconds / CHUNK_SECONDS))
    return Step(answer=text, chunks=number, chunk_delay=seconds / number)


def tool_step(seconds: float) -> Step:
    """Return a call of the job tool that takes `seconds`."""
    return Step(tool_calls=(ScriptedToolCall(name=JOB, arguments=f'{{"seconds": {seconds}}}'),))


def _seconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:g} s"
