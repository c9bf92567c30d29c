"""Every matcher of a histogram's bounds fits both ways of writing them: `1.0` as scraped, `1` through a collector."""

import re
from collections.abc import Iterator
from pathlib import Path

import promql_parser as promql
import pytest
import yaml

from recallscope.dashboards.reading import Dashboard, everything, filled
from recallscope.telemetry import queries
from recallscope.telemetry.names import METRICS

SELECTOR, WINDOW = 'job="agents"', "1h"
BOUNDS = sorted({bound for metric in METRICS for bound in metric.buckets})
TWO_FORMS = [bound for bound in BOUNDS if float(bound).is_integer()]


def _matches(matcher: promql.Matcher, text: str) -> bool:
    """Say what a Prometheus says; its regular expressions match whole values."""
    match matcher.op:
        case promql.MatchOp.Equal:
            return matcher.value == text
        case promql.MatchOp.NotEqual:
            return matcher.value != text
        case promql.MatchOp.Re:
            return re.fullmatch(matcher.value, text) is not None
        case _:
            return re.fullmatch(matcher.value, text) is None


def _unequal(expression: str) -> list[str]:
    """Return the matchers of `le` that take a bound in one form and not in the other."""
    found: list[promql.Matcher] = []

    def visit(node: promql.Expr) -> None:
        series = node.vector_selector if isinstance(node, promql.MatrixSelector) else node
        if isinstance(series, promql.VectorSelector):
            found.extend(matcher for matcher in series.matchers.matchers if matcher.name == "le")

    promql.walk(promql.parse(expression), pre_visit=visit)
    return [
        f"{bound:g}: {matcher.name} {matcher.value} in {expression}"
        for matcher in found
        for bound in TWO_FORMS
        if _matches(matcher, f"{bound:.1f}") != _matches(matcher, f"{bound:.0f}")
    ]


def _asked(dashboards: tuple[Dashboard, ...], shipped: Path) -> Iterator[str]:
    values = everything("agents", step="1m", window="1h")
    for dashboard in dashboards:
        for panel in dashboard.panels:
            yield from (filled(query.text, values) for query in panel.queries if query.language == "prometheus")
    for path in sorted((shipped / "rules").glob("*.yaml")):
        for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]:
            yield from (rule["expr"] for rule in group["rules"])
    for text in re.findall(r'\bask "((?:[^"\\]|\\.)*)"', (shipped / "runbooks.md").read_text(encoding="utf-8")):
        yield re.sub(r'\\([\\"$])', r"\1", text).replace("$JOB", "agents")
    yield from (queries.slow_turns(SELECTOR, WINDOW), queries.table_wait_quantile(0.5, SELECTOR, WINDOW))


def test_no_matcher_of_bounds_fits_one_form_alone(dashboards: tuple[Dashboard, ...], shipped: Path) -> None:
    """Panels, rules and what the runbooks tell one to type see the same bounds of scraped and of pushed series."""
    asked = list(_asked(dashboards, shipped))

    assert [wrong for expression in asked for wrong in _unequal(expression)] == []
    assert sum("le=" in expression for expression in asked) > 2


@pytest.mark.parametrize(
    ("matcher", "fits_both"),
    [
        ('le="1.0"', False),
        ('le="1"', False),
        ('le!="1.0"', False),
        (r'le=~"0.105|1.0|\\+Inf"', False),
        (r'le=~"0.105|1(\\.0)?|\\+Inf"', True),
        ('le="10.24"', True),
        ('le!="+Inf"', True),
    ],
)
def test_the_check_finds_what_it_is_for(matcher: str, *, fits_both: bool) -> None:
    """A whole bound in one form is found, a bound that has one form only is not."""
    assert (_unequal(f"x_bucket{{{matcher}}}") == []) is fits_both
