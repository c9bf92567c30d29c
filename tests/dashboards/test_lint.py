"""The rules of Grafana's dashboard linter, on the committed JSON; exceptions stand here with their reasons."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from recallscope.dashboards.config import DATASOURCE, TRACES
from recallscope.dashboards.reading import Dashboard, PanelRead, Query

LONG_WINDOWS = {
    "turns": "a burn rate is asked over windows of its own: they do not depend on what a graph shows",
}
"""Dashboards in which a query along time may use a fixed window."""


def _panels(dashboards: tuple[Dashboard, ...]) -> Iterator[PanelRead]:
    return (panel for dashboard in dashboards for panel in dashboard.panels)


def _queries(dashboards: tuple[Dashboard, ...], language: str) -> Iterator[tuple[PanelRead, Query]]:
    return ((panel, query) for panel in _panels(dashboards) for query in panel.queries if query.language == language)


def _variables(dashboard: Dashboard) -> dict[str, dict[str, Any]]:
    return {variable["name"]: variable for variable in dashboard.json["templating"]["list"]}


def test_the_data_source_is_a_variable(dashboards: tuple[Dashboard, ...]) -> None:
    """template-datasource: each dashboard chooses its Prometheus, and its Tempo if it shows traces, by variable."""
    for dashboard in dashboards:
        kinds = {"datasource": "prometheus"} | ({"traces": "tempo"} if _has_traces(dashboard) else {})
        found = {
            name: variable["query"]
            for name, variable in _variables(dashboard).items()
            if variable["type"] == "datasource"
        }
        assert (dashboard.name, found) == (dashboard.name, kinds)


def test_every_panel_and_query_uses_that_variable(dashboards: tuple[Dashboard, ...]) -> None:
    """panel-datasource: no panel, query or variable names a data source of its own."""
    allowed = ({"type": "prometheus", "uid": f"${{{DATASOURCE}}}"}, {"type": "tempo", "uid": f"${{{TRACES}}}"})
    used = [
        *((panel.name, panel.json["datasource"]) for panel in _panels(dashboards)),
        *((panel.name, target["datasource"]) for panel in _panels(dashboards) for target in panel.json["targets"]),
        *(
            (f"{dashboard.name} ${name}", variable["datasource"])
            for dashboard in dashboards
            for name, variable in _variables(dashboard).items()
            if variable["type"] == "query"
        ),
        *((dashboard.name, note["datasource"]) for dashboard in dashboards for note in _annotations(dashboard)),
    ]

    assert [name for name, source in used if source not in allowed] == []


def test_job_and_instance_are_variables(dashboards: tuple[Dashboard, ...]) -> None:
    """template-job, template-instance: `instance` takes any number, `job` one: two would count every turn twice."""
    for dashboard in dashboards:
        variables = _variables(dashboard)
        job, instance = variables["job"], variables["instance"]
        assert (job["type"], job.get("multi", False), job.get("includeAll", False)) == ("query", False, False)
        assert (instance["type"], instance["multi"], instance["includeAll"], instance["allValue"]) == (
            "query",
            True,
            True,
            ".*",
        )


def test_variables_follow_the_time_range(dashboards: tuple[Dashboard, ...]) -> None:
    """template-on-time-change-reload: values that did not exist in the time range are not offered."""
    stale = [
        f"{dashboard.name} ${name}"
        for dashboard in dashboards
        for name, variable in _variables(dashboard).items()
        if variable["type"] == "query" and variable["refresh"] != 2
    ]

    assert stale == []


def test_each_variable_is_used_and_each_used_one_exists(dashboards: tuple[Dashboard, ...]) -> None:
    """No choice without an effect, no query with a hole in it."""
    built_in = re.compile(r"__\w+")
    for dashboard in dashboards:
        text = str([panel.json for panel in dashboard.panels]) + str(dashboard.json["links"])
        used = {name for pair in re.findall(r"\$(?:\{(\w+)[^}]*\}|(\w+))", text) for name in pair if name}
        assert {name for name in used if not built_in.fullmatch(name)} == set(_variables(dashboard)), dashboard.name


def test_every_panel_has_a_title_a_description_a_unit_and_queries(dashboards: tuple[Dashboard, ...]) -> None:
    """panel-title-description, panel-units, panel-no-targets: the description is a sentence or more."""
    poor = [
        panel.name
        for panel in _panels(dashboards)
        if not (
            panel.title
            and len(panel.json["description"].split()) > 4
            and panel.json["description"].endswith(".")
            and panel.json["fieldConfig"]["defaults"]["unit"]
            and panel.queries
        )
    ]

    assert poor == []


def test_queries_along_time_use_the_rate_interval(dashboards: tuple[Dashboard, ...]) -> None:
    """target-rate-interval: a window is a step of the graph, or for a single figure the whole range."""
    wrong = [
        (panel.name, window)
        for panel, query in _queries(dashboards, "prometheus")
        for window in re.findall(r"\[([^\]]*)\]", query.text)
        if window != ("$__range" if query.instant else "$__rate_interval")
        and not (panel.dashboard in LONG_WINDOWS and window in {"1h", "6h"})
    ]

    assert wrong == []


def test_every_series_is_of_one_job_and_the_chosen_instances(dashboards: tuple[Dashboard, ...]) -> None:
    """target-job, target-instance: each pair of braces begins with both."""
    wrong = [
        (panel.name, braces)
        for panel, query in _queries(dashboards, "prometheus")
        for braces in re.findall(r"\{([^}]*)\}", query.text)
        if not braces.startswith(('job="$job", instance=~"$instance"', 'job="$collector"'))
    ]

    assert wrong == []


def test_counters_are_asked_for_their_increase(dashboards: tuple[Dashboard, ...]) -> None:
    """target-counter-agg: a counter stands in a rate or an increase, never alone."""
    counter = re.compile(r"(?<!rate\()(?<!increase\()\b\w+(?:_total|_bucket|_count|_sum)\{")

    assert [panel.name for panel, query in _queries(dashboards, "prometheus") if counter.search(query.text)] == []


def test_no_dashboard_can_be_edited_in_the_browser(dashboards: tuple[Dashboard, ...]) -> None:
    """uneditable-dashboard: what is provisioned from files is changed in files."""
    assert [dashboard.name for dashboard in dashboards if dashboard.json["editable"]] == []


def test_dashboards_are_of_the_newest_classic_schema(dashboards: tuple[Dashboard, ...]) -> None:
    """Grafana 12 and 13 load it as it stands."""
    assert {dashboard.json["schemaVersion"] for dashboard in dashboards} == {42}


def test_ids_and_uids_are_unique(dashboards: tuple[Dashboard, ...]) -> None:
    """Uids among all dashboards, ids within each, letters within each panel; uids say what they name."""
    uids = [dashboard.json["uid"] for dashboard in dashboards]

    assert uids == [f"recallscope-{dashboard.name}" for dashboard in dashboards]
    assert max(map(len, uids)) <= 40
    for dashboard in dashboards:
        ids = [panel["id"] for panel in dashboard.json["panels"]]
        assert [number for number, times in Counter(ids).items() if times > 1] == []
    for panel in _panels(dashboards):
        assert len({query.ref for query in panel.queries}) == len(panel.queries), panel.name


def test_panels_do_not_overlap(dashboards: tuple[Dashboard, ...]) -> None:
    """Each cell of the grid belongs to one panel at most, and none lies beyond the 24 columns."""
    for dashboard in dashboards:
        cells = Counter(
            (place["x"] + x, place["y"] + y)
            for place in (panel["gridPos"] for panel in dashboard.json["panels"])
            for x in range(place["w"])
            for y in range(place["h"])
        )
        assert (max(x for x, _ in cells), max(cells.values())) == (23, 1), dashboard.name


def test_latency_panels_ask_for_exemplars(dashboards: tuple[Dashboard, ...]) -> None:
    """A quantile of seconds along time leads to the trace behind it; loop lag has none."""
    missing = [
        panel.name
        for panel, query in _queries(dashboards, "prometheus")
        if "histogram_quantile" in query.text
        and not query.instant
        and not query.exemplar
        and "loop_lag" not in query.text
    ]

    assert missing == []


def test_series_have_names(dashboards: tuple[Dashboard, ...]) -> None:
    """A legend is stated wherever one is shown: Grafana's own would spell out the whole query."""
    nameless = [
        panel.name
        for panel, query in _queries(dashboards, "prometheus")
        if panel.kind not in {"table", "trend"} and query.legend in {"", "__auto"}
    ]

    assert nameless == []


def _has_traces(dashboard: Dashboard) -> bool:
    return f"${{{TRACES}}}" in str([panel.json for panel in dashboard.panels])


def _annotations(dashboard: Dashboard) -> list[dict[str, Any]]:
    return dashboard.json["annotations"]["list"]
