"""The search for words and the question for the query's vector, side by side, and what both make together.

Words that found something never wait for a vector; only where they are silent the search waits for it, no longer than
the whole search may take. A vector that comes too late is not used and its call is closed. The words have a head start
of some milliseconds: most queries are answered by then, and nothing of them is sent anywhere.
"""

import itertools
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial

import anyio
from anyio import CapacityLimiter, to_thread

from recallscope.runtime.errors import StoreUnavailableError
from recallscope.runtime.events import Cause, OpId
from recallscope.runtime.memory.fuse import Ranking, fuse
from recallscope.runtime.memory.lookup import CANDIDATES, FAST, LEFT_OUT, LEXICAL, Lookup
from recallscope.runtime.memory.note import Note
from recallscope.runtime.memory.search import Dropped, Found, Hit, LeftOut, Source
from recallscope.runtime.memory.vectors import Vectors

__all__ = ["merged", "search_with_vectors"]

PATIENCE_SECONDS = 2.5
"""How long a search without a limit of its own waits for the vector of its query."""


async def search_with_vectors(
    words: Callable[[], Awaitable[Found]],
    vectors: Vectors,
    lookup: Lookup,
    *,
    within: float | None,
    limiter: CapacityLimiter,
    parent: OpId | None,
) -> Found:
    """Search for words with `words`, and beside it by the query's vector; `within` is counted from now.

    Raises:
        StoreUnavailableError: memory could not be read.
    """
    until = time.monotonic() + (PATIENCE_SECONDS if within is None else within)
    answers: list[Sequence[float]] = []
    found = Found()
    failure: StoreUnavailableError | None = None
    async with anyio.create_task_group() as tasks:
        silent, there = anyio.Event(), anyio.Event()
        late = False

        async def ask() -> None:
            with anyio.move_on_after(vectors.head_start):
                await silent.wait()
            cause = partial(_cause, lambda: late)
            vector = await vectors.ask(lookup.query, parent=parent, cause=cause)
            if vector is not None:
                answers.append(vector)
            there.set()

        tasks.start_soon(ask, name="vector of the query")
        try:
            found = await words()
        except StoreUnavailableError as error:
            failure = error  # raised below, outside of the group
        else:
            if not found.fast and not found.partial:
                silent.set()
                with anyio.move_on_after(max(until - time.monotonic(), 0.0)):
                    await there.wait()
                late = not there.is_set()
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure
    if not answers:
        return found
    compare = partial(_compare, vectors, lookup, answers[0])
    hits, left_out, strong = await to_thread.run_sync(compare, limiter=limiter, abandon_on_cancel=True)
    return merged(found, hits, left_out, strong=strong, threshold=vectors.threshold)


def _cause(late: Callable[[], bool]) -> Cause | None:
    """Say why the call is cancelled: it came too late, or (None) nobody needs it any more."""
    return Cause.POLICY_LIMIT if late() else None


def _compare(
    vectors: Vectors, lookup: Lookup, vector: Sequence[float]
) -> tuple[tuple[Hit, ...], tuple[LeftOut, ...], frozenset[str]]:
    """Return the notes like the query, those left out whatever their likeness, and the ids of those good enough."""
    likeness = vectors.nearest(vector)
    numbers = {near.number: near.likeness for near in likeness.near}
    hits, left_out = lookup.resolve(likeness.generation, numbers)
    least = min((near.likeness for near in likeness.near if near.number in likeness.strong), default=math.inf)
    return hits, left_out, frozenset(hit.note.id for hit in hits if hit.score >= round(least, 4))


def merged(
    found: Found, hits: Sequence[Hit], left_out: Sequence[LeftOut], *, strong: frozenset[str], threshold: float
) -> Found:
    """Return what the words found together with what the vectors found, `hits`, of which those in `strong` may go.

    A note enters the fast result, and the list that stands in for a selector, only if one source alone finds it good
    enough. Where the words were silent, `threshold` (of the vectors) is the answer's.
    """
    by_words = {left.hit.note.id for left in found.left_out if left.why in _BELOW}
    ranked_words = (*found.lexical, *(left.hit for left in found.left_out if left.hit.note.id in by_words))
    order = fuse([Ranking(Source.WORDS, _distinct(ranked_words)), Ranking(Source.VECTORS, tuple(hits))])
    good = {hit.note.id for hit in found.lexical} | strong
    best = {hit.note.id for hit in found.fast} | strong
    fast = tuple(hit for hit in order if hit.note.id in best)[:FAST]
    there = {hit.note.id for hit in fast}
    more = [hit.note.id for hit in order if hit.note.id in good - there][: LEXICAL - len(fast)]
    lexical = tuple(hit for hit in order if hit.note.id in there.union(more))
    why = {left.hit.note.id: left.why for left in (*left_out, *found.left_out)}
    others = [
        LeftOut(hit, why.get(hit.note.id) or (Dropped.PLACE if hit.note.id in good else Dropped.THRESHOLD))
        for hit in order
        if hit.note.id not in there
    ]
    dropped = [left for left in found.left_out if left.hit.note.id not in by_words | there]
    known = {left.hit.note.id for left in (*others, *dropped)}
    dropped += [left for left in left_out if left.hit.note.id not in known | there]
    return replace(
        found,
        fast=fast,
        lexical=lexical,
        candidates=_interleaved([hit.note for hit in hits], found.candidates),
        left_out=tuple([*others[: LEFT_OUT - min(len(dropped), LEFT_OUT // 2)], *dropped][:LEFT_OUT]),
        threshold=found.threshold if found.fast or not fast else threshold,
        sources=(Source.WORDS, Source.VECTORS),
    )


_BELOW = frozenset({Dropped.THRESHOLD, Dropped.UNRELATED, Dropped.PLACE})


def _distinct(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return each note once, in its best place: `lexical` and what is left out may both name it."""
    distinct: dict[str, Hit] = {}
    for hit in hits:
        distinct.setdefault(hit.note.id, hit)
    return tuple(distinct.values())


def _interleaved(near: Sequence[Note], others: Sequence[Note]) -> tuple[Note, ...]:
    """Return the candidates with those like the query among them, one for one, each once."""
    pairs = itertools.zip_longest(near, others)
    distinct = {note.id: note for pair in pairs for note in pair if note is not None}
    return tuple(itertools.islice(distinct.values(), CANDIDATES))
