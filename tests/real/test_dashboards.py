"""Every panel of the dashboards shows something once traffic has run: its queries are asked of a real Prometheus."""

import math
from collections.abc import Generator

import pytest
from played import COLLECTOR_JOB, JOBS, Played, play

from recallscope.dashboards.reading import PanelRead, Query, filled, read_all

pytestmark = [pytest.mark.real, pytest.mark.timeout(240)]

TURNS = 160

PANELS = [panel for dashboard in read_all() for panel in dashboard.panels]
AFTER_A_KILL = "telemetry-health / Traces without a decision B"
"""The query that is for a collector that was killed: test_collector_losses.py kills one and asks it."""

ASKED = [(panel, query) for panel in PANELS for query in panel.queries if query.language == "prometheus"]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Generator[Played]:
    """Play traffic until enough of it has been scraped."""
    with play(tmp_path_factory.mktemp("dashboards"), TURNS) as shown:
        yield shown


def _has_data(played: Played, text: str, *, instant: bool) -> bool:
    """Say whether a query gives a number anywhere."""
    if instant:
        return any(not math.isnan(value) for _, value in played.prometheus.ask(text, at=played.end))
    found = played.prometheus.get(
        "query_range", query=text, start=f"{played.start:.3f}", end=f"{played.end:.3f}", step="2"
    )
    return any(value != "NaN" for series in found["result"] for _, value in series["values"])


@pytest.mark.parametrize("job", JOBS, ids=["scraped", "pushed"])
@pytest.mark.parametrize(("panel", "query"), ASKED, ids=[f"{panel.name} {query.ref}" for panel, query in ASKED])
def test_a_query_of_a_panel_gives_data(played: Played, panel: PanelRead, query: Query, job: str) -> None:
    """Each query has figures, whichever of the two ways its dashboard shows."""
    found = _has_data(played, filled(query.text, played.values_of(job)), instant=query.instant)

    assert found is (f"{panel.dashboard} / {panel.title} {query.ref}" != AFTER_A_KILL), query.text


@pytest.mark.parametrize("label", ["job", "instance", "agent", "policy", "collector"])
def test_every_variable_has_values(played: Played, label: str) -> None:
    """What the dashboards ask for the values of their variables is there."""
    variables = [
        variable
        for dashboard in read_all()
        for variable in dashboard.json["templating"]["list"]
        if variable["name"] == label
    ]

    assert variables
    for variable in variables:
        text = filled(variable["definition"], played.values).removeprefix("label_values(").removesuffix(")")
        series, _, asked = text.rpartition(", ")
        values = played.prometheus.get(f"label/{asked}/values", **{"match[]": series})
        assert values, variable["definition"]
        assert label != "collector" or COLLECTOR_JOB in values
