"""Draws a what-if for a terminal: a table of the settings, and the shares as bars, readable without colours."""

from collections.abc import Iterator

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from recallscope.runtime.lab.whatif import Shares, WhatIf
from recallscope.runtime.lab.whatif_answer import QUANTILES, Answer, from_to, percent, percent_between
from recallscope.runtime.terms import Delivered

__all__ = ["WIDTH", "WhatIfTable"]

WIDTH = 116
BAR = 50
RECORDED = "as recorded"

_PLACES = (
    ("initial", Delivered.INITIAL),
    ("both", Delivered.BOTH),
    ("tool", Delivered.TOOL_RESULT),
    ("missed", Delivered.NONE),
)
# Shape says it, colour only repeats it.
_BLOCKS = (
    ("█", "blue", (Delivered.INITIAL, Delivered.BOTH), "at the first send"),
    ("▒", "cyan", (Delivered.TOOL_RESULT,), "with tool results alone"),
    ("·", "dim", (Delivered.NONE,), "missed"),
)


class WhatIfTable:
    """What rich prints for an answer."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Give the parts; the table is at most 116 columns wide, less in a narrower terminal."""
        yield Text(" ".join(self._answer.told()), style="bold")
        yield self._table()
        yield from (Text(line, style="dim") for line in _LEGEND)
        if len(under := list(self._answer.record.policies)) > 1:
            only = next((row.policy for row in self._answer.rows if row.policy in under), under[0])
            yield Text(f"Turns recorded under {only} alone: --recorded-under {only}.", style="dim")
        if doubts := self._answer.doubts():
            yield Text("Why turns are unknown:")
            yield from (Padding(Text(doubt), (0, 0, 0, 2), expand=False) for doubt in doubts)
        yield Text()
        yield from self._bars()

    def _table(self) -> Table:
        table = Table(box=box.ROUNDED, border_style="dim", header_style="none", padding=(0, 1))
        differ_in = self._answer.question.axis.value if self._answer.series() else "policy"
        table.add_column(Text(differ_in, style="bold"), overflow="fold")
        for name, _ in _PLACES:
            table.add_column(Text(name, style="bold"), justify="right", overflow="fold")
        names = ("unknown", "delivered", *(f"held p{100 * q:g}" for q in QUANTILES))
        for name in names:
            table.add_column(Text(name, style="bold"), justify="right", overflow="fold")
        for label, whatif in self._rows():
            places = (_share(whatif.at(place), whatif.turns) for _, place in _PLACES)
            delivered = whatif.delivered
            told = f"{percent(delivered.share)}\n{percent_between(delivered.interval)}"
            waits = (_wait(whatif, q) for q in QUANTILES)
            table.add_row(label, *places, _unknown(whatif), told, *waits, end_section=label == RECORDED)
        return table

    def _rows(self) -> Iterator[tuple[str, WhatIf]]:
        yield RECORDED, self._answer.recorded
        for row in self._answer.rows:
            yield self._answer.label(row), row.whatif

    def _bars(self) -> Iterator[Text]:
        rows = list(self._rows())
        width = max(len(label) for label, _ in rows)
        for label, whatif in rows:
            yield Text.assemble(f"{label:>{width}} ", *_bar(whatif), f" {percent(whatif.delivered.share)}")
        meanings = "   ".join(f"{sign} {meaning}" for sign, _, _, meaning in _BLOCKS)
        yield Text(f"{'':{width}} {meanings}   ? unknown", style="dim")


_LEGEND = (
    "In a cell: turns, and their share. tool: with tool results alone. held: all holds of a turn added.",
    "Below the delivered share and the holds: what they are in 95 of 100 records like this one, whatever",
    "the unknown turns are.",
)


def _bar(whatif: WhatIf) -> Iterator[tuple[str, str]]:
    """Yield the parts of a bar; their ends are rounded, so that the parts always fill it."""
    done, drawn = 0, 0
    counts = [(sign, style, whatif.at(*places).known) for sign, style, places, _ in _BLOCKS]
    missed = counts.pop()
    known = sum(number for _, _, number in counts) + missed[2]
    for sign, style, number in [*counts, ("?", "", whatif.turns - known), missed]:
        done += number
        end = round(BAR * done / whatif.turns) if whatif.turns else 0
        yield sign * (end - drawn), style
        drawn = end


def _share(shares: Shares, turns: int) -> str:
    return f"{shares.known}\n{percent(shares.share)}" if turns else "-"


def _unknown(whatif: WhatIf) -> str:
    return f"{whatif.unknown}\n{percent(whatif.unknown / whatif.turns)}" if whatif.turns else "-"


def _wait(whatif: WhatIf, q: float) -> str:
    waits = whatif.wait(q)
    interval = from_to(waits.interval.low, waits.interval.high)
    return f"{from_to(waits.least, waits.most)}\n{interval.removesuffix(' ms')}"
