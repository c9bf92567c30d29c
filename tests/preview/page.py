"""A dashboard as one page of HTML: panels on Grafana's grid, drawn from real answers, without a script from elsewhere.

Each panel carries what a test asks for: `data-panel`, `data-state` (`data`, `empty`, `error`, `traces`), `data-series`,
`data-exemplars`, and, set by the browser, `data-overflows`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from typing import Any

import charts
from answers import Answer, Series
from units import written

from recallscope.dashboards.reading import Dashboard, PanelRead

__all__ = ["COLUMN", "ROW", "draw"]

COLUMN, ROW, GAP = 60, 38, 4
TITLE, LEGEND, LINE = 30, 270, 17
STYLE = """
body { margin: 0; background: #f4f5f5; font: 12px system-ui, sans-serif; color: #24292e; position: relative }
.panel, .row { position: absolute; box-sizing: border-box; overflow: hidden }
.panel { background: #fff; border: 1px solid #dcdcdc; border-radius: 2px }
.row { font-size: 15px; font-weight: 600; padding: 8px 4px }
h3 { font-size: 13px; font-weight: 600; margin: 0; padding: 7px 8px 0; height: 22px; white-space: nowrap }
svg { display: block }
svg text { font: 10.5px system-ui, sans-serif; fill: #555 }
table { border-collapse: collapse; width: 100% }
td, th { padding: 3px 8px; text-align: left; border-bottom: 1px solid #eee }
td.n, th.n { text-align: right; white-space: nowrap } .chart { display: flex }
.legend { font-size: 11px; overflow-y: auto } .legend td { padding: 1px 4px; border: 0 }
.stat { display: flex; justify-content: space-around; align-items: center; height: calc(100% - 30px); flex-wrap: wrap }
.stat div { flex: none; margin: 0 6px }
.stat b { font-size: 22px; display: block; white-space: nowrap } .none { padding: 20px; color: #888 }
.swatch { display: inline-block; width: 12px; height: 3px; margin-right: 5px; vertical-align: middle }
.bar { background: #3274d9; height: 14px } code { font-size: 10.5px; color: #666 }
"""
MEASURE = """
for (const panel of document.querySelectorAll(".panel"))
  panel.dataset.overflows = panel.scrollWidth > panel.clientWidth || panel.scrollHeight > panel.clientHeight + 1;
"""


def draw(dashboard: Dashboard, answers: Mapping[str, Answer]) -> str:
    """Return the page of a dashboard; `answers` by the names of its panels."""
    panels = {panel.json["id"]: panel for panel in dashboard.panels}
    boxes: list[str] = []
    bottom = 0
    for place in dashboard.json["panels"]:
        grid = place["gridPos"]
        bottom = max(bottom, grid["y"] + grid["h"])
        if place["type"] == "row":
            boxes.append(f'<div class="row" style="{_style(grid)}">{escape(place["title"])}</div>')
        else:
            panel = panels[place["id"]]
            boxes.append(_panel(panel, answers[panel.name]))
    title = escape(dashboard.json["title"])
    height = bottom * ROW
    return (
        f'<!doctype html><meta charset="utf-8"><title>{title}</title><style>{STYLE}</style>'
        f'<body style="width: {24 * COLUMN}px; height: {height}px">{"".join(boxes)}<script>{MEASURE}</script>'
    )


def _style(grid: Mapping[str, int]) -> str:
    return (
        f"left: {grid['x'] * COLUMN + GAP / 2}px; top: {grid['y'] * ROW + GAP / 2}px; "
        f"width: {grid['w'] * COLUMN - GAP}px; height: {grid['h'] * ROW - GAP}px"
    )


def _panel(panel: PanelRead, answer: Answer) -> str:
    grid = panel.json["gridPos"]
    searches = [query.text for query in panel.queries if query.language == "tempo"]
    state = "traces" if searches else answer.state
    size = grid["w"] * COLUMN - GAP - 2, grid["h"] * ROW - GAP - TITLE - 2
    match state:
        case "error":
            inside = f'<div class="none">{escape(answer.error)}</div>'
        case "empty":
            inside = (
                f'<div class="none">{escape(panel.json["fieldConfig"]["defaults"].get("noValue", "No data"))}</div>'
            )
        case "traces":
            inside = f'<div class="none">Traces from Tempo:<br><code>{escape(searches[0])}</code></div>'
        case _:
            inside = _KINDS[panel.kind](panel.json, answer, *size)
    data = {
        "panel": panel.name,
        "kind": panel.kind,
        "state": state,
        "series": len(answer.series),
        "exemplars": len(answer.exemplars),
    }
    attributes = " ".join(f'data-{name}="{escape(str(value))}"' for name, value in data.items())
    return f'<div class="panel" {attributes} style="{_style(grid)}"><h3>{escape(panel.title)}</h3>{inside}</div>'


def _time(panel: Mapping[str, Any], answer: Answer, width: float, height: float) -> str:
    return _charted(panel, answer.series, width, height, lambda wide, high: charts.over_time(panel, answer, wide, high))


def _charted(
    panel: Mapping[str, Any],
    series: Sequence[Series],
    width: float,
    height: float,
    chart: Callable[[float, float], str],
) -> str:
    """Put the legend where the panel wants it: beside the chart, or below."""
    if panel["options"]["legend"]["placement"] == "bottom":
        legend = min(LINE * (1 + len(series)), height * 0.45)
        return chart(width, height - legend) + _legend(panel, series, width, legend)
    return f'<div class="chart">{chart(width - LEGEND, height)}{_legend(panel, series, LEGEND, height)}</div>'


def _heat(panel: Mapping[str, Any], answer: Answer, width: float, height: float) -> str:
    return charts.heat(panel, answer, width, height)


def _curve(panel: Mapping[str, Any], answer: Answer, width: float, height: float) -> str:
    series = charts.by_column(answer, panel["options"]["xField"].partition("\\")[2])
    return _charted(panel, series, width, height, lambda wide, high: charts.curve(panel, series, wide, high))


def _legend(panel: Mapping[str, Any], series: Sequence[Series], width: float, height: float) -> str:
    unit = panel["fieldConfig"]["defaults"]["unit"]
    lines = [
        f'<tr><td><span class="swatch" style="background: {charts.PALETTE[number % len(charts.PALETTE)]}"></span>'
        f'{escape(one.name)}</td><td class="n">{escape(written(one.last, unit))}</td>'
        f'<td class="n">{escape(written(max(value for _, value in one.points), unit))}</td></tr>'
        for number, one in enumerate(series)
    ]
    head = '<tr><td></td><td class="n">last</td><td class="n">max</td></tr>'
    style = f"width: {width}px; height: {height}px"
    return f'<div class="legend" style="{style}"><table>{head}{"".join(lines)}</table></div>'


def _stat(panel: Mapping[str, Any], answer: Answer, _width: float, _height: float) -> str:
    defaults = panel["fieldConfig"]["defaults"]
    named = len(answer.series) > 1
    cells = [
        f'<div><b style="color: {_color(defaults, one.last)}">{escape(_figure(defaults, one.last))}</b>'
        f"{escape(one.name) if named else ''}</div>"
        for one in answer.series
    ]
    return f'<div class="stat">{"".join(cells)}</div>'


def _bars(panel: Mapping[str, Any], answer: Answer, width: float, _height: float) -> str:
    defaults = panel["fieldConfig"]["defaults"]
    most = max(one.last for one in answer.series) or 1.0
    rows = [
        f'<tr><td>{escape(one.name)}</td><td style="width: {width * 0.5}px">'
        f'<div class="bar" style="width: {100 * one.last / most:.1f}%"></div></td>'
        f'<td class="n">{escape(_figure(defaults, one.last))}</td></tr>'
        for one in answer.series
    ]
    return f"<table>{''.join(rows)}</table>"


def _table(panel: Mapping[str, Any], answer: Answer, _width: float, _height: float) -> str:
    options = {step["id"]: step["options"] for step in panel["transformations"]}
    return _matrix(panel, answer, options) if "groupingToMatrix" in options else _rows(panel, answer, options)


def _matrix(panel: Mapping[str, Any], answer: Answer, options: Mapping[str, Any]) -> str:
    defaults, matrix = panel["fieldConfig"]["defaults"], options["groupingToMatrix"]
    row, column = matrix["rowField"], matrix["columnField"]
    cells = {(one.labels[row], one.labels[column]): one.last for one in answer.series}
    columns = sorted({name for _, name in cells})
    colored = defaults["custom"].get("cellOptions", {}).get("type") == "color-text"

    def cell(value: float | None) -> str:
        color = _color(defaults, value) if colored and value is not None else "inherit"
        text = "" if value is None else _figure(defaults, value)
        return f'<td class="n" style="color: {color}">{escape(text)}</td>'

    head = "".join(f'<th class="n">{escape(name)}</th>' for name in columns)
    lines = [
        f"<tr><td>{escape(name)}</td>{''.join(cell(cells.get((name, other))) for other in columns)}</tr>"
        for name in sorted({name for name, _ in cells})
    ]
    return f"<table><tr><th>{escape(row)}</th>{head}</tr>{''.join(lines)}</table>"


def _rows(panel: Mapping[str, Any], answer: Answer, options: Mapping[str, Any]) -> str:
    defaults, organized = panel["fieldConfig"]["defaults"], options["organize"]
    columns = sorted(organized["indexByName"], key=organized["indexByName"].__getitem__)
    series = [one for one in answer.series if one.last > 0] if "filterByValue" in options else list(answer.series)

    def line(one: Series) -> Iterator[str]:
        for name in columns:
            if name == "Value":
                yield f'<td class="n">{escape(_figure(defaults, one.last))}</td>'
            else:
                yield f"<td>{escape(one.labels.get(name, ''))}</td>"

    head = "".join(
        f"<th{' class=n' if name == 'Value' else ''}>{escape(organized['renameByName'][name])}</th>" for name in columns
    )
    ordered = sorted(series, key=lambda one: [one.labels.get(name, "") for name in columns])
    body = "".join(f"<tr>{''.join(line(one))}</tr>" for one in ordered)
    return f'<div style="overflow-y: auto; height: calc(100% - 30px)"><table><tr>{head}</tr>{body}</table></div>'


def _figure(defaults: Mapping[str, Any], value: float) -> str:
    return written(value, defaults["unit"], defaults.get("decimals"))


def _color(defaults: Mapping[str, Any], value: float) -> str:
    name = defaults["thresholds"]["steps"][0]["color"]
    for step in defaults["thresholds"]["steps"][1:]:
        if value >= step["value"]:
            name = step["color"]
    return charts.COLORS[name]


_KINDS: Mapping[str, Callable[[Mapping[str, Any], Answer, float, float], str]] = {
    "timeseries": _time,
    "heatmap": _heat,
    "trend": _curve,
    "stat": _stat,
    "bargauge": _bars,
    "table": _table,
}
