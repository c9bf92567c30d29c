"""What a rule is, and how it is written for Prometheus."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from recallscope.dashboards.alerting.config import Severity
from recallscope.dashboards.config import runbook

__all__ = ["COUNT", "DURATION", "SHARE", "Alert", "Group", "Record", "label", "percent", "total_of", "write_groups"]

SHARE: Final = "{{ $value | humanizePercentage }}"
COUNT: Final = '{{ $value | printf "%.0f" }}'
DURATION: Final = "{{ $value | humanizeDuration }}"
"""The value of an alert's expression in its description: templates of Prometheus."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One alert; its runbook entry has its name for a heading.

    `held` is how long it must be true, `summary` a sentence without numbers, `description` what is wrong with numbers,
    both in Prometheus's templates. The labels beside `severity` tell alerts of one name apart.
    """

    name: str
    severity: Severity
    expr: str
    held: str
    summary: str
    description: str
    labels: Mapping[str, str] = field(default_factory=dict[str, str])

    def rule(self, runbooks: str) -> dict[str, Any]:
        """Return the rule; its `runbook_url` is the entry in the page at `runbooks`."""
        return {
            "alert": self.name,
            "expr": self.expr,
            "for": self.held,
            "labels": {"severity": self.severity.value, **self.labels},
            "annotations": {
                "summary": self.summary,
                "description": self.description,
                "runbook_url": runbook(self.name, runbooks),
            },
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One recording rule."""

    name: str
    expr: str

    def rule(self, _runbooks: str) -> dict[str, Any]:
        """Return the rule."""
        return {"record": self.name, "expr": self.expr}


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Rules that are evaluated together, every `interval`."""

    name: str
    interval: str
    rules: Sequence[Alert | Record]


def label(name: str) -> str:
    """Return the template of an alert's label."""
    return f"{{{{ $labels.{name} }}}}"


def percent(share: float) -> str:
    """Write a share as it is read: `0.001` is `0.1%`, as Prometheus writes it."""
    return f"{share * 100:.4g}%"


def total_of(series: str) -> str:
    """Return the template of what `series` counts for the job and policy of an alert; `%q` stands for each of them."""
    return (
        f"{{{{ with printf `{series}` $labels.job $labels.policy | query }}}}"
        '{{ . | first | value | printf "%.0f" }}{{ end }}'
    )


def write_groups(groups: Sequence[Group], *, runbooks: str) -> str:
    """Return the rule file of `groups`."""
    data = {
        "groups": [
            {"name": group.name, "interval": group.interval, "rules": [rule.rule(runbooks) for rule in group.rules]}
            for group in groups
        ]
    }
    body: str = yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1_000)  # pyright: ignore[reportUnknownMemberType]  # its stubs lack a type
    return f"# Made by `make dashboards` from dashboards/alerting/*.py; thresholds stand in config.py there.\n\n{body}"


class _Dumper(yaml.SafeDumper):
    """Writes expressions of several lines as they are read."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write everything out."""
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Indent lists below their key."""
        super().increase_indent(flow, False)


def _text(_dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return yaml.ScalarNode("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)
