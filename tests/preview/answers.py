"""What a Prometheus answers to the queries of a panel."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.error import HTTPError

from played import STEP_SECONDS, Played

from recallscope.dashboards.reading import PanelRead, Query, filled
from recallscope.telemetry.queries.selector import EACH

__all__ = ["Answer", "Series", "ask"]

FINE_SECONDS = 2.0
"""The step of graphs whose windows may overlap."""


@dataclass(frozen=True, slots=True)
class Series:
    """One line: its name as the legend has it, its labels, and its points (seconds since 1970, value)."""

    name: str
    labels: Mapping[str, str]
    points: tuple[tuple[float, float], ...]

    @property
    def last(self) -> float:
        """The newest figure."""
        return self.points[-1][1]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a panel gets: series without gaps, exemplars (moment, value), or why there are none."""

    series: tuple[Series, ...]
    exemplars: tuple[tuple[float, float], ...]
    error: str

    @property
    def state(self) -> str:
        """Whether it is `error`, `empty` or `data`."""
        return "error" if self.error else "data" if self.series else "empty"


def ask(played: Played, panel: PanelRead) -> Answer:
    """Ask all queries of a panel; a query that is refused is the panel's error."""
    series: list[Series] = []
    exemplars: list[tuple[float, float]] = []
    try:
        for query in panel.queries:
            if query.language != "prometheus":
                continue
            text = filled(query.text, played.values)
            series += _series(played, query, text)
            if query.exemplar:
                exemplars += _exemplars(played, text)
    except HTTPError as error:
        return Answer((), (), error.read().decode(errors="replace"))
    return Answer(tuple(series), tuple(exemplars), "")


def _series(played: Played, query: Query, text: str) -> list[Series]:
    if query.instant:
        found = [(labels, [(played.end, value)]) for labels, value in played.prometheus.ask(text, at=played.end)]
    else:
        step = STEP_SECONDS if EACH in query.text else FINE_SECONDS
        times = {"start": f"{played.start:.3f}", "end": f"{played.end:.3f}", "step": f"{step:g}"}
        result = played.prometheus.get("query_range", query=text, **times)["result"]
        found = [(one["metric"], [(float(at), float(value)) for at, value in one["values"]]) for one in result]
    kept = ((labels, tuple(point for point in points if not math.isnan(point[1]))) for labels, points in found)
    return [Series(_named(query.legend, labels), labels, points) for labels, points in kept if points]


def _exemplars(played: Played, text: str) -> list[tuple[float, float]]:
    times = {"start": f"{played.start:.3f}", "end": f"{played.end:.3f}"}
    found = played.prometheus.get("query_exemplars", query=text, **times)
    return [(float(one["timestamp"]), float(one["value"])) for series in found for one in series["exemplars"]]


def _named(legend: str, labels: Mapping[str, str]) -> str:
    if legend in {"", "__auto"}:
        return ", ".join(f"{name}={value}" for name, value in sorted(labels.items()) if name != "__name__")
    return re.sub(r"\{\{(\w+)\}\}", lambda match: labels.get(match[1], ""), legend)
