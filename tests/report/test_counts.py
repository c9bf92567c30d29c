"""Recorded turns are counted as the meter counted them while they happened."""

import json
import math
from dataclasses import replace
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from prometheus_client.openmetrics import parser

from recallscope.runtime.events import Event, PolicyName
from recallscope.telemetry import names
from recallscope.telemetry.anchor import Anchor
from recallscope.telemetry.encode import Encoder
from recallscope.telemetry.metric import Metric, MetricKind
from recallscope.telemetry.read.ceilings import Ceilings
from recallscope.telemetry.read.counts import COUNTED, Counts
from recallscope.telemetry.read.figures import Point
from recallscope.telemetry.read.gathered import Gathered, gather
from recallscope.telemetry.read.journal_turns import JournalTurns
from recallscope.telemetry.read.levels import LevelName, service_levels
from recallscope.telemetry.read.recorded import Record
from recallscope.telemetry.sdk import TelemetrySettings, open_telemetry
from recallscope.telemetry.testing.golden import AT, WALL, golden_process, golden_turn, tool_free_turn

NOT_OF_TURNS = frozenset({names.LOOP_LAG, names.TELEMETRY_DROPPED, names.TELEMETRY_EXPORTED})
"""What belongs to the process: no record of a turn has it."""


def _events() -> list[Event]:
    """Return a process's events, with turns under several policies, the last one under way."""
    turns = [
        *golden_process(),
        *golden_turn(number=5, at=AT + 40, session="t", policy=PolicyName.PREFETCH),
        *golden_turn(number=6, at=AT + 50, session="u", policy=PolicyName.DEADLINE),
        *tool_free_turn(number=7, at=AT + 60),
    ]
    return [*turns, *golden_turn(number=8, at=AT + 70)[:6]]


def _journal(folder: Path, events: list[Event]) -> JournalTurns:
    encode = Encoder(Anchor.stated(at=AT, wall=WALL))
    file = folder / "journal-1-1-0001.jsonl"
    file.write_bytes(b"".join(encode(event) + b"\n" for event in events))
    return JournalTurns([folder])


def _metered(events: list[Event]) -> Counts:
    """Return what the meter counts of `events`, as `/metrics` shows it."""
    settings = TelemetrySettings(
        version="0", front_end="test", policies=(), serve_metrics=True, metrics_port=0, journal=False, environ={}
    )
    with open_telemetry(settings) as telemetry:
        assert telemetry.metrics_url is not None
        for event in events:
            for observer in telemetry.observers:
                observer(event)
        accept = {"Accept": "application/openmetrics-text; version=1.0.0"}
        request = Request(telemetry.metrics_url, headers=accept)  # noqa: S310 - it is this process's own
        with urlopen(request, timeout=10) as answer:  # noqa: S310 - as above
            text = answer.read().decode()
    points: dict[str, list[Point]] = {}
    parse = getattr(parser, "text_string_to_metric_families")  # noqa: B009 - the library has no types
    for family in parse(text):
        for sample in family.samples:
            points.setdefault(sample.name, []).append((dict(sample.labels), float(sample.value)))
    return Counts(points)


def _told(counts: Counts, metric: Metric, labels: tuple[str, ...]) -> object:
    if metric.kind is MetricKind.HISTOGRAM:
        return counts.histogram(metric, *labels)
    return counts.by(metric, *labels)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Gathered, Counts]:
    """Give what a journal and the meter tell of the same events."""
    events = _events()
    journal = _journal(tmp_path_factory.mktemp("journal"), events)
    return gather(journal.turns(), top=3, keep=100), _metered(events)


@pytest.mark.parametrize(
    ("metric", "labels"),
    [(each.metric, each.labels) for each in COUNTED if each.metric not in NOT_OF_TURNS],
    ids=lambda value: value.name if isinstance(value, Metric) else "",
)
def test_a_journal_and_the_meter_agree(both: tuple[Gathered, Counts], metric: Metric, labels: tuple[str, ...]) -> None:
    """Each metric that a report is computed from: same labels, same numbers, same buckets."""
    gathered, metered = both

    assert _told(gathered.counts, metric, labels) == _told(metered, metric, labels)


def test_the_time_of_the_phases_is_the_same(both: tuple[Gathered, Counts]) -> None:
    """The sums, too: where the time went is their share."""
    gathered, metered = both
    metric = names.TURN_PHASE_DURATION

    expected = {key: pytest.approx(value) for key, value in metered.seconds(metric, names.PHASE).items()}
    assert gathered.counts.seconds(metric, names.PHASE) == expected
    assert len(expected) > 3


def test_what_was_found_is_told(both: tuple[Gathered, Counts]) -> None:
    """How many turns, when, which had no end, which were the slowest, and under which ceilings."""
    gathered, _ = both

    assert (gathered.turns, gathered.unended, gathered.torn, gathered.sampled) == (8, 1, 0, False)
    assert gathered.first == WALL
    assert gathered.sessions == 3
    lengths = [turn.length for turn in gathered.slowest]
    assert lengths == sorted((turn.length for turn in gathered.kept), reverse=True)[:3]
    assert gathered.counts.ceilings[PolicyName.TIERED] == Ceilings(0.1, 0.1)


def test_half_a_journal_counts_what_it_tells(tmp_path: Path) -> None:
    """A journal that begins and ends in the middle of turns is read as far as it goes."""
    whole = _journal(tmp_path, _events())
    file = next(tmp_path.glob("*.jsonl"))
    lines = file.read_bytes().splitlines(keepends=True)
    assert gather(whole.turns(), top=1).turns == 8
    for cut in (1, 7, len(lines) // 2, len(lines) - 1):
        file.write_bytes(b"".join(lines[cut:])[:-30])
        assert gather(JournalTurns([tmp_path]).turns(), top=5).turns <= 8
    assert json.loads(lines[0])["event"] == "ProcessStarted"


def test_nothing_gathered_has_no_levels() -> None:
    """No turns: no moment, no level, nothing slow."""
    nothing = gather([], top=5)

    assert (nothing.turns, nothing.first, nothing.last, nothing.slowest) == (0, None, None, ())
    assert service_levels(nothing.counts) == ()


def test_levels_are_judged_by_their_targets(both: tuple[Gathered, Counts]) -> None:
    """Only `tiered` promises a hold and a delivery, and a few turns are too few to judge."""
    levels = {(level.name, level.of): level for level in service_levels(both[0].counts)}
    hold = levels[LevelName.HOLD, "tiered"]

    assert (hold.target, hold.met) == (0.999, None)
    assert levels[LevelName.HOLD, "prefetch"].target is None
    assert levels[LevelName.SLOW_TURNS, "prefetch"].share == 1.0
    assert not math.isnan(hold.share)


def test_turns_from_spans_are_called_sampled(both: tuple[Gathered, Counts]) -> None:
    """Traces may be a sample; whoever reads their shares must know."""
    turns = both[0].kept

    assert gather((replace(turn, record=Record.SPANS) for turn in turns), top=1).sampled
    assert not gather(turns, top=1).sampled
