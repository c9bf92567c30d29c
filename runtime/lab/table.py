"""Draws the comparison table for a terminal: rows are scenarios, columns policies, readable without colours."""

import math

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from recallscope.runtime.lab.comparison import Cell, Comparison
from recallscope.runtime.lab.expectations import Verdict
from recallscope.runtime.lab.scenarios import SCENARIOS
from recallscope.runtime.terms import PolicyName, Reason, Scenario
from recallscope.telemetry.read.figures import Row

__all__ = ["ComparisonTable"]

WIDTH = 98
NAME_WIDTH = max(len(scenario) for scenario in Scenario)

# Shape says it first and colour only repeats it: blue and orange are apart for every kind of colour vision.
_MARKS = {
    Verdict.AS_STATED: ("✔", "bold blue"),
    Verdict.DIFFERS: ("✘", "bold dark_orange"),
    Verdict.NOT_MEASURED: ("○", "dim"),
}

_POLICIES = {
    PolicyName.DEADLINE: "the old way: waits",
    PolicyName.PREFETCH: "never waits",
    PolicyName.TIERED: "waits ≤ {ceiling}",
}

_MEANINGS = {
    Scenario.SETTLED_BEFORE_SEND: "recall was done before the first send",
    Scenario.SLOW_WITH_TOOLS: "done later, before the last tool result",
    Scenario.TIMED_OUT: "done after 1 s, or after the last tool result",
    Scenario.SLOW_WITHOUT_TOOLS: "done later, and no tool was called",
    Scenario.SUPERSEDED: "not done when the next prompt came",
}


class ComparisonTable:
    """What rich prints for a comparison: the table, the scenarios that stand apart, legend and verdict."""

    def __init__(self, comparison: Comparison, *, title: str) -> None:
        self._comparison = comparison
        self._title = title

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Give the parts; the table is 98 columns wide, less in a narrower terminal."""
        comparison = self._comparison
        yield Text(self._title, style="bold")
        yield self._table(min(WIDTH, options.max_width))
        yield from (*_legend(comparison), Text(), *_sentences(comparison))

    def _table(self, width: int) -> Table:
        comparison = self._comparison
        table = Table(box=box.ROUNDED, width=width, border_style="dim", header_style="none", padding=(0, 1))
        table.add_column(Text("scenario", style="bold"), width=NAME_WIDTH)
        for policy in comparison.policies:
            about = _POLICIES[policy].format(ceiling=_seconds(comparison.ceiling))
            table.add_column(Text.assemble((policy.value, "bold"), "\n", (about, "dim")), ratio=1, overflow="fold")
        for scenario in comparison.scenarios:
            cells = [comparison.cells[Row(policy, scenario)] for policy in comparison.policies]
            table.add_row(self._name(scenario), *(_cell(cell) for cell in cells), end_section=True)
        for scenario in dict.fromkeys(row.scenario for row in comparison.apart):
            counts = [comparison.apart[Row(policy, scenario)] for policy in comparison.policies]
            table.add_row(Text(scenario.value, style="dim"), *(Text(_count(count), style="dim") for count in counts))
        return table

    def _name(self, scenario: Scenario) -> Text:
        about = "\n".join(SCENARIOS[scenario].times) if self._comparison.played else _MEANINGS[scenario]
        return Text.assemble((scenario.value, "bold"), "\n", (about, "dim"))


def _cell(cell: Cell) -> Text:
    mark, style = _MARKS[cell.verdict]
    measured = cell.measured
    if measured.turns <= 0:
        return Text.assemble((mark, style), " not measured")
    places = " ".join(f"{value} {_share(count, measured.turns)}" for value, count in measured.delivered.items())
    lines = [Text.assemble((mark, style), " ", (places, "bold"))]
    for reason, count in measured.reasons.items():
        if reason is not Reason.NONE:
            share = "" if count == measured.turns else f" {_share(count, measured.turns)}"
            lines.append(Text(f"{reason}{share}"))
    if measured.p50 is not None and measured.p95 is not None and measured.highest is not None:
        lines.append(Text(_wait(measured.p50, measured.p95, measured.highest)))
    return Text("\n").join(lines)


def _legend(comparison: Comparison) -> list[Text]:
    marks = "   ".join(f"{mark} {verdict.replace('_', ' ')}" for verdict, (mark, _) in _MARKS.items())
    cell = (
        "In a cell: where memory entered the turns; why nothing did, or why the refined notes did not; "
        "how long a turn waited for memory: p50 · p95 · longest (the bound of its histogram bucket)."
    )
    lines = [
        marks,
        cell,
        f"Turns of the last four rows are only counted. Worst loop lag: ≤ {_seconds(comparison.loop_lag)}.",
    ]
    if comparison.readings > 1:
        lines.append(
            f"This is reading {comparison.readings}: before it the loop was held up for more than 25 ms (a busy "
            "machine?), and nothing of that is used."
        )
    if Scenario.SUPERSEDED in comparison.scenarios:
        lines.append("superseded: in the code that deadline stands for two recalls competed; here only one is pending.")
    return [Text(line, style="dim") for line in lines]


def _sentences(comparison: Comparison) -> list[Text]:
    """Say the verdict, and of each cell that is not as stated what it is."""
    measured = [cell for cell in comparison.cells.values() if cell.verdict is not Verdict.NOT_MEASURED]
    differing = comparison.with_verdict(Verdict.DIFFERS)
    missing = comparison.with_verdict(Verdict.NOT_MEASURED)
    sentences = [
        _remark(cell, f"{'; '.join(cell.remarks)} (expected: {cell.expected})")
        for cell in (*differing, *(missing if comparison.played else ()))
    ]
    if not measured:
        sentences.append(Text("Nothing was measured.", style="bold"))
    elif not sentences:
        which = "" if len(measured) == len(comparison.cells) else "measured "
        all_of_them = f"All {len(measured)} {which}cells are" if len(measured) > 1 else f"The one {which}cell is"
        sentences.append(Text(f"{all_of_them} as stated.", style="bold"))
    else:
        good = len(comparison.with_verdict(Verdict.AS_STATED))
        sentences.append(Text(f"{good} of {len(comparison.cells)} cells are as stated.", style="bold"))
    return sentences


def _remark(cell: Cell, text: str) -> Text:
    mark, style = _MARKS[cell.verdict]
    return Text.assemble((mark, style), f" {cell.row.scenario} under {cell.row.policy}: {text}")


def _share(count: float, total: float) -> str:
    return f"{_count(count)}/{_count(total)}"


def _count(count: float) -> str:
    return f"{count:.0f}"


def _wait(p50: float, p95: float, highest: float) -> str:
    """Return the three figures in the unit that suits them, as short as a cell is narrow."""
    if math.isinf(highest):
        return f"{p50:.3g} · {p95:.3g} · > 30 s"
    if highest < 1:
        return f"{_number(p50)} · {_number(p95)} · ≤ {_seconds(highest)}"
    return f"{p50:.2f} · {p95:.2f} · ≤ {_seconds(highest)}"


def _seconds(seconds: float) -> str:
    return f"{_number(seconds)} ms" if seconds < 1 else f"{seconds:g} s"


def _number(seconds: float) -> str:
    """Return milliseconds with as many digits as say something."""
    milliseconds = seconds * 1000
    return f"{milliseconds:.1f}".removesuffix(".0") if milliseconds < 10 else f"{milliseconds:.0f}"  # noqa: PLR2004 - two digits
