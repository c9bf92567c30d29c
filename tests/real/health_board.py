"""Asks what the panels of the dashboard *Telemetry health* ask, and returns what they show."""

import re
from dataclasses import dataclass

from programs import Prometheus

from recallscope.dashboards.reading import Query, everything, filled, read_all

__all__ = ["AGENTS", "COLLECTORS", "HealthBoard"]

AGENTS = "agents"
COLLECTORS = "otelcol"


@dataclass(frozen=True, slots=True)
class HealthBoard:
    """The dashboard with the jobs `AGENTS` and `COLLECTORS` chosen, over the last ten minutes."""

    prometheus: Prometheus

    def shown(self, title: str) -> dict[str, float]:
        """Return the figures of a panel by their legends; of a graph the newest, and only those that are not 0."""
        (board,) = (board for board in read_all() if board.name == "telemetry-health")
        (panel,) = (panel for panel in board.panels if panel.title == title)
        return {legend: value for query in panel.queries for legend, value in self._asked(query) if value}

    def _asked(self, query: Query) -> list[tuple[str, float]]:
        values = everything(AGENTS, step="1m", window="10m", collector=COLLECTORS)
        return [
            (re.sub(r"{{(\w+)}}", lambda label, labels=labels: labels.get(label[1], ""), query.legend), value)
            for labels, value in self.prometheus.ask(filled(query.text, values))
        ]
