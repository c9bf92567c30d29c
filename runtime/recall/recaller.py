"""The recaller of a session: it starts the recall, waits no longer than the policy allows, and ends it.

`begin` never waits, `consume` waits at most the policy's ceiling at the initial point and never at tool results,
`finish` closes and cleans up. One pending recall per session, in every policy. What is delivered the handle decides
(`handle.py`); what is stated of it stands in `pending.py`.
"""

import logging
import time
from collections.abc import Sequence

import anyio

from recallscope.runtime.events import EndedBy
from recallscope.runtime.memory.search import Searchable
from recallscope.runtime.messages import NoteVersion
from recallscope.runtime.observe import Clock, Observers
from recallscope.runtime.recall import hold
from recallscope.runtime.recall.fault import outcome_of, tell
from recallscope.runtime.recall.handle import Budget, RecallHandle, Settled
from recallscope.runtime.recall.pending import NO_MEMORY, Handover, PendingRecall, RecallTurn, RecallVerdict
from recallscope.runtime.recall.policy import Policy
from recallscope.runtime.recall.refine import Refiner
from recallscope.runtime.recall.selector import Selector
from recallscope.runtime.terms import Cause, Point, PolicyName, Reason, Strategy

__all__ = ["RecallTurn", "RecallVerdict", "Recaller"]

_log = logging.getLogger(__name__)

SELECTOR_SAFETY_SECONDS = 30.0
"""Stops a leaked selector call; nobody waits for it (docs/recall.md)."""

FINISH_SECONDS = 1.0
"""How long `finish` waits for the cancelled recall task."""


class Recaller:
    """Recalls for one session: `memory` is searched (None: no usable root, nothing is recalled), `selector` refines.

    Without a selector the word matches alone are the refined result.
    """

    def __init__(
        self,
        *,
        memory: Searchable | None,
        selector: Selector | None,
        policy: Policy,
        observers: Observers,
        budget: Budget | None = None,
        selector_safety: float = SELECTOR_SAFETY_SECONDS,
        wall: Clock = time.time,
    ) -> None:
        self.policy = policy
        self._memory = memory
        self._refiner = Refiner(selector=selector, policy=policy, safety=selector_safety)
        self._observers = observers
        self._budget = budget or Budget()
        self._wall = wall
        self._pending: PendingRecall | None = None

    def begin(
        self, turn: RecallTurn, query: str, *, surfaced: frozenset[NoteVersion], recent_tools: Sequence[str]
    ) -> None:
        """Start the recall for a fresh user turn and return at once; a pending one is closed as `new_query`.

        `query` is the prompt as the person wrote it. Nothing begins under the policy `off` or without memory.
        """
        self._supersede()
        memory = self._memory
        if memory is None or self.policy.name is PolicyName.OFF:
            return
        recall = PendingRecall(
            turn=turn,
            policy=self.policy,
            handle=RecallHandle(fast_allowed=self.policy.fast, surfaced=surfaced, budget=self._budget),
            observers=self._observers,
            wall=self._wall,
        )
        recall.begun(catalog_notes=memory.notes)
        self._pending = recall
        cause = turn.cause()
        if cause is None:
            turn.tasks.start_soon(self._recall, recall, memory, query, recent_tools, name="recall")
        else:
            # The recall exists and closes at once, so that telemetry stays complete.
            recall.close(cause)
            recall.done.set()

    async def consume(self, point: Point, *, retry: bool = False) -> Handover:
        """Return what goes with a send at `point`; an attempt that is a retry asks again without waiting."""
        recall, memory = self._pending, self._memory
        if recall is None or memory is None or point is Point.NONE:
            return NO_MEMORY
        asked_at = self._observers.now()
        if not retry:
            recall.asked(point, asked_at)
        if not hold.may_take(self.policy, recall.handle, point):
            return Handover(recall)
        limit = hold.limit_of(self.policy, point, retry=retry)
        ended_by = EndedBy.CANCELLED
        recall.holding = anyio.Event()
        try:
            waited_for = await _wait(recall, limit)
            hold_back = await self._check(recall, memory, point, asked_at + limit)
            ended_by = waited_for
        finally:
            waited = self._observers.now() - asked_at
            recall.holding.set()
            if not retry:
                recall.held(point, waited, ended_by)
        if recall.handle.cause is not None:
            return Handover(recall)
        delivery = recall.prepare(point, hold_back=hold_back)
        if hold.gives_up(self.policy, recall.handle):
            recall.close(Cause.POLICY_LIMIT)
        return Handover(recall, delivery, waited)

    async def finish(self, cause: Cause) -> RecallVerdict | None:
        """Close the pending recall, cancel its task and await it (shielded, at most a second); None without a recall.

        The first cause wins: a recall that was closed before keeps the cause of then.
        """
        recall = self._pending
        if recall is None:
            return None
        self._pending = None
        recall.close(cause)
        with anyio.move_on_after(FINISH_SECONDS, shield=True) as limit:
            await recall.done.wait()
        if limit.cancelled_caught:
            _log.error("the recall of turn %s did not end within %s s of its cancel", recall.turn.turn, FINISH_SECONDS)
        return recall.conclude()

    def _supersede(self) -> None:
        recall, self._pending = self._pending, None
        if recall is None:
            return
        recall.close(Cause.SUPERSEDED)
        if recall.done.is_set():
            recall.conclude()

    # The task

    async def _recall(self, recall: PendingRecall, memory: Searchable, query: str, recent_tools: Sequence[str]) -> None:
        try:
            with recall.scope:
                failure = await outcome_of(self._search_and_refine(recall, memory, query, recent_tools))
                if failure is not None:
                    tell(f"turn {recall.turn.turn}: the recall failed", failure)
                    if recall.handle.settled is None:
                        recall.settle(_nothing(Reason.STORE_UNAVAILABLE))
        finally:
            recall.done.set()
            if recall is not self._pending and recall.handle.cause is not None:
                recall.conclude()

    async def _search_and_refine(
        self, recall: PendingRecall, memory: Searchable, query: str, recent_tools: Sequence[str]
    ) -> None:
        searched = memory.search(
            query,
            exclude=recall.handle.surfaced,
            recent_tools=recent_tools,
            within=self.policy.search_limit,
            op=recall.op,
        )
        found = await outcome_of(searched)
        if isinstance(found, Exception):
            tell(f"turn {recall.turn.turn}: memory could not be searched", found)
            recall.settle(_nothing(Reason.STORE_UNAVAILABLE))
            return
        recall.found_fast([hit.note for hit in found.fast], partial=found.partial, sources=found.sources)
        if recall.holding is not None and hold.refines_behind(recall.handle, held=not recall.holding.is_set()):
            # The held send has what it waits for: it goes first, the selector's request is built behind it.
            await recall.holding.wait()
        refined = await self._refiner.refine(
            memory, found, op=recall.op, query=query, recent_tools=recent_tools, cause=recall.closed_by
        )
        recall.settle(
            Settled(
                notes=recall.render(refined.notes),
                strategy=refined.strategy,
                error=refined.error,
                cut_by_policy=refined.cut_by_policy,
            ),
            not_asked=refined.not_asked,
        )

    # The check of what is about to be delivered

    async def _check(
        self, recall: PendingRecall, memory: Searchable, point: Point, deadline: float
    ) -> frozenset[NoteVersion]:
        """Withdraw what is gone or changed on disk; return the versions that could not be checked by `deadline`.

        What settles meanwhile is checked as well, while time is left.
        """
        checked: set[NoteVersion] = set()
        with anyio.move_on_after(hold.time_to_check(deadline, now=self._observers.now())):
            while unchecked := [note.version for note in recall.handle.offered(point) if note.version not in checked]:
                stale = await outcome_of(memory.stale([recall.notes[version] for version in unchecked]))
                if isinstance(stale, Exception):
                    tell(f"turn {recall.turn.turn}: the notes could not be checked", stale)
                    break
                recall.withdraw(stale)
                checked.update(unchecked)
        return frozenset(note.version for note in recall.handle.offered(point) if note.version not in checked)


async def _wait(recall: PendingRecall, limit: float) -> EndedBy:
    """Wait until there is something to deliver, nothing can come any more, or `limit` seconds have passed."""
    at_once = hold.ended_at_once(recall.handle, limit)
    if at_once is not None:
        return at_once
    with anyio.move_on_after(limit):
        await recall.deliverable.wait()
    return hold.ended_by(recall.handle)


def _nothing(error: Reason | None) -> Settled:
    return Settled(notes=(), strategy=Strategy.NONE, error=error)
