"""How the comparison looks in a terminal, a pipe and an old encoding."""

from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path

from rich.console import Console

from recallscope.runtime.lab.comparison import compare_figures
from recallscope.runtime.lab.expectations import POLICIES, live, scripted
from recallscope.runtime.lab.table import WIDTH, ComparisonTable
from recallscope.runtime.terms import PolicyName, Scenario
from recallscope.telemetry.read.figures import Figures, Row

Make = Callable[..., Figures]


def _drawn(figures: Figures, *, played: bool = True, width: int = WIDTH, colour: bool = False) -> str:
    expectations = scripted(0.1) if played else live({PolicyName.TIERED: 0.1})
    comparison = compare_figures(figures, expectations, ceiling=0.1, policies=POLICIES, played=played)
    stream = StringIO()
    console = Console(file=stream, width=width, force_terminal=colour, color_system="256" if colour else None)
    console.print(ComparisonTable(comparison, title="A title"))
    return stream.getvalue()


def test_the_table_as_it_is_printed(figures: Make) -> None:
    """The whole text, as a pipe gets it: no colours, nothing wider than the table."""
    golden = Path(__file__).with_name("table.txt").read_text(encoding="utf-8")

    got = _drawn(figures())

    assert got.rstrip("\n") == golden.rstrip("\n")
    assert max(len(line) for line in got.splitlines()) <= WIDTH
    assert "\x1b" not in got


def test_what_differs_is_said_below_the_table(figures: Make) -> None:
    """A cell that differs has its own mark and a sentence, and the last line counts."""
    got = _drawn(figures(waits={Row(PolicyName.TIERED, Scenario.TIMED_OUT): 0.2}), width=200).splitlines()

    assert got[-2].startswith("✘ timed_out under tiered: wait p95 245 ms is above 105 ms; the longest wait (≤ 250 ms)")
    assert got[-2].endswith("(expected: both; wait p95 ≤ 105 ms)")
    assert got[-1] == "14 of 15 cells are as stated."


def test_a_played_cell_without_turns_is_said_below_the_table(figures: Make) -> None:
    """What was played and not seen is not passed over."""
    good = figures()
    missing = Row(PolicyName.TIERED, Scenario.TIMED_OUT)
    without = replace(good, turns={kind: count for kind, count in good.turns.items() if kind.row != missing})

    got = _drawn(without, width=200)

    assert "○ not measured" in got
    assert "○ timed_out under tiered: no turn ended in this row (expected: both; wait p95 ≤ 105 ms)" in got
    assert "14 of 15 cells are as stated." in got


def test_live_traffic_tells_what_a_row_means(figures: Make) -> None:
    """Live traffic has no script, so the rows are explained; cells without traffic are no fault."""
    good = figures()
    only = {kind: count for kind, count in good.turns.items() if kind.row.policy is PolicyName.TIERED}

    got = _drawn(replace(good, turns=only), played=False)

    assert got.partition("├")[0].count("expected: ") == 3
    assert "selector 908 ms" not in got
    assert "not done when the" in got
    assert got.splitlines()[-1] == "All 5 measured cells are as stated."


def test_nothing_measured_is_said() -> None:
    """An empty table says that it is empty."""
    assert _drawn(Figures(), played=False).splitlines()[-1] == "Nothing was measured."


def test_colour_only_repeats_what_the_marks_say(figures: Make) -> None:
    """With colours the same text stands there."""
    assert "\x1b" in _drawn(figures(), colour=True)


def test_a_narrow_terminal_loses_nothing(figures: Make) -> None:
    """In 80 columns text is folded, never cut."""
    got = _drawn(figures(), width=80)

    assert max(len(line) for line in got.splitlines()) <= 80
    assert [scenario for scenario in ("settled_before_send", "slow_without_tools") if scenario not in got] == []
    assert "…" not in got
