"""What `recallscope run --demo` needs: a scripted model server in its own process, and sample notes in a folder."""

import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from recallscope.runtime.config import Flag
from recallscope.runtime.lab.scenarios import MAIN_MODEL, SMALL_MODEL, build_script, write_sample_notes
from recallscope.runtime.recall.selector import SCHEMA
from recallscope.runtime.testing.process import start_process
from recallscope.runtime.testing.script import Scenario, Script, ScriptedToolCall, Select, Step, Steps

__all__ = ["DEMO_PROMPT", "Demo", "demo_script", "open_demo"]

DEMO_PROMPT = "What do I have to know before I cut the June release branch?"
"""Its words match a note; the selector finds another one, while the model is already looking at the workspace."""

_ANSWER = (
    "release/2026.06, cut on the first Tuesday of June; only the release manager pushes there, everybody else opens a "
    "pull request.\n\n(This answer is scripted; the notes that came with your prompt are real files, and the line "
    "below says what recall did with them.)"
)


def demo_script() -> Script:
    """Answer `DEMO_PROMPT` with a look at the workspace first; any other prompt gets the sample answer."""
    script = build_script()
    look = Step(delay=0.4, tool_calls=(ScriptedToolCall(name="list_directory", arguments="{}"),))
    answer = Step(answer=_ANSWER, chunks=40, chunk_delay=0.02)
    selection = Step(delay=0.3, select=Select(contains=("Release branches", "Short answers")))
    demo = Scenario(
        name="demo", text=DEMO_PROMPT, purposes={"main": Steps((look, answer)), SCHEMA.name: Steps((selection,))}
    )
    return replace(script, scenarios=(demo, *script.scenarios))


@dataclass(frozen=True, slots=True)
class Demo:
    """The settings that point the agent at the demo, as flags."""

    flags: Mapping[str, Flag]


@asynccontextmanager
async def open_demo() -> AsyncGenerator[Demo, None]:
    """Start the demo's model server and write its notes; both are gone when the block ends."""
    with tempfile.TemporaryDirectory(prefix="recallscope-demo-") as name:
        folder = Path(name)
        write_sample_notes(folder / "memory")
        async with start_process(demo_script()) as url:
            values = {
                "model.name": MAIN_MODEL,
                "model.small": SMALL_MODEL,
                "model.base_url": url,
                "memory.base_dir": str(folder / "base"),
                "memory.project_dir": str(folder / "memory"),
                "memory.cache_dir": str(folder / "cache"),
            }
            yield Demo({key: Flag("--demo", value) for key, value in values.items()})
