"""Writes everything under dashboards/ that is generated: `make dashboards`. A test says that what is committed is this.

A producer yields the files of one kind, as paths below dashboards/ and their text; `PRODUCERS` lists them all.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from recallscope.dashboards.alerting.config import COMMITTED
from recallscope.dashboards.alerting.files import rule_files
from recallscope.dashboards.board import as_json
from recallscope.dashboards.boards import BOARDS
from recallscope.dashboards.datasources import data_sources

__all__ = ["HERE", "PRODUCERS", "Producer", "dashboards", "produced", "rules", "write"]

HERE: Final = Path(__file__).parent

Producer = Callable[[], Iterator[tuple[str, str]]]


def dashboards() -> Iterator[tuple[str, str]]:
    """Yield the dashboards as the JSON that Grafana reads."""
    for board in BOARDS:
        yield f"grafana/{board.name}.json", as_json(board)


def collector() -> Iterator[tuple[str, str]]:
    """Yield the collector's configurations, of one and of a fleet, as the tree's root has them."""
    for name in ("otel-collector.yaml", "otel-collector-fleet.yaml"):
        yield f"stack/{name}", (HERE.resolve().parent / name).read_text(encoding="utf-8")


def rules() -> Iterator[tuple[str, str]]:
    """Yield the recording rules and alerts as the files that a Prometheus loads."""
    yield from ((f"rules/{name}", text) for name, text in rule_files(COMMITTED).items())


PRODUCERS: Final[tuple[Producer, ...]] = (dashboards, data_sources, collector, rules)
"""Everything that is generated."""


def produced() -> Mapping[str, str]:
    """Return every generated file.

    Raises:
        ValueError: two producers make the same file.
    """
    files: dict[str, str] = {}
    for producer in PRODUCERS:
        for path, text in producer():
            if path in files:
                raise ValueError(f"{path} is produced twice; rename one of the two in {producer.__name__}")
            files[path] = text
    return files


def write(folder: Path = HERE) -> list[str]:
    """Write every generated file below `folder` and return the paths of those that changed."""
    changed: list[str] = []
    for path, text in produced().items():
        file = folder / path
        if file.is_file() and file.read_text(encoding="utf-8") == text:
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        changed.append(path)
    return changed


if __name__ == "__main__":
    for changed_path in write():
        sys.stdout.write(f"dashboards/{changed_path}\n")
