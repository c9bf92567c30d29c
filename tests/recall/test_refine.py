"""From what the words found to the refined result: when the selector is asked, and what stands in for it."""

from collections.abc import Callable, Sequence

import anyio
import pytest
from anyio.abc import TaskGroup

from recallscope.runtime.events import (
    ModelCallStarted,
    NotAsked,
    OpId,
    PolicyName,
    RecallDelivered,
    RecallSettled,
    Strategy,
)
from recallscope.runtime.memory.rank import Field
from recallscope.runtime.memory.search import Found, Hit, Part, Source
from recallscope.runtime.messages import NoteVersion
from recallscope.runtime.observe import Observers
from recallscope.runtime.recall.policy import policy_named
from recallscope.runtime.recall.recaller import Recaller, RecallTurn
from recallscope.runtime.recall.refine import Refined, Refiner
from recallscope.runtime.recall.selector import Selector
from recallscope.runtime.terms import Cause, Point
from recallscope.runtime.testing.memory import FakeMemory, make_note
from recallscope.runtime.testing.models import FakeModel
from recallscope.runtime.testing.recorder import EventRecorder

pytestmark = pytest.mark.anyio

TRAIN, OTHER = make_note("Release train"), make_note("other")
HIT = Hit(TRAIN, 2.0, (Part(Source.WORDS, 1.0, "releas", Field.TITLE), Part(Source.WORDS, 1.0, "train", Field.TITLE)))
CERTAIN = Found(fast=(HIT,), lexical=(HIT,), candidates=(TRAIN, OTHER), asked=frozenset({"releas", "train"}))


class CertainMemory(FakeMemory):
    """A memory that finds one note, asked for by its title."""

    async def search(
        self,
        query: str,
        *,
        exclude: frozenset[NoteVersion],
        recent_tools: Sequence[str],
        within: float | None = None,
        op: OpId | None = None,
    ) -> Found:
        """Find it."""
        await super().search(query, exclude=exclude, recent_tools=recent_tools, within=within, op=op)
        return CERTAIN


async def refine(observers: Observers, model: FakeModel, found: Found, policy: PolicyName) -> Refined:
    """Refine what was found for a query that asks for the first note by its title."""
    refiner = Refiner(selector=Selector(model, observers), policy=policy_named(policy), safety=30.0)
    memory = FakeMemory(candidates=found.candidates)
    return await refiner.refine(
        memory, found, op=OpId("r"), query="the release train?", recent_tools=(), cause=lambda: None
    )


@pytest.mark.parametrize("policy", [PolicyName.TIERED, PolicyName.PREFETCH])
async def test_a_note_asked_for_by_its_title_needs_no_selector(
    observers: Observers, recorder: EventRecorder, choosing: Callable[..., FakeModel], policy: PolicyName
) -> None:
    """The one dominant note is the refined result, chosen by the words, and no model is called."""
    refined = await refine(observers, choosing(2), CERTAIN, policy)

    assert refined == Refined(notes=(TRAIN,), strategy=Strategy.LEXICAL, not_asked=NotAsked.EXACT_TITLE)
    assert recorder.of(ModelCallStarted) == []


async def test_deadline_always_asks(observers: Observers, choosing: Callable[..., FakeModel]) -> None:
    """Under the old policy words never stand in for the selector."""
    refined = await refine(observers, choosing(2), CERTAIN, PolicyName.DEADLINE)

    assert refined == Refined(notes=(OTHER,), strategy=Strategy.MODEL)


async def test_without_candidates_there_is_nothing_to_ask(
    observers: Observers, choosing: Callable[..., FakeModel]
) -> None:
    """An empty memory is an empty result, and the reason is told."""
    refined = await refine(observers, choosing(1), Found(), PolicyName.TIERED)

    assert refined == Refined(notes=(), strategy=Strategy.NONE, not_asked=NotAsked.NO_CANDIDATES)


async def test_a_recall_states_that_the_selector_was_passed_over(
    make_recaller: Callable[..., Recaller],
    recorder: EventRecorder,
    choosing: Callable[..., FakeModel],
    tasks: TaskGroup,
) -> None:
    """The settled fact says why; the note is delivered with the first send."""
    memory = CertainMemory(candidates=[TRAIN, OTHER])
    recaller = make_recaller(PolicyName.TIERED, memory, choosing(2, after=0.5))
    turn = RecallTurn(op=OpId("turn"), session="s", turn="s.1", tasks=tasks, cause=lambda: None)
    recaller.begin(turn, "Release train", surfaced=frozenset(), recent_tools=())
    (await recaller.consume(Point.INITIAL)).accepted()
    await anyio.sleep(1)
    await recaller.finish(Cause.TURN_END)
    settled, delivered = recorder.only(RecallSettled), recorder.only(RecallDelivered)

    assert (settled.not_asked, settled.strategy, settled.error_type) == (
        NotAsked.EXACT_TITLE,
        Strategy.LEXICAL,
        None,
    )
    assert (delivered.point, delivered.notes) == (Point.INITIAL, (TRAIN.id,))
