"""Prometheus's own tool takes the committed rules and runs the tests in rules/: each alert fires, and does not.

A file there is one of promtool's, but for two things: rule files are named without their folder, and an expected alert
has its `description` alone, since summary and runbook are those of the rule.
"""

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from programs import Prometheus, run_prometheus, wait_until

from recallscope.runtime.events import PolicyName
from recallscope.telemetry.sdk import TelemetrySettings, open_telemetry
from recallscope.telemetry.testing.golden import golden_process

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]

RULES = Path(__file__).parents[2] / "dashboards" / "rules"
TESTS = sorted((Path(__file__).parent / "rules").glob("*.yaml"))

Rule = Mapping[str, Any]


def _recorded() -> list[str]:
    """Name the counts that the rules record."""
    groups = (group for path in RULES.glob("*.yaml") for group in yaml.safe_load(path.read_text("utf-8"))["groups"])
    return [rule["record"] for group in groups for rule in group["rules"] if "record" in rule]


def _alerts() -> list[Rule]:
    return [
        rule
        for path in sorted(RULES.glob("*.yaml"))
        for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]
        for rule in group["rules"]
        if "alert" in rule
    ]


def _cases(path: Path) -> Iterator[dict[str, Any]]:
    for test in yaml.safe_load(path.read_text(encoding="utf-8"))["tests"]:
        yield from test["alert_rule_test"]


def _meant(alertname: str, labels: Mapping[str, str]) -> Rule:
    """Return the rule that an expected alert comes from: by name, and by the labels that it adds."""
    return next(rule for rule in _alerts() if rule["alert"] == alertname and rule["labels"].items() <= labels.items())


def _complete(path: Path) -> dict[str, Any]:
    """Return a test file as promtool wants it."""
    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    data["rule_files"] = [str(RULES / name) for name in data["rule_files"]]
    for test in data["tests"]:
        for case in test["alert_rule_test"]:
            for expected in case["exp_alerts"]:
                annotations = _meant(case["alertname"], expected["exp_labels"])["annotations"]
                expected["exp_annotations"] = annotations | {"description": expected.pop("description")}
    return data


def _promtool(*arguments: str) -> str:
    """Run promtool and return what it says if it refuses something, else nothing."""
    program = shutil.which("promtool")
    assert program is not None, "no promtool on the path: apt-get install --no-install-recommends prometheus"
    done = subprocess.run([program, *arguments], check=False, capture_output=True, text=True, timeout=170)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_the_rules_are_taken() -> None:
    """`promtool check rules` has nothing to say about any file."""
    assert _promtool("check", "rules", "--lint=all", "--lint-fatal", *map(str, sorted(RULES.glob("*.yaml")))) == ""


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.stem)
def test_alerts_fire_when_they_should(path: Path, tmp_path: Path) -> None:
    """`promtool test rules`: at the stated moments the stated alerts fire, with the stated words, and no others."""
    file = tmp_path / path.name
    file.write_text(json.dumps(_complete(path)), encoding="utf-8")

    assert _promtool("test", "rules", str(file)) == ""


def test_each_alert_has_a_test_where_it_fires_and_one_where_it_does_not() -> None:
    """Each rule, not only each name: a burn-rate alert has four."""
    fires: list[tuple[str, Any]] = []
    silent: list[tuple[str, Any]] = []
    for rule in _alerts():
        name, labels = rule["alert"], rule["labels"].items()
        for case in (case for path in TESTS for case in _cases(path) if case["alertname"] == name):
            firing = any(labels <= expected["exp_labels"].items() for expected in case["exp_alerts"])
            (fires if firing else silent).append((name, rule["labels"]))
    untested = [(rule["alert"], rule["labels"]) for rule in _alerts()]

    assert [one for one in untested if one not in fires] == []
    assert [one for one in untested if one not in silent] == []


def _every_second(folder: Path) -> list[Path]:
    """Copy the rule files into `folder`, with groups that are evaluated every second."""
    copies: list[Path] = []
    for path in sorted(RULES.glob("*.yaml")):
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
        for group in data["groups"]:
            group["interval"] = "1s"
        copies.append(folder / path.name)
        copies[-1].write_text(json.dumps(data), encoding="utf-8")
    return copies


def _evaluated(prometheus: Prometheus) -> list[Rule]:
    """Return the rules that a Prometheus has evaluated: all, or none while one is missing."""
    rules = [rule for group in prometheus.get("rules")["groups"] for rule in group["rules"]]
    return rules if rules and all(rule["health"] != "unknown" for rule in rules) else []


def test_a_prometheus_evaluates_every_rule_over_real_metrics(tmp_path: Path) -> None:
    """None fails, what is recorded is there for each policy, and a process that does well raises no alert."""
    settings = TelemetrySettings(
        version="0",
        front_end="serve",
        policies=(PolicyName.TIERED,),
        serve_metrics=True,
        metrics_port=0,
        journal=False,
        environ={},
    )
    with open_telemetry(settings) as telemetry:
        for event in golden_process():
            for observer in telemetry.observers:
                observer(event)
        assert telemetry.metrics_url is not None
        target = telemetry.metrics_url.removeprefix("http://").removesuffix("/metrics")
        with run_prometheus(tmp_path, {"agents": target}, rules=_every_second(tmp_path)) as prometheus:
            wait_until(lambda: bool(_evaluated(prometheus)), "every rule is evaluated")
            recorded = 'count({__name__=~"job_policy:recallscope_.*", job="agents", policy="tiered"})'
            wait_until(lambda: prometheus.number(recorded) == len(_recorded()), "every count is recorded, once")

            assert [rule["name"] for rule in _evaluated(prometheus) if rule["health"] != "ok"] == []
            assert [alert["labels"] for alert in prometheus.get("alerts")["alerts"] if alert["state"] == "firing"] == []
