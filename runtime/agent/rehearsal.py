"""One turn without a model: what would be recalled and delivered for a query, and what dropped the rest.

It is a turn like any other, with the session, the recaller, the handle, the policy and the budget of one. Only its
model is none: it accepts everything, calls one tool that ends when the recall has settled, and then says nothing. So
both delivery points come, and nothing is late: the first send is held as long as it takes.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum, unique
from typing import Any, TypeVar

import anyio

from recallscope.runtime.agent.host import Agent, RecallSettings
from recallscope.runtime.agent.send import SendSettings
from recallscope.runtime.agent.tools.registry import Toolbox, function_tool
from recallscope.runtime.agent.turn_state import TurnRequest
from recallscope.runtime.errors import StoreUnavailableError
from recallscope.runtime.events import (
    Event,
    OpId,
    RecallBegun,
    RecallClosed,
    RecallDelivered,
    RecallFastResult,
    RecallSettled,
    RecallSkipped,
    RecallWithdrawn,
)
from recallscope.runtime.memory.note import Note
from recallscope.runtime.memory.search import Dropped, Found, Hit, Searchable
from recallscope.runtime.messages import AssistantMessage, MemoryPart, NoteVersion, UserMessage
from recallscope.runtime.model.seam import Answer, Chunk, Endpoint, Model, ModelRequest, ToolCallDelta
from recallscope.runtime.observe import Observers
from recallscope.runtime.recall.handle import Budget
from recallscope.runtime.recall.policy import PolicySplit, policy_named
from recallscope.runtime.terms import Point, PolicyName, Reason

__all__ = ["Candidate", "Fate", "Rehearsal", "rehearse"]

NAME = "rehearsal"
WAIT = "wait_for_recall"

UNHURRIED_SECONDS = 60.0
"""How long the first send is held at most: a search that takes longer is no search any more."""


EventT = TypeVar("EventT", bound=Event)


@unique
class Fate(StrEnum):
    """What became of a note that a recall looked at.

    `DELIVERED` at a point. Else what dropped it, the first that applies: `ALREADY_SURFACED` stands in the conversation,
    `TOOL_NOISE` only tells how a tool just used is called, `SUPERSEDED` by another note, `THRESHOLD` too low a score,
    `UNRELATED` too far behind the best, `PLACE` better ones filled the places, `STALE` its file is gone or changed,
    `BUDGET` the turn's notes or characters were used up, `NOT_CHOSEN` the selector was quicker than the send and left
    it out, `NO_PLACE` the policy delivers no fast result.
    """

    DELIVERED = "delivered"
    ALREADY_SURFACED = "already_surfaced"
    TOOL_NOISE = "tool_noise"
    SUPERSEDED = "superseded"
    THRESHOLD = "threshold"
    UNRELATED = "unrelated"
    PLACE = "place"
    STALE = "stale"
    BUDGET = "budget"
    NOT_CHOSEN = "not_chosen"
    NO_PLACE = "no_place"


_FATES = {
    Dropped.EXCLUDED: Fate.ALREADY_SURFACED,
    Dropped.NOISE: Fate.TOOL_NOISE,
    Dropped.SUPERSEDED: Fate.SUPERSEDED,
    Dropped.THRESHOLD: Fate.THRESHOLD,
    Dropped.UNRELATED: Fate.UNRELATED,
    Dropped.PLACE: Fate.PLACE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One note that the recall looked at: its hit (score 0 where only the selector chose it), and what became of it.

    `fast`, `refined`: it was in that result. `point`: where it was delivered.
    """

    hit: Hit
    fate: Fate
    fast: bool
    refined: bool
    point: Point | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """What one recall came to: the search, the facts that it stated, the refined notes, and each candidate's fate."""

    found: Found
    fast: RecallFastResult | None
    settled: RecallSettled | None
    refined: tuple[Note, ...]
    candidates: tuple[Candidate, ...]


async def rehearse(
    memory: Searchable,
    query: str,
    *,
    selector: Model | None,
    policy: PolicyName,
    observers: Observers,
    budget: Budget,
    safety: float,
    surfaced: frozenset[NoteVersion] = frozenset(),
    recent_tools: Sequence[str] = (),
) -> Rehearsal:
    """Recall for `query` as a turn does whose conversation holds `surfaced` and whose last tools were `recent_tools`.

    `selector` chooses the refined notes (None: the words alone); `safety` is the seconds after which it is given up.

    Raises:
        StoreUnavailableError: memory could not be read; unavailable is not empty.
        ValueError: `policy` recalls nothing.
    """
    if policy is PolicyName.OFF:
        raise ValueError("the policy off recalls nothing; rehearse another one")
    witness = _Witness(memory)
    facts = _Facts()
    toolbox = Toolbox([function_tool(WAIT, "Wait for the recall.", {"type": "object"}, facts.wait, read_only=True)])
    agent = Agent(
        name=NAME,
        model=_Accepting(),
        selector_model=selector,
        memory=witness,
        recall=RecallSettings(
            split=PolicySplit.parse(policy), ceiling=UNHURRIED_SECONDS, budget=budget, selector_safety=safety
        ),
        observers=observers,
        toolbox=toolbox,
        settings=SendSettings(system="", tools=toolbox.specs),
    )
    session = agent.open_session()
    if surfaced:
        session.history.replace([UserMessage((MemoryPart("", tuple(sorted(surfaced))),))])
    for tool in recent_tools:
        session.recent_tools.record(tool)
    observers.add(facts)
    try:
        await session.prompt(TurnRequest(text=query))
    finally:
        observers.remove(facts)
        await session.close()
    if witness.found is None:
        raise witness.failure or StoreUnavailableError("the search did not end")
    return _told(witness, witness.found, facts, surfaced)


class _Accepting:
    """A model that accepts every send, calls the tool that waits, and then has nothing to say."""

    endpoint = Endpoint(NAME, "recallscope", "127.0.0.1", 0)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        """Call the tool first, then end."""
        waited = any(isinstance(message, AssistantMessage) for message in request.messages)
        calls = () if waited else (ToolCallDelta(0, WAIT, WAIT, "{}"),)
        yield Chunk("", calls, "stop" if waited else "tool_calls")

    async def complete(self, request: ModelRequest) -> Answer:
        """Say nothing: nobody asks for a whole answer."""
        return Answer(text="", finish_reason="stop")


@dataclass(slots=True)
class _Witness:
    """Passes everything on to `memory` and keeps what it answered."""

    memory: Searchable
    found: Found | None = None
    failure: Exception | None = None
    loaded: dict[str, Note] = field(default_factory=dict[str, Note])

    @property
    def notes(self) -> int:
        """How many notes can be found."""
        return self.memory.notes

    async def search(
        self,
        query: str,
        *,
        exclude: frozenset[NoteVersion],
        recent_tools: Sequence[str],
        within: float | None = None,
        op: OpId | None = None,
    ) -> Found:
        """Search, and keep the answer or the failure."""
        try:
            self.found = await self.memory.search(
                query, exclude=exclude, recent_tools=recent_tools, within=within, op=op
            )
        except StoreUnavailableError as error:
            self.failure = error
            raise
        return self.found

    async def load(self, notes: Sequence[Note]) -> tuple[Note, ...]:
        """Load, and keep the notes."""
        loaded = await self.memory.load(notes)
        self.loaded.update({note.id: note for note in loaded})
        return loaded

    async def stale(self, notes: Sequence[Note]) -> frozenset[NoteVersion]:
        """Check the files."""
        return await self.memory.stale(notes)


@dataclass(slots=True)
class _Facts:
    """An observer that keeps what one recall stated."""

    name: str = "rehearsal"
    events: list[Event] = field(default_factory=list[Event])
    settling: anyio.Event = field(default_factory=anyio.Event)

    def __call__(self, event: Event, /) -> None:
        """Keep `event`; whoever waits for the end of the search and the choice goes on."""
        self.events.append(event)
        if isinstance(event, RecallSettled | RecallClosed):
            self.settling.set()

    async def wait(self, _arguments: Mapping[str, Any]) -> str:
        """Wait until the recall has settled, or was given up."""
        await self.settling.wait()
        return "settled"

    def last(self, kind: type[EventT]) -> EventT | None:
        """Return the last event of `kind`."""
        return next((event for event in reversed(self.events) if isinstance(event, kind)), None)

    def all(self, kind: type[EventT]) -> list[EventT]:
        """Return the events of `kind`."""
        return [event for event in self.events if isinstance(event, kind)]


def _told(witness: _Witness, found: Found, facts: _Facts, surfaced: frozenset[NoteVersion]) -> Rehearsal:
    hits = {hit.note.id: hit for hit in (*found.fast, *found.lexical, *(left.hit for left in found.left_out))}
    settled = facts.last(RecallSettled)
    known = {**{name: hit.note for name, hit in hits.items()}, **witness.loaded}
    refined = tuple(known[name] for name in settled.notes) if settled is not None else ()
    for note in refined:
        hits.setdefault(note.id, Hit(note, 0.0))
    fate = _Fates(found, facts, surfaced, frozenset(note.id for note in refined))
    return Rehearsal(
        found=found,
        fast=facts.last(RecallFastResult),
        settled=settled,
        refined=refined,
        candidates=tuple(fate.of(hit) for hit in hits.values()),
    )


class _Fates:
    """Says what became of each note."""

    def __init__(self, found: Found, facts: _Facts, surfaced: frozenset[NoteVersion], refined: frozenset[str]) -> None:
        begun = facts.last(RecallBegun)
        self._fast_allowed = begun is not None and policy_named(begun.policy).fast
        self._fast = frozenset(hit.note.id for hit in found.fast)
        self._refined = refined
        self._surfaced = surfaced
        self._dropped = {left.hit.note.id: left.why for left in found.left_out}
        self._points = {name: event.point for event in facts.all(RecallDelivered) for name in event.notes}
        self._withdrawn = frozenset(name for event in facts.all(RecallWithdrawn) for name in event.notes)
        self._full = any(event.reason is Reason.OVER_BUDGET for event in facts.all(RecallSkipped))

    def of(self, hit: Hit) -> Candidate:
        """Return `hit` with its fate."""
        name = hit.note.id
        return Candidate(
            hit=hit,
            fate=self._fate(hit.note),
            fast=name in self._fast,
            refined=name in self._refined,
            point=self._points.get(name),
        )

    def _fate(self, note: Note) -> Fate:
        if note.id in self._points:
            return Fate.DELIVERED
        if note.id in self._withdrawn:
            return Fate.STALE
        if note.id not in self._fast | self._refined:
            return _FATES[self._dropped.get(note.id, Dropped.PLACE)]
        if note.note_version in self._surfaced:
            return Fate.ALREADY_SURFACED
        if self._full:
            return Fate.BUDGET
        return Fate.NOT_CHOSEN if self._fast_allowed else Fate.NO_PLACE
