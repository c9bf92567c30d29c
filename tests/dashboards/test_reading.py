"""Dashboards are read back as Grafana reads them."""

import pytest

from recallscope.dashboards.reading import Dashboard, everything, filled


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('x{job="$job"}[$__rate_interval]', 'x{job="agents"}[20s]'),
        ('x{job="${job}", a=~"${agent:regex}"}', 'x{job="agents", a=~".*"}'),
        ("increase(x[$__range])", "increase(x[10m])"),
        ("increase(x[$__interval])", "increase(x[20s])"),
        ("topk(10, x)", "topk(10, x)"),
    ],
)
def test_variables_are_filled_in(text: str, expected: str) -> None:
    """Both spellings of a variable, formats left aside."""
    assert filled(text, everything("agents", step="20s", window="10m")) == expected


def test_a_variable_without_a_value_is_an_error() -> None:
    """A query with a hole in it is never asked."""
    with pytest.raises(KeyError, match="nobody"):
        filled("$nobody", everything("agents", step="1m", window="1h"))


def test_rows_are_no_panels_and_names_are_unique(dashboards: tuple[Dashboard, ...]) -> None:
    """Each panel has a name of its own among all dashboards; headings have none."""
    names = [panel.name for dashboard in dashboards for panel in dashboard.panels]

    assert len(set(names)) == len(names)
    assert {panel.kind for dashboard in dashboards for panel in dashboard.panels} == {
        *("timeseries", "stat", "table", "heatmap", "bargauge", "trend"),
    }
