"""The rules of Grafana's dashboard linter, on the committed JSON; exceptions stand here with their reasons."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from recallscope.dashboards.alerting.config import COMMITTED
from recallscope.dashboards.config import DATASOURCE, LEAST_STEP, SAMPLED, SCRAPE, SLOW_TURN_SHARE, TRACES
from recallscope.dashboards.reading import Dashboard, PanelRead, Query
from recallscope.telemetry.names import METRICS

LONG_WINDOWS = {
    "turns / Burn rate of the error budget": {burn.long for burn in COMMITTED.slow_turns.burns[:2]},
}
"""Panels along time with windows of their own: those of the alert, which do not depend on what a graph shows."""

SEVERAL = re.compile(r"\btopk\(\d+, ")
"""What chooses among series: at one moment, else each step of a graph chooses others."""


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
    """target-rate-interval: a window is made for the step of a graph, or for a single figure the whole range."""
    wrong = [
        (panel.name, window)
        for panel, query in _queries(dashboards, "prometheus")
        for window in re.findall(r"\[([^\]]*)\](?! @ end\(\))", query.text)
        if window not in ({"$__range"} if query.instant else _windows(panel))
    ]

    assert wrong == []


def _windows(panel: PanelRead) -> set[str]:
    return {"$__rate_interval", "$__interval"} | LONG_WINDOWS.get(f"{panel.dashboard} / {panel.title}", set())


def test_what_is_counted_per_step_counts_in_one(dashboards: tuple[Dashboard, ...]) -> None:
    """Heat maps, and panels that say `in each step`: windows as long as a step, with enough scrapes for a count."""
    panels = [panel for panel in _panels(dashboards) if not all(query.instant for query in panel.queries)]
    said = {panel.name for panel in panels if panel.kind == "heatmap" or "in each step" in panel.json["description"]}
    asked = {panel.name for panel in panels if any("$__interval" in query.text for query in panel.queries)}

    assert said == asked
    assert len(said) == 7
    for panel in panels:
        steps = {panel.json.get("interval"), *(target.get("interval") for target in panel.json["targets"])}
        assert steps == {LEAST_STEP if panel.name in said else None}, panel.name
    assert _seconds(LEAST_STEP) >= 4 * _seconds(SCRAPE)


def _seconds(window: str) -> int:
    return int(window[:-1]) * {"s": 1, "m": 60}[window[-1]]


def test_a_graph_of_the_first_ten_shows_ten(dashboards: tuple[Dashboard, ...]) -> None:
    """Along time, what is first is decided once, over the whole range: chosen anew at each step it would be dozens."""
    chosen = [
        (panel.name, query.text)
        for panel, query in _queries(dashboards, "prometheus")
        if SEVERAL.search(query.text) and not query.instant
    ]

    assert len(chosen) == 3
    for name, text in chosen:
        shown, choice = text.split(" topk(10, ")
        assert shown.endswith(" and on (gen_ai_tool_name)"), name
        assert re.findall(r"\[[^\]]*\](?: @ end\(\))?", choice) == ["[$__range] @ end()"], name


def test_agents_and_policies_are_chosen_wherever_series_have_them(dashboards: tuple[Dashboard, ...]) -> None:
    """A series with the label `agent` or `policy` is asked for by the variable of that name."""
    labels = {
        f"{metric.prometheus}{suffix}": {"agent", "policy"} & set(metric.labels)
        for metric in METRICS
        for suffix in ("", "_bucket", "_count", "_sum")
    }
    missing = [
        (f"{panel.dashboard} / {panel.title}", label)
        for panel, query in _queries(dashboards, "prometheus")
        for series, braces in re.findall(r"\b(\w+)\{([^}]*)\}", query.text)
        for label in sorted(labels.get(series, set()))
        if f'{label}=~"${label}"' not in braces
    ]

    assert missing == [("slow-turn / Seconds of a turn by phase", "policy")]  # phases have none to divide by


def test_a_panel_has_the_threshold_of_its_alert(dashboards: tuple[Dashboard, ...]) -> None:
    """Where a panel shows what an alert asks for, red begins, or ends, where the alert does."""
    asked = {
        "turns / Slow turns": SLOW_TURN_SHARE,
        "turns / Oldest running turn": COMMITTED.turn_age,
        "turns / Burn rate of the error budget": COMMITTED.slow_turns.burns[0].factor,
        "slow-turn / Oldest running turn": COMMITTED.turn_age,
        "slow-turn / Event loop lag": COMMITTED.loop_lag,
        "recall / Delivery": COMMITTED.delivery.target,
        "recall / Hold": COMMITTED.recall_holds.target,
        "recall / Catalog age": COMMITTED.catalog_age,
        "telemetry-health / Event loop lag, p99": COMMITTED.loop_lag,
        "telemetry-health / Lost": COMMITTED.telemetry_lost.above,
        "telemetry-health / Queue": COMMITTED.collector_queue,
    }
    shown = {
        f"{panel.dashboard} / {panel.title}": panel.json["fieldConfig"]["defaults"]["thresholds"]["steps"][-1]["value"]
        for panel in _panels(dashboards)
    }

    assert {name: shown[name] for name in asked} == asked


def test_exemplars_say_that_most_traces_were_not_kept(dashboards: tuple[Dashboard, ...]) -> None:
    """A panel with dots says where they lead, and no other does."""
    dotted = {panel.name for panel, query in _queries(dashboards, "prometheus") if query.exemplar}

    assert {panel.name for panel in _panels(dashboards) if panel.json["description"].endswith(SAMPLED)} == dotted


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
    """target-counter-agg: a counter stands in a rate, an increase, or a difference of two moments, never alone."""
    within = "".join(rf"(?<!{function}\()" for function in ("rate", "increase", "last_over_time", "resets"))
    counter = re.compile(within + r"\b\w+(?:_total|_bucket|_count|_sum)\{[^}]*\}(?! offset )")

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
