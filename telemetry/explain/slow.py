"""Draws the list of the slowest turns: what each took, where the time went, and what memory had to do with it."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from recallscope.runtime.events import TurnPhase
from recallscope.telemetry.explain.partition import partition
from recallscope.telemetry.explain.words import duration, percent, printable
from recallscope.telemetry.read.recorded import ModelCall, RecordedTurn, ToolCall

__all__ = ["SlowTurns"]

SHOWN_PARTS: Final = 3
LEAST_SHARE: Final = 0.01
BAR_WIDTH: Final = 20

_LETTERS: Final = {
    TurnPhase.QUEUE: ("q", "white"),
    TurnPhase.PREPARE: ("p", "green"),
    TurnPhase.RECALL_WAIT: ("R", "red"),
    TurnPhase.MODEL: ("m", "blue"),
    TurnPhase.BACKOFF: ("b", "red"),
    TurnPhase.TOOL: ("t", "yellow"),
    TurnPhase.PERMISSION: ("u", "white"),
    TurnPhase.HOOK: ("h", "magenta"),
    TurnPhase.COMPACTION: ("c", "magenta"),
    TurnPhase.OTHER: (".", "dim"),
}


class SlowTurns:
    """The slowest turns, the slowest first; each takes two or three lines, whatever the width."""

    def __init__(self, turns: Sequence[RecordedTurn]) -> None:
        self._turns = turns

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the list."""
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(justify="right", no_wrap=True)
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        for turn in self._turns:
            table.add_row(
                Text(_length(turn), style="bold"),
                _bar(turn),
                Text(printable(f"{turn.turn} · {_ending(turn)} · {_memory(turn)}")),
            )
            table.add_row("", "", Text(printable(_where(turn))))
            trace = f" · trace {turn.trace_id}" if turn.trace_id is not None else ""
            table.add_row("", "", Text(printable(f"{_started(turn)}{trace}"), style="dim"))
        yield table


def _length(turn: RecordedTurn) -> str:
    return duration(turn.length) if turn.seconds is not None else f">{duration(turn.length)}"


def _bar(turn: RecordedTurn) -> Text:
    """Return the turn as a bar in which each phase has its share; a letter says which phase."""
    bar = Text()
    for part in sorted(partition(turn), key=lambda part: list(TurnPhase).index(part.phase)):
        letter, style = _LETTERS[part.phase]
        bar.append(letter * round(part.share * BAR_WIDTH), style=style)
    return bar


def _where(turn: RecordedTurn) -> str:
    parts = [
        f"{part.phase} {duration(part.seconds)} ({percent(part.share)})"
        for part in partition(turn)[:SHOWN_PARTS]
        if part.share >= LEAST_SHARE
    ]
    call = max(turn.sent, key=lambda call: _took(call, turn), default=None)
    if call is not None:
        parts.append(f"longest send {duration(_took(call, turn))}")
    tool = max(turn.tools, key=lambda tool: _took(tool, turn), default=None)
    if tool is not None:
        parts.append(f"longest tool {tool.tool} {duration(_took(tool, turn))}")
    return ", ".join(parts)


def _memory(turn: RecordedTurn) -> str:
    recall = turn.recall
    if recall is None:
        return "no recall"
    delivered = f"delivered {recall.closed.delivered}" if recall.closed is not None else "recall without an end"
    return f"{delivered}, waited {duration(recall.waited)}"


def _ending(turn: RecordedTurn) -> str:
    if turn.outcome is None:
        return "no end recorded"
    return f"{turn.outcome} ({turn.error_type})" if turn.error_type is not None else str(turn.outcome)


def _started(turn: RecordedTurn) -> str:
    return datetime.fromtimestamp(turn.wall, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _took(piece: ModelCall | ToolCall, turn: RecordedTurn) -> float:
    return (piece.ended if piece.ended is not None else turn.length) - piece.started
