"""The dashboards, drawn from real answers, in a real browser: nothing fails, nothing is empty, nothing is cut."""

from collections.abc import Generator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from browser import dom, picture
from played import play
from preview import draw_all

from recallscope.dashboards.reading import read_all

pytestmark = [pytest.mark.real, pytest.mark.timeout(240)]

TURNS = 160
PNG = b"\x89PNG\r\n\x1a\n"
DASHBOARDS = [dashboard.name for dashboard in read_all()]


class _Panels(HTMLParser):
    """Collects the `data-` attributes of the panels of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[dict[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take what a panel tells about itself."""
        attributes = dict(attrs)
        if attributes.get("class") == "panel":
            self.found.append({name.removeprefix("data-"): value or "" for name, value in attributes.items()})


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Generator[dict[str, Path]]:
    """Give the pages of the dashboards, drawn once traffic has run."""
    folder = tmp_path_factory.mktemp("pages")
    with play(tmp_path_factory.mktemp("work"), TURNS) as played:
        yield {name: page for name, (_, page, _) in draw_all(played, folder).items()}


@pytest.mark.parametrize("name", DASHBOARDS)
def test_a_page_shows_every_panel_with_its_figures(pages: dict[str, Path], name: str) -> None:
    """No panel failed or overflows; none is empty; latency panels have exemplars."""
    reader = _Panels()
    reader.feed(dom(pages[name]))
    panels = {panel["panel"]: panel for panel in reader.found}
    [dashboard] = [one for one in read_all() if one.name == name]

    assert panels.keys() == {panel.name for panel in dashboard.panels}
    assert [panel for panel, told in panels.items() if told["state"] == "error"] == []
    assert [panel for panel, told in panels.items() if told["state"] == "empty"] == []
    assert [panel for panel, told in panels.items() if told["overflows"] != "false"] == []
    without = {
        panel.name
        for panel in dashboard.panels
        if any(query.exemplar for query in panel.queries) and panels[panel.name]["exemplars"] == "0"
    }
    assert without == set()


def test_a_picture_can_be_taken(pages: dict[str, Path], tmp_path: Path) -> None:
    """The browser paints the page."""
    picture(pages["turns"], tmp_path / "turns.png", width=1440, height=900)

    assert (tmp_path / "turns.png").read_bytes().startswith(PNG)
