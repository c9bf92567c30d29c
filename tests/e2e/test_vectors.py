"""The configured embedding source, by the real command line against the scripted model server."""

import shutil
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from recallscope.runtime.testing.process import start_process
from recallscope.runtime.testing.script import Embed, Script, Step

if TYPE_CHECKING:
    from conftest import Place

pytestmark = pytest.mark.anyio

SCRIPT = Script.of(
    Step(answer="Fine."),
    memory_selection=Step(answer='{"selected": []}'),
    embedding=Step(embed=Embed(dimension=64, synonyms=(("rollout", "deployment"),))),
)


@pytest.fixture
def place(make_place: "Callable[[str], Place]") -> "Place":
    """Give a place with two notes."""
    made = make_place("here")
    shutil.rmtree(made.notes)
    made.notes.mkdir()
    (made.notes / "rollout.md").write_text("---\nname: Rollout\n---\n\nOn Tuesdays.\n")
    (made.notes / "canteen.md").write_text("---\nname: Canteen\n---\n\nSoup.\n")
    return made


async def test_a_query_without_a_shared_word_finds_its_note(place: "Place") -> None:
    """With an embedding model `recall` finds what words cannot; without one it finds nothing."""
    async with start_process(SCRIPT) as url:
        named = {"RECALLSCOPE_MODEL_EMBEDDING": "vectors", "RECALLSCOPE_RECALL_VECTOR_THRESHOLD": "0.4"}
        named |= {"RECALLSCOPE_MODEL_EMBEDDING_BASE_URL": url}
        semantic = await place.run("recall", "--json", "deployment", environ=place.environ(**named))
        plain = await place.run("recall", "--json", "deployment", environ=place.environ())

    assert (semantic.code, plain.code) == (0, 0)
    assert [note["path"] for note in semantic.events[0]["fast"]["notes"]] == ["rollout.md"]
    assert plain.events[0]["fast"]["notes"] == []


async def test_a_turn_gets_what_the_vectors_found(place: "Place") -> None:
    """The second turn of the workspace finds the vectors in the catalog; its call for one belongs to its recall."""
    async with start_process(SCRIPT) as url:
        named = {"RECALLSCOPE_MODEL_EMBEDDING": "vectors", "RECALLSCOPE_RECALL_VECTOR_THRESHOLD": "0.4"}
        environ = place.environ(url, **named)
        await place.run("recall", "deployment", environ=environ)
        done = await place.run("run", "--json", "When is the deployment?", environ=environ)
    begun = next(event for event in done.events if event["event"] == "RecallBegun")
    calls = [event for event in done.events if event["event"] == "ModelCallStarted"]
    vector = next(call for call in calls if call["purpose"] == "embedding")
    delivered = next(event for event in done.events if event["event"] == "RecallDelivered")

    assert done.code == 0
    assert (vector["parent"], vector["model"]) == (begun["op"], "vectors")
    assert (delivered["phase"], delivered["notes"]) == ("fast", ["project:rollout.md"])
