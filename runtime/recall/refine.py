"""From what the words found to the refined result: the selector's choice, or what stands in for it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import anyio

from recallscope.runtime.events import OpId
from recallscope.runtime.memory.note import Note
from recallscope.runtime.memory.search import Found, Searchable
from recallscope.runtime.recall.fault import outcome_of, tell
from recallscope.runtime.recall.policy import Policy
from recallscope.runtime.recall.selector import Selector
from recallscope.runtime.recall.title import is_certain
from recallscope.runtime.terms import Cause, NotAsked, Reason, Strategy

__all__ = ["Refined", "Refiner"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refined:
    """The refined notes, best first, who chose them, and what went wrong.

    `cut_by_policy`: its own limit ended it. `not_asked`: the selector could not have helped, and why.
    """

    notes: tuple[Note, ...]
    strategy: Strategy
    error: Reason | None = None
    cut_by_policy: bool = False
    not_asked: NotAsked | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refiner:
    """Refines under `policy`; without a selector the word matches are the result. `safety` (seconds) stops a leak."""

    selector: Selector | None
    policy: Policy
    safety: float

    async def refine(
        self,
        memory: Searchable,
        found: Found,
        *,
        op: OpId,
        query: str,
        recent_tools: Sequence[str],
        cause: Callable[[], Cause | None],
    ) -> Refined:
        """Return the refined result of a search; a selector that fails or takes too long is an error in it.

        The selector is not asked where there is nothing to choose from, or where the query names the title of the one
        note that matches (`title.is_certain`); the latter only under policies in which words may stand in for it.
        """
        if self.selector is None:
            return _lexical(found, None)
        if not found.candidates:
            return Refined(notes=(), strategy=Strategy.NONE, not_asked=NotAsked.NO_CANDIDATES)
        if self.policy.lexical_fallback and is_certain(query, found):
            notes = (found.fast[0].note,)
            return Refined(notes=notes, strategy=Strategy.LEXICAL, not_asked=NotAsked.EXACT_TITLE)
        limit = self.policy.limit_selection(self.safety)
        error = Reason.SELECTOR_TIMEOUT

        def why() -> Cause | None:
            return Cause.POLICY_LIMIT if patience.cancel_called and limit.own else cause()

        with anyio.move_on_after(limit.seconds) as patience:
            chosen = await outcome_of(self.selector.select(op, query, found.candidates, recent_tools, cause=why))
            if not isinstance(chosen, Exception):
                return await _loaded(memory, chosen)
            tell("the selector failed", chosen)
            error = Reason.SELECTOR_UNAVAILABLE
        if self.policy.lexical_fallback:
            return _lexical(found, error)
        by_policy = error is Reason.SELECTOR_TIMEOUT and limit.own
        return Refined(notes=(), strategy=Strategy.NONE, error=error, cut_by_policy=by_policy)


async def _loaded(memory: Searchable, chosen: Sequence[Note]) -> Refined:
    notes = await outcome_of(memory.load(chosen))
    if isinstance(notes, Exception):
        tell("the chosen notes could not be read", notes)
        return Refined(notes=(), strategy=Strategy.NONE, error=Reason.STORE_UNAVAILABLE)
    return Refined(notes=notes, strategy=Strategy.MODEL if notes else Strategy.NONE)


def _lexical(found: Found, error: Reason | None) -> Refined:
    notes = tuple(hit.note for hit in found.lexical)
    return Refined(notes=notes, strategy=Strategy.LEXICAL if notes else Strategy.NONE, error=error)
