"""What-if against real runs: a record at one ceiling predicts what other ceilings really give, over real HTTP.

Three runs of the same 312 turns at ceilings of 1, 0.25 and 2 s. The selector takes 0.1 to 4 s, most often about 0.4, a
third of the prompts shares no word with any note, a few turns call a tool. The times are ten times those of a real
model, so that what a busy machine adds to them decides of few turns.

It adds more to one run than to another, which no what-if can foretell, but the records show it: the moments of a turn
that no ceiling moves are then others. Such a turn is foretold from its own moments. No run is thrown away.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from recallscope.runtime.lab.course import Choice, Course
from recallscope.runtime.lab.load import LoadPlan, play_load
from recallscope.runtime.lab.traffic import Kind, Mix, Ordinary
from recallscope.runtime.lab.whatif import Prediction, Record, Setting, WhatIf
from recallscope.runtime.observe import Observers
from recallscope.runtime.recall.policy import PolicySplit
from recallscope.runtime.terms import Delivered, PolicyName
from recallscope.telemetry.read.journal_turns import JournalTurns
from recallscope.telemetry.sdk import TelemetrySettings, open_telemetry

pytestmark = [pytest.mark.anyio, pytest.mark.real, pytest.mark.timeout(400)]

TURNS, LEAST = 312, 300
RATE = 8.0
RECORDED, OTHERS = 1.0, (0.25, 2.0)
ORDINARY = Ordinary(selector=(0.1, 4.0), usual=0.4, unmatched=0.34, tools=0.06)
CLOSE = 0.05
APART = 0.20
FIRST_SEND = (Delivered.INITIAL, Delivered.BOTH)
SAME = 0.1
"""A turn whose moments are closer than this (seconds) in two runs was played alike in both."""


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


@dataclass(frozen=True, slots=True)
class Played:
    """A turn of one run: its moments, what they foretell of another ceiling, and what it received."""

    course: Course
    foretold: Prediction
    came: Prediction


def turns(record: Record, setting: Setting) -> dict[str, Played]:
    """Return the turns of a run by their ids, which are the same in every run."""
    foretold, came = record.under(setting).predictions, record.recorded.predictions
    played = (Played(*each) for each in zip(record.courses, foretold, came, strict=True))
    return {each.course.turn: each for each in played}


def alike(one: Course, other: Course) -> bool:
    """Tell whether what no ceiling moves took as long in both runs: search, selector, question, lateness, file look."""
    pairs = [
        (one.search and one.search.at, other.search and other.search.at),
        (one.asks[0].at, other.asks[0].at),
        (one.asks[0].late or 0.0, other.asks[0].late or 0.0),
        (one.asks[0].extra or 0.0, other.asks[0].extra or 0.0),
    ]
    near = all(a is not None and b is not None and abs(a - b) <= SAME for a, b in pairs)
    return near and answered_alike(one.choice, other.choice)


def answered_alike(one: Choice | None, other: Choice | None) -> bool:
    """Tell whether the selector may have taken as long in both; of one that was given up a lower bound is known."""
    if one is None or other is None or one.call is None or other.call is None:
        return one is other
    open_ended = one.result is None, other.result is None
    longer, shorter = one.call - other.call <= SAME, other.call - one.call <= SAME
    match open_ended:
        case True, True:
            return True
        case True, False:
            return longer
        case False, True:
            return shorter
        case _:
            return longer and shorter


async def test_a_record_at_one_ceiling_predicts_real_runs_at_others(tmp_path: Path) -> None:
    """Recorded at 1 s, the shares of turns with memory at 0.25 and at 2 s are within 5 points of the real ones.

    The real ones are 20 points apart or more. A turn that another run played at other moments is foretold from its own.
    """
    record = await play(tmp_path / "recorded", RECORDED)
    shares: list[float] = []
    for ceiling in OTHERS:
        setting = Setting(policy=PolicyName.TIERED, ceiling=ceiling)
        recorded, real = turns(record, setting), turns(await play(tmp_path / f"real-{ceiling}", ceiling), setting)
        both = sorted(recorded.keys() & real.keys())
        same = {turn for turn in both if alike(recorded[turn].course, real[turn].course)}
        foretold = summed(recorded[turn].foretold if turn in same else real[turn].foretold for turn in both)
        came = summed(real[turn].came for turn in both)
        assert len(both) >= LEAST
        assert abs(foretold.delivered.share - came.delivered.share) <= CLOSE
        assert abs(foretold.at(*FIRST_SEND).share - came.at(*FIRST_SEND).share) <= CLOSE
        shares.append(came.delivered.share)
    assert shares[1] - shares[0] >= APART


def summed(predictions: Iterable[Prediction]) -> WhatIf:
    """Return predictions as one answer."""
    return WhatIf(setting=None, predictions=tuple(predictions))
