"""What-if against real runs: a record at one ceiling predicts what other ceilings really give, over real HTTP.

Three runs of the same 300 turns, in the same order, at 100, 25 and 200 ms. The selector takes 10 to 400 ms, a third of
the prompts shares no word with any note, a few turns call a tool.
"""

from pathlib import Path

import pytest

from recallscope.runtime.lab.load import LoadPlan, play_load
from recallscope.runtime.lab.traffic import Kind, Mix, Ordinary
from recallscope.runtime.lab.whatif import Record, Setting, WhatIf
from recallscope.runtime.observe import Observers
from recallscope.runtime.recall.policy import PolicySplit
from recallscope.runtime.terms import Delivered, PolicyName
from recallscope.telemetry.read.journal_turns import JournalTurns
from recallscope.telemetry.sdk import TelemetrySettings, open_telemetry

pytestmark = [pytest.mark.anyio, pytest.mark.real, pytest.mark.timeout(400)]

TURNS = 300
RATE = 12.0
RECORDED, OTHERS = 0.1, (0.025, 0.2)
ORDINARY = Ordinary(selector=(0.01, 0.4), usual=0.04, unmatched=0.34, tools=0.06)
CLOSE = 0.05
APART = 0.20
FIRST_SEND = (Delivered.INITIAL, Delivered.BOTH)
ATTEMPTS = 3
LATE = 0.01
"""A hold that usually ends later than this after its ceiling (seconds) tells of a busy machine: all is played again."""


async def play(folder: Path, ceiling: float) -> Record:
    """Play the turns under this ceiling (seconds) and return their record."""
    plan = LoadPlan(
        rate=RATE,
        split=PolicySplit.parse("tiered"),
        mix=Mix({Kind.ORDINARY: 1}),
        ordinary=ORDINARY,
        turns=TURNS,
        ceiling=ceiling,
        seed=7,
    )
    settings = TelemetrySettings(version="test", front_end="load", journal_directory=folder, environ={})
    with open_telemetry(settings) as telemetry:
        result = await play_load(plan, telemetry, Observers(telemetry.observers))
    assert (result.turns, result.otherwise, result.cut) == (TURNS, 0, 0)
    return Record.of(JournalTurns([folder]).turns())


async def play_undisturbed(folder: Path, ceiling: float) -> Record:
    """Play the turns until the machine had time for them; the last attempt counts as it is."""
    record = await play(folder / "1", ceiling)
    for attempt in range(2, ATTEMPTS + 1):
        if record.habits.late <= LATE:
            break
        record = await play(folder / f"{attempt}", ceiling)
    return record


def predicted(record: Record) -> list[WhatIf]:
    """Return what the other ceilings would give."""
    return [record.under(Setting(policy=PolicyName.TIERED, ceiling=ceiling)) for ceiling in OTHERS]


async def test_a_record_at_one_ceiling_predicts_real_runs_at_others(tmp_path: Path) -> None:
    """Recorded at 100 ms, the shares of turns with memory at 25 and at 200 ms are within 5 points of the real ones.

    The real ones are 20 points apart or more, and every recorded turn is reproduced.
    """
    record = await play_undisturbed(tmp_path / "recorded", RECORDED)
    foretold = predicted(record)
    real = [(await play_undisturbed(tmp_path / f"real-{ceiling}", ceiling)).recorded for ceiling in OTHERS]

    assert record.differing == ()
    assert [one.turns for one in (*foretold, *real)] == [TURNS] * 4
    low, high = real
    assert high.delivered.share - low.delivered.share >= APART
    for expected, came in zip(foretold, real, strict=True):
        assert abs(expected.delivered.share - came.delivered.share) <= CLOSE
        assert abs(expected.at(*FIRST_SEND).share - came.at(*FIRST_SEND).share) <= CLOSE
