"""The runbooks and the alerts belong together, and what the runbooks tell one to type works."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import promql_parser as promql
import pytest
import yaml

from recallscope.dashboards.alerting.config import COMMITTED, MOST_SHARE, burns_for
from recallscope.dashboards.alerting.files import every_alert
from recallscope.runtime.cli.group import LazyGroup
from recallscope.runtime.cli.main import COMMANDS
from recallscope.telemetry.names import METRICS

PARTS = ("Meaning", "Impact", "How to look", "What to do")
SERIES = re.compile(r"\b(?:recallscope|gen_ai)_[a-z_]+")
LABELS = re.compile(r"\b(?:recallscope_(?:purpose|status|front_end)|gen_ai_(?:request_model|tool_name))\b")

Entries = Mapping[str, str]


@pytest.fixture(scope="module")
def page(shipped: Path) -> str:
    """Give the page of the runbooks."""
    return (shipped / "runbooks.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def entries(page: str) -> Entries:
    """Give the text of each entry by its heading."""
    _, *found = re.split(r"^## (.+)$", page, flags=re.MULTILINE)
    return dict(zip(found[::2], found[1::2], strict=True))


def _queries(page: str) -> list[str]:
    """Return what `ask` is asked, as the shell hands it on."""
    asked = re.findall(r'\bask "((?:[^"\\]|\\.)*)"', page)
    return [re.sub(r'\\([\\"$])', r"\1", text).replace("$JOB", "agents") for text in asked]


def _commands(page: str) -> Iterator[list[str]]:
    for line in re.findall(r"^recallscope .+$", page, flags=re.MULTILINE) + re.findall(r"`(recallscope [^`]+)`", page):
        yield re.sub(r'"[^"]*"', "text", line).split()[1:]


def test_each_alert_has_an_entry_and_each_entry_its_alert(entries: Entries) -> None:
    """Headings are the alerts' names, in the order of the rules."""
    assert list(entries) == list(dict.fromkeys(alert.name for alert in every_alert(COMMITTED)))


def test_each_entry_has_the_four_parts(entries: Entries) -> None:
    """What it means, what it costs, how to look, what to do: in this order, each with a text."""
    told = {
        name: tuple(re.findall(r"^\*\*(.+?)\.\*\*\s+\S", text, flags=re.MULTILINE)) for name, text in entries.items()
    }

    assert {name: parts for name, parts in told.items() if parts != PARTS} == {}


def test_every_query_in_the_runbooks_parses(page: str) -> None:
    """Whatever one copies from there is PromQL."""
    refused: list[str] = []
    for query in _queries(page):
        try:
            promql.parse(query)
        except ValueError as error:
            refused.append(f"{query}: {error}")

    assert refused == []
    assert len(_queries(page)) > 30


def test_every_metric_in_the_runbooks_exists(page: str) -> None:
    """No query asks for a name that no process has."""
    known = {f"{metric.prometheus}{suffix}" for metric in METRICS for suffix in ("", "_bucket", "_count", "_sum")}
    asked = {name for query in _queries(page) for name in SERIES.findall(query) if not LABELS.fullmatch(name)}

    assert asked - known == set()


def _option_names(words: list[str]) -> tuple[set[str], list[str]]:
    """Return the options of the command that `words` begin with, none where there is no such command, and the rest."""
    group: click.Group = LazyGroup(table=COMMANDS, name="recallscope")
    left = list(words)
    while left:
        command = group.get_command(click.Context(group), left.pop(0))
        if command is None:
            return set(), left
        if not isinstance(command, click.Group):
            return {"--help"}.union(*(parameter.opts for parameter in command.params)), left
        group = command
    return set(), left


def test_every_command_in_the_runbooks_exists(page: str) -> None:
    """No entry names a command or an option that is not there."""
    wrong: list[str] = []
    for words in _commands(page):
        options, rest = _option_names(words)
        wrong += [" ".join(words)] if not options else []
        wrong += [f"{words[0]} {word}" for word in rest if word.startswith("--") and word not in options]

    assert wrong == []


def test_every_variable_in_the_runbooks_is_one_of_the_collectors(page: str, shipped: Path) -> None:
    """What one is told to turn can be turned."""
    file = (shipped.parent / "otel-collector.yaml").read_text(encoding="utf-8")

    assert {name for name in re.findall(r"OTELCOL_\w+", page) if f"env:{name}:-" not in file} == set()


def _rules(shipped: Path) -> list[dict[str, Any]]:
    return [
        rule
        for path in sorted((shipped / "rules").glob("*.yaml"))
        for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]
        for rule in group["rules"]
    ]


def test_each_alert_says_how_grave_it_is_and_what_is_wrong_with_numbers(shipped: Path) -> None:
    """Severity, a sentence, a description with the alert's own figures or names, and where its runbook stands."""
    for rule in (rule for rule in _rules(shipped) if "alert" in rule):
        annotations = rule["annotations"]
        assert rule["labels"]["severity"] in {"page", "ticket"}
        assert annotations["summary"].endswith(".")
        assert "{{" not in annotations["summary"]
        assert "{{ $labels.job }}" in annotations["description"]
        assert "$value" in annotations["description"] or rule["alert"].endswith(("Down", "Overflow"))
        assert annotations["runbook_url"] == f"{COMMITTED.runbooks}#{rule['alert'].lower()}"


def _matched(series: promql.VectorSelector) -> set[str]:
    return {matcher.name for matcher in series.matchers.matchers}


def test_no_rule_mixes_jobs(shipped: Path) -> None:
    """Whatever is added up is added up by job, and every series is asked for by job."""
    mixed: list[str] = []

    def visit(node: promql.Expr) -> None:
        if isinstance(node, promql.AggregateExpr) and (node.modifier is None or "job" not in node.modifier.labels):
            mixed.append(str(node))
        recorded = isinstance(node, promql.VectorSelector) and (node.name or "").startswith("job_policy:")
        if isinstance(node, promql.VectorSelector) and not recorded and "job" not in _matched(node):
            mixed.append(str(node))

    for rule in _rules(shipped):
        promql.walk(promql.parse(rule["expr"]), pre_visit=visit)

    assert mixed == []


def test_alerts_without_a_least_number_are_said_as_such(shipped: Path) -> None:
    """docs/alerts.md names those that one turn, process or exporter fires: they ask for a state and count nothing."""
    page = (shipped.parent / "docs" / "alerts.md").read_text(encoding="utf-8")
    [told] = re.findall(r"^\*\*Without a least number\*\*.*?:(.*?)\.$", page, flags=re.MULTILINE | re.DOTALL)
    without = [rule["alert"] for rule in _rules(shipped) if "alert" in rule and " >= " not in rule["expr"]]

    assert sorted(re.findall(r"`(\w+)`", told)) == sorted(without)


@pytest.mark.parametrize("target", [0.93, 0.95, 0.99, 0.999])
def test_every_burn_rate_alert_can_fire(target: float) -> None:
    """Below half of all events bad, whatever the target: two pages, two tickets, the longest window at the target."""
    burns = burns_for(target)

    assert [burn.severity for burn in burns] == ["page", "page", "ticket", "ticket"]
    assert all(burn.factor * (1 - target) <= MOST_SHARE for burn in burns)
    assert burns[-1].factor == 1


@pytest.mark.parametrize(
    ("target", "why"),
    [(0.9, "could fire before half of all events are bad"), (95, "no share of good events"), (1.0, "no share")],
)
def test_a_target_without_an_alert_that_can_fire_is_refused(target: float, why: str) -> None:
    """A rule that is always silent is worse than none."""
    with pytest.raises(ValueError, match=why):
        burns_for(target)
