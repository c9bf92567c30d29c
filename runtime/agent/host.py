"""The agent: what all its sessions share, and the one place where a session is put together."""

import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from recallscope.runtime.agent.reminders import ReminderSource
from recallscope.runtime.agent.send import SendSettings
from recallscope.runtime.agent.session import Session, SessionParts
from recallscope.runtime.agent.tools.registry import Toolbox
from recallscope.runtime.agent.turn import PostTurn
from recallscope.runtime.agent.turn_state import TurnResult
from recallscope.runtime.memory.search import Searchable
from recallscope.runtime.messages import Message
from recallscope.runtime.model.seam import Model
from recallscope.runtime.observe import Clock, Observers
from recallscope.runtime.recall.handle import Budget
from recallscope.runtime.recall.policy import DEFAULT_CEILING, PolicySplit, policy_named
from recallscope.runtime.recall.recaller import SELECTOR_SAFETY_SECONDS, Recaller
from recallscope.runtime.recall.selector import Selector

__all__ = ["Agent", "RecallSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallSettings:
    """How the sessions of an agent recall; `ceiling` in seconds holds for the policy `tiered`."""

    split: PolicySplit
    ceiling: float = DEFAULT_CEILING
    budget: Budget = field(default_factory=Budget)
    selector_safety: float = SELECTOR_SAFETY_SECONDS


def _nothing_after(_: TurnResult, __: Sequence[Message]) -> None:
    """Schedule nothing after a turn."""


def session_ids() -> Callable[[], str]:
    """Make session ids that are unique without anybody's coordination."""
    return lambda: secrets.token_hex(6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """Opens sessions. `memory` None: no usable memory root; `selector_model` None: word matches alone.

    `wall` is seconds since 1970, for the ages of notes.
    """

    name: str
    model: Model
    selector_model: Model | None
    memory: Searchable | None
    recall: RecallSettings
    observers: Observers
    toolbox: Toolbox
    settings: SendSettings
    reminders: Sequence[ReminderSource] = ()
    post_turn: PostTurn = _nothing_after
    ids: Callable[[], str] = field(default_factory=session_ids)
    wall: Clock = time.time

    def open_session(self, session: str | None = None) -> Session:
        """Open a session, under the arm of the policy split that its id falls into; close it when it is done."""
        identifier = session or self.ids()
        policy = policy_named(self.recall.split.arm(identifier), ceiling=self.recall.ceiling)
        selector = None
        if self.selector_model is not None:
            selector = Selector(self.selector_model, self.observers, limit=self.recall.budget.notes)
        recaller = Recaller(
            memory=self.memory,
            selector=selector,
            policy=policy,
            observers=self.observers,
            budget=self.recall.budget,
            selector_safety=self.recall.selector_safety,
            wall=self.wall,
        )
        return Session(
            identifier,
            SessionParts(
                agent=self.name,
                model=self.model,
                recaller=recaller,
                observers=self.observers,
                toolbox=self.toolbox,
                settings=self.settings,
                reminders=self.reminders,
                post_turn=self.post_turn,
            ),
        )
