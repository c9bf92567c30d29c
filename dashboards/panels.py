"""The kinds of panels that the dashboards are made of: what each shows, and how it is drawn.

A kind knows its own settings; what all panels share is set in one place, `assemble`. Sizes are in Grafana's grid, which
is 24 wide.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from grafana_foundation_sdk.builders import bargauge, common, heatmap, stat, table, timeseries, trend
from grafana_foundation_sdk.models import common as shared
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models import heatmap as heatmaps

from recallscope.dashboards import config

__all__ = [
    "BLUE",
    "GREEN",
    "ORANGE",
    "RED",
    "TEXT",
    "Bars",
    "Curve",
    "Heat",
    "Lines",
    "Link",
    "Matrix",
    "Number",
    "Panel",
    "Rows",
    "Stacked",
    "Target",
    "Threshold",
    "Traces",
    "runbook_of",
]

BLUE: Final = "blue"
GREEN: Final = "green"
ORANGE: Final = "orange"
RED: Final = "red"
TEXT: Final = "text"

NARROW: Final = 9
"""Up to this width there is no room beside a chart."""

BOUND: Final = "le"
VALUE: Final = "Value"
"""The label of a histogram's bounds, and what Grafana calls the column of a query's figures."""


@dataclass(frozen=True, slots=True)
class Target:
    """One query in PromQL: along the time range, or with `instant` once, over the whole of it.

    `legend` names each series, with `{{label}}` for a label's value; `exemplar` asks for exemplars, too.
    """

    expr: str
    legend: str = ""
    instant: bool = False
    exemplar: bool = False


@dataclass(frozen=True, slots=True)
class Threshold:
    """From `value` on a figure has `color`."""

    value: float
    color: str


@dataclass(frozen=True, slots=True)
class Link:
    """A link with a title to a URL, which may hold Grafana's variables."""

    title: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """What every panel has.

    `description` tells how to read it; `base` is the colour below all thresholds; `links` stand in the panel's head,
    `row_links` at each figure; `wide` and `high` are its size.
    """

    title: str
    description: str
    unit: str = "short"
    targets: tuple[Target, ...] = ()
    wide: int = 12
    high: int = 8
    base: str = GREEN
    thresholds: tuple[Threshold, ...] = ()
    least: float | None = None
    most: float | None = None
    decimals: int | None = None
    links: tuple[Link, ...] = ()
    row_links: tuple[Link, ...] = ()

    @abstractmethod
    def drawn(self) -> models.Panel:
        """Return the panel as Grafana has it, with the settings of its kind alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines(Panel):
    """Lines over time; where a threshold begins there is a dashed line."""

    least: float | None = 0
    logarithmic: bool = False

    def drawn(self) -> models.Panel:
        """Draw thin lines without fill; a logarithmic axis has no zero."""
        panel = _over_time(self.wide).line_width(2).fill_opacity(0)
        if self.logarithmic:
            panel.scale_distribution(common.ScaleDistributionConfig().type(shared.ScaleDistribution.LOG).log(10))
        if self.thresholds:
            panel.thresholds_style(common.GraphThresholdsStyleConfig().mode(shared.GraphThresholdsStyleMode.DASHED))
        return panel.build()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stacked(Panel):
    """Areas one upon the other over time: the parts of a whole."""

    least: float | None = 0

    def drawn(self) -> models.Panel:
        """Draw filled areas, stacked."""
        stacking = common.StackingConfig().mode(shared.StackingMode.NORMAL).group("A")
        return _over_time(self.wide).line_width(1).fill_opacity(60).stacking(stacking).build()


@dataclass(frozen=True, slots=True, kw_only=True)
class Number(Panel):
    """One figure, or one for each series, coloured by its thresholds; `missing` stands where there is none."""

    wide: int = 4
    high: int = 4
    missing: str = "no data"

    def drawn(self) -> models.Panel:
        """Draw the last figure, without a graph behind it."""
        panel = stat.Panel().graph_mode(shared.BigValueGraphMode.NONE).color_mode(shared.BigValueColorMode.VALUE)
        panel.text_mode(shared.BigValueTextMode.AUTO).reduce_options(_last()).no_value(self.missing)
        return panel.build()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars(Panel):
    """One horizontal bar for each series."""

    base: str = BLUE
    least: float | None = 0

    def drawn(self) -> models.Panel:
        """Draw plain bars with the figure behind each."""
        panel = bargauge.Panel().orientation(shared.VizOrientation.HORIZONTAL).reduce_options(_last())
        panel.display_mode(shared.BarGaugeDisplayMode.BASIC).value_mode(shared.BarGaugeValueMode.TEXT)
        return panel.build()


@dataclass(frozen=True, slots=True, kw_only=True)
class Heat(Panel):
    """The buckets of a histogram over time, darker where more fell; exemplars are dots that lead to a trace."""

    def drawn(self) -> models.Panel:
        """Draw the buckets as they come, cells with nothing in them left white."""
        panel = heatmap.Panel().calculate(calculate=False).cell_gap(1).show_legend()
        panel.rows_frame(heatmap.RowsHeatmapOptions().layout(shared.HeatmapCellLayout.LE))
        panel.y_axis(heatmap.YAxisConfig().unit(self.unit).axis_placement(shared.AxisPlacement.LEFT))
        panel.color(
            heatmap.HeatmapColorOptions()
            .mode(heatmaps.HeatmapColorMode.SCHEME)
            .scheme("Blues")
            .scale(heatmaps.HeatmapColorScale.EXPONENTIAL)
            .exponent(0.5)
            .steps(64)
        )
        panel.filter_values(heatmap.FilterValueRange().le(1e-9)).exemplars_color("rgba(255,0,255,0.7)")
        return panel.build()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows(Panel):
    """A table with a row for each series: `columns` maps labels (and `Value`) to their headings, in that order."""

    columns: Mapping[str, str] = field(default_factory=dict[str, str])
    sort_by: str = ""
    above_zero: bool = False
    wide: int = 24

    def drawn(self) -> models.Panel:
        """Name and order the columns; leave out rows of 0 where that is wanted."""
        panel = table.Panel()
        if self.above_zero:
            panel.with_transformation(_only_above_zero())
        panel.with_transformation(_organized(self.columns))
        panel.sort_by([common.TableSortByFieldState().display_name(self.sort_by).desc(desc=False)])
        for label, heading in self.columns.items():
            if label != VALUE:
                panel.override_by_name(heading, [models.DynamicConfigValue("unit", "string")])
        return panel.build()


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix(Panel):
    """A table with one figure for each pair of the labels `row` and `column`."""

    row: str
    column: str
    base: str = TEXT
    wide: int = 8

    def drawn(self) -> models.Panel:
        """Turn the series of one query into rows and columns; where there is no figure the cell is empty."""
        options = {"rowField": self.row, "columnField": self.column, "valueField": VALUE, "emptyValue": "null"}
        corner = f"{self.row}\\{self.column}"
        panel = table.Panel().with_transformation(_transformation("groupingToMatrix", options))
        panel.sort_by([common.TableSortByFieldState().display_name(self.row).desc(desc=False)])
        if self.thresholds:
            panel.cell_options(shared.TableColorTextCellOptions())
        plain = [
            models.DynamicConfigValue("displayName", self.row),
            models.DynamicConfigValue("unit", "string"),
            models.DynamicConfigValue("custom.cellOptions", {"type": "auto"}),
        ]
        return panel.override_by_name(corner, plain).build()


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve(Panel):
    """Lines over the bounds of a histogram (`le`), one for each value of the label `column`; a logarithmic axis."""

    column: str
    bound_unit: str
    bound_name: str
    bounds: tuple[float, float]
    least: float | None = 0

    def drawn(self) -> models.Panel:
        """Turn the series of one query, without the endless bound, into numbers by bound."""
        bound = f"{BOUND}\\{self.column}"
        matrix = {"rowField": BOUND, "columnField": self.column, "valueField": VALUE, "emptyValue": "null"}
        numbers = {"conversions": [{"targetField": bound, "destinationType": "number"}]}
        panel = (
            trend.Panel()
            .x_field(bound)
            .line_width(2)
            .show_points(shared.VisibilityMode.ALWAYS)
            .legend(_legend(self.wide))
        )
        panel.with_transformation(_transformation("groupingToMatrix", matrix))
        panel.with_transformation(_transformation("convertFieldType", numbers))
        panel.with_transformation(_transformation("sortBy", {"sort": [{"field": bound, "desc": False}]}))
        axis = [
            models.DynamicConfigValue("displayName", self.bound_name),
            models.DynamicConfigValue("unit", self.bound_unit),
            models.DynamicConfigValue("min", self.bounds[0]),  # or the limits of the figures would hold for it, too
            models.DynamicConfigValue("max", self.bounds[1]),
            models.DynamicConfigValue("custom.scaleDistribution", {"type": "log", "log": 10}),
        ]
        if self.thresholds:
            panel.thresholds_style(common.GraphThresholdsStyleConfig().mode(shared.GraphThresholdsStyleMode.DASHED))
        return panel.override_by_name(bound, axis).build()


@dataclass(frozen=True, slots=True, kw_only=True)
class Traces(Panel):
    """The traces that a search in TraceQL found, newest first; each leads to its spans."""

    query: str
    limit: int = 20
    wide: int = 24

    def drawn(self) -> models.Panel:
        """Draw a table; the trace's id is a link that Grafana makes itself."""
        return table.Panel().build()


def runbook_of(alert: str) -> Link:
    """Link to what an alert means and what to do about it."""
    return Link(f"Runbook: {alert}", config.runbook(alert, base=f"${{{config.RUNBOOKS_VARIABLE}}}"))


def _over_time(wide: int) -> timeseries.Panel:
    panel = timeseries.Panel().show_points(shared.VisibilityMode.AUTO).span_nulls(span_nulls=False)
    tooltip = common.VizTooltipOptions().mode(shared.TooltipDisplayMode.MULTI).sort(shared.SortOrder.DESCENDING)
    return panel.legend(_legend(wide)).tooltip(tooltip)


def _legend(wide: int) -> common.VizLegendOptions:
    """Put the legend beside the chart, or below one that is narrow."""
    legend = common.VizLegendOptions().display_mode(shared.LegendDisplayMode.TABLE).show_legend(show_legend=True)
    return legend.placement(shared.LegendPlacement.BOTTOM if wide <= NARROW else shared.LegendPlacement.RIGHT).calcs(
        ["lastNotNull", "max"]
    )


def _last() -> common.ReduceDataOptions:
    return common.ReduceDataOptions().calcs(["lastNotNull"]).values(values=False)


def _transformation(name: str, options: object) -> models.DataTransformerConfig:
    return models.DataTransformerConfig(id_val=name, options=options)


def _only_above_zero() -> models.DataTransformerConfig:
    condition = {"fieldName": VALUE, "config": {"id": "greater", "options": {"value": 0}}}
    return _transformation("filterByValue", {"filters": [condition], "match": "all", "type": "include"})


def _organized(columns: Mapping[str, str]) -> models.DataTransformerConfig:
    return _transformation(
        "organize",
        {
            "excludeByName": {"Time": True},
            "indexByName": {label: place for place, label in enumerate(columns)},
            "renameByName": dict(columns),
        },
    )
