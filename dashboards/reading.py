"""Reads the committed dashboards back, as Grafana does: panels, their queries, variables filled with values.

For checks, for questions to a real Prometheus, and for the preview.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from recallscope.telemetry.queries.selector import EACH, STEP, WHOLE

__all__ = ["Dashboard", "PanelRead", "Query", "everything", "filled", "read_all"]

FOLDER: Final = Path(__file__).parent / "grafana"

_VARIABLE: Final = re.compile(r"\$(?:\{(?P<braced>\w+)(?::\w+)?\}|(?P<bare>\w+))")


@dataclass(frozen=True, slots=True)
class Query:
    """One query of a panel; `language` is that of its data source, `prometheus` or `tempo`."""

    ref: str
    language: str
    text: str
    legend: str
    instant: bool
    exemplar: bool


@dataclass(frozen=True, slots=True)
class PanelRead:
    """One panel of a dashboard: what it is called, its queries, and its own JSON."""

    dashboard: str
    title: str
    kind: str
    queries: tuple[Query, ...]
    json: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Name the panel among all dashboards: `turns / Turn duration #8`."""
        return f"{self.dashboard} / {self.title} #{self.json['id']}"


@dataclass(frozen=True, slots=True)
class Dashboard:
    """One dashboard: its file's name, its panels in order (headings of rows left out), and its own JSON."""

    name: str
    panels: tuple[PanelRead, ...]
    json: Mapping[str, Any]


def read_all(folder: Path = FOLDER) -> tuple[Dashboard, ...]:
    """Return every dashboard in `folder`, by name."""
    return tuple(_dashboard(path) for path in sorted(folder.glob("*.json")))


def filled(text: str, values: Mapping[str, str]) -> str:
    """Put `values` for variables into a query; `$__rate_interval`, `$__interval` and `$__range` are variables, too.

    Raises:
        KeyError: the query names a variable that has no value.
    """
    return _VARIABLE.sub(lambda match: values[match["braced"] or match["bare"]], text)


def everything(job: str, *, step: str, window: str, collector: str = "otelcol") -> dict[str, str]:
    """Return values for all variables that choose all series of a job, and of the collector's."""
    several = dict.fromkeys(("instance", "agent", "policy"), ".*")
    return {
        "job": job,
        "collector": collector,
        STEP.removeprefix("$"): step,
        EACH.removeprefix("$"): step,
        WHOLE.removeprefix("$"): window,
        **several,
    }


def _dashboard(path: Path) -> Dashboard:
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    panels = tuple(_panel(path.stem, panel) for panel in data["panels"] if panel["type"] != "row")
    return Dashboard(path.stem, panels, data)


def _panel(dashboard: str, panel: Mapping[str, Any]) -> PanelRead:
    return PanelRead(dashboard, panel["title"], panel["type"], tuple(_queries(panel)), panel)


def _queries(panel: Mapping[str, Any]) -> Iterator[Query]:
    for target in panel.get("targets", ()):
        language = target["datasource"]["type"]
        yield Query(
            ref=target["refId"],
            language=language,
            text=target["expr"] if language == "prometheus" else target["query"],
            legend=target.get("legendFormat", ""),
            instant=bool(target.get("instant")),
            exemplar=bool(target.get("exemplar")),
        )
