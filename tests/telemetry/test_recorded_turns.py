"""Recorded turns read from journals: found by any name, whatever the files hold and however large they are."""

import json
import os
import tracemalloc
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallscope.runtime.events import Event, Purpose, TurnFinished, TurnOutcome, TurnPhase
from recallscope.telemetry.anchor import Anchor
from recallscope.telemetry.encode import Encoder
from recallscope.telemetry.read.figures import ReadError
from recallscope.telemetry.read.journal_turns import JournalTurns
from recallscope.telemetry.read.recorded import RecordedTurn
from recallscope.telemetry.read.turn_groups import TurnGrouper
from recallscope.telemetry.read.turn_lines import turn_of
from recallscope.telemetry.testing.golden import AT, WALL, golden_turn, tool_free_turn, unlucky_turn

ANCHOR = Anchor.stated(at=AT, wall=WALL)
TRACE = "0af7651916cd43dd8448eb211c80319c"


def _lines(events: Iterable[Event], trace: str | None = None) -> list[bytes]:
    encoder = Encoder(ANCHOR, trace_id=lambda _: trace)
    return [encoder(event) + b"\n" for event in events]


def _write(folder: Path, lines: Sequence[bytes], *, process: int = 1, number: int = 1, written: float = WALL) -> Path:
    file = folder / f"journal-1-{process}-{number:04d}.jsonl"
    file.write_bytes(b"".join(lines))
    os.utime(file, (written, written))
    return file


def test_a_turn_is_told_with_all_its_moments(tmp_path: Path) -> None:
    """Times are seconds since the turn's start; results, waits, deliveries, calls and tools are all there."""
    _write(tmp_path, _lines(golden_turn(), TRACE))
    turn = JournalTurns([tmp_path]).find("s.1")
    recall = turn.recall

    assert (turn.turn, turn.session, turn.agent, turn.trace_id, turn.wall) == ("s.1", "s", "main", TRACE, WALL)
    assert (turn.seconds, turn.outcome, turn.sends, turn.whole) == (3.0, TurnOutcome.END_TURN, 2, True)
    assert turn.phases is not None
    assert turn.phases[TurnPhase.MODEL] == 2.4
    assert recall is not None
    assert recall.fast is not None
    assert recall.settled is not None
    assert (recall.fast.notes, recall.fast.ids, recall.settled.notes) == (2, ("n1", "n2"), 3)
    assert [round(wait.asked_at, 6) for wait in recall.waits] == [0.05, 1.38]
    assert [(one.point, one.notes, round(one.at, 6)) for one in recall.deliveries] == [
        ("initial", 2, 0.36),
        ("tool_result", 1, 1.89),
    ]
    assert [recall.prepared_at(one) for one in recall.deliveries] == [wait.ended_at for wait in recall.waits]
    assert [call.purpose for call in turn.calls] == [Purpose.SELECTOR, Purpose.MAIN, Purpose.MAIN]
    assert [(tool.tool, round((tool.ended or 0) - tool.started, 6)) for tool in turn.tools] == [("read_file", 0.5)]


@pytest.mark.parametrize("name", ["s.1", "0af765", TRACE, TRACE.upper()])
def test_a_turn_is_found_by_its_id_and_by_its_trace(tmp_path: Path, name: str) -> None:
    """The id of the turn, that of its trace, and the begin of the trace's name it."""
    _write(tmp_path, _lines([*golden_turn(), *tool_free_turn(session="other")][: len(golden_turn())], TRACE))

    assert JournalTurns([tmp_path]).find(name).turn == "s.1"


@pytest.mark.parametrize("name", ["s\udcff ü.1", "s\udcff", "s", "last"])
def test_a_turn_whose_name_is_no_unicode_is_found(tmp_path: Path, name: str) -> None:
    """Half a surrogate pair, as of a session named in another encoding, hides no turn and breaks no line."""
    _write(tmp_path, _lines(golden_turn(session="s\udcff ü")))
    source = JournalTurns([tmp_path])
    turn = source.find(name)

    assert (turn.turn, turn.whole, source.broken) == ("s\udcff ü.1", True, 0)
    assert [one.turn for one in source.slowest(top=1)] == [turn.turn]


def test_a_begin_of_several_ids_is_ambiguous(tmp_path: Path) -> None:
    """A begin that two turns share names both; the whole id of one of them, a begin of the other, names one."""
    _write(tmp_path, _lines([*golden_turn(session="abc"), *golden_turn(session="abd", number=11)]))
    source = JournalTurns([tmp_path])

    with pytest.raises(ReadError, match=r"'ab' may be abc\.1, abd\.11; give more of it"):
        source.find("ab")
    assert source.find("abd").turn == "abd.11"
    assert source.find("abc.1").turn == "abc.1"


def test_a_turn_that_is_not_there_says_what_to_do(tmp_path: Path) -> None:
    """The error names what was read and the command that lists turns."""
    with pytest.raises(ReadError, match=r"no turn 'x' was found in the journal in .*; `recallscope slow` lists turns"):
        JournalTurns([tmp_path]).find("x")
    with pytest.raises(ReadError, match="no turn was found in the journal"):
        JournalTurns([tmp_path]).find("last")


@pytest.mark.parametrize("cut", range(0, len(golden_turn()), 3))
def test_a_turn_over_two_files_is_one_turn(tmp_path: Path, cut: int) -> None:
    """Wherever a process begins its next file, the turn is whole, and its session's other turns are not in it."""
    lines = _lines(golden_turn())
    _write(tmp_path, lines[:cut])
    _write(tmp_path, lines[cut:], number=2)
    (turn,) = JournalTurns([tmp_path]).turns()
    _write(tmp_path, [])
    _write(tmp_path, lines, number=2)

    assert [turn] == list(JournalTurns([tmp_path]).turns())


def test_turns_of_several_processes_stand_apart(tmp_path: Path) -> None:
    """Each process's turns are read from its own files; the last one is the one that ended last anywhere."""
    _write(tmp_path, _lines(golden_turn(session="a", at=AT + 50)), process=1, written=WALL + 53)
    _write(tmp_path, _lines(golden_turn(session="b", at=AT + 20)), process=2, written=WALL + 99)
    _write(tmp_path, _lines(golden_turn(session="c")), process=3, written=WALL + 3)
    source = JournalTurns([tmp_path])

    assert sorted(turn.turn for turn in source.turns()) == ["a.1", "b.1", "c.1"]
    assert source.find("last").turn == "a.1"
    assert sorted(turn.turn for turn in source.turns(since=WALL + 10)) == ["a.1", "b.1"]


def test_turns_side_by_side_are_told_apart(tmp_path: Path) -> None:
    """The lines of two turns that run at once in one process belong each to its own."""
    pairs = zip(golden_turn(session="a"), golden_turn(session="b"), strict=True)
    _write(tmp_path, _lines(event for pair in pairs for event in pair))
    first, second = JournalTurns([tmp_path]).turns()

    assert replace(first, turn="", session="") == replace(second, turn="", session="")


def test_a_running_turn_is_told_as_far_as_it_came(tmp_path: Path) -> None:
    """Without its end a turn has no outcome; what is under way has no end."""
    _write(tmp_path, _lines(golden_turn()[:12]))
    turn = JournalTurns([tmp_path]).find("s.1")

    assert (turn.seconds, turn.outcome, turn.phases, turn.whole) == (None, None, None, False)
    assert round(turn.last_seen, 6) == 0.9
    assert [tool.ended for tool in turn.tools] == [None]
    assert turn.recall is not None
    assert turn.recall.closed is None


def test_a_turn_whose_begin_is_lost_keeps_its_length(tmp_path: Path) -> None:
    """The phases tell when a turn began whose first lines went with an old file."""
    _write(tmp_path, _lines(golden_turn())[6:])
    turn = JournalTurns([tmp_path]).find("s.1")

    assert (turn.whole, turn.seconds is not None and round(turn.seconds, 6), round(turn.wall, 3)) == (False, 3.0, WALL)


def test_retries_rollbacks_and_withdrawn_notes_are_told(tmp_path: Path) -> None:
    """What went wrong on the way to the model is there, with its times."""
    _write(tmp_path, _lines(unlucky_turn()))
    turn = JournalTurns([tmp_path]).find(TRACE)
    recall = turn.recall

    assert recall is not None
    assert ([one.cause for one in recall.rollbacks], recall.withdrawn, recall.late) == (["refused"], 1, 1)
    assert [(one.error_type, one.retry_in) for one in turn.calls[0].failed] == [("429", 1.5)]
    assert (turn.outcome, turn.error_type) == (TurnOutcome.FAILED, "connection_error")


def test_the_slowest_are_the_longest_of_all_turns(tmp_path: Path) -> None:
    """Slow, quick and running turns of two processes, some side by side, come by their length, whole."""
    slow, quick = golden_turn(session="slow"), tool_free_turn(session="quick", at=AT + 1)
    both = sorted([*slow, *quick], key=lambda event: event.at)
    _write(tmp_path, _lines([*both, *golden_turn(session="runs", at=AT + 5)[:12]]), written=WALL + 99)
    _write(tmp_path, _lines(unlucky_turn()), process=2, written=WALL + 99)
    source = JournalTurns([tmp_path])

    assert [turn.turn for turn in source.slowest(top=9)] == ["slow.1", "s.2", "quick.1", "runs.1"]
    assert source.slowest(top=2) == sorted(source.turns(), key=lambda turn: turn.length)[:-3:-1]
    assert [turn.turn for turn in source.slowest(top=9, since=WALL + 4)] == ["s.2", "runs.1"]


def _long(folder: Path, turns: int) -> None:
    for number in range(1, turns + 1):
        at = AT + 10 * number
        with (folder / f"journal-1-1-{1 + number // 120:04d}.jsonl").open("ab") as file:
            file.writelines(_lines(golden_turn(number=number, at=at)))
        os.utime(file.name, (WALL + 10 * number, WALL + 10 * number + 4))


def test_a_long_journal_is_read_from_its_end_and_in_little_memory(tmp_path: Path) -> None:
    """The last turn, and those of the last hour, cost the end of the files; all of them, no more than one at a time."""
    _long(tmp_path, 300)
    source = JournalTurns([tmp_path])
    tracemalloc.start()
    try:
        last = source.find("last")
        recent = [turn.turn for turn in source.turns(since=WALL + 2_980)]
        slowest = source.slowest(top=3)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert (last.turn, recent) == ("s.300", ["s.298", "s.299", "s.300"])
    assert len(slowest) == 3
    assert peak < 3_000_000


def test_a_finish_without_a_place_still_ends_its_turn() -> None:
    """A journal that has forgotten where an operation belongs writes its end without a turn; the operation tells."""
    lines: list[dict[str, Any]] = [json.loads(line) for line in _lines(golden_turn())]
    lines[-1] |= {"turn": None, "session": None}
    (grouped,) = TurnGrouper().feed(lines)
    turn = turn_of(grouped)

    assert turn is not None
    assert (turn.turn, turn.whole) == ("s.1", True)


# Nothing that stands in a file makes a reader fail

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
GOOD = [json.loads(line) for line in _lines([*golden_turn(), *unlucky_turn()])]


@st.composite
def changed_lines(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Draw the lines of real turns with some values replaced by anything, some keys gone, some lines gone."""
    lines: list[dict[str, Any]] = []
    for line in GOOD:
        match draw(st.integers(0, 5)):
            case 0:
                continue
            case 1:
                key = draw(st.sampled_from(sorted(line)))
                lines.append({name: value for name, value in line.items() if name != key})
            case 2:
                lines.append(line | {draw(st.sampled_from(sorted(line))): draw(JSON)})
            case _:
                lines.append(line)
    return lines


@given(changed_lines())
def test_no_line_makes_the_reader_fail(lines: list[dict[str, Any]]) -> None:
    """Whatever is missing or wrong in a turn's lines, there is a turn or none, never an error."""
    grouper = TurnGrouper()
    turns = [turn_of(group) for group in (*grouper.feed(lines), *grouper.rest())]

    assert all(turn is None or turn.length >= 0 for turn in turns)


@given(st.lists(st.binary(max_size=60) | st.sampled_from(_lines(golden_turn())), max_size=12))
def test_no_file_makes_the_reader_fail(tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]) -> None:
    """Bytes of any kind between lines, and lines that are torn, cost themselves only."""
    folder = tmp_path_factory.mktemp("journal")
    _write(folder, [*lines, b"\n", *_lines(golden_turn(session="good"))])

    assert JournalTurns([folder]).find("good.1").whole


def _whole_turn(**changed: Any) -> list[Event]:
    return [replace(event, **changed) if isinstance(event, TurnFinished) else event for event in golden_turn()]


def test_values_of_a_later_version_are_left_out(tmp_path: Path) -> None:
    """An outcome that this version does not know is not known; the rest of the turn is."""
    lines = [line.replace(b'"end_turn"', b'"transcended"') for line in _lines(_whole_turn())]
    _write(tmp_path, lines)
    turn: RecordedTurn = JournalTurns([tmp_path]).find("s.1")

    assert (turn.outcome, turn.seconds) == (None, 3.0)
