"""`make dashboards-preview`: plays traffic, draws the dashboards from it, keeps pages and pictures in build/preview."""

import shutil
import sys
import tempfile
from pathlib import Path

from answers import Answer, ask
from browser import picture
from page import COLUMN, ROW, draw
from played import KINDS, Played, play

from recallscope.dashboards.reading import Dashboard, read_all

__all__ = ["draw_all"]

BUILD = Path(__file__).parents[2] / "build" / "preview"
TURNS = 400


def draw_all(played: Played, folder: Path) -> dict[str, tuple[Dashboard, Path, dict[str, Answer]]]:
    """Write a page for each dashboard; return each with its page and its answers."""
    pages: dict[str, tuple[Dashboard, Path, dict[str, Answer]]] = {}
    for dashboard in read_all():
        answers = {panel.name: ask(played, panel) for panel in dashboard.panels}
        page = folder / f"{dashboard.name}.html"
        page.write_text(draw(dashboard, answers), encoding="utf-8")
        pages[dashboard.name] = dashboard, page, answers
    return pages


def main() -> None:
    """Play, draw, and take the pictures."""
    shutil.rmtree(BUILD, ignore_errors=True)
    BUILD.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as work, play(Path(work), TURNS, kinds=f"{KINDS},slow_turn:6") as played:
        pages = draw_all(played, BUILD)
    for name, (dashboard, page, _) in pages.items():
        rows = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in dashboard.json["panels"])
        picture(page, BUILD / f"{name}.png", width=24 * COLUMN, height=rows * ROW + 10)
        sys.stdout.write(f"build/preview/{name}.png\n")
    shutil.rmtree(BUILD / "chromium", ignore_errors=True)


if __name__ == "__main__":
    main()
