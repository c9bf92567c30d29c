"""Played traffic: every kind ends as its script says, falls into its row, and can be stopped in an orderly way."""

import time
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from recallscope.runtime.events import TurnFinished, TurnStarted
from recallscope.runtime.lab.load import LoadPlan, LoadProgress, LoadResult, play_load
from recallscope.runtime.lab.traffic import Kind, Mix, Ordinary
from recallscope.runtime.observe import Observers
from recallscope.runtime.recall.policy import PolicySplit
from recallscope.runtime.terms import Cause, PolicyName, Scenario, TurnOutcome
from recallscope.runtime.testing.recorder import EventRecorder
from recallscope.telemetry.sdk import Telemetry, TelemetrySettings, open_telemetry

QUICK = tuple(kind for kind in Kind if kind is not Kind.SLOW_TURN)
"""All kinds but the one that takes longer than a test should."""


APART = (
    Scenario.SUPERSEDED,
    Scenario.INTERRUPTED,
    Scenario.NOT_SENT,
    Scenario.UNAVAILABLE,
    Scenario.NOTHING_FOUND,
)
"""The rows that no busy machine moves a turn into or out of."""


@pytest.fixture
def telemetry(tmp_path: Path) -> Generator[Telemetry]:
    """Give telemetry that keeps a journal and exports nothing."""
    settings = TelemetrySettings(version="0", front_end="test", journal_directory=tmp_path / "journal", environ={})
    with open_telemetry(settings) as opened:
        yield opened


def _plan(kinds: str, **more: Any) -> LoadPlan:
    plan = LoadPlan(rate=50.0, split=PolicySplit.parse("tiered"), mix=Mix.parse(kinds))
    return replace(plan, **more)


@pytest.mark.anyio
async def test_every_kind_ends_as_scripted_and_falls_into_its_row(telemetry: Telemetry) -> None:
    """One turn of each: none ends otherwise, and the rows of the comparison are those that the names say."""
    ended: list[LoadProgress] = []
    plan = _plan(",".join(QUICK), turns=len(QUICK), ordinary=Ordinary(selector=(0.4, 0.4), unmatched=0, tools=0))

    result = await play_load(plan, telemetry, Observers(telemetry.observers), on_progress=ended.append)

    assert result.told == ()
    assert (result.kinds, result.policies) == (dict.fromkeys(QUICK, 1), {PolicyName.TIERED: len(QUICK)})
    last = ended[-1]
    assert (last.ended, last.active, last.otherwise, last.late) == (len(QUICK), 0, 0, 0)
    assert result.outcomes == {
        TurnOutcome.END_TURN: len(QUICK) - 3,
        TurnOutcome.FAILED: 2,
        TurnOutcome.CANCELLED: 2,  # the interrupted one, and the first of the superseded ones
    }
    assert sum(result.scenarios.values()) == len(QUICK) + 1
    assert {row: result.scenarios[row] for row in APART} == {
        Scenario.SUPERSEDED: 1,
        Scenario.INTERRUPTED: 1,
        Scenario.NOT_SENT: 1,
        Scenario.UNAVAILABLE: 1,
        Scenario.NOTHING_FOUND: 2,  # the second prompt of the superseded one, too
    }


@pytest.mark.anyio
async def test_one_seed_plays_the_same_under_the_same_policies(telemetry: Telemetry) -> None:
    """Sessions, arms and prompts come again; the turns of a split go to both arms."""
    plan = _plan("exact_title", turns=8, split=PolicySplit.parse("tiered:1,prefetch:1"), rate=1000.0, seed=7)
    played: list[list[tuple[str, str]]] = []
    for _ in range(2):
        recorder = EventRecorder()
        await play_load(plan, telemetry, Observers((recorder,)))
        started = [event for event in recorder.events if isinstance(event, TurnStarted)]
        played.append([(event.session, event.policy) for event in started])

    assert played[0] == played[1]
    assert {policy for _, policy in played[0]} == {PolicyName.TIERED, PolicyName.PREFETCH}
    assert len({session for session, _ in played[0]}) == 8


@pytest.mark.anyio
async def test_a_stop_ends_arrivals_at_once_and_turns_after_the_grace(telemetry: Telemetry) -> None:
    """The turn of eleven seconds is cancelled as at a shutdown and counted as cut, not as one that went wrong."""
    recorder = EventRecorder()
    stop = anyio.Event()

    def begun(progress: LoadProgress) -> None:
        if progress.active:
            stop.set()

    result = await play_load(
        _plan("slow_turn", rate=0.01), telemetry, Observers((recorder,)), stop=stop, on_progress=begun
    )

    finished = [event for event in recorder.events if isinstance(event, TurnFinished)]
    assert [(event.outcome, event.cause) for event in finished] == [(TurnOutcome.CANCELLED, Cause.PROCESS_SHUTDOWN)]
    assert (result.turns, result.cut, result.otherwise) == (1, 1, 0)
    assert result.seconds < 8


@pytest.mark.anyio
async def test_a_turn_that_finds_no_room_comes_later(telemetry: Telemetry) -> None:
    """Three turns that arrive at once with room for one: all are played, two are counted as late."""
    recorder = EventRecorder()
    plan = _plan("exact_title", turns=3, rate=1000.0, at_once=1)

    result = await play_load(plan, telemetry, Observers((recorder,)))

    turns = [type(event) for event in recorder.events if isinstance(event, TurnStarted | TurnFinished)]
    assert (result.turns, result.late, turns) == (3, 2, [TurnStarted, TurnFinished] * 3)


@pytest.mark.anyio
async def test_turns_that_the_machine_begins_late_are_counted(telemetry: Telemetry) -> None:
    """The loop stands still for 0.3 s after the first turn has begun: those of that time are counted, and how late."""

    def hold_up(progress: LoadProgress) -> None:
        if (progress.active, progress.ended) == (1, 0):
            time.sleep(0.3)  # as a machine that is too slow holds it up

    plan = _plan("exact_title", turns=5, rate=1000.0)

    result = await play_load(plan, telemetry, Observers(telemetry.observers), on_progress=hold_up)

    assert (result.turns, result.late) == (5, 0)
    assert result.behind >= 4
    assert result.most_behind > 0.2


def test_the_result_as_data_names_what_was_played() -> None:
    """Counts by name, in the order of the vocabularies; nothing that did not occur."""
    result = LoadResult(
        seed=3,
        seconds=1.23456,
        kinds={Kind.FAILED: 1, Kind.ORDINARY: 2},
        policies={PolicyName.TIERED: 3},
        outcomes={TurnOutcome.FAILED: 1, TurnOutcome.END_TURN: 2},
        scenarios={Scenario.SLOW_WITH_TOOLS: 3},
        otherwise=0,
        told=(),
        cut=0,
        late=1,
        behind=2,
        most_behind=0.4567,
    )

    assert result.as_data() == {
        "schema": 1,
        "seed": 3,
        "seconds": 1.235,
        "turns": 3,
        "kinds": {"ordinary": 2, "failed": 1},
        "policies": {"tiered": 3},
        "outcomes": {"end_turn": 2, "failed": 1},
        "scenarios": {"slow_with_tools": 3},
        "otherwise": 0,
        "cut": 0,
        "late": 1,
        "behind": 2,
        "most_behind_seconds": 0.457,
    }
