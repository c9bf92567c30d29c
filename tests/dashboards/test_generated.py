"""What is committed under dashboards/ is what its Python makes."""

import json
from pathlib import Path

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as grafana

from recallscope.dashboards import generate
from recallscope.dashboards.boards import BOARDS
from recallscope.dashboards.reading import Dashboard


def test_the_committed_files_are_what_is_generated(shipped: Path) -> None:
    """Each generated file is committed as it is made; if not: `make dashboards`."""
    stale = [
        path
        for path, text in generate.produced().items()
        if not (shipped / path).is_file() or (shipped / path).read_text(encoding="utf-8") != text
    ]

    assert stale == []


def test_the_generator_reads_what_it_wrote(dashboards: tuple[Dashboard, ...]) -> None:
    """Nothing in a dashboard is unknown to the types that were made from Grafana's own schema."""
    for dashboard in dashboards:
        read = grafana.Dashboard.from_json(dict(dashboard.json))
        assert json.loads(json.dumps(read, cls=JSONEncoder)) == dashboard.json, dashboard.name


def test_no_dashboard_is_left_of_one_that_is_gone(shipped: Path) -> None:
    """The folder holds the dashboards that are listed, and no other file."""
    assert {path.name for path in (shipped / "grafana").iterdir()} == {f"{board.name}.json" for board in BOARDS}


def test_only_what_changed_is_written(tmp_path: Path) -> None:
    """A second run writes nothing, so that it may run before each commit."""
    first, second = generate.write(tmp_path), generate.write(tmp_path)

    assert sorted(first) == sorted(generate.produced())
    assert second == []


def test_a_file_has_one_producer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two producers of one path are an error that names it."""
    monkeypatch.setattr(generate, "PRODUCERS", (generate.dashboards, generate.dashboards))

    with pytest.raises(ValueError, match=r"grafana/turns\.json is produced twice"):
        generate.produced()
