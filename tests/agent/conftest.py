"""An agent among fakes."""

import itertools
from collections.abc import Callable, Sequence

import anyio
import pytest

from recallscope.runtime.agent.gates import Limits
from recallscope.runtime.agent.host import Agent, RecallSettings
from recallscope.runtime.agent.reminders import ReminderSource
from recallscope.runtime.agent.send import Attempts, SendSettings
from recallscope.runtime.agent.tools.registry import Tool, Toolbox
from recallscope.runtime.agent.turn import PostTurn
from recallscope.runtime.agent.turn_state import TurnResult
from recallscope.runtime.events import OpId, PolicyName
from recallscope.runtime.memory.search import Searchable
from recallscope.runtime.messages import Message
from recallscope.runtime.model.seam import Model
from recallscope.runtime.observe import Observer, Observers
from recallscope.runtime.recall.policy import DEFAULT_CEILING, PolicySplit


def _nothing_after(_: TurnResult, __: Sequence[Message]) -> None:
    """Schedule nothing."""


@pytest.fixture(scope="session")
def make_agent() -> Callable[..., Agent]:
    """Make an agent whose clock is that of the loop, whose back-off is whole and whose sessions are called `s`."""

    def make(
        model: Model,
        *watching: Observer,
        memory: Searchable | None = None,
        selector: Model | None = None,
        policy: PolicyName = PolicyName.TIERED,
        ceiling: float = DEFAULT_CEILING,
        tools: Sequence[Tool] = (),
        limits: Limits | None = None,
        attempts: Attempts | None = None,
        streamed: bool = True,
        reminders: Sequence[ReminderSource] = (),
        post_turn: PostTurn = _nothing_after,
    ) -> Agent:
        numbers = itertools.count(1)
        toolbox = Toolbox(tools)
        return Agent(
            name="tester",
            model=model,
            selector_model=selector,
            memory=memory,
            recall=RecallSettings(split=PolicySplit.parse(policy), ceiling=ceiling),
            observers=Observers(watching, clock=anyio.current_time, ids=lambda: OpId(f"op{next(numbers)}")),
            toolbox=toolbox,
            settings=SendSettings(
                system="Be brief.",
                tools=toolbox.specs,
                limits=limits or Limits(),
                attempts=attempts or Attempts(),
                streamed=streamed,
                jitter=lambda: 1.0,
            ),
            reminders=reminders,
            post_turn=post_turn,
            ids=lambda: "s",
            wall=lambda: 0.0,
        )

    return make
