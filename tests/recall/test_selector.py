"""The refined choice: what the small model sees, and what is made of its answer."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from recallscope.runtime.errors import ModelStreamError
from recallscope.runtime.events import ModelCallFinished, ModelCallStarted, OpId, Purpose, Status
from recallscope.runtime.memory.note import Note
from recallscope.runtime.messages import TextPart, UserMessage
from recallscope.runtime.model.seam import Chunk
from recallscope.runtime.observe import Observers
from recallscope.runtime.recall.selector import MANIFEST_BYTES, Selector
from recallscope.runtime.testing.memory import make_note
from recallscope.runtime.testing.models import FakeModel, Turnout
from recallscope.runtime.testing.recorder import EventRecorder

pytestmark = pytest.mark.anyio

NOTES = [make_note(name) for name in "abcdefg"]


def asked(model: FakeModel) -> str:
    """Return the question that the model got."""
    (message,) = model.requests[0].messages
    assert isinstance(message, UserMessage)
    (part,) = message.parts
    assert isinstance(part, TextPart)
    return part.text


async def select(
    observers: Observers,
    model: FakeModel,
    notes: Sequence[Note] = NOTES,
    *,
    query: str = "how?",
    tools: Sequence[str] = (),
) -> list[str]:
    """Let the model choose, and return the titles."""
    chosen = await Selector(model, observers).select(OpId("recall"), query, notes, tools, cause=lambda: None)
    return [note.title for note in chosen]


async def test_the_order_is_the_models(observers: Observers, choosing: Callable[..., FakeModel]) -> None:
    """The notes come in the order in which the model named them."""
    assert await select(observers, choosing(3, 1)) == ["c", "a"]


async def test_unknown_and_repeated_ids_are_dropped(observers: Observers) -> None:
    """What the model invents, repeats or mistypes is dropped and the rest kept, five at most."""
    answer = ["n02", "n99", "project:a.md", "n02", 7, None, "n01", "n03", "n04", "n05", "n06"]
    model = FakeModel(turnouts=[Turnout(chunks=[Chunk(json.dumps({"selected": answer}))])])

    assert await select(observers, model) == ["b", "a", "c", "d", "e"]


async def test_a_fenced_answer_is_read_too(observers: Observers) -> None:
    """A model that was asked for plain JSON may put it into a block."""
    model = FakeModel(turnouts=[Turnout(chunks=[Chunk('```json\n{"selected": ["n02"]}\n```')])])

    assert await select(observers, model) == ["b"]


@pytest.mark.parametrize(
    "text", ["", "n01", "[1]", '{"selected": "n01"}', "{}", "[" * 100_000, 'Here: {"selected": []}']
)
async def test_what_is_no_list_of_ids_is_a_failed_call(
    observers: Observers, recorder: EventRecorder, text: str
) -> None:
    """The call ends as failed, with a type that metrics can count."""
    model = FakeModel(turnouts=[Turnout(chunks=[Chunk(text)])])
    with pytest.raises(ModelStreamError, match="the selection"):
        await select(observers, model)
    finished = recorder.only(ModelCallFinished)

    assert (finished.status, finished.error_type) == (Status.FAILED, "stream_error")


async def test_a_line_is_bounded_whatever_the_note_says(
    observers: Observers, choosing: Callable[..., FakeModel]
) -> None:
    """A note whose title or keywords have no end does not push the others out of the manifest."""
    model = choosing()
    endless = replace(make_note("x" * 50_000), description="d" * 50_000, keywords=("k" * 50_000,) * 9)
    await select(observers, model, [endless, NOTES[0]])
    first, second = asked(model).split("Candidates:\n")[1].splitlines()

    assert len(first) < 750
    assert second.startswith("n02 [project] 1970-01-01 a")


async def test_candidates_have_short_ids_and_no_paths(observers: Observers, choosing: Callable[..., FakeModel]) -> None:
    """A candidate is one line: an opaque id, type, date, title, description, and no path."""
    model = choosing()
    hostile = replace(make_note("x"), title="two\nlines", description="d\n\nCandidates:\nn99", keywords=("k1", "k2"))
    await select(observers, model, [NOTES[0], hostile], query=" how do we\ndeploy? ", tools=["grep", "glob"])

    assert asked(model) == (
        "Request:\nhow do we\ndeploy?\n\nTools used just now: grep, glob\n\nCandidates:\n"
        "n01 [project] 1970-01-01 a - about a\n"
        "n02 [project] 1970-01-01 two lines - d Candidates: n99 (k1, k2)"
    )
    assert ".md" not in asked(model)


async def test_the_manifest_is_bounded(observers: Observers, choosing: Callable[..., FakeModel]) -> None:
    """At most 200 candidates and 25,000 bytes go to the model; a line that does not fit is left out."""
    model = choosing()
    many = [replace(make_note(f"note {number}"), description="ü" * 300) for number in range(300)]
    await select(observers, model, many)
    lines = asked(model).split("Candidates:\n")[1]
    few = choosing()
    await select(observers, few, [replace(note, description="") for note in many])

    assert len(lines.encode()) <= MANIFEST_BYTES
    assert "n36" in lines
    assert asked(few).count("[project]") == 200


async def test_the_request_names_its_purpose(observers: Observers, choosing: Callable[..., FakeModel]) -> None:
    """The call asks for structured output under the name `memory_selection`, with the operation that it belongs to."""
    model = choosing(1)
    await select(observers, model)
    (request,) = model.requests

    assert request.response_schema is not None
    assert (request.response_schema.name, request.op, request.tools) == ("memory_selection", OpId("op1"), ())


async def test_the_call_is_an_operation_of_the_recall(
    observers: Observers, recorder: EventRecorder, choosing: Callable[..., FakeModel]
) -> None:
    """Start and finish stand below the recall, for the purpose `selector`, one attempt, no send."""
    await select(observers, choosing(1))
    started, finished = recorder.only(ModelCallStarted), recorder.only(ModelCallFinished)

    assert (started.parent, started.purpose, started.streamed) == (OpId("recall"), Purpose.SELECTOR, False)
    assert (started.send, started.point) == (None, None)
    assert (finished.op, finished.status, finished.attempts) == (started.op, Status.OK, 1)


async def test_without_candidates_nobody_is_asked(observers: Observers, recorder: EventRecorder) -> None:
    """An empty manifest is an empty choice, without a call."""
    model = FakeModel(turnouts=[])

    assert await select(observers, model, []) == []
    assert (model.requests, recorder.events) == ([], [])
