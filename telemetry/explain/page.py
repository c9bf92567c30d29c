"""Draws an explained turn as one HTML page that needs nothing else: no script, no network, readable in print.

Everything that comes from a record is escaped. The waterfall is inline SVG with a title on each bar, and the same
figures stand below it as text.
"""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from recallscope.telemetry.explain.sentences import sentences
from recallscope.telemetry.explain.terminal import place_of, title_of
from recallscope.telemetry.explain.verdict import Verdict, judge
from recallscope.telemetry.explain.waterfall import Kind, Mark, Moment, Row, waterfall
from recallscope.telemetry.explain.words import duration, moment, percent, printable
from recallscope.telemetry.read.recorded import RecordedTurn

__all__ = ["page_of", "svg_of"]

WIDTH: Final = 960
LABELS: Final = 230
RIGHT: Final = 70
ROW_HEIGHT: Final = 26
BAR_HEIGHT: Final = 14
TOP: Final = 26
TICKS: Final = 5
LEAST_BAR: Final = 2.0

_SYMBOLS: Final = {
    Mark.BEGIN: "B",
    Mark.FAST: "F",
    Mark.SETTLED: "S",
    Mark.DELIVERED: "D",
    Mark.ROLLED_BACK: "R",
    Mark.SKIPPED: "x",
    Mark.CLOSED: "C",
}

_STYLE: Final = """
:root { color-scheme: light dark; --ink: #1b1f24; --dim: #59636e; --paper: #ffffff; --line: #d1d9e0;
  --turn: #59636e; --recall: #0b7285; --wait: #c92a2a; --selector: #862e9c; --model: #1864ab; --tool: #b36b00;
  --backoff: #c92a2a; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8eb; --dim: #9aa4af; --paper: #14171b; --line: #3a424b;
  --turn: #9aa4af; --recall: #3bc9db; --wait: #ff8787; --selector: #da77f2; --model: #74c0fc; --tool: #ffc078;
  --backoff: #ff8787; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
  max-width: 62rem; padding: 0 1rem; }
h1 { font-size: 1.25rem; margin: 0; overflow-wrap: anywhere; } .place { color: var(--dim); margin: .2rem 0 1.2rem; }
dl { display: grid; grid-template-columns: 6rem 1fr; gap: .35rem 1rem; margin: 0 0 1.5rem; }
dt { font-weight: 600; } dd { margin: 0; overflow-wrap: anywhere; }
svg { width: 100%; height: auto; } text { fill: var(--ink); font: 12px system-ui, sans-serif; }
text.dim { fill: var(--dim); } line { stroke: var(--line); }
table { border-collapse: collapse; margin: 0 0 1.5rem; } td, th { text-align: left; padding: .15rem .9rem .15rem 0;
  vertical-align: top; } td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
h2 { font-size: 1rem; margin: 1.5rem 0 .4rem; }
.turn { fill: var(--turn); } .recall { fill: var(--recall); } .wait { fill: var(--wait); }
.selector { fill: var(--selector); } .model { fill: var(--model); } .tool { fill: var(--tool); }
.backoff { fill: var(--backoff); } .mark circle { fill: var(--paper); stroke: var(--recall); stroke-width: 1.5; }
.mark text { fill: var(--recall); font-size: 10px; font-weight: 700; text-anchor: middle; }
@media print { body { margin: 0; max-width: none; } svg, table { break-inside: avoid; } }
"""


def page_of(turn: RecordedTurn) -> str:
    """Return the page for `turn`."""
    verdict = judge(turn)
    rows = waterfall(turn)
    facts = "".join(
        f"<dt>{_safe(label)}</dt><dd>{_safe(text)}</dd>" for label, text in sentences(turn, verdict).labelled
    )
    title = _safe(title_of(turn))
    trace = f"<br/>trace {_safe(turn.trace_id)}" if turn.trace_id is not None else ""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f'<h1>{title}</h1>\n<p class="place">{_safe(place_of(turn))}{trace}</p>\n<dl>{facts}</dl>\n'
        f"{svg_of(rows, turn.length)}\n{_moments(rows)}{_parts(verdict)}</body>\n</html>\n"
    )


def svg_of(rows: Sequence[Row], length: float) -> str:
    """Return the waterfall of `rows` over `length` seconds as SVG that stands in a page."""
    height = TOP + ROW_HEIGHT * len(rows) + 6
    parts = [f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="Waterfall of the turn">']
    for number in range(TICKS + 1):
        at = length * number / TICKS
        x = _x(at, length)
        parts.append(f'<line x1="{x:.1f}" y1="{TOP - 6}" x2="{x:.1f}" y2="{height}"/>')
        anchor = "end" if number == TICKS else "middle"
        parts.append(f'<text class="dim" x="{x:.1f}" y="14" text-anchor="{anchor}">{_safe(duration(at))}</text>')
    for number, row in enumerate(rows):
        parts.extend(_row(row, length, TOP + ROW_HEIGHT * number))
    parts.append("</svg>")
    return "".join(parts)


def _row(row: Row, length: float, top: float) -> Iterable[str]:
    end = row.ended if row.ended is not None else length
    start_x, end_x = _x(row.started, length), _x(end, length)
    took = (
        duration(max(0.0, end - row.started)) if row.ended is not None else f">{duration(max(0.0, end - row.started))}"
    )
    told = f"{row.label}: {took}" + (f", {row.note}" if row.note else "")
    middle = top + ROW_HEIGHT / 2
    tall = BAR_HEIGHT if row.kind not in {Kind.TURN, Kind.RECALL} else BAR_HEIGHT / 3
    label = printable(row.label)
    label = label if len(label) <= MOST_LABEL - 2 * row.depth else label[: MOST_LABEL - 2 * row.depth - 1] + "…"
    yield f"<g><title>{_safe(told)}</title>"
    yield f'<text x="{4 + 12 * row.depth}" y="{middle + 4:.1f}">{_safe(label)}</text>'
    yield (
        f'<rect class="{row.kind.value}" x="{start_x:.1f}" y="{middle - tall / 2:.1f}" '
        f'width="{max(end_x - start_x, LEAST_BAR):.1f}" height="{tall:.1f}" rx="2"/>'
    )
    yield f'<text class="dim" x="{WIDTH - 2}" y="{middle + 4:.1f}" text-anchor="end">{_safe(took)}</text></g>'
    last = float("-inf")
    for one in row.moments:
        last = max(_x(one.at, length), last + 15)  # marks stand beside each other
        yield (
            f'<g class="mark"><title>{_safe(f"{one.mark} {moment(one.at)}: {one.text}")}</title>'
            f'<circle cx="{last:.1f}" cy="{middle:.1f}" r="7"/>'
            f'<text x="{last:.1f}" y="{middle + 3.5:.1f}">{_SYMBOLS[one.mark]}</text></g>'
        )


MOST_LABEL: Final = 32
"""Characters of a label that fit before the bars."""


def _x(at: float, length: float) -> float:
    share = min(max(at / length, 0.0), 1.0) if length > 0 else 0.0
    return LABELS + share * (WIDTH - LABELS - RIGHT)


def _moments(rows: Sequence[Row]) -> str:
    moments = [one for row in rows for one in row.moments]
    if not moments:
        return ""
    lines = "".join(_moment(one) for one in moments)
    return f"<h2>What recall did</h2><table>{lines}</table>\n"


def _moment(one: Moment) -> str:
    return (
        f'<tr><td>{_SYMBOLS[one.mark]}</td><td class="number">{_safe(moment(one.at))}</td>'
        f"<td>{_safe(str(one.mark))}</td><td>{_safe(one.text)}</td></tr>"
    )


def _parts(verdict: Verdict) -> str:
    lines = "".join(
        f'<tr><td>{_safe(part.phase.value)}</td><td class="number">{_safe(duration(part.seconds))}</td>'
        f'<td class="number">{_safe(percent(part.share))}</td></tr>'
        for part in verdict.parts
    )
    return f"<h2>Where the time went</h2><table>{lines}</table>\n"


def _safe(text: str) -> str:
    return escape(printable(text))
