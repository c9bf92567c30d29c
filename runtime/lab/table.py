"""Draws the comparison table for a terminal: rows are scenarios, columns policies, readable without colours."""

from collections.abc import Sequence

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from recallscope.runtime.lab.comparison import Cell, Comparison
from recallscope.runtime.lab.expectations import Measured, Verdict
from recallscope.runtime.lab.scenarios import SCENARIOS
from recallscope.runtime.lab.wording import (
    MARKS,
    MEANINGS,
    about_policy,
    apart_lines,
    cell_lines,
    conclusion,
    footnotes,
    promise,
    remarks,
)
from recallscope.runtime.terms import Scenario
from recallscope.telemetry.read.figures import Row

__all__ = ["ComparisonTable"]

WIDTH = 98
NAME_WIDTH = max(len(scenario) for scenario in Scenario)

# Shape says it first and colour only repeats it: blue and orange are apart for every kind of colour vision.
_STYLES = {Verdict.AS_STATED: "bold blue", Verdict.DIFFERS: "bold dark_orange", Verdict.NOT_MEASURED: "dim"}


class ComparisonTable:
    """What rich prints for a comparison: the table, the scenarios that stand apart, legend, `notes` and verdict."""

    def __init__(self, comparison: Comparison, *, title: str, notes: Sequence[str] = ()) -> None:
        self._comparison = comparison
        self._title = title
        self._notes = notes

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Give the parts; the table is 98 columns wide, less in a narrower terminal."""
        comparison = self._comparison
        yield Text(self._title, style="bold")
        yield self._table(min(WIDTH, options.max_width))
        marks = "   ".join(f"{mark} {verdict.replace('_', ' ')}" for verdict, mark in MARKS.items())
        yield from (Text(line, style="dim") for line in (marks, *footnotes(comparison)))
        yield from (Text(note) for note in self._notes)
        yield Text()
        yield from (Text.assemble(_mark(cell), f" {text}") for cell, text in remarks(comparison))
        yield Text(conclusion(comparison), style="bold")

    def _table(self, width: int) -> Table:
        comparison = self._comparison
        table = Table(box=box.ROUNDED, width=width, border_style="dim", header_style="none", padding=(0, 1))
        table.add_column(Text("scenario", style="bold"), width=NAME_WIDTH)
        for policy in comparison.policies:
            about = "\n".join(filter(None, (about_policy(policy, comparison), promise(policy, comparison))))
            table.add_column(Text.assemble((policy.value, "bold"), "\n", (about, "dim")), ratio=1, overflow="fold")
        for scenario in comparison.scenarios:
            cells = [comparison.cells[Row(policy, scenario)] for policy in comparison.policies]
            table.add_row(self._name(scenario), *(_cell(cell) for cell in cells), end_section=True)
        for scenario in dict.fromkeys(row.scenario for row in comparison.apart):
            apart = [comparison.apart[Row(policy, scenario)] for policy in comparison.policies]
            table.add_row(Text(scenario.value, style="dim"), *(_apart(measured) for measured in apart))
        return table

    def _name(self, scenario: Scenario) -> Text:
        about = "\n".join(SCENARIOS[scenario].times) if self._comparison.played else MEANINGS[scenario]
        return Text.assemble((scenario.value, "bold"), "\n", (about, "dim"))


def _cell(cell: Cell) -> Text:
    first, *others = cell_lines(cell)
    style = "bold" if cell.verdict is not Verdict.NOT_MEASURED else ""
    return Text("\n").join([Text.assemble(_mark(cell), " ", (first, style)), *(Text(line) for line in others)])


def _apart(measured: Measured) -> Text:
    number, *reasons = apart_lines(measured)
    return Text(f"{number}: {', '.join(reasons)}" if reasons else number, style="dim")


def _mark(cell: Cell) -> tuple[str, str]:
    return MARKS[cell.verdict], _STYLES[cell.verdict]
