"""The vectors of a memory, made by the scripted model server: filled beside the turns, used where words are silent."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from anyio import CapacityLimiter

from recallscope.runtime.events import Cause, Event, ModelCallFinished, ModelCallStarted, OpId, Purpose, Status
from recallscope.runtime.memory.catalog import Catalog
from recallscope.runtime.memory.lookup import Lookup
from recallscope.runtime.memory.memory import Memory, open_memory
from recallscope.runtime.memory.scopes import MemoryRoots
from recallscope.runtime.memory.search import Dropped, Found, Hit, Source
from recallscope.runtime.memory.semantic import search_with_vectors
from recallscope.runtime.memory.vectors import Vectors
from recallscope.runtime.model.embeddings import EmbeddingModel
from recallscope.runtime.observe import Observers
from recallscope.runtime.testing.memory import make_note
from recallscope.runtime.testing.model_server import ModelServer, serve
from recallscope.runtime.testing.script import Embed, Order, Script, Step, Steps

pytestmark = pytest.mark.anyio

GROUPS = (("rollout", "deployment"), ("kitchen", "canteen"))
EMBED = Step(embed=Embed(dimension=64, synonyms=GROUPS))
QUERY = "deployment"
ROLLOUT = "---\nname: Rollout\n---\n\nOn Tuesdays.\n"
CANTEEN = "---\nname: Canteen\n---\n\nSoup.\n"

Write = Callable[[str, str], Path]


@pytest.fixture
def anyio_backend() -> str:
    """Sockets and files are real, so time is, too."""
    return "asyncio"


def script(*steps: Step) -> Script:
    """Return a script that answers requests for vectors in the order of arrival."""
    return Script(purposes={"embedding": Steps(steps or (EMBED,), Order.ARRIVAL)})


@asynccontextmanager
async def opened(
    server: ModelServer,
    root: Path,
    catalog_file: Path,
    events: list[Event],
    *,
    name: str = "v",
) -> AsyncGenerator[Memory, None]:
    """Open a memory with vectors, synced and with all vectors made."""
    observers = Observers([events.append])
    async with EmbeddingModel(name=name, base_url=server.url) as model:
        vectors = Vectors(model, observers, threshold=0.4, head_start=3_600.0, pause=0.0)
        roots = MemoryRoots(project=root)
        async with open_memory(roots, observers=observers, catalog_path=catalog_file, vectors=vectors) as memory:
            await memory.wait_synced()
            with anyio.fail_after(20):
                await vectors.wait_filled()
            yield memory


async def search(memory: Memory, query: str = QUERY, within: float | None = 5.0) -> Found:
    """Search as a turn does."""
    return await memory.search(query, exclude=frozenset(), recent_tools=(), within=within, op=OpId("recall"))


def asked(events: list[Event], parent: str | None) -> list[ModelCallStarted]:
    """Return the calls for vectors below `parent`."""
    started = [event for event in events if isinstance(event, ModelCallStarted)]
    assert all(event.purpose is Purpose.EMBEDDING for event in started)
    return [event for event in started if event.parent == parent]


async def test_a_note_without_a_shared_word_is_found_by_its_vector(
    root: Path, catalog_file: Path, events: list[Event], write: Write
) -> None:
    """Where the words are silent the vectors answer; the hit says its likeness, and the answer who gave it."""
    write("a.md", ROLLOUT)
    write("b.md", CANTEEN)
    async with serve(script()) as server, opened(server, root, catalog_file, events) as memory:
        found = await search(memory)

    (hit,) = found.fast
    assert (hit.note.relative, hit.note.body) == ("a.md", "On Tuesdays.")
    assert found.sources == (Source.WORDS, Source.VECTORS)
    assert found.threshold == 0.4 <= hit.score == hit.parts[0].value
    assert [part.source for part in hit.parts] == [Source.VECTORS]
    assert [(left.hit.note.relative, left.why) for left in found.left_out] == [("b.md", Dropped.THRESHOLD)]
    assert [note.relative for note in found.candidates] == ["a.md", "b.md"]


async def test_words_that_found_something_do_not_wait_for_the_vector(catalog_file: Path, events: list[Event]) -> None:
    """The answer of the words goes at once, and a call for the vector that has begun is cancelled."""
    answer = Found(fast=(Hit(make_note("a"), 2.0),))
    lookup = Lookup(catalog=Catalog(catalog_file), roots={}, query=QUERY, exclude=frozenset(), tools=frozenset())
    async with (
        serve(script(Step(hang=True))) as server,
        EmbeddingModel(name="v", base_url=server.url) as model,
    ):

        async def words() -> Found:
            await server.wait_for(lambda request: request.purpose == "embedding")
            return answer

        vectors = Vectors(model, Observers([events.append]), head_start=0.0)
        with anyio.fail_after(20):
            found = await search_with_vectors(
                words, vectors, lookup, within=None, limiter=CapacityLimiter(1), parent=OpId("recall")
            )
            await server.wait_for(lambda request: request.client_closed)
    (finished,) = (event for event in events if isinstance(event, ModelCallFinished))

    assert found == answer
    assert (finished.status, finished.cause) == (Status.CANCELLED, None)
    assert len(asked(events, "recall")) == 1


async def test_words_that_answer_within_their_head_start_send_nothing(
    root: Path, catalog_file: Path, events: list[Event], write: Write
) -> None:
    """A query that its words answer does not leave the machine."""
    write("a.md", ROLLOUT)
    async with serve(script()) as server, opened(server, root, catalog_file, events) as memory:
        found = await search(memory, "rollout")

    assert [hit.note.relative for hit in found.fast] == ["a.md"]
    assert asked(events, "recall") == []


async def test_a_vector_that_is_late_is_not_used(
    root: Path, catalog_file: Path, events: list[Event], write: Write
) -> None:
    """The search ends when its time is over, with what the words found: here nothing, and no error."""
    write("a.md", ROLLOUT)
    slow = Step(delay=3_600.0, embed=EMBED.embed)
    async with serve(script(EMBED, slow)) as server, opened(server, root, catalog_file, events) as memory:
        found = await search(memory, within=0.05)

    finished = [event for event in events if isinstance(event, ModelCallFinished)]

    assert (found.fast, found.sources, found.partial) == ((), (Source.WORDS,), False)
    assert (finished[-1].status, finished[-1].cause) == (Status.CANCELLED, Cause.POLICY_LIMIT)


@pytest.mark.parametrize(
    "wrong", [Step(status=500), Step(embed=Embed(dimension=8)), Step(cut_after=0)], ids=["refused", "length", "cut"]
)
async def test_a_question_that_fails_is_a_source_that_is_absent(
    root: Path, catalog_file: Path, events: list[Event], write: Write, wrong: Step
) -> None:
    """An error, or a vector that cannot be compared, leaves what the words found."""
    write("a.md", ROLLOUT)
    async with serve(script(EMBED, wrong)) as server, opened(server, root, catalog_file, events) as memory:
        found = await search(memory)

    assert found.fast == ()
    assert [note.relative for note in found.candidates] == ["a.md"]


async def test_vectors_are_made_once_and_kept(
    root: Path, catalog_file: Path, events: list[Event], write: Write
) -> None:
    """A second process finds the vectors in the catalog and asks for none; a new and a changed note get theirs."""
    write("a.md", ROLLOUT)
    write("b.md", CANTEEN)
    async with serve(script()) as server:
        async with opened(server, root, catalog_file, events):
            pass
        first = len(asked(events, None))
        async with opened(server, root, catalog_file, events) as memory:
            found = await search(memory)
            second = len(asked(events, None))
            write("b.md", CANTEEN.replace("Soup", "Kitchen soup"))
            write("c.md", "---\nname: Third\n---\n\nfact\n")
            await memory.sync()
            assert memory.vectors is not None
            with anyio.fail_after(20):
                await memory.vectors.wait_filled()
            statistics = memory.vectors.statistics()
        texts = [text for request in server.requests for text in request.body["input"]]

    assert (first, second) == (1, 1)
    assert [hit.note.relative for hit in found.fast] == ["a.md"]
    assert sorted(texts[3:]) == ["Canteen\nKitchen soup.", "Third\nfact"]
    assert (statistics.notes, statistics.lacking, statistics.problem) == (3, 0, None)


async def test_a_note_that_is_removed_takes_its_vector_along(
    root: Path, catalog_file: Path, events: list[Event], write: Write
) -> None:
    """It is found no more, neither now nor by the next process."""
    write("a.md", ROLLOUT)
    write("b.md", CANTEEN)
    async with serve(script()) as server, opened(server, root, catalog_file, events) as memory:
        (hit,) = (await search(memory)).fast
        await memory.edit.delete(hit.note)
        gone = await search(memory)
        assert memory.vectors is not None
        with anyio.fail_after(20):
            await memory.vectors.wait_filled()
        statistics = memory.vectors.statistics()

    assert gone.fast == ()
    assert statistics.notes == 1


async def test_each_model_has_vectors_of_its_own(
    root: Path, catalog_file: Path, events: list[Event], write: Write
) -> None:
    """Vectors of another model are never compared with a query's; they stay for the day when it is used again."""
    write("a.md", ROLLOUT)
    other = Step(embed=Embed(dimension=32, synonyms=GROUPS))
    async with serve(script(EMBED, other, EMBED)) as server:
        for name in ("one", "two", "one"):
            async with opened(server, root, catalog_file, events, name=name) as memory:
                assert memory.vectors is not None
                assert memory.vectors.statistics().notes == 1

    assert len(asked(events, None)) == 2


async def test_a_model_whose_vectors_change_length_gets_all_made_anew(
    root: Path, catalog_file: Path, events: list[Event], write: Write
) -> None:
    """The same name, another length: old vectors cannot be compared any more and are replaced."""
    write("a.md", ROLLOUT)
    longer = Step(embed=Embed(dimension=128, synonyms=GROUPS))
    async with serve(script(EMBED, longer)) as server:
        async with opened(server, root, catalog_file, events):
            pass
        write("b.md", CANTEEN)
        async with opened(server, root, catalog_file, events) as memory:
            found = await search(memory)
            assert memory.vectors is not None
            statistics = memory.vectors.statistics()

    assert (statistics.notes, statistics.lacking) == (2, 0)
    assert [hit.note.relative for hit in found.fast] == ["a.md"]


async def test_a_text_that_the_server_finds_too_much_is_left_alone(
    root: Path, catalog_file: Path, events: list[Event], write: Write
) -> None:
    """A batch that is refused is halved until only the one text is left out; the others have their vectors."""
    write("a.md", ROLLOUT)
    write("b.md", CANTEEN)
    refused = Step(status=400, body="too long")
    async with (
        serve(script(refused, refused, EMBED)) as server,
        opened(server, root, catalog_file, events) as memory,
    ):
        assert memory.vectors is not None
        statistics = memory.vectors.statistics()

    assert (statistics.notes, statistics.lacking) == (1, 1)
    assert len(asked(events, None)) == 3


async def test_a_server_that_is_down_is_told_once_and_searches_go_on(
    root: Path, catalog_file: Path, events: list[Event], write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    """The reason stands in the statistics and once in the log; words answer as ever."""
    write("a.md", ROLLOUT)
    async with serve(script(Step(status=503))) as server, opened(server, root, catalog_file, events) as memory:
        found = await search(memory, "rollout")
        assert memory.vectors is not None
        statistics = memory.vectors.statistics()

    assert [hit.note.relative for hit in found.fast] == ["a.md"]
    assert (statistics.notes, statistics.lacking) == (0, 1)
    assert "503" in (statistics.problem or "")
    assert len([record for record in caplog.records if "the vectors of the notes" in record.message]) == 1
