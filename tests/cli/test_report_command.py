"""`recallscope report`: the page of recorded journals, whole, empty, torn and large."""

import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from recallscope.runtime import __version__
from recallscope.runtime.cli.main import main
from recallscope.runtime.cli.page_file import write_whole
from recallscope.runtime.cli.report import report_page
from recallscope.runtime.cli.since import Since
from recallscope.runtime.config import load
from recallscope.runtime.errors import LabError
from recallscope.runtime.events import Event, PolicyName
from recallscope.telemetry.anchor import Anchor
from recallscope.telemetry.encode import Encoder
from recallscope.telemetry.read.gathered import gather
from recallscope.telemetry.read.journal_turns import JournalTurns
from recallscope.telemetry.read.recorded import RecordedTurn
from recallscope.telemetry.report.page import render
from recallscope.telemetry.testing.golden import AT, WALL, golden_turn, lexical_turn, tool_free_turn, unlucky_turn

GOLDEN = Path(__file__).with_name("report.html")
DAY = Since("24h", 86_400)

Report = Callable[..., tuple[int, str, str]]


def _events() -> list[Event]:
    """Return a process's turns under each policy; the last one is under way."""
    return [
        *golden_turn(),
        *unlucky_turn(),
        *golden_turn(number=5, at=AT + 40, session="t", policy=PolicyName.PREFETCH),
        *golden_turn(number=6, at=AT + 50, session="u", policy=PolicyName.DEADLINE),
        *tool_free_turn(number=7, at=AT + 60),
        *lexical_turn(number=8, at=AT + 70),
        *golden_turn(number=9, at=AT + 80)[:6],
    ]


def _write(folder: Path, events: list[Event]) -> None:
    encode = Encoder(Anchor.stated(at=AT, wall=WALL))
    folder.mkdir(exist_ok=True)
    (folder / "journal-1-1-0001.jsonl").write_bytes(b"".join(encode(event) + b"\n" for event in events))


def _rendered(turns: Iterator[RecordedTurn] | list[RecordedTurn], *, top: int = 3) -> str:
    """Return the page of `turns`, as it is at a moment after the golden turns."""
    settings = load(environ={}, cwd=Path("/nowhere"), home=Path("/nowhere"))
    gathered = gather(turns, top=top, keep=200)
    page = report_page(JournalTurns([Path("journal")]), gathered, None, settings=settings, asked=DAY, now=WALL + 3_600)
    return render(page).replace(__version__, "VERSION")


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Report:
    """Give a function that runs the command in this process, in an empty folder, and what it wrote."""
    for name in ("XDG_STATE_HOME", "RECALLSCOPE_TELEMETRY_JOURNAL_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def go(*arguments: str) -> tuple[int, str, str]:
        code = main(["report", *arguments])
        written = capsys.readouterr()
        return code, written.out, written.err

    return go


def _data(page: str, name: str) -> list[str]:
    return re.findall(rf'data-{name}="([^"]*)"', page)


def test_the_page_of_a_recorded_journal(tmp_path: Path) -> None:
    """The whole page, byte for byte; `python tests/cli/test_report_command.py` writes the file anew."""
    _write(tmp_path, _events())

    assert _rendered(JournalTurns([tmp_path]).turns()) == GOLDEN.read_text(encoding="utf-8")


def test_the_page_needs_nothing_else() -> None:
    """No script, nothing to load, and a policy in the page that forbids both; ids are there once."""
    page = GOLDEN.read_text(encoding="utf-8")

    assert "default-src &#x27;none&#x27;; style-src &#x27;unsafe-inline&#x27;" in page
    assert re.findall(r"<(?:script|link|img|iframe|object|embed)\b|@import|url\(|\bsrc=|\bon[a-z]+=", page) == []
    assert {href[0] for href in re.findall(r'href="([^"]*)"', page)} == {"#"}
    ids = re.findall(r'\bid="([^"]*)"', page)
    assert len(ids) == len(set(ids))
    assert {href[1:] for href in re.findall(r'href="([^"]*)"', page)} <= set(ids)


def test_every_plot_can_be_read_without_seeing_it() -> None:
    """Each plot is an image with a name, and stands in a figure that has a table."""
    page = GOLDEN.read_text(encoding="utf-8")
    figures = re.findall(r"<figure.*?</figure>", page, re.DOTALL)

    assert len(figures) == page.count("<figure")
    assert [figure[:80] for figure in figures if "<table>" not in figure] == []
    assert [figure[:80] for figure in figures if 'role="img"' not in figure] == []


def test_the_sections_are_all_there() -> None:
    """Levels, comparison, durations, waits, recalls, phases, slow turns, calls and what-if, in this order."""
    page = GOLDEN.read_text(encoding="utf-8")

    assert _data(page, "section") == [
        *("levels", "comparison", "durations", "waits", "recall", "phases", "turns", "calls", "whatif")
    ]
    assert len(_data(page, "turn")) == 3


def test_an_empty_journal_makes_a_page_that_says_so() -> None:
    """Nothing is invented, and nothing fails."""
    page = _rendered([])

    assert "No turn of the last 1 d was found in the journal in journal." in page
    assert "Nothing was measured." in page
    assert _data(page, "turn") == []
    assert "NaN" not in page


def test_one_turn_makes_a_page(tmp_path: Path) -> None:
    """One turn is enough for every section, and too few for a verdict on a service level."""
    _write(tmp_path, golden_turn())

    page = _rendered(JournalTurns([tmp_path]).turns())

    assert "1 turn in 1 session" in page
    assert set(_data(page, "met")) == {"open"}


def test_turns_that_were_cut_off_are_told(tmp_path: Path) -> None:
    """A turn without an end has a story and no duration, and the page says that there is one."""
    _write(tmp_path, golden_turn()[:6])

    page = _rendered(JournalTurns([tmp_path]).turns())

    assert "1 turn has no recorded end" in page
    assert "no end recorded" in page


def test_many_turns_make_no_larger_page(tmp_path: Path) -> None:
    """The page is bounded by what it shows, not by what was recorded."""
    _write(tmp_path, golden_turn())
    (turn,) = JournalTurns([tmp_path]).turns()
    many = [replace(turn, turn=f"s.{number}", wall=turn.wall + number) for number in range(2_000)]

    one, all_of_them = _rendered([turn]), _rendered(many)

    assert len(all_of_them) < len(one) + 2 * len(one)
    assert "2\u202f000 turns" in all_of_them


def test_the_command_writes_the_page_whole(report: Report, tmp_path: Path) -> None:
    """The page goes into a file of the folder, nothing into stdout; with `--out -` it goes there."""
    _write(tmp_path / "journal", _events())
    since = ("--since", "100y", "--from", "journal")

    told = report(*since)
    again = report(*since, "--out", "-", "--top", "1")

    page = (tmp_path / "recallscope-report.html").read_text(encoding="utf-8")
    assert told == (0, "", "recallscope-report.html: 7 turns of the journal in journal\n")
    assert page.startswith("<!DOCTYPE html>")
    assert (again[0], again[2], len(_data(again[1], "turn"))) == (0, "", 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["journal", "recallscope-report.html"]


def test_without_a_journal_the_page_says_so(report: Report) -> None:
    """A machine on which nothing was recorded gets a page, too; as of `slow`, exit code 1 and a hint."""
    code, page, told = report("--out", "-")

    assert code == 1
    assert told.startswith("recallscope: no turn of the last 24h was found in the journal in ")
    assert told.endswith("; try --since 7d, or another --from\n")
    assert "No turn of the last 1 d was found" in page


def test_a_page_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    """Neither half a page nor the file that it was prepared in."""
    (tmp_path / "taken").mkdir()

    with pytest.raises(LabError, match="taken is a folder"):
        write_whole("text", tmp_path / "taken", "--out")
    with pytest.raises(LabError, match=r"cannot be written: .*; name another file with --out"):
        write_whole("text", tmp_path / ("x" * 300), "--out")

    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (("--since", "yesterday"), 2, "it must be a time such as 90s, 30m, 1h30m, 24h or 7d"),
        (("--job", "agents"), 2, "--job says what to read from a Prometheus; add --from-prometheus URL"),
        (("--from", "nowhere"), 1, "nowhere is not there; name a journal's folder, a file of spans, or an address"),
        (("--out", "no/such/folder/page.html"), 1, "the folder no/such/folder is not there; make it, or change --out"),
        (("--out", "."), 1, ". is a folder; name a file with --out, such as page.html"),
        (("--out", "/dev/null/page.html"), 1, "/dev/null is no folder; change --out"),
        (("--out", ""), 2, "it is empty; name a file, or - for stdout"),
        (("--out", "x" * 300), 1, "cannot be written: File name too long; name another file with --out"),
        (("--from-prometheus", "http://127.0.0.1:1"), 1, "no answer from http://127.0.0.1:1/api/v1/query: "),
        (("--from-prometheus", "127.0.0.1"), 1, "is no address of a Prometheus; it looks like http://localhost:9090"),
    ],
)
def test_what_is_wrong_is_told(report: Report, arguments: tuple[str, ...], code: int, problem: str) -> None:
    """One sentence with what to do, and no page."""
    got, out, err = report(*arguments)

    assert (got, out) == (code, "")
    assert problem in err


if __name__ == "__main__":
    place = Path("build/report-golden")
    _write(place, _events())
    GOLDEN.write_text(_rendered(JournalTurns([place]).turns()), encoding="utf-8")
    shutil.rmtree(place)
