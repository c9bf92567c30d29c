"""A recaller among fakes, on virtual time."""

import itertools
import json
from collections.abc import AsyncGenerator, Callable, Mapping

import anyio
import pytest
from anyio.abc import TaskGroup

from recallscope.runtime.events import OpId, PolicyName
from recallscope.runtime.memory.search import Searchable
from recallscope.runtime.model.seam import Chunk, Model
from recallscope.runtime.observe import Observers
from recallscope.runtime.recall.handle import Budget
from recallscope.runtime.recall.policy import DEFAULT_CEILING, policy_named
from recallscope.runtime.recall.recaller import SELECTOR_SAFETY_SECONDS, Recaller
from recallscope.runtime.recall.selector import Selector
from recallscope.runtime.testing.fake_clock import VirtualLoop
from recallscope.runtime.testing.models import FakeModel, Turnout
from recallscope.runtime.testing.recorder import EventRecorder


@pytest.fixture
def anyio_backend() -> tuple[str, Mapping[str, object]]:
    """Let time be virtual: exact, and over at once."""
    return "asyncio", {"loop_factory": VirtualLoop}


@pytest.fixture
def recorder() -> EventRecorder:
    """Record what the engine states."""
    return EventRecorder()


@pytest.fixture
def observers(recorder: EventRecorder) -> Observers:
    """State facts to the recorder, with virtual times and counted ids."""
    numbers = itertools.count(1)
    return Observers([recorder], clock=anyio.current_time, ids=lambda: OpId(f"op{next(numbers)}"))


@pytest.fixture
def choosing() -> Callable[..., FakeModel]:
    """Make a small model that chooses the candidates of these numbers (from 1) after so many seconds."""

    def choose(*numbers: int, after: float = 0.0) -> FakeModel:
        text = json.dumps({"selected": [f"n{number:02d}" for number in numbers]})
        return FakeModel(turnouts=[Turnout(chunks=[Chunk(text)], delay=after)])

    return choose


@pytest.fixture
def make_recaller(observers: Observers) -> Callable[..., Recaller]:
    """Make the recaller of a session; without a model the word matches are the refined result."""

    def make(
        policy: PolicyName,
        memory: Searchable | None,
        model: Model | None = None,
        *,
        ceiling: float = DEFAULT_CEILING,
        budget: Budget | None = None,
        safety: float = SELECTOR_SAFETY_SECONDS,
    ) -> Recaller:
        return Recaller(
            memory=memory,
            selector=None if model is None else Selector(model, observers),
            policy=policy_named(policy, ceiling=ceiling),
            observers=observers,
            budget=budget,
            selector_safety=safety,
            wall=lambda: 0.0,
        )

    return make


@pytest.fixture
async def tasks() -> AsyncGenerator[TaskGroup, None]:
    """Own the tasks of a turn."""
    async with anyio.create_task_group() as group:
        yield group
