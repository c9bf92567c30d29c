"""Live traffic is judged by what it was, and what is not in the table is said."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from recallscope.runtime.events import Delivered, PolicyName, Reason, Scenario
from recallscope.runtime.lab.comparison import Comparison
from recallscope.runtime.lab.expectations import POLICIES, Verdict
from recallscope.runtime.lab.live import LiveTraffic, compare_counts, reading_notes, traffic_notes
from recallscope.runtime.lab.wording import conclusion
from recallscope.telemetry import names
from recallscope.telemetry.read.counts import Counts, Tally
from recallscope.telemetry.read.figures import Row
from recallscope.telemetry.read.prometheus import Reading

NOW = 1_800_000_000.0
DAY = 86_400
TIMED_OUT = Row(PolicyName.TIERED, Scenario.TIMED_OUT)


def _counts(*, wait: float = 0.05, ceilings: tuple[float, ...] = (0.1,), off: int = 0) -> Counts:
    """Return what 40 turns under `tiered` count that waited `wait` seconds, 10 of which found nothing."""
    tally = Tally()
    for number in range(40):
        found = number >= 10
        scenario = Scenario.TIMED_OUT if found else Scenario.NOTHING_FOUND
        delivered = Delivered.BOTH if found else Delivered.NONE
        reason = Reason.NONE if found else Reason.NO_RELEVANT_RESULTS
        tally.add(names.RECALL_TURNS, "tiered", scenario.value, delivered.value, reason.value)
        tally.observe(names.RECALL_TURN_WAIT_DURATION, wait, "tiered", scenario.value)
        tally.observe(names.RECALL_WAIT_DURATION, wait, "tiered", "initial")
        tally.observe(names.TURN_DURATION, 1.0, "tiered", "end_turn")
        if wait > max(ceilings, default=1.0) + 0.005:
            tally.add(names.RECALL_WAIT_OVERRUNS, "tiered")
    for _ in range(off):
        tally.observe(names.TURN_DURATION, 1.0, "off", "end_turn")
    for ceiling in ceilings:
        tally.ceiling(PolicyName.TIERED, ceiling)
    return tally.counts()


def _compared(counts: Counts) -> Comparison:
    return compare_counts(counts, configured=0.1, policies=POLICIES)


@pytest.mark.parametrize(
    ("wait", "ceilings", "verdict"),
    [
        (0.05, (0.1,), Verdict.AS_STATED),
        (0.18, (0.1,), Verdict.DIFFERS),
        (0.18, (0.2,), Verdict.AS_STATED),
        (0.18, (0.05, 0.2), Verdict.AS_STATED),
        (0.09, (0.05,), Verdict.DIFFERS),
        (0.09, (), Verdict.AS_STATED),
    ],
)
def test_waits_are_judged_by_the_ceiling_that_the_traffic_had(
    wait: float, ceilings: tuple[float, ...], verdict: Verdict
) -> None:
    """Not by the one that is configured where the command runs, unless the traffic tells none."""
    assert _compared(_counts(wait=wait, ceilings=ceilings)).cells[TIMED_OUT].verdict is verdict


def test_what_stands_beside_the_table_is_said() -> None:
    """Several ceilings, none, the hold, and turns without a recall: a sentence each."""
    several, none = _counts(ceilings=(0.05, 0.2), off=7), _counts(ceilings=())
    late = _counts(wait=0.3)

    assert traffic_notes(several, _compared(several)) == (
        ("tiered ran with ceilings from 50 ms to 200 ms: its cells are judged by the highest, its hold wait for wait."),
        (
            "Hold of tiered: 40 of 40 first sends waited no longer than their ceiling and 5 ms (100 %); expected are "
            "99.9 %: as stated."
        ),
        "7 of 47 turns began no recall (policy off, no memory, no prompt of a person), and are in no row.",
    )
    assert traffic_notes(none, _compared(none))[0] == (
        "This traffic does not tell the ceiling of tiered: it is judged by the configured one, 100 ms."
    )
    assert traffic_notes(late, _compared(late))[0] == (
        "Hold of tiered: 0 of 40 first sends waited no longer than their ceiling and 5 ms (0 %); expected are 99.9 %: "
        "it differs."
    )
    assert traffic_notes(Counts(), _compared(Counts())) == ()


def test_a_verdict_is_on_what_was_measured() -> None:
    """Rows without traffic are no fault, and do not make the good ones look few."""
    assert conclusion(_compared(_counts())) == "The one measured cell is as stated."
    assert conclusion(_compared(_counts(wait=0.3))) == "0 of 1 measured cells are as stated."


READING = Reading(counts=_counts(), asked=NOW - DAY, at=NOW, first=NOW - DAY, last=NOW)


@pytest.mark.parametrize(
    ("changes", "notes"),
    [
        ({}, ()),
        (
            {"first": NOW - 9_660},
            ("Of the 1 d asked for, job agents is known for 2 h 41 min only, since 2027-01-15 05:19:00 UTC.",),
        ),
        ({"last": NOW - 7_200}, ("No process of job agents is known since 2027-01-15 06:00:00 UTC.",)),
        ({"first": None, "last": None}, ("In the last 1 d no process of job agents was known there.",)),
    ],
)
def test_a_prometheus_that_knows_less_is_told(changes: Mapping[str, float | None], notes: tuple[str, ...]) -> None:
    """Since when there are figures, since when there are none any more, or that there are none at all."""
    assert reading_notes(replace(READING, **changes), "agents") == notes


def test_the_hold_is_judged_as_the_report_judges_it() -> None:
    """A hold that is not kept differs, though no cell does, unless it is not asked for."""
    tally = Tally()
    for number in range(40):
        tally.add(names.RECALL_TURNS, "tiered", "timed_out", "both", "none")
        tally.observe(names.RECALL_TURN_WAIT_DURATION, 0.05, "tiered", "timed_out")
        tally.observe(names.RECALL_WAIT_DURATION, 0.05, "tiered", "initial")
        if number == 0:
            tally.add(names.RECALL_WAIT_OVERRUNS, "tiered")
    tally.ceiling(PolicyName.TIERED, 0.1)
    one_late = replace(READING, counts=tally.counts())

    def traffic(policies: Sequence[PolicyName]) -> LiveTraffic:
        compared = compare_counts(one_late.counts, configured=0.1, policies=policies)
        return LiveTraffic(comparison=compared, reading=one_late, job="agents")

    assert (traffic(POLICIES).comparison.verdict, traffic(POLICIES).differs) == (Verdict.AS_STATED, True)
    assert "39 of 40" in traffic(POLICIES).notes[0]
    assert not traffic([PolicyName.PREFETCH]).differs
    assert not LiveTraffic(comparison=_compared(READING.counts), reading=READING, job="agents").differs


def test_live_traffic_as_json() -> None:
    """The comparison's own schema, and what it was read from."""
    live = LiveTraffic(comparison=_compared(READING.counts), reading=READING, job="agents")
    data = live.as_data()

    assert data["traffic"] == {
        "job": "agents",
        "asked_from": NOW - DAY,
        "figures_from": NOW - DAY,
        "to": NOW,
        "turns_without_recall": 0,
        "ceilings_seconds": {"tiered": [0.1, 0.1]},
        "initial_waits": {"tiered": {"all": 40, "beyond_ceiling": 0, "target": 0.999, "met": True}},
    }
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert live.comparison.turns_apart == 10
