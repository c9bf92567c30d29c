"""The scripts of turns that `explain` is tried on, and the engine that plays them on virtual time."""

import itertools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import anyio

from recallscope.runtime.agent.gates import Limits
from recallscope.runtime.agent.host import Agent, RecallSettings
from recallscope.runtime.agent.send import SendSettings
from recallscope.runtime.agent.tools.registry import Toolbox, function_tool
from recallscope.runtime.agent.turn_state import TurnRequest
from recallscope.runtime.errors import ModelError, ModelStatusError
from recallscope.runtime.events import Cause, Event, OpId, PolicyName, ProcessStarted
from recallscope.runtime.memory.note import Note
from recallscope.runtime.messages import Message, ReminderPart
from recallscope.runtime.observe import Observers
from recallscope.runtime.recall.handle import Budget
from recallscope.runtime.recall.policy import DEFAULT_CEILING, PolicySplit
from recallscope.runtime.testing.fake_clock import run
from recallscope.runtime.testing.memory import FakeMemory, make_note
from recallscope.runtime.testing.models import FakeModel, Turnout, calling, choosing, saying
from recallscope.runtime.testing.recorder import EventRecorder
from recallscope.telemetry.testing.golden import AT, golden_turn, tool_free_turn, unlucky_turn

__all__ = ["POLICIES", "SCRIPTS", "TURNS", "play", "turns_to_explain"]

POLICIES = (PolicyName.DEADLINE, PolicyName.PREFETCH, PolicyName.TIERED)

WORD, CHOSEN = make_note("word"), make_note("chosen")
REFUSAL = ModelStatusError(url="http://127.0.0.1:1", status_code=401, body="no")
BUSY = ModelStatusError(url="http://127.0.0.1:1", status_code=429, body="slow down")


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A turn: seconds of the selector, the reminders, the tool (None: no tool) and the answer; what goes wrong in it.

    The answer's first piece comes after 0.1 s. The words match one note, and the selector chooses it and another one,
    unless stated otherwise.
    """

    selector: float = 1.6
    reminders: float = 0.0
    tool: float | None = None
    answer: float = 0.2
    words: Sequence[Note] = (WORD,)
    chosen: tuple[int, ...] = (1, 2)
    selector_fails: ModelError | None = None
    failures: Sequence[ModelError] = ()
    unavailable: bool = False
    ended_after: float | None = None
    cause: Cause = Cause.SUPERSEDED
    ceiling: float = DEFAULT_CEILING
    budget: Budget | None = None
    limits: Limits | None = None


SCRIPTS: Mapping[str, Script] = {
    "settled_before_send": Script(selector=0.02, reminders=0.15),
    "slow_with_tools": Script(selector=0.908, tool=1.5),
    "timed_out": Script(tool=2.5),
    "slow_without_tools": Script(answer=0.3),
    "superseded": Script(answer=2.0, ended_after=0.3),
    "interrupted": Script(answer=2.0, ended_after=0.4, cause=Cause.USER_CANCEL),
    "not_sent": Script(failures=(REFUSAL,)),
    "unavailable": Script(unavailable=True),
    "nothing_found": Script(words=(), chosen=(), selector=0.3, answer=0.5),
    "no_word_match": Script(words=(), selector=0.4, answer=2.0),
    "selector_fails": Script(selector=0.05, selector_fails=REFUSAL, tool=0.4),
    "selector_fails_without_words": Script(words=(), chosen=(), selector=0.05, selector_fails=REFUSAL),
    "no_budget": Script(selector=0.02, reminders=0.15, budget=Budget(characters=10)),
    "no_sends": Script(selector=0.02, limits=Limits(max_sends=0)),
    "no_turns": Script(selector=0.02, limits=Limits(max_turns=0)),
    "no_tokens": Script(selector=0.02, limits=Limits(session_tokens=0)),
    "retried": Script(failures=(BUSY, BUSY), selector=0.3),
    "no_ceiling": Script(ceiling=0.0, answer=0.3),
}


def play(name: str, policy: PolicyName, *, session: str = "s", **changed: Any) -> list[Event]:
    """Play a script as the first turn of `session`, and return what the engine stated; `changed` are fields of it."""
    return run(_play, replace(SCRIPTS[name], **changed), policy, session)


async def _play(script: Script, policy: PolicyName, session: str) -> list[Event]:
    recorder = EventRecorder()
    numbers = itertools.count(1)
    observers = Observers([recorder], clock=anyio.current_time, ids=lambda: OpId(f"{session}-op{next(numbers)}"))

    async def prepare(_: Sequence[Message]) -> ReminderPart | None:
        await anyio.sleep(script.reminders)
        return None

    async def work(_: Mapping[str, Any]) -> str:
        await anyio.sleep(script.tool or 0.0)
        return "done"

    failing = [Turnout(error=error, delay=0.05) for error in script.failures]
    calls = [calling(("c1", "run_job", "{}"), delay=0.05)] if script.tool is not None else []
    answer = saying("It is ", "done.", delay=0.1, between=script.answer / 3)
    select = choosing(*script.chosen, delay=script.selector)
    toolbox = Toolbox([function_tool("run_job", "Run it.", {"type": "object"}, work, read_only=True)])
    agent = Agent(
        name="tester",
        model=FakeModel(turnouts=[*failing, *calls, answer]),
        selector_model=FakeModel(turnouts=[replace(select, error=script.selector_fails)]),
        memory=FakeMemory(
            fast=script.words, candidates=(*script.words, CHOSEN), delay=0.003, unavailable=script.unavailable
        ),
        recall=RecallSettings(
            split=PolicySplit.parse(policy), ceiling=script.ceiling, budget=script.budget or Budget()
        ),
        observers=observers,
        toolbox=toolbox,
        settings=SendSettings(
            system="Be brief.", tools=toolbox.specs, limits=script.limits or Limits(), jitter=lambda: 1.0
        ),
        reminders=(prepare,) if script.reminders else (),
        ids=lambda: session,
        wall=lambda: 0.0,
    )
    opened = agent.open_session()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(opened.prompt, TurnRequest(text="how do we deploy?"))
        if script.ended_after is not None:
            await anyio.sleep(script.ended_after)
            opened.cancel(script.cause)
    return recorder.events


_EVERY_SCRIPT = tuple(itertools.product(SCRIPTS, POLICIES))

TURNS = ("s.1", "s.2", "s.3", *(f"{name}-{policy}.1" for name, policy in _EVERY_SCRIPT))
"""What `turns_to_explain` are called: `s.1` to `s.3` are the golden ones, `s.3` is the last of all."""


def turns_to_explain() -> list[Event]:
    """Return the events of one process: every script under every policy, and the golden turns, up to a minute ago."""
    anchor = ProcessStarted(op=OpId("op-process"), at=AT, wall=time.time() - 60, pid=1, version="0", front_end="test")
    golden = (*golden_turn(), *unlucky_turn(), *tool_free_turn(number=3, at=AT + 20))
    scripted = (play(name, policy, session=f"{name}-{policy}") for name, policy in _EVERY_SCRIPT)
    return [anchor, *golden, *itertools.chain.from_iterable(scripted)]
