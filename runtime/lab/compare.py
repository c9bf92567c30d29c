"""Plays every scenario under every policy, over real HTTP, and reads from its own `/metrics` what came of it.

The scripted model server runs in its own process, every turn has a fresh session, and nothing is computed from what
the engine knows inside: the figures are the difference of two scrapes.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import anyio
from anyio import to_thread

from recallscope.runtime.agent.host import Agent, RecallSettings
from recallscope.runtime.errors import LabError
from recallscope.runtime.lab.comparison import Comparison, compare_figures
from recallscope.runtime.lab.expectations import POLICIES, scripted
from recallscope.runtime.lab.scenarios import SCENARIOS, Play, build_script, preparation
from recallscope.runtime.lab.stage import converse, open_stage
from recallscope.runtime.observe import Observers
from recallscope.runtime.recall.policy import DEFAULT_CEILING, Arm, PolicySplit
from recallscope.runtime.terms import PolicyName, Scenario, TurnOutcome
from recallscope.telemetry.queries import TABLE_SCENARIOS
from recallscope.telemetry.read.figures import Figures, ReadError, Row
from recallscope.telemetry.read.scrape import scrape
from recallscope.telemetry.sdk import Telemetry

__all__ = ["AGENT", "Plan", "Progress", "play"]

AGENT = "compare"
"""The agent's name in the metrics of a comparison."""

AT_ONCE = 5

READINGS = 3
SLOT_SECONDS = 0.045
"""A turn keeps the loop busy when it begins and when it sends. Between the slots, five of which make a cycle of 225 ms,
the sends of the scenarios (150 ms, 1.5 s and 2.5 s after the begin) find the loop free."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is played: `turns` turns in each cell; `ceiling` (seconds) is that of `tiered`."""

    turns: int = 5
    policies: tuple[PolicyName, ...] = POLICIES
    scenarios: tuple[Scenario, ...] = TABLE_SCENARIOS
    ceiling: float = DEFAULT_CEILING

    @property
    def cells(self) -> tuple[Row, ...]:
        """The cells, so ordered that what is played in this order ends with the short ones."""
        order = sorted(self.scenarios, key=lambda scenario: SCENARIOS[scenario].length, reverse=True)
        return tuple(Row(policy, scenario) for scenario in order for policy in self.policies)

    @property
    def total(self) -> int:
        """How many turns are played in all; a superseded turn and the one after it count as one."""
        return self.turns * len(self.cells)

    def turns_in_order(self) -> Iterator[Row]:
        """Yield the cell of each turn, those of one cell spread over the run."""
        for _ in range(self.turns):
            yield from self.cells


@dataclass(frozen=True, slots=True)
class Progress:
    """How far it has come: turns done, of how many; `reading` counts from 1."""

    done: int
    total: int
    reading: int = 1


async def play(
    plan: Plan, telemetry: Telemetry, observers: Observers, *, progress: Callable[[Progress], None] = lambda _: None
) -> Comparison:
    """Play `plan` in this process and judge what its own `/metrics` say of it; cancelling ends all of it.

    After a reading that is void (`Comparison.void`) all is played again; the reading number `READINGS` counts as it is.

    Raises:
        LabError: the model server did not start, a turn did not end well, or `/metrics` could not be read.
    """
    url = telemetry.metrics_url
    if url is None:
        raise LabError(
            "this process serves no /metrics, and the table is drawn from there: unset OTEL_SDK_DISABLED, and set "
            "OTEL_EXPORTER_PROMETHEUS_PORT to a free port or to 0"
        )
    script = build_script([SCENARIOS[scenario] for scenario in plan.scenarios])
    recall = RecallSettings(split=PolicySplit(()), ceiling=plan.ceiling)
    readings: list[Comparison] = []
    try:
        async with (
            open_stage(script, telemetry, observers, name=AGENT, recall=recall) as agent,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(telemetry.run, name="telemetry")
            readings.append(await _read(plan, agent, url, progress, reading=1))
            while readings[-1].void and len(readings) < READINGS:
                readings.append(await _read(plan, agent, url, progress, reading=len(readings) + 1))
            tasks.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        # Task groups wrap what ends them; the first of our own errors is the reason of the others.
        ours = group.subgroup(LabError)
        if ours is None:
            raise
        raise next(_leaves(ours)) from None
    return readings[-1]


async def _read(
    plan: Plan, agent: Agent, url: str, progress: Callable[[Progress], None], *, reading: int
) -> Comparison:
    """Play all turns and judge the difference of two scrapes."""
    before = await _scrape(url)
    await _play_turns(plan.turns_in_order(), agent, lambda done: progress(Progress(done, plan.total, reading)))
    after = await _scrape(url)
    return compare_figures(
        after.since(before),
        scripted(plan.ceiling),
        ceiling=plan.ceiling,
        policies=plan.policies,
        scenarios=plan.scenarios,
        played=True,
        readings=reading,
    )


async def _play_turns(turns: Iterator[Row], agent: Agent, progress: Callable[[int], None]) -> None:
    """Play `turns`, `AT_ONCE` sessions at a time, each of which begins its turns in a slot of its own."""
    done = 0

    async def take_turns(place: int) -> None:
        nonlocal done
        for row in turns:
            await anyio.sleep((place * SLOT_SECONDS - anyio.current_time()) % (AT_ONCE * SLOT_SECONDS))
            await _turn(agent, row.policy, SCENARIOS[row.scenario])
            done += 1
            progress(done)

    progress(done)
    async with anyio.create_task_group() as tasks:
        for place in range(AT_ONCE):
            tasks.start_soon(take_turns, place)


async def _turn(agent: Agent, policy: PolicyName, play: Play) -> None:
    """Play one turn in a fresh session."""
    session = replace(
        agent,
        recall=replace(agent.recall, split=PolicySplit((Arm(policy, 1),))),
        reminders=(preparation(play.preparation),) if play.preparation else (),
    ).open_session()
    result = (await converse(session, play.prompt, second=play.second))[-1]
    if result.outcome is not TurnOutcome.END_TURN:
        problem = f": {result.error}" if result.error else ""
        raise LabError(f"a turn of {play.scenario} under {policy} ended as {result.outcome}{problem}")


async def _scrape(url: str) -> Figures:
    try:
        return await to_thread.run_sync(scrape, url)
    except ReadError as error:
        raise LabError(str(error)) from error


def _leaves(group: BaseExceptionGroup[LabError]) -> Iterator[LabError]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error
