"""Residency: a version of a note goes once while it stands in the conversation, and again when it does so no more."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from recallscope.runtime.agent.host import Agent
from recallscope.runtime.agent.session import Session
from recallscope.runtime.agent.turn_state import TurnRequest
from recallscope.runtime.memory.edit import Draft
from recallscope.runtime.memory.memory import Memory, open_memory
from recallscope.runtime.memory.scopes import MemoryRoots
from recallscope.runtime.messages import MemoryPart, TextPart, UserMessage
from recallscope.runtime.observe import Observers
from recallscope.runtime.terms import ScopeName
from recallscope.runtime.testing.models import FakeModel, saying

pytestmark = pytest.mark.anyio

MakeAgent = Callable[..., Agent]
ASK = TurnRequest(text="Which port does the staging database listen on?")
PORT = Draft(title="Staging database port", body="The staging database listens on port 5433.")


@dataclass(slots=True)
class Talk:
    """A session over a memory on disk that holds one note, and what its turns were given."""

    session: Session
    memory: Memory

    async def turn(self) -> list[str]:
        """Run a turn and return the memory that went into its messages."""
        before = len(self.session.history)
        await self.session.prompt(ASK)
        sent = self.session.history.snapshot()[before:]
        messages = [message for message in sent if isinstance(message, UserMessage)]
        return [part.text for message in messages for part in message.parts if isinstance(part, MemoryPart)]


@asynccontextmanager
async def talking(make_agent: MakeAgent, folder: Path) -> AsyncGenerator[Talk]:
    """Open the memory and a session; the note is written first. The ceiling is long: a busy machine changes nothing."""
    roots = MemoryRoots(project=(folder / "notes").resolve())
    async with open_memory(roots, observers=Observers(), catalog_path=folder / "catalog.sqlite3") as memory:
        await memory.wait_synced()
        await memory.edit.create(ScopeName.PROJECT, PORT)
        session = make_agent(FakeModel(turnouts=[saying("5433")]), memory=memory, ceiling=10.0).open_session()
        yield Talk(session, memory)
        await session.close()


async def test_a_note_in_the_conversation_does_not_go_again(make_agent: MakeAgent, tmp_path: Path) -> None:
    """The second turn finds nothing that the model has not got already."""
    async with talking(make_agent, tmp_path) as talk:
        assert [len(await talk.turn()), len(await talk.turn())] == [1, 0]


async def test_after_a_compaction_a_note_goes_again(make_agent: MakeAgent, tmp_path: Path) -> None:
    """A summary that took the place of the messages holds no note."""
    async with talking(make_agent, tmp_path) as talk:
        first = await talk.turn()
        talk.session.history.replace([UserMessage((TextPart("Summary: they asked about a port."),))])

        assert await talk.turn() == first
        assert await talk.turn() == []


async def test_after_a_rewind_a_note_goes_again(make_agent: MakeAgent, tmp_path: Path) -> None:
    """What was said before the note came is all that is left."""
    async with talking(make_agent, tmp_path) as talk:
        before = talk.session.history.snapshot()
        first = await talk.turn()
        talk.session.history.replace(before)

        assert await talk.turn() == first


async def test_a_rewind_that_keeps_the_note_brings_it_not_again(make_agent: MakeAgent, tmp_path: Path) -> None:
    """Only what is gone from the history may come back."""
    async with talking(make_agent, tmp_path) as talk:
        await talk.turn()
        kept = talk.session.history.snapshot()
        await talk.turn()
        talk.session.history.replace(kept)

        assert await talk.turn() == []


async def test_an_edited_note_goes_again_and_says_so(make_agent: MakeAgent, tmp_path: Path) -> None:
    """Another version is another thing to know; the old one still stands in the conversation, so it is marked."""
    async with talking(make_agent, tmp_path) as talk:
        (first,) = await talk.turn()
        found = await talk.memory.search(ASK.text, exclude=frozenset(), recent_tools=())
        changed = Draft(title=PORT.title, body="The staging database listens on port 6543 now.")
        await talk.memory.edit.update(found.fast[0].note, changed)
        (second,) = await talk.turn()

        assert ("6543" in first, "6543" in second) == (False, True)
        assert ("updated since" in first, "updated since" in second) == (False, True)
        assert await talk.turn() == []
