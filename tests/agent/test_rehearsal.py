"""A rehearsed recall: the fate of every note that it looked at, decided by the parts that decide it in a turn."""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from recallscope.runtime.agent.rehearsal import Fate, Rehearsal, rehearse
from recallscope.runtime.errors import StoreUnavailableError
from recallscope.runtime.events import OpId
from recallscope.runtime.memory.note import Note
from recallscope.runtime.memory.search import Dropped, Found, Hit, LeftOut
from recallscope.runtime.messages import NoteVersion
from recallscope.runtime.observe import Observers
from recallscope.runtime.recall.handle import Budget
from recallscope.runtime.terms import Point, PolicyName
from recallscope.runtime.testing.fake_clock import VirtualLoop
from recallscope.runtime.testing.memory import FakeMemory, make_note
from recallscope.runtime.testing.models import FakeModel, choosing

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, object]]:
    """Let time be virtual."""
    return "asyncio", {"loop_factory": VirtualLoop}


ALPHA, BETA, GAMMA = make_note("alpha"), make_note("beta"), make_note("gamma")


async def _rehearsed(
    memory: FakeMemory,
    *,
    selector: FakeModel | None = None,
    policy: PolicyName = PolicyName.TIERED,
    budget: Budget | None = None,
    surfaced: frozenset[NoteVersion] = frozenset(),
) -> Rehearsal:
    return await rehearse(
        memory,
        "what now?",
        selector=selector,
        policy=policy,
        observers=Observers(),
        budget=budget or Budget(),
        safety=5.0,
        surfaced=surfaced,
    )


def _fates(told: Rehearsal) -> dict[str, tuple[Fate, Point | None]]:
    return {candidate.hit.note.title: (candidate.fate, candidate.point) for candidate in told.candidates}


async def test_fast_notes_go_first_and_the_chosen_rest_behind_tool_results() -> None:
    """Each candidate says where it went; one that only the selector chose has no score."""
    memory = FakeMemory(fast=[ALPHA], candidates=[ALPHA, BETA])
    model = FakeModel(turnouts=[choosing(2, delay=0.5)])
    told = await _rehearsed(memory, selector=model)

    assert _fates(told) == {
        "alpha": (Fate.DELIVERED, Point.INITIAL),
        "beta": (Fate.DELIVERED, Point.TOOL_RESULT),
    }
    assert [(note.title, told.candidates[1].hit.parts) for note in told.refined] == [("beta", ())]


async def test_a_selector_that_is_quicker_than_the_send_decides_alone() -> None:
    """A settled result goes before a fast one, so what it leaves out goes nowhere."""
    memory = FakeMemory(fast=[ALPHA], candidates=[ALPHA, BETA])
    told = await _rehearsed(memory, selector=FakeModel(turnouts=[choosing(2)]))

    assert _fates(told) == {"alpha": (Fate.NOT_CHOSEN, None), "beta": (Fate.DELIVERED, Point.INITIAL)}


async def test_what_does_not_fit_the_budget_is_dropped_by_it() -> None:
    """The budget of the turn holds here too."""
    told = await _rehearsed(FakeMemory(fast=[ALPHA, BETA]), budget=Budget(notes=1))

    assert _fates(told) == {"alpha": (Fate.DELIVERED, Point.INITIAL), "beta": (Fate.BUDGET, None)}


async def test_a_note_whose_file_changed_is_stale() -> None:
    """The check of the files is the one of a delivery."""
    told = await _rehearsed(FakeMemory(fast=[ALPHA], changed={ALPHA.note_version}))

    assert _fates(told) == {"alpha": (Fate.STALE, None)}


async def test_what_the_policy_does_not_deliver_has_no_place() -> None:
    """Under `deadline` the fast result goes nowhere, only what the selector chose."""
    memory = FakeMemory(fast=[ALPHA], candidates=[ALPHA, BETA])
    model = FakeModel(turnouts=[choosing(2)])
    told = await _rehearsed(memory, selector=model, policy=PolicyName.DEADLINE)

    assert _fates(told) == {"alpha": (Fate.NO_PLACE, None), "beta": (Fate.DELIVERED, Point.INITIAL)}


@dataclass(slots=True)
class _Dropping(FakeMemory):
    """Finds nothing and looked at one note for each reason why a search drops one."""

    async def search(
        self,
        query: str,
        *,
        exclude: frozenset[NoteVersion],
        recent_tools: Sequence[str],
        within: float | None = None,
        op: OpId | None = None,
    ) -> Found:
        """Return what was dropped."""
        return Found(left_out=tuple(LeftOut(Hit(_named(why), 1.0), why) for why in Dropped))


def _named(why: Dropped) -> Note:
    return make_note(why.value)


async def test_what_the_search_dropped_says_why() -> None:
    """Every reason of the search has a fate of its own."""
    told = await _rehearsed(_Dropping())

    assert {title: fate for title, (fate, _) in _fates(told).items()} == {
        "excluded": Fate.ALREADY_SURFACED,
        "noise": Fate.TOOL_NOISE,
        "superseded": Fate.SUPERSEDED,
        "threshold": Fate.THRESHOLD,
        "unrelated": Fate.UNRELATED,
        "place": Fate.PLACE,
    }


async def test_unavailable_is_not_empty() -> None:
    """A memory that cannot be read is an error, not an empty answer."""
    with pytest.raises(StoreUnavailableError):
        await _rehearsed(FakeMemory(unavailable=True))


async def test_a_policy_that_recalls_nothing_cannot_be_rehearsed() -> None:
    """`off` has no recall."""
    with pytest.raises(ValueError, match="off"):
        await _rehearsed(FakeMemory(), policy=PolicyName.OFF)
