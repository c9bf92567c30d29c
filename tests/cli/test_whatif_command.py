"""`recallscope whatif`: what it reads, what it refuses, and what it prints and writes."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from recallscope.telemetry.anchor import Anchor
from recallscope.telemetry.encode import Encoder
from recallscope.telemetry.testing.golden import AT, WALL, golden_turn, tool_free_turn

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """Give a journal of forty turns: each second one calls a tool."""
    folder = tmp_path / "journal"
    folder.mkdir()
    encode = Encoder(Anchor.stated(at=AT, wall=WALL))
    turns = [
        (golden_turn if number % 2 else tool_free_turn)(number=number, at=AT + 10 * number) for number in range(40)
    ]
    lines = [encode(event) + b"\n" for turn in turns for event in turn]
    (folder / "journal-1800000000000-1-0001.jsonl").write_bytes(b"".join(lines))
    return folder


def test_other_ceilings_are_answered_from_a_journal(run: Run, journal: Path) -> None:
    """Without a range it asks for six ceilings; where words match all is there, without them it takes 48 ms."""
    done = run("whatif", "--from", str(journal), "--json")
    answer = json.loads(done.stdout)

    assert (done.returncode, done.stderr) == (0, "")
    assert (answer["turns"], answer["left_out"], answer["differing"]) == (40, {}, [])
    assert answer["recorded_under"] == {"tiered": 40}
    shares = {row["value"]: row["delivered"]["first_send"]["share"] for row in answer["rows"]}
    assert shares == {0.0: 0.5, 0.025: 0.5, 0.05: 1.0, 0.1: 1.0, 0.2: 1.0, 0.5: 1.0}
    assert {row["unknown"] for row in answer["rows"]} == {0}


def test_the_table_the_page_and_the_plot_are_written(run: Run, journal: Path, tmp_path: Path) -> None:
    """The table goes to stdout, the files are whole, and stderr names them."""
    page, plot = tmp_path / "out.html", tmp_path / "out.svg"
    arguments = ("--policy", "tiered", "--policy", "prefetch", "--ceiling", "25,0.2s", "--html", str(page))
    done = run("whatif", "--from", str(journal), *arguments, "--svg", str(plot))

    assert done.returncode == 0
    assert done.stdout.startswith("40 recorded turns under tiered.")
    assert [name in done.stdout for name in ("tiered 25 ms", "tiered 200 ms", "prefetch")] == [True] * 3
    assert done.stderr == f"wrote {page}\nwrote {plot}\n"
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert plot.read_text(encoding="utf-8").startswith("<svg")


def test_every_turn_is_reproduced_or_told(run: Run, journal: Path) -> None:
    """`--verify` replays the turns as they were recorded; one whose record was changed is named, with exit code 1."""
    good = run("whatif", "--from", str(journal), "--verify")
    (file,) = journal.iterdir()
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace('"delivered":"both"', '"delivered":"none"', 1), encoding="utf-8")
    bad = run("whatif", "--from", str(journal), "--verify")

    assert (good.returncode, good.stdout) == (0, "40 of 40 turns are reproduced.\n")
    assert (bad.returncode, bad.stdout.splitlines()[0]) == (1, "39 of 40 turns are reproduced.")
    assert bad.stdout.splitlines()[1].startswith("s.1: recorded none (both)")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--ceiling", "0.1"), "write 0.1s or 100ms"),
        (("--ceiling", "ten"), "is no time such as 25, 25ms or 0.2s"),
        (("--ceiling", "61s"), "it must be between 0 and 60 s"),
        (("--selector-speed", "0"), "above 0 and at most 1000"),
        (("--ceiling", "1,2", "--selector-speed", "1,2"), "only one setting may have a range"),
        (("--selector-delay", "1", "--selector-speed", "2"), "give one"),
    ],
)
def test_wrong_use_is_told(run: Run, arguments: tuple[str, ...], told: str) -> None:
    """Exit code 2 and what to write instead."""
    done = run("whatif", *arguments)

    assert (done.returncode, done.stdout) == (2, "")
    assert told in " ".join(done.stderr.split())


def test_nothing_to_replay_is_told(run: Run, journal: Path) -> None:
    """An empty journal, and turns that are too old: exit code 1 and where was looked."""
    empty = run("whatif")
    old = run("whatif", "--from", str(journal), "--recorded-under", "deadline")

    assert (empty.returncode, old.returncode) == (1, 1)
    assert "can be replayed; check --from and --since" in empty.stderr
    assert str(journal) in old.stderr
