"""`recallscope memory enrich` as a process of its own, against the scripted model server in another one."""

import json
import shutil
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from recallscope.runtime.memory.note import Note
from recallscope.runtime.memory.scopes import Root, list_notes
from recallscope.runtime.memory.store import INDEX_MARK, read_note
from recallscope.runtime.terms import ScopeName
from recallscope.runtime.testing.model_server import serve
from recallscope.runtime.testing.process import start_process
from recallscope.runtime.testing.script import Order, Script, Step, Steps

if TYPE_CHECKING:
    from conftest import Place

pytestmark = pytest.mark.anyio

ANSWER = json.dumps(
    {"phrasings": ["Where do I push the button?", "Kannst du das\x1b[31m starten?"], "keywords": ["knob"]}
)


@pytest.fixture
def place(make_place: "Callable[[str], Place]") -> "Place":
    """Give a place with eight notes that have no phrasings."""
    made = make_place("here")
    shutil.rmtree(made.notes)
    (made.notes / "project").mkdir(parents=True)
    for number in range(8):
        (made.notes / "project" / f"fact-{number}.md").write_text(f"---\nname: Fact {number}\n---\n\nIt is so.\n")
    return made


def notes_of(place: "Place") -> list[Note]:
    """Read all notes of a place, by path."""
    root = Root(ScopeName.PROJECT, place.notes.resolve())
    return [read_note(root, relative)[0] for relative in sorted(list_notes(root.path).files)]


async def test_every_note_gets_its_phrasings_once(place: "Place") -> None:
    """All notes are enriched, a second run finds nothing to do; the calls stand in the journal as `enrich`."""
    async with start_process(Script.of(memory_phrasings=Step(answer=ANSWER))) as url:
        first = await place.run("memory", "enrich", "--json", environ=place.environ(url))
        second = await place.run("memory", "enrich", environ=place.environ(url))
    notes = notes_of(place)

    assert (first.code, second.code, second.out) == (0, 0, "")
    assert "done: 8 written" in first.err
    assert [line["fate"] for line in first.events] == ["written"] * 8
    assert {line["path"] for line in first.events} == {note.relative for note in notes}
    assert {note.usage_scenarios for note in notes} == {("Where do I push the button?", "Kannst du das[31m starten?")}
    assert "no note lacks phrasings" in second.err
    purposes = {line.get("purpose") for line in place.journal() if line["event"] == "ModelCallStarted"}
    assert purposes == {"enrich"}


async def test_a_dry_run_asks_nobody_and_writes_nothing(place: "Place") -> None:
    """The notes are named, the newest first, no model is needed, and no file changes."""
    before = {path: path.read_bytes() for path in place.notes.rglob("*.md")}
    done = await place.run("memory", "enrich", "--dry-run", "--limit", "3", environ=place.environ())

    assert (done.code, len(done.out.splitlines())) == (0, 3)
    assert "3 notes would be asked about; nothing was asked or written" in done.err
    assert {path: path.read_bytes() for path in place.notes.rglob("*.md")} == before


async def test_ctrl_c_keeps_what_is_written_and_the_next_run_goes_on(place: "Place") -> None:
    """The run ends with 130 and says what is left; calls under way are closed; the second run asks about the rest."""
    steps = (Step(answer=ANSWER), Step(answer=ANSWER), Step(hang=True))
    async with serve(Script(purposes={"memory_phrasings": Steps(steps, Order.ARRIVAL)})) as server:
        arguments = ("memory", "enrich", "--at-once", "1")
        async with place.start(*arguments, environ=place.environ(server.url), own_group=True) as running:
            await server.wait_for(lambda request: request.number == 3)
            running.interrupt_group()
            done = await running.done()
        closed = await server.wait_for(lambda request: request.client_closed)
    async with start_process(Script.of(memory_phrasings=Step(answer=ANSWER))) as url:
        rest = await place.run("memory", "enrich", "--json", environ=place.environ(url))

    assert (done.code, closed.number) == (130, 3)
    assert "stopped: 2 written, 6 left; run it again for the rest" in done.err
    assert len(rest.events) == 6
    assert all(note.usage_scenarios for note in notes_of(place))


async def test_a_server_without_schemas_is_asked_for_plain_json(place: "Place") -> None:
    """A 400 about `response_format` is learnt from, and the schema then stands in words."""
    refused = Step(status=400, body="response_format is not supported")
    async with serve(
        Script(
            purposes={
                "memory_phrasings": Steps((refused, Step(answer=ANSWER)), Order.ARRIVAL),
            }
        )
    ) as server:
        done = await place.run("memory", "enrich", "--at-once", "1", environ=place.environ(server.url))
    formats = [request.body["response_format"]["type"] for request in server.requests]

    assert done.code == 0
    assert formats == ["json_schema", *["json_object"] * 8]


async def test_a_folder_of_another_program_is_not_written_to(place: "Place") -> None:
    """Where another program keeps the index, no note is asked about, and the folder is named."""
    (place.notes / "MEMORY.md").write_text("# My own index\n")
    foreign = await place.run("memory", "enrich", "--dry-run", environ=place.environ())
    (place.notes / "MEMORY.md").write_text(f"{INDEX_MARK}\n")
    ours = await place.run("memory", "enrich", "--dry-run", environ=place.environ())

    assert (foreign.code, foreign.out) == (0, "")
    assert f"{place.notes.resolve()}: not written to" in foreign.err
    assert len(ours.out.splitlines()) == 8


async def test_a_model_that_refuses_fails_the_run(place: "Place") -> None:
    """The exit code is 1, what the server said is told once and not for each note, and no file changes."""
    async with start_process(Script.of(memory_phrasings=Step(status=401, body="who are you?"))) as url:
        done = await place.run("memory", "enrich", "--at-once", "1", environ=place.environ(url))

    assert done.code == 1
    assert "done: 5 failed, 3 unasked" in done.err
    assert done.err.count("who are you?") == 1
    assert done.err.count("the model failed 5 times in a row") == 1
