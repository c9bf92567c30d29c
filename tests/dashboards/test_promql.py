"""Every PromQL expression of dashboards and rules parses, and asks for nothing that a real scrape does not have."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import promql_parser as promql
import pytest
import yaml

from recallscope.dashboards.reading import Dashboard, everything, filled

VALUES = everything("agents", step="1m", window="1h")
EVERY_SCRAPE = {
    "otel_metric_overflow": "only a metric with too many label values has it",
}
"""Labels that an ordinary scrape need not have."""

MARK = "alerts"
"""The label that tells rules which job to leave out: of two ways to the same turns one has it, and no other series."""


def _expressions(dashboards: tuple[Dashboard, ...], shipped: Path) -> Iterator[tuple[str, str]]:
    for dashboard in dashboards:
        for panel in dashboard.panels:
            yield from (
                (panel.name, filled(query.text, VALUES)) for query in panel.queries if query.language == "prometheus"
            )
        for note in dashboard.json["annotations"]["list"]:
            yield f"{dashboard.name} / {note['name']}", filled(note["expr"], VALUES)
    for rule in _rules(shipped):
        yield rule.get("alert") or rule["record"], rule["expr"]


def _rules(shipped: Path) -> Iterator[Mapping[str, Any]]:
    for path in sorted((shipped / "rules").glob("*.y*ml")):
        for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]:
            yield from group["rules"]


def _series(expression: str) -> Iterator[promql.VectorSelector]:
    found: list[promql.VectorSelector] = []

    def visit(node: promql.Expr) -> None:
        if isinstance(node, promql.MatrixSelector):
            found.append(node.vector_selector)
        elif isinstance(node, promql.VectorSelector):
            found.append(node)

    promql.walk(promql.parse(expression), pre_visit=visit)
    return iter(found)


def _labels_asked(expression: str) -> set[str]:
    """Return the labels that an expression groups or matches by, outside of braces."""
    labels: set[str] = set()

    def visit(node: promql.Expr) -> None:
        if isinstance(node, promql.AggregateExpr) and node.modifier is not None:
            labels.update(node.modifier.labels)
        elif isinstance(node, promql.BinaryExpr) and node.modifier is not None:
            labels.update(node.modifier.matching.labels if node.modifier.matching is not None else ())
            labels.update(node.modifier.group_labels or ())

    promql.walk(promql.parse(expression), pre_visit=visit)
    return labels


def _labels_made(expression: str) -> set[str]:
    """Return the labels that an expression makes itself, by `label_replace`."""
    labels: set[str] = set()

    def visit(node: promql.Expr) -> None:
        if isinstance(node, promql.Call) and node.func.name == "label_replace":
            target = node.args[1]
            assert isinstance(target, promql.StringLiteral)
            labels.add(target.val)

    promql.walk(promql.parse(expression), pre_visit=visit)
    return labels


def test_every_expression_parses(dashboards: tuple[Dashboard, ...], shipped: Path) -> None:
    """target-promql: with the variables filled in, each is PromQL."""
    refused: list[str] = []
    for name, expression in _expressions(dashboards, shipped):
        try:
            promql.parse(expression)
        except ValueError as error:
            refused.append(f"{name}: {error}: {expression}")

    assert refused == []


def test_every_series_and_label_is_one_that_a_scrape_exposed(
    dashboards: tuple[Dashboard, ...], shipped: Path, exposed: Mapping[str, frozenset[str]]
) -> None:
    """No name of a metric, no label in braces, no label to group by that a real process does not expose."""
    recorded = {rule["record"] for rule in _rules(shipped) if "record" in rule}
    unknown: list[str] = []
    for name, expression in _expressions(dashboards, shipped):
        available = _labels_made(expression)
        for series in _series(expression):
            labels = _labels_of(series, recorded, exposed)
            if labels is None:
                unknown.append(f"{name}: there is no series {series.name}")
                continue
            available |= labels
            asked = {matcher.name for matcher in series.matchers.matchers}
            unknown += [f"{name}: {series.name} has no label {label}" for label in sorted(asked - labels - {MARK})]
        unknown += [f"{name}: no series has a label {label}" for label in sorted(_labels_asked(expression) - available)]

    assert unknown == []


def test_every_legend_names_labels_that_are_there(
    dashboards: tuple[Dashboard, ...], exposed: Mapping[str, frozenset[str]]
) -> None:
    """A legend whose label is missing would be empty."""
    missing = [
        f"{panel.name}: {query.legend}"
        for dashboard in dashboards
        for panel in dashboard.panels
        for query in panel.queries
        if query.language == "prometheus"
        for label in re.findall(r"\{\{(\w+)\}\}", query.legend)
        if label not in _labels_made(filled(query.text, VALUES))
        and not any(
            label in (_labels_of(series, set(), exposed) or ()) for series in _series(filled(query.text, VALUES))
        )
    ]

    assert missing == []


def test_the_check_finds_what_it_is_for(exposed: Mapping[str, frozenset[str]]) -> None:
    """The golden process exposes names and labels as PromQL spells them, and nothing that it does not have."""
    assert "policy" in exposed["recallscope_recall_turns_total"]
    assert "le" in exposed["gen_ai_execute_tool_duration_seconds_bucket"]
    assert "gen_ai_tool_name" in exposed["gen_ai_execute_tool_duration_seconds_bucket"]
    assert "recallscope_recall_turns" not in exposed
    assert _labels_asked("sum by (a) (x) / on (b) group_left (c) y") == {"a", "b", "c"}
    with pytest.raises(ValueError, match="parenthesis"):
        promql.parse("sum(")


def _labels_of(
    series: promql.VectorSelector, recorded: set[str], exposed: Mapping[str, frozenset[str]]
) -> frozenset[str] | None:
    """Return the labels that a series may have; None where there is no such series."""
    if series.name is None:
        return frozenset(label for labels in exposed.values() for label in labels) | EVERY_SCRAPE.keys()
    if series.name in recorded:
        return frozenset(label for labels in exposed.values() for label in labels)
    return exposed.get(series.name)
