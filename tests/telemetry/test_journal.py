"""The journal: what a line says, and what happens when the disk, the reader or other processes get in the way."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recallscope.runtime.events import Event, OpId, ProcessStarted, ToolStarted, TurnFinished
from recallscope.telemetry import names
from recallscope.telemetry.anchor import Anchor
from recallscope.telemetry.encode import Encoder
from recallscope.telemetry.journal import Journal
from recallscope.telemetry.read.journal_lines import event_on
from recallscope.telemetry.testing.golden import AT, WALL, golden_process, golden_turn, tool_free_turn
from recallscope.telemetry.testing.journal import journal_events

ANCHOR = Anchor.stated(at=AT, wall=WALL)


def _write(journal: Journal, events: list[Event]) -> None:
    for event in events:
        journal(event)


def _names(events: list[Any]) -> list[str]:
    return [event["event"] for event in events]


def test_a_line_says_what_when_and_where() -> None:
    """Every line has version, event, both times, operation, parent, session and turn, then its own fields."""
    lines = [json.loads(Encoder(ANCHOR)(event)) for event in golden_turn()[:2]]

    assert lines[1] == {
        "v": 1,
        "event": "RecallBegun",
        "wall": WALL + 0.01,
        "at": AT + 0.01,
        "op": "s-1-recall",
        "parent": "s-1-turn",
        "session": "s",
        "turn": "s.1",
        "policy": "tiered",
        "ceiling": 0.1,
        "catalog_notes": 42,
    }


def test_a_turns_start_names_its_trace() -> None:
    """The line of a turn's start, and no other, says in which trace the turn is drawn."""
    encoder = Encoder(ANCHOR, trace_id=lambda op: f"trace of {op}")
    lines = [json.loads(encoder(event)) for event in golden_turn()]

    assert {line["event"]: line["trace"] for line in lines if "trace" in line} == {"TurnStarted": "trace of s-1-turn"}


def test_work_below_a_turn_knows_its_session_and_turn() -> None:
    """Sends, tools, the selector and their finishes inherit the place of what is above them."""
    encoder = Encoder(ANCHOR)
    lines = [json.loads(encoder(event)) for event in golden_turn()]

    assert {(line["session"], line["turn"]) for line in lines} == {("s", "s.1")}


def test_phases_are_an_object() -> None:
    """The phases of a turn are seconds by name, also when there are none."""
    encoder = Encoder(ANCHOR)
    lines = [json.loads(encoder(event)) for event in golden_turn()]
    finished = [line for line in lines if line["event"] == "TurnFinished"]

    assert finished[0]["phases"] == {
        "queue": 0.005,
        "prepare": 0.055,
        "recall_wait": 0.002,
        "model": 2.4,
        "tool": 0.5,
        "other": 0.038,
    }
    assert json.loads(encoder(replace(_finish(), phases=())))["phases"] == {}


def _finish() -> TurnFinished:
    return next(event for event in golden_turn() if isinstance(event, TurnFinished))


def test_every_event_of_a_golden_process_is_json() -> None:
    """Each is one object on one line that says its kind."""
    encoder = Encoder(ANCHOR)

    for event in golden_process():
        line = encoder(event)
        assert (b"\n" in line, json.loads(line)["event"]) == (False, type(event).__name__)


def test_text_that_is_no_unicode_is_still_written() -> None:
    """Half a surrogate pair in what a server said costs no line."""
    event = replace(_finish(), error_type="bad \ud800 text")

    assert json.loads(Encoder(ANCHOR)(event))["error_type"] == "bad \ud800 text"


def test_the_process_states_its_anchor() -> None:
    """From `ProcessStarted` on, wall times follow the clocks that it tells."""
    encoder = Encoder(ANCHOR)
    started = ProcessStarted(op=OpId("p"), at=5.0, wall=100.0, pid=1, version="1", front_end="run")
    line = json.loads(encoder(started))

    assert (line["wall"], line["at"]) == (100.0, 5.0)
    assert json.loads(encoder(golden_turn(at=6.0)[0]))["wall"] == 101.0


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    """All events of a process come back in order."""
    journal = Journal(tmp_path, anchor=ANCHOR)
    _write(journal, golden_process())
    journal.close()
    found = journal_events(tmp_path)

    assert sorted(_names(found)) == sorted(type(event).__name__ for event in golden_process())
    assert [event["wall"] for event in found] == sorted(event["wall"] for event in found)
    assert journal.flow().exported == len(found)
    assert journal.flow().lost_items == 0


def test_ids_that_are_no_unicode_survive(tmp_path: Path) -> None:
    """A file name that is no UTF-8 is a lone surrogate in Python; the journal writes and reads it."""
    journal = Journal(tmp_path)
    journal(ToolStarted(op=OpId("t"), at=AT, parent=None, tool="x", call_id="\udcff ü"))
    journal.close()

    assert [event["call_id"] for event in journal_events(tmp_path)] == ["\udcff ü"]


def test_no_file_is_made_before_the_first_event(tmp_path: Path) -> None:
    """A command that does nothing leaves nothing."""
    folder = tmp_path / "deep" / "journal"
    journal = Journal(folder)
    journal.close()

    assert not folder.exists()
    assert journal.path is None


def test_files_are_private(tmp_path: Path) -> None:
    """Only their owner reads the journal."""
    journal = Journal(tmp_path / "journal")
    _write(journal, golden_turn())
    journal.close()
    (file,) = (tmp_path / "journal").iterdir()

    assert (file.stat().st_mode & 0o777, (tmp_path / "journal").stat().st_mode & 0o777) == (0o600, 0o700)


def test_a_full_queue_drops_and_counts(tmp_path: Path) -> None:
    """While the disk stands still no caller waits; what does not fit is counted."""
    go = threading.Event()

    def slow(file: BinaryIO, block: bytes) -> int:
        go.wait(10)
        return file.write(block)

    journal = Journal(tmp_path, capacity=10, write=slow)
    first = golden_turn()[0]
    journal(first)
    for _ in range(200_000):
        journal(first)
        if journal.flow().lost_items:
            break
    go.set()
    journal.close(5)
    flow = journal.flow()

    assert dict(flow.lost)[names.LOST_QUEUE_FULL] >= 1
    assert len(journal_events(tmp_path)) == flow.exported


def test_a_disk_that_refuses_is_told_once_and_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The process goes on; one warning names the folder."""

    def refuse(_file: BinaryIO, _block: bytes) -> int:
        raise OSError(28, "No space left on device")

    journal = Journal(tmp_path, write=refuse)
    _write(journal, golden_turn())
    journal.close()

    assert dict(journal.flow().lost)[names.LOST_WRITE_FAILED] == len(golden_turn())
    assert len([record for record in caplog.records if "cannot be written" in record.getMessage()]) == 1


def test_a_write_that_breaks_off_costs_its_lines_only(tmp_path: Path) -> None:
    """Half a block on disk does not swallow the line after it."""
    calls: list[int] = []

    def breaks_once(file: BinaryIO, block: bytes) -> int:
        calls.append(len(block))
        if len(calls) == 1:
            return file.write(block[: len(block) - 20])
        if len(calls) == 2:
            raise OSError(5, "Input/output error")
        return file.write(block)

    journal = Journal(tmp_path, anchor=ANCHOR, write=breaks_once, file_bytes=300)
    _write(journal, golden_turn())
    journal.close()
    flow = journal.flow()

    assert len(journal_events(tmp_path)) == flow.exported == len(golden_turn()) - flow.lost_items


def test_files_are_closed_at_their_size_and_the_oldest_go(tmp_path: Path) -> None:
    """Rotation keeps each file and all files together within bounds."""
    journal = Journal(tmp_path, file_bytes=2_000, total_bytes=6_000)
    for number in range(20):
        _write(journal, golden_turn(number=number))
    journal.close()
    sizes = [file.stat().st_size for file in tmp_path.iterdir()]

    assert max(sizes) <= 2_000
    assert sum(sizes) <= 6_000
    assert len(sizes) >= 2
    assert _names(journal_events(tmp_path))[-1] == "TurnFinished"


def test_old_files_of_other_processes_go_too(tmp_path: Path) -> None:
    """There are never more files than allowed, whoever wrote them; what is no journal stays."""
    for number in range(5):
        (tmp_path / f"journal-{number}-1-0001.jsonl").write_text("{}\n")
        os.utime(tmp_path / f"journal-{number}-1-0001.jsonl", (number, number))
    (tmp_path / "notes.txt").write_text("mine")
    journal = Journal(tmp_path, max_files=3)
    _write(journal, golden_turn())
    journal.close()
    left = sorted(path.name for path in tmp_path.iterdir())

    assert left[1:3] == ["journal-3-1-0001.jsonl", "journal-4-1-0001.jsonl"]
    assert len(left) == 4
    assert left[-1] == "notes.txt"


def test_several_processes_write_side_by_side(tmp_path: Path) -> None:
    """Each has a file of its own; all lines of all of them can be read."""
    program = (
        "import sys; from pathlib import Path\n"
        "from recallscope.telemetry.journal import Journal\n"
        "from recallscope.telemetry.testing.golden import golden_turn\n"
        "journal = Journal(Path(sys.argv[1]))\n"
        "for number in range(50):\n"
        "    for event in golden_turn(number=number): journal(event)\n"
        "journal.close(10)\n"
    )
    processes = [subprocess.Popen([sys.executable, "-c", program, str(tmp_path)]) for _ in range(3)]
    codes = [process.wait(60) for process in processes]

    assert codes == [0, 0, 0]
    assert len(list(tmp_path.iterdir())) == 3
    assert len(journal_events(tmp_path)) == 3 * 50 * len(golden_turn())


def test_several_threads_may_state_events(tmp_path: Path) -> None:
    """Events of several threads are all written, each line whole."""
    journal = Journal(tmp_path)
    threads = [threading.Thread(target=_write, args=(journal, tool_free_turn(number=number))) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    journal.close()

    assert len(journal_events(tmp_path)) == 8 * len(tool_free_turn())


def test_events_after_the_end_are_counted_as_lost(tmp_path: Path) -> None:
    """A closed journal takes nothing."""
    journal = Journal(tmp_path)
    journal.close()
    _write(journal, golden_turn())

    assert dict(journal.flow().lost)[names.LOST_SHUTDOWN] == len(golden_turn())


def test_closing_is_bounded(tmp_path: Path) -> None:
    """A disk that hangs does not hold the process back."""
    go = threading.Event()

    def hangs(_file: BinaryIO, block: bytes) -> int:
        go.wait(30)
        return len(block)

    journal = Journal(tmp_path, write=hangs)
    _write(journal, golden_turn())
    journal.close(0.05)
    go.set()


@pytest.mark.parametrize(
    "line",
    [
        b"not json\n",
        b"[1]\n",
        b'{"v":2,"event":"X","wall":1}\n',
        b'{"v":1,"event":"X"}\n',
        b'{"v":1,"event":"X","wall":1e300}\n',
        b"\xff\xfe\n",
        b'{"v":1,"event":"\\ud800","wall":1\n',
        b'"\\ud800"' + b"[" * 100_000 + b"\n",
        b'{"v":1,"event":"Torn","wall":3}',
    ],
)
def test_a_line_that_cannot_be_read_is_no_event(line: bytes) -> None:
    """Foreign text, other versions, broken lines and one that is still being written are left out."""
    assert event_on(line) is None


def test_keys_that_a_reader_does_not_know_pass() -> None:
    """A later version may say more of an event."""
    good = {"v": 1, "event": "New", "wall": 2, "unknown": [1]}

    assert event_on(json.dumps(good).encode() + b"\n") == good


@given(line=st.binary(max_size=200).filter(lambda line: b"\n" not in line))
@example(line=b'"\\ud800')
def test_no_line_makes_the_reader_raise(line: bytes) -> None:
    """Whatever stands on a line, it is an event or none."""
    assert event_on(line + b"\n") is None


def test_a_reader_of_a_running_journal_sees_whole_lines(tmp_path: Path, until: Callable[..., bool]) -> None:
    """Lines are on disk soon after their events, without closing."""
    journal = Journal(tmp_path)
    _write(journal, golden_turn())

    assert until(lambda: len(journal_events(tmp_path)) == len(golden_turn()))
    journal.close()


def test_every_line_of_an_operation_names_its_parent() -> None:
    """A reader that starts anywhere finds the way up: from a recall's or a tool's end to its turn."""
    encoder = Encoder(Anchor.stated(at=AT, wall=WALL))
    lines = [json.loads(encoder(event)) for event in golden_turn()]
    begun = {line["op"]: line["parent"] for line in lines if line["event"] in {"RecallBegun", "ToolStarted"}}

    assert len(begun) > 1
    assert all(line["parent"] == begun[line["op"]] for line in lines if line["op"] in begun)
