"""One recall without a turn: what would be searched, chosen and delivered for a query, and what dropped the rest.

The recaller, the handle, the policy and the budget are those of a turn. It is a turn that asks once at each delivery
point, whose model accepts everything, and that is in no hurry: the search is never interrupted, and the first send is
held as long as it takes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum, unique
from typing import TypeVar

import anyio

from recallscope.runtime.errors import StoreUnavailableError
from recallscope.runtime.events import (
    Event,
    OpId,
    RecallDelivered,
    RecallFastResult,
    RecallSettled,
    RecallSkipped,
    RecallWithdrawn,
)
from recallscope.runtime.memory.note import Note
from recallscope.runtime.memory.search import Dropped, Found, Hit, Searchable
from recallscope.runtime.messages import NoteVersion
from recallscope.runtime.observe import Observers
from recallscope.runtime.recall.handle import Budget
from recallscope.runtime.recall.policy import Policy
from recallscope.runtime.recall.recaller import Recaller, RecallTurn
from recallscope.runtime.recall.selector import Selector
from recallscope.runtime.terms import Cause, Point, PolicyName, Reason

__all__ = ["Candidate", "Fate", "Rehearsal", "rehearse"]

SESSION = "rehearsal"

UNHURRIED_SECONDS = 60.0
"""How long the first send is held at most: a search that takes longer is no search any more."""


EventT = TypeVar("EventT", bound=Event)


@unique
class Fate(StrEnum):
    """What became of a note that a recall looked at.

    `DELIVERED` at a point. Else what dropped it, the first that applies: `ALREADY_SURFACED` stands in the conversation,
    `TOOL_NOISE` only tells how a tool just used is called, `SUPERSEDED` by another note, `THRESHOLD` too low a score,
    `UNRELATED` too far behind the best, `PLACE` better ones filled the places, `STALE` its file is gone or changed,
    `BUDGET` the turn's notes or characters were used up, `NO_PLACE` the policy has no delivery point for it.
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
    selector: Selector | None,
    policy: Policy,
    observers: Observers,
    budget: Budget,
    safety: float,
    surfaced: frozenset[NoteVersion] = frozenset(),
    recent_tools: Sequence[str] = (),
) -> Rehearsal:
    """Recall for `query` as a turn does whose conversation holds `surfaced` and whose last tools were `recent_tools`.

    Raises:
        StoreUnavailableError: memory could not be read; unavailable is not empty.
        ValueError: `policy` recalls nothing.
    """
    if policy.name is PolicyName.OFF:
        raise ValueError("the policy off recalls nothing; rehearse another one")
    witness = _Witness(memory)
    facts = _Facts()
    observers.add(facts)
    recaller = Recaller(
        memory=witness,
        selector=selector,
        policy=replace(policy, search_limit=None, ceiling=UNHURRIED_SECONDS if policy.ceiling else 0.0),
        observers=observers,
        budget=budget,
        selector_safety=safety,
    )
    try:
        async with anyio.create_task_group() as tasks:
            turn = RecallTurn(op=observers.new_op(), session=SESSION, turn=f"{SESSION}.1", tasks=tasks, cause=_none)
            recaller.begin(turn, query, surfaced=surfaced, recent_tools=recent_tools)
            (await recaller.consume(Point.INITIAL)).accepted()
            with anyio.move_on_after(UNHURRIED_SECONDS + safety):
                await facts.settling.wait()
            (await recaller.consume(Point.TOOL_RESULT)).accepted()
            await recaller.finish(Cause.TURN_END)
    finally:
        observers.remove(facts)
    if witness.found is None:
        raise witness.failure or StoreUnavailableError("the search did not end")
    return _told(witness, witness.found, facts, surfaced)


def _none() -> Cause | None:
    return None


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
        if isinstance(event, RecallSettled):
            self.settling.set()

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
        return Fate.BUDGET if self._full else Fate.NO_PLACE
