"""The program that the documents print, run exactly as it stands there."""

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

from recallscope.runtime.testing.model_server import serve
from recallscope.runtime.testing.script import Script, Select, Step

if TYPE_CHECKING:
    from conftest import Place

pytestmark = pytest.mark.anyio

DOCS = Path(__file__).parents[2] / "docs"


def blocks(page: str, language: str) -> list[str]:
    """Return the code blocks of one language in a page of the documents."""
    return re.findall(
        rf"^```{language}\n(.*?)^```$", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )


async def test_the_embedding_program_runs_as_it_is_printed(place: "Place") -> None:
    """Two prompts are answered, and the observer tells of both recalls: the note goes with the first prompt only."""
    (program,) = blocks("embedding.md", "python")
    place.notes.rename(place.work / "notes")
    selection = Step(select=Select(contains=("Release branches",)))
    async with serve(
        Script.of(Step(answer="It is."), Step(answer="The manager."), memory_selection=selection)
    ) as server:
        with anyio.fail_after(45):
            done = await anyio.run_process(
                [sys.executable, "-W", "error", "-c", program], cwd=place.work, env=place.environ(server.url)
            )

    assert re.sub(r"\d+ ms", "… ms", done.stdout.decode()).splitlines() == [
        "memory: delivered, 1 notes, held the turn … ms",
        "It is.",
        "memory: empty, 0 notes, held the turn … ms",
        "It is.",
    ]
    assert done.stderr == b""
