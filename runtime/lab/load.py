"""Plays scripted traffic for as long as it is wanted: real turns, one fresh session each, arriving at a rate.

    with open_telemetry(settings) as telemetry:
        observers = Observers(telemetry.observers)
        result = await play_load(LoadPlan(rate=5, split=PolicySplit.parse("tiered"), turns=300), telemetry, observers)

With the same seed the same turns come in the same order under the same policies, at the same distances.
"""

import itertools
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import anyio
from anyio.abc import TaskGroup

from recallscope.runtime.agent.host import Agent, RecallSettings
from recallscope.runtime.agent.send import Attempts
from recallscope.runtime.agent.session import Session
from recallscope.runtime.agent.turn_state import TurnResult
from recallscope.runtime.lab.scenarios import preparation
from recallscope.runtime.lab.stage import converse, open_stage
from recallscope.runtime.lab.traffic import BELIEVABLE, Deck, Kind, Mix, Ordinary, ScriptedTurn, Traffic
from recallscope.runtime.observe import Observers
from recallscope.runtime.recall.policy import DEFAULT_CEILING, PolicySplit
from recallscope.runtime.terms import Cause, PolicyName, Scenario, TurnOutcome
from recallscope.telemetry.sdk import Telemetry

__all__ = ["AGENT", "LoadPlan", "LoadProgress", "LoadResult", "Otherwise", "play_load"]

AGENT = "load"
"""The agent's name in the metrics and spans of played traffic."""

SCHEMA = 1

GRACE_SECONDS = 2.0
"""How long turns may go on after the play was stopped; those that take longer are cancelled."""

ATTEMPTS = Attempts(number=2, total=30.0, first_backoff=0.2)
"""A refusal that the script repeats is tried twice, so that backing off is seen and does not take long."""

BEHIND_SECONDS = 0.1
"""A turn that begins later than this after its moment did not come when it should: the machine is behind the rate."""

TOLD = 20
"""Of the turns that ended otherwise so many are kept with their sentences; all are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPlan:
    """What is played.

    `rate`: turns per second on average, at random distances. `turns`: after how many it ends; None: when it is stopped.
    `ceiling`: seconds, that of `tiered`. `at_once`: the most sessions at a time; a turn that finds no room comes later,
    and so do those behind it.
    """

    rate: float
    split: PolicySplit
    mix: Mix = BELIEVABLE
    ordinary: Ordinary = field(default_factory=Ordinary)
    turns: int | None = None
    ceiling: float = DEFAULT_CEILING
    at_once: int = 100
    seed: int = 0


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """How it goes, in conversations: ended, under way, ended otherwise than their script says, late, behind."""

    ended: int
    active: int
    otherwise: int
    late: int
    behind: int = 0
    most_behind: float = 0.0


@dataclass(frozen=True, slots=True)
class Otherwise:
    """A turn that did not end as its script says, and what it ended with instead."""

    turn: str
    kind: Kind
    expected: TurnOutcome
    outcome: TurnOutcome
    error: str | None = None

    def __str__(self) -> str:
        why = f": {self.error}" if self.error else ""
        return f"turn {self.turn} ({self.kind}) ended as {self.outcome}, its script says {self.expected}{why}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadResult:
    """What was played: `kinds` and `policies` count conversations, `outcomes` and `scenarios` every turn in them.

    A conversation has one turn, a superseded one has two. `scenarios`: the rows of the comparison that the turns fell
    into, which turns without a recall have not. `seconds`: how long it took. `otherwise`: how many ended otherwise than
    their script says; `told`: the first of them. `cut`: how many were cancelled because the play was stopped. `late`:
    how many found no room when they came. `behind`: how many began more than `BEHIND_SECONDS` after their moment though
    there was room, because the machine does not keep the rate; `most_behind`: the latest of all, in seconds.
    """

    seed: int
    seconds: float
    kinds: Mapping[Kind, int]
    policies: Mapping[PolicyName, int]
    outcomes: Mapping[TurnOutcome, int]
    scenarios: Mapping[Scenario, int]
    otherwise: int
    told: tuple[Otherwise, ...]
    cut: int
    late: int
    behind: int = 0
    most_behind: float = 0.0

    @property
    def turns(self) -> int:
        """How many conversations ended."""
        return sum(self.kinds.values())

    def as_data(self) -> dict[str, Any]:
        """Return plain data: the object of `recallscope load --json`."""
        return {
            "schema": SCHEMA,
            "seed": self.seed,
            "seconds": round(self.seconds, 3),
            "turns": self.turns,
            "kinds": {kind.value: self.kinds[kind] for kind in Kind if kind in self.kinds},
            "policies": {policy.value: self.policies[policy] for policy in PolicyName if policy in self.policies},
            "outcomes": {each.value: self.outcomes[each] for each in TurnOutcome if each in self.outcomes},
            "scenarios": {each.value: self.scenarios[each] for each in Scenario if each in self.scenarios},
            "otherwise": self.otherwise,
            "cut": self.cut,
            "late": self.late,
            "behind": self.behind,
            "most_behind_seconds": round(self.most_behind, 3),
        }


@dataclass(slots=True, eq=False)
class _Tally:
    """Counts what has been played."""

    on_progress: Callable[[LoadProgress], None]
    on_otherwise: Callable[[Otherwise], None]
    kinds: Counter[Kind] = field(default_factory=Counter[Kind])
    policies: Counter[PolicyName] = field(default_factory=Counter[PolicyName])
    outcomes: Counter[TurnOutcome] = field(default_factory=Counter[TurnOutcome])
    scenarios: Counter[Scenario] = field(default_factory=Counter[Scenario])
    otherwise: int = 0
    told: list[Otherwise] = field(default_factory=list[Otherwise])
    cut: int = 0
    late: int = 0
    behind: int = 0
    most_behind: float = 0.0
    active: int = 0

    def began(self, after: float) -> None:
        self.active += 1
        self.behind += after > BEHIND_SECONDS
        self.most_behind = max(self.most_behind, after)
        self._tell()

    def ended(self, turn: ScriptedTurn, policy: PolicyName, results: Sequence[TurnResult]) -> None:
        self.active -= 1
        self.kinds[turn.kind] += 1
        self.policies[policy] += 1
        self.outcomes.update(result.outcome for result in results)
        self.scenarios.update(result.recall.scenario for result in results if result.recall is not None)
        last = results[-1]
        if last.cause is Cause.PROCESS_SHUTDOWN:
            self.cut += 1
        elif last.outcome is not turn.outcome:
            other = Otherwise(last.turn, turn.kind, turn.outcome, last.outcome, last.error)
            self.otherwise += 1
            if len(self.told) < TOLD:
                self.told.append(other)
            self.on_otherwise(other)
        self._tell()

    def _tell(self) -> None:
        ended = sum(self.kinds.values())
        self.on_progress(LoadProgress(ended, self.active, self.otherwise, self.late, self.behind, self.most_behind))


async def play_load(
    plan: LoadPlan,
    telemetry: Telemetry,
    observers: Observers,
    *,
    stop: anyio.Event | None = None,
    on_progress: Callable[[LoadProgress], None] = lambda _: None,
    on_otherwise: Callable[[Otherwise], None] = lambda _: None,
) -> LoadResult:
    """Play `plan` in this process until its turns have ended or `stop` is set, and say what was played.

    After `stop` no turn begins; those under way have `GRACE_SECONDS`, then they are cancelled as at a shutdown. A turn
    that ends otherwise than its script says is counted and told, and ends nothing. `on_progress` is called whenever a
    turn begins or ends.

    Raises:
        LabError: the model server did not start.
    """
    traffic = Traffic.of(plan.mix, plan.ordinary, random.Random(f"{plan.seed} turns"))
    recall = RecallSettings(split=plan.split, ceiling=plan.ceiling)
    tally = _Tally(on_progress, on_otherwise)
    seconds = 0.0
    async with (
        open_stage(traffic.script, telemetry, observers, name=AGENT, recall=recall, attempts=ATTEMPTS) as agent,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(telemetry.run, name="telemetry")
        started = anyio.current_time()
        await _Play(plan, agent, traffic, tally, stop or anyio.Event()).run()
        seconds = anyio.current_time() - started
        tasks.cancel_scope.cancel()
    return LoadResult(
        seed=plan.seed,
        seconds=seconds,
        kinds=dict(tally.kinds),
        policies=dict(tally.policies),
        outcomes=dict(tally.outcomes),
        scenarios=dict(tally.scenarios),
        otherwise=tally.otherwise,
        told=tuple(tally.told),
        cut=tally.cut,
        late=tally.late,
        behind=tally.behind,
        most_behind=tally.most_behind,
    )


class _Play:
    """The arrivals and the sessions under way."""

    def __init__(self, plan: LoadPlan, agent: Agent, traffic: Traffic, tally: _Tally, stop: anyio.Event) -> None:
        chance = random.Random(plan.seed)
        self._plan = plan
        self._agent = replace(agent, ids=lambda: f"{chance.getrandbits(48):012x}")
        self._deck = Deck(traffic, chance)
        self._distances = random.Random(f"{plan.seed} arrivals")
        self._tally = tally
        self._stop = stop
        self._arriving = anyio.CancelScope()
        self._room = anyio.Semaphore(plan.at_once)
        self._sessions: set[Session] = set()

    async def run(self) -> None:
        """Play until the turns of the plan have ended, or until those under way have after `stop` was set."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._end_when_stopped)
            async with anyio.create_task_group() as turns:
                with self._arriving:
                    await self._let_arrive(turns)
            tasks.cancel_scope.cancel()

    async def _let_arrive(self, turns: TaskGroup) -> None:
        arrives_at = anyio.current_time()
        for _ in itertools.count() if self._plan.turns is None else range(self._plan.turns):
            await anyio.sleep_until(arrives_at)
            if self._room.value == 0:
                self._tally.late += 1
                await self._room.acquire()
                arrives_at = anyio.current_time()
            else:
                self._room.acquire_nowait()
            turns.start_soon(self._turn, self._deck.deal(), arrives_at)
            arrives_at += self._distances.expovariate(self._plan.rate)

    async def _turn(self, turn: ScriptedTurn, due: float) -> None:
        """Play one turn, whose moment was `due`, in a fresh session."""
        reminders = (preparation(turn.preparation),) if turn.preparation else ()
        session = replace(self._agent, reminders=reminders).open_session()
        self._sessions.add(session)
        self._tally.began(anyio.current_time() - due)
        try:
            results = await converse(session, turn.prompt, second=turn.second, cancel_after=turn.cancel_after)
        finally:
            self._sessions.remove(session)
            self._room.release()
        self._tally.ended(turn, self._plan.split.arm(session.id), results)

    async def _end_when_stopped(self) -> None:
        await self._stop.wait()
        self._arriving.cancel()
        await anyio.sleep(GRACE_SECONDS)
        for session in self._sessions:
            session.cancel(Cause.PROCESS_SHUTDOWN)
