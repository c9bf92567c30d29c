"""Notes get the words that one might ask with: once, bounded, and never over a person's hand."""

import itertools
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from recallscope.runtime.errors import ModelConnectionError, ModelStatusError
from recallscope.runtime.events import Cause, ModelAttemptFailed, ModelCallFinished, ModelCallStarted, Purpose, Status
from recallscope.runtime.jobs.enrich import FAILURES_TO_STOP, Enriched, Enricher, Fate, lacking
from recallscope.runtime.memory.memory import Memory
from recallscope.runtime.memory.note import Note
from recallscope.runtime.memory.scopes import Root
from recallscope.runtime.memory.store import read_note
from recallscope.runtime.observe import Observers
from recallscope.runtime.terms import ScopeName
from recallscope.runtime.testing.models import FakeModel, Turnout
from recallscope.runtime.testing.recorder import EventRecorder

pytestmark = pytest.mark.anyio

PLAIN = (
    "---\nname: Release train\ndescription: we deploy on Tuesdays\nupdated: 1970-02-01\n---\n\nFrom the main branch.\n"
)

CALLS = (ModelCallStarted, ModelCallFinished)

Opened = Callable[..., AbstractAsyncContextManager[Memory]]
Phrased = Callable[..., Turnout]


def notes_of(folder: Path) -> list[Note]:
    """Read the notes in `folder`, by path."""
    root = Root(ScopeName.PROJECT, folder.resolve())
    return [read_note(root, path.name)[0] for path in sorted(root.path.glob("*.md")) if path.name != "MEMORY.md"]


async def enrich(memory: Memory, model: FakeModel, observers: Observers, notes: list[Note]) -> list[Enriched]:
    """Enrich `notes` one after the other and return what was told."""
    told: list[Enriched] = []
    await Enricher(model, memory.edit, observers, at_once=1).enrich(notes, told=told.append)
    return told


async def test_phrasings_are_written_into_the_note(
    opened: Opened, phrased: Phrased, observers: Observers, recorder: EventRecorder, tmp_path: Path
) -> None:
    """The answer stands in the front matter, the note finds its new words at once, and it is as old as before."""
    model = FakeModel(turnouts=[phrased("When does it go live?", keywords=["shipping"])])
    async with opened({"a.md": PLAIN}) as memory:
        (done,) = await enrich(memory, model, observers, notes_of(tmp_path / "notes"))
        found = await memory.search("shipping", exclude=frozenset(), recent_tools=())
    (note,) = notes_of(tmp_path / "notes")
    started, finished = recorder.only(ModelCallStarted), recorder.only(ModelCallFinished)

    assert done.fate is Fate.WRITTEN
    assert (note.usage_scenarios, note.keywords) == (("When does it go live?",), ("shipping",))
    assert (note.title, note.body, note.updated) == ("Release train", "From the main branch.", 31 * 86_400.0)
    assert [hit.note.relative for hit in found.fast] == ["a.md"]
    assert (started.purpose, started.parent, finished.status) == (Purpose.ENRICH, None, Status.OK)
    assert model.requests[0].response_schema is not None
    assert model.requests[0].response_schema.name == "memory_phrasings"


def test_only_notes_without_phrasings_are_asked_about(tmp_path: Path) -> None:
    """What has phrasings, also by hand, is done; superseded notes are never asked about; the newest come first."""
    (tmp_path / "by-hand.md").write_text("---\nusage_scenarios: [mine]\n---\nfact\n")
    (tmp_path / "new.md").write_text("---\nupdated: 2026-01-02\n---\nfact\n")
    (tmp_path / "old.md").write_text("---\nupdated: 2026-01-01\n---\nfact\n")
    (tmp_path / "replaced.md").write_text("---\nsuperseded_by: new.md\n---\nfact\n")
    notes = notes_of(tmp_path)

    assert [note.relative for note in lacking(notes)] == ["new.md", "old.md"]
    assert {note.relative for note in lacking(notes, everything=True)} == {"by-hand.md", "new.md", "old.md"}


async def test_keywords_of_a_person_stay(
    opened: Opened, phrased: Phrased, observers: Observers, tmp_path: Path
) -> None:
    """New keywords stand behind those that the note had; a repetition is left out; unknown fields stay as they are."""
    model = FakeModel(turnouts=[phrased("p", keywords=["CI", "pipeline"])])
    async with opened({"a.md": "---\nname: T\nkeywords: [ci, build]\nmood: fine\n---\nfact\n"}) as memory:
        await enrich(memory, model, observers, notes_of(tmp_path / "notes"))
    (note,) = notes_of(tmp_path / "notes")

    assert (note.keywords, note.extra) == (("ci", "build", "pipeline"), {"mood": "fine"})


async def test_no_more_is_written_than_the_ranking_takes_for_keywords(
    opened: Opened, phrased: Phrased, observers: Observers, tmp_path: Path
) -> None:
    """Together with a person's own there are at most 24 keywords, and with the phrasings 1,900 characters of them."""
    own = [f"own{number}" for number in range(20)]
    long = [f"{number} " + "x" * 157 for number in range(8)]
    model = FakeModel(turnouts=[phrased(*long, keywords=[f"k{number}" for number in range(12)])])
    async with opened({"a.md": f"---\nname: T\nkeywords: [{', '.join(own)}]\n---\nfact\n"}) as memory:
        await enrich(memory, model, observers, notes_of(tmp_path / "notes"))
    (note,) = notes_of(tmp_path / "notes")

    assert note.keywords == (*own, "k0", "k1", "k2", "k3")
    assert len(note.usage_scenarios) == 8
    assert sum(len(text) + 1 for text in (*note.keywords, *note.usage_scenarios)) <= 1_900


async def test_a_note_that_changed_meanwhile_is_skipped(
    opened: Opened, phrased: Phrased, observers: Observers, tmp_path: Path
) -> None:
    """The answer belongs to another version, so it is not written, and the person's edit stands."""
    async with opened({"a.md": PLAIN}) as memory:
        notes = notes_of(tmp_path / "notes")
        (tmp_path / "notes" / "a.md").write_text("edited by hand\n")
        (done,) = await enrich(memory, FakeModel(turnouts=[phrased("p")]), observers, notes)

    assert (done.fate, done.why) == (Fate.SKIPPED, "the file was changed since it was read")
    assert (tmp_path / "notes" / "a.md").read_text() == "edited by hand\n"


async def test_an_answer_that_may_not_be_written_changes_nothing(
    opened: Opened, phrased: Phrased, observers: Observers, tmp_path: Path
) -> None:
    """A refused answer is told with its reason and the file stays as it was."""
    secret = phrased("What is the token ghp_" + "a1B2c3D4e5" * 4)
    async with opened({"a.md": PLAIN}) as memory:
        (done,) = await enrich(memory, FakeModel(turnouts=[secret]), observers, notes_of(tmp_path / "notes"))

    assert (done.fate, done.why) == (Fate.REFUSED, "the answer looks like it holds a credential (github-token)")
    assert (tmp_path / "notes" / "a.md").read_text() == PLAIN


async def test_a_failure_that_may_pass_is_tried_again(
    opened: Opened, phrased: Phrased, observers: Observers, recorder: EventRecorder, tmp_path: Path
) -> None:
    """A refused rate is waited for as long as the server asks, inside the same call."""
    busy = Turnout(error=ModelStatusError(url="u", status_code=429, body="slow down", retry_after=0.0))
    async with opened({"a.md": PLAIN}) as memory:
        model = FakeModel(turnouts=[busy, phrased("p")])
        (done,) = await enrich(memory, model, observers, notes_of(tmp_path / "notes"))
    failed = recorder.only(ModelAttemptFailed)

    assert done.fate is Fate.WRITTEN
    assert (failed.attempt, failed.error_type, failed.retry_in) == (1, "429", 0.0)
    assert recorder.only(ModelCallFinished).attempts == 2


async def test_a_model_that_keeps_failing_is_left_alone(opened: Opened, observers: Observers, tmp_path: Path) -> None:
    """After some failures in a row the rest is not asked about, and each note is named with its reason."""
    refused = Turnout(error=ModelStatusError(url="u", status_code=401, body="no"))
    model = FakeModel(turnouts=[refused])
    async with opened({f"{name}.md": PLAIN for name in "abcdefg"}) as memory:
        told = await enrich(memory, model, observers, notes_of(tmp_path / "notes"))

    assert [done.fate for done in told] == [Fate.FAILED] * FAILURES_TO_STOP + [Fate.UNASKED] * 2
    assert len(model.requests) == FAILURES_TO_STOP
    assert "401" in told[0].why


async def test_calls_at_once_are_bounded(
    opened: Opened, phrased: Phrased, observers: Observers, recorder: EventRecorder, tmp_path: Path
) -> None:
    """No more calls than allowed are under way at any moment; all notes get their answer."""
    slow = replace(phrased("p"), delay=0.02)
    told: list[Enriched] = []
    async with opened({f"{name}.md": PLAIN for name in "abcdefg"}) as memory:
        enricher = Enricher(FakeModel(turnouts=[slow]), memory.edit, observers, at_once=3)
        await enricher.enrich(notes_of(tmp_path / "notes"), told=told.append)
    steps = [+1 if isinstance(event, ModelCallStarted) else -1 for event in recorder.events if isinstance(event, CALLS)]

    assert [done.fate for done in told] == [Fate.WRITTEN] * 7
    assert max(itertools.accumulate(steps)) == 3


async def test_cancelling_stops_the_calls_and_keeps_what_is_written(
    opened: Opened, phrased: Phrased, observers: Observers, recorder: EventRecorder, tmp_path: Path
) -> None:
    """The call under way ends as cancelled; the note before it is enriched, and a second run asks about the rest."""
    async with opened({"a.md": PLAIN, "b.md": PLAIN}) as memory:
        model = FakeModel(turnouts=[phrased("p"), Turnout(delay=3_600.0)])
        told: list[Enriched] = []
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                enricher = Enricher(model, memory.edit, observers, at_once=1)
                tasks.start_soon(lambda: enricher.enrich(notes_of(tmp_path / "notes"), told=told.append))
                await recorder.wait_for(ModelCallStarted, lambda _: len(recorder.of(ModelCallStarted)) == 2)
                scope.cancel()
    left = lacking(notes_of(tmp_path / "notes"))
    finished = recorder.of(ModelCallFinished)

    assert ([done.note.relative for done in told], [note.relative for note in left]) == (["a.md"], ["b.md"])
    assert [(call.status, call.cause) for call in finished] == [
        (Status.OK, None),
        (Status.CANCELLED, Cause.USER_CANCEL),
    ]


async def test_a_server_that_does_not_answer_is_named(opened: Opened, observers: Observers, tmp_path: Path) -> None:
    """A failure is told per note with what the client says of it."""
    gone = ModelConnectionError(url="http://127.0.0.1:1/v1", problem="Connection refused")
    gone.retryable = False
    async with opened({"a.md": PLAIN}) as memory:
        model = FakeModel(turnouts=[Turnout(error=gone)])
        (done,) = await enrich(memory, model, observers, notes_of(tmp_path / "notes"))

    assert done.fate is Fate.FAILED
    assert done.why.startswith("no answer from http://127.0.0.1:1/v1")
