"""Draws an explained turn in a terminal: a waterfall, the moments of recall, where the time went, and the verdict.

Made for rich, which colours it in a terminal; piped, the same text stands there without colours.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from recallscope.telemetry.explain.sentences import sentences
from recallscope.telemetry.explain.verdict import judge
from recallscope.telemetry.explain.waterfall import Kind, Mark, Moment, Row, waterfall
from recallscope.telemetry.explain.words import duration, moment, percent, printable
from recallscope.telemetry.read.recorded import RecordedTurn

__all__ = ["ExplainedTurn", "place_of", "title_of"]

LEAST_BAR: Final = 16
LABEL_SHARE: Final = 0.32
TIME_COLUMNS: Final = 8

_STYLES: Final = {
    Kind.TURN: "bold",
    Kind.RECALL: "cyan",
    Kind.WAIT: "red",
    Kind.SELECTOR: "magenta",
    Kind.MODEL: "blue",
    Kind.TOOL: "yellow",
    Kind.BACKOFF: "red",
}
_FILL: Final = {Kind.TURN: "═", Kind.WAIT: "▒", Kind.BACKOFF: "░"}
_MARKS: Final = {
    Mark.BEGIN: "B",
    Mark.FAST: "F",
    Mark.SETTLED: "S",
    Mark.DELIVERED: "D",
    Mark.ROLLED_BACK: "R",
    Mark.SKIPPED: "x",
    Mark.CLOSED: "C",
}


class ExplainedTurn:
    """A turn with its verdict, to be printed by a rich console of any width."""

    def __init__(self, turn: RecordedTurn) -> None:
        self._turn = turn
        self._rows = waterfall(turn)
        self._verdict = judge(turn)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw it."""
        yield Text(printable(title_of(self._turn)), style="bold")
        yield Text(printable(place_of(self._turn)), style="dim")
        if self._turn.trace_id is not None:
            yield Text(printable(f"trace {self._turn.trace_id}"), style="dim")
        yield Text()
        yield from self._bars(options.max_width)
        yield Text()
        yield from self._moments()
        yield self._parts()
        yield Text()
        yield self._words()

    def _bars(self, width: int) -> Iterator[Text]:
        """Yield the waterfall: a label, a bar on the turn's time, how long it took."""
        longest = max(len(_label(row)) for row in self._rows)
        label = min(longest, max(12, int(width * LABEL_SHARE)))
        bar = max(LEAST_BAR, width - label - TIME_COLUMNS - 3)
        for row in self._rows:
            line = Text(no_wrap=True, overflow="crop", end="")
            line.append(_cut(_label(row), label).ljust(label + 1))
            line.append(_bar(row, self._turn.length, bar), style=_STYLES[row.kind])
            line.append(f" {_took(row, self._turn):>{TIME_COLUMNS}}")
            yield line
            if row.note and row.kind is not Kind.TURN:
                yield Text(f"\n{' ' * (label + 1)}{_cut(printable(row.note), bar)}", style="dim")
            else:
                yield Text()

    def _moments(self) -> Iterator[Text | Table]:
        moments = [moment for row in self._rows for moment in row.moments]
        if not moments:
            return
        table = Table.grid(padding=(0, 1, 0, 0))
        for one in moments:
            mark = Text(_MARKS[one.mark], style=_STYLES[Kind.RECALL])
            table.add_row(mark, Text(moment(one.at), justify="right"), str(one.mark), Text(printable(one.text)))
        yield table
        yield Text()

    def _parts(self) -> Text:
        """Say where the time went, in one line that wraps."""
        parts = [f"{part.phase} {duration(part.seconds)} ({percent(part.share)})" for part in self._verdict.parts]
        return Text("Time      " + ", ".join(parts))

    def _words(self) -> Table:
        table = Table.grid(padding=(0, 1, 0, 0))
        table.add_column(width=9, no_wrap=True)
        table.add_column()
        for label, sentence in sentences(self._turn, self._verdict).labelled:
            table.add_row(Text(label, style="bold"), Text(printable(sentence)))
        return table


def title_of(turn: RecordedTurn) -> str:
    """Return the turn's id, length, outcome and place in the comparison table, in one line."""
    parts = [f"Turn {turn.turn}", duration(turn.length)]
    parts.append(str(turn.outcome) if turn.outcome is not None else "no end recorded")
    if turn.error_type is not None:
        parts[-1] += f" ({turn.error_type})"
    elif turn.cause is not None:
        parts[-1] += f" ({turn.cause})"
    if turn.policy is not None:
        parts.append(f"policy {turn.policy}")
    closed = turn.recall.closed if turn.recall is not None else None
    if closed is not None:
        parts.append(f"{closed.scenario}, delivered {closed.delivered}")
    return " · ".join(parts)


def place_of(turn: RecordedTurn) -> str:
    """Return when the turn began, and whose it is."""
    started = datetime.fromtimestamp(turn.wall, tz=UTC).isoformat(sep=" ", timespec="milliseconds")
    parts = [started.removesuffix("+00:00") + " UTC"]
    if turn.agent is not None:
        parts.append(f"agent {turn.agent}")
    parts.append(f"session {turn.session}")
    return " · ".join(parts)


def _label(row: Row) -> str:
    return "  " * row.depth + printable(row.label)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"


def _took(row: Row, turn: RecordedTurn) -> str:
    end = row.ended if row.ended is not None else turn.length
    took = duration(max(0.0, end - row.started))
    return took if row.ended is not None else f">{took}"


def _bar(row: Row, length: float, width: int) -> str:
    """Return the bar of a row: filled from its start to its end, with the letters of its moments."""
    start = _column(row.started, length, width)
    end = _column(row.ended if row.ended is not None else length, length, width)
    fill = _FILL.get(row.kind, "─" if row.kind is Kind.RECALL else "█")
    cells = [" "] * width
    for column in range(start, max(start, end) + 1):
        cells[column] = fill
    if row.ended is None:
        cells[-1] = ">"
    for one in row.moments:
        _put(cells, one, length, width)
    return "".join(cells)


def _put(cells: list[str], one: Moment, length: float, width: int) -> None:
    """Write the letter of a moment; where one stands already, the next free cell to the right takes it."""
    letters = frozenset(_MARKS.values())
    column = _column(one.at, length, width)
    while column < width - 1 and cells[column] in letters:
        column += 1
    if cells[column] not in letters:
        cells[column] = _MARKS[one.mark]


def _column(at: float, length: float, width: int) -> int:
    share = at / length if length > 0 else 0.0
    return min(max(int(share * width), 0), width - 1)
