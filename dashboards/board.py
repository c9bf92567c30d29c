"""A dashboard as its module states it, and the one pass that makes it what Grafana reads.

Everything that all dashboards have alike is set here: uids, ids, places on the grid, data sources, variables, links,
annotations, refresh. A module states rows of panels, and that is all.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Final

from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.builders import prometheus, tempo
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common as shared
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models import prometheus as prometheus_models
from grafana_foundation_sdk.models import tempo as tempo_models
from grafana_foundation_sdk.models.prometheus import PromQueryFormat, QueryEditorMode
from grafana_foundation_sdk.models.tempo import SearchTableType

from recallscope.dashboards import config
from recallscope.dashboards.panels import Bars, Curve, Heat, Link, Matrix, Number, Panel, Rows, Target, Traces
from recallscope.telemetry import names
from recallscope.telemetry.queries import collector, selector, turns

__all__ = ["Board", "Row", "as_json", "assemble"]

GRID: Final = 24
PROMETHEUS: Final = "prometheus"
TEMPO: Final = "tempo"


@dataclass(frozen=True, slots=True)
class Row:
    """A heading and the panels below it, left to right."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """One dashboard: `name` makes its file and its uid, `description` says what question it answers."""

    name: str
    title: str
    description: str
    rows: tuple[Row, ...]
    by_agent: bool = False
    by_policy: bool = False
    with_traces: bool = False
    with_collector: bool = False


def assemble(board: Board) -> models.Dashboard:
    """Make the dashboard that Grafana reads."""
    dashboard = builders.Dashboard(board.title).uid(config.uid(board.name)).description(board.description)
    dashboard.tags([config.TAG]).readonly().refresh(config.REFRESH).time(config.TIME_FROM, "now").timezone("browser")
    dashboard.tooltip(models.DashboardCursorSync.CROSSHAIR)
    dashboard.variables(list(_variables(board))).links(list(_links())).annotation(_versions())
    made = dashboard.build()
    made.panels = list(_placed(board))
    return made


def as_json(board: Board) -> str:
    """Return the dashboard as text, in the order in which Grafana writes it."""
    return json.dumps(assemble(board), cls=JSONEncoder, indent=2, ensure_ascii=False, sort_keys=True) + "\n"


def _variables(
    board: Board,
) -> Iterator[builders.DatasourceVariable | builders.QueryVariable | builders.TextBoxVariable]:
    yield builders.DatasourceVariable(config.DATASOURCE).label("Prometheus").type(PROMETHEUS)
    if board.with_traces:
        yield builders.DatasourceVariable(config.TRACES).label("Tempo").type(TEMPO)
    yield _one_job()
    yield _several(selector.INSTANCE, "Instance", turns.process_series(f'{selector.JOB}="${selector.JOB}"'))
    if board.by_agent:
        yield _several(names.AGENT, "Agent", turns.turn_series(selector.variables()))
    if board.by_policy:
        yield _several(names.POLICY, "Policy", turns.turn_series(selector.variables()))
    if board.with_collector:
        yield _queried(selector.COLLECTOR, "Collector", collector.up_series(), selector.JOB)
    runbooks = builders.TextBoxVariable(config.RUNBOOKS_VARIABLE).label("Runbooks").default_value(config.RUNBOOKS)
    runbooks.description("Where runbooks.md can be read; its links are made from this address.")
    runbooks.current(models.VariableOption(text=config.RUNBOOKS, value=config.RUNBOOKS))
    yield runbooks.hide(models.VariableHide.HIDE_VARIABLE)


def _one_job() -> builders.QueryVariable:
    """Choose one job: series may reach a Prometheus on two ways, and a sum over both would count double."""
    variable = _queried(selector.JOB, "Job", turns.process_series())
    return variable.description("One way into the Prometheus: scraped, or written by the collector. Never both.")


def _several(name: str, label: str, series: str) -> builders.QueryVariable:
    everything = models.VariableOption(selected=True, text=["All"], value=["$__all"])
    return (
        _queried(name, label, series)
        .multi(multi=True)
        .include_all(include_all=True)
        .all_value(".*")
        .current(everything)
    )


def _queried(name: str, label: str, series: str, wanted: str = "") -> builders.QueryVariable:
    query = selector.label_values(series, wanted or name)
    variable = builders.QueryVariable(name).label(label).datasource(_source(PROMETHEUS, config.DATASOURCE))
    variable.query({"query": query, "refId": "PrometheusVariableQueryEditor-VariableQuery", "qryType": 1})
    variable.definition(query).sort(models.VariableSort.ALPHABETICAL_ASC)
    return variable.refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)


def _links() -> Iterator[builders.DashboardLink]:
    others = builders.DashboardLink("Recallscope").type(models.DashboardLinkType.DASHBOARDS).tags([config.TAG])
    others.as_dropdown(as_dropdown=False).include_vars(include_vars=True).keep_time(keep_time=True)
    yield others.tooltip("The other dashboards, with this time range and these variables")
    runbooks = builders.DashboardLink("Runbooks").type(models.DashboardLinkType.LINK).icon("doc")
    runbooks.url(f"${{{config.RUNBOOKS_VARIABLE}}}").target_blank(target_blank=True)
    yield runbooks.tooltip("What each alert means and what to do")


def _versions() -> builders.AnnotationQuery:
    """Mark the moments when a version appeared."""
    annotation = builders.AnnotationQuery().name("New version").datasource(_source(PROMETHEUS, config.DATASOURCE))
    annotation.enable(enable=True).icon_color("blue").expr(turns.versions(selector.variables()))
    return annotation.title_format("version {{service_version}}").step("60s")


def _placed(board: Board) -> Iterator[models.Panel | models.RowPanel]:
    """Place rows and panels from left to right; a panel that does not fit begins a line."""
    number, x, y = 0, 0, 0
    for row in board.rows:
        number += 1
        yield models.RowPanel(
            id_val=number, title=row.title, collapsed=False, grid_pos=models.GridPos(x=0, y=y, w=GRID, h=1), panels=[]
        )
        x, y, line = 0, y + 1, 0
        for panel in row.panels:
            number += 1
            if x + panel.wide > GRID:
                x, y, line = 0, y + line, 0
            yield _dressed(panel, number, models.GridPos(x=x, y=y, w=panel.wide, h=panel.high))
            x, line = x + panel.wide, max(line, panel.high)
        y += line


def _dressed(panel: Panel, number: int, place: models.GridPos) -> models.Panel:
    """Give a panel what its kind does not know."""
    made = panel.drawn()
    made.id_val, made.title, made.description, made.grid_pos = number, panel.title, _described(panel), place
    made.interval = config.LEAST_STEP if any(map(_per_step, panel.targets)) else None
    made.datasource = (
        _source(TEMPO, config.TRACES) if isinstance(panel, Traces) else _source(PROMETHEUS, config.DATASOURCE)
    )
    made.targets = [_search(panel)] if isinstance(panel, Traces) else list(_queries(panel))
    made.links = [_link(link) for link in panel.links] or None
    fields = made.field_config = made.field_config or models.FieldConfigSource()
    defaults = fields.defaults = fields.defaults or models.FieldConfig()
    defaults.unit, defaults.min_val, defaults.max_val = panel.unit, panel.least, panel.most
    defaults.decimals = panel.decimals
    defaults.thresholds = models.ThresholdsConfig(
        mode=models.ThresholdsMode.ABSOLUTE,
        steps=[models.Threshold(None, panel.base), *(models.Threshold(at.value, at.color) for at in panel.thresholds)],
    )
    defaults.color = models.FieldColor(mode=_coloring(panel))
    defaults.links = [_link(link) for link in panel.row_links] or None
    return made


def _described(panel: Panel) -> str:
    """Return the panel's description; one with exemplars says where they lead."""
    sampled = any(target.exemplar for target in panel.targets)
    return f"{panel.description} {config.SAMPLED}" if sampled else panel.description


def _per_step(target: Target) -> bool:
    return selector.EACH in target.expr


def _coloring(panel: Panel) -> models.FieldColorModeId:
    by_value = isinstance(panel, Number | Bars | Matrix | Rows)
    return models.FieldColorModeId.THRESHOLDS if by_value else models.FieldColorModeId.PALETTE_CLASSIC


def _queries(panel: Panel) -> Iterator[prometheus_models.Dataquery]:
    form = PromQueryFormat.TIME_SERIES
    if isinstance(panel, Heat):
        form = PromQueryFormat.HEATMAP
    elif isinstance(panel, Rows | Matrix | Curve):
        form = PromQueryFormat.TABLE
    for letter, target in zip(ascii_uppercase, panel.targets, strict=False):
        query = prometheus.Dataquery().ref_id(letter).expr(target.expr).format(form).editor_mode(QueryEditorMode.CODE)
        query.datasource(_source(PROMETHEUS, config.DATASOURCE)).legend_format(target.legend or "__auto")
        if target.instant:
            query.instant()
        else:
            query.range().exemplar(target.exemplar)
        if _per_step(target):
            query.interval(config.LEAST_STEP)
        yield query.build()


def _search(panel: Traces) -> tempo_models.Dataquery:
    query = tempo.Dataquery().ref_id("A").query_type("traceql").query(panel.query).limit(panel.limit)
    query.datasource(_source(TEMPO, config.TRACES)).table_type(SearchTableType.SPANS)
    return query.build()


def _link(link: Link) -> models.DashboardLink:
    return models.DashboardLink(
        title=link.title, url=link.url, type_val=models.DashboardLinkType.LINK, target_blank=True
    )


def _source(kind: str, variable: str) -> shared.DataSourceRef:
    return shared.DataSourceRef(type_val=kind, uid=f"${{{variable}}}")
