"""The page about recall says what the tables say."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from recallscope.runtime.recall.handle import TRANSITIONS
from recallscope.runtime.terms import Cause, Outcome, PolicyName, Reason

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "recall.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    """Load the generator of the pages' blocks."""
    spec = importlib.util.spec_from_file_location("docs_generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", sorted(DOCS.glob("*.md")), ids=lambda path: path.name)
def test_the_committed_blocks_are_the_generated_ones(generate: ModuleType, path: Path) -> None:
    """`make docs` would change no page."""
    page = path.read_text(encoding="utf-8")

    assert generate.with_blocks(page) == page


def test_the_diagram_shows_the_whole_table() -> None:
    """Every arrow of the table is drawn with its moves, and no other."""
    drawn = {
        (source, move.strip(), target)
        for source, target, moves in re.findall(r"^    (\w+) --> (\w+): (.+)$", PAGE, re.MULTILINE)
        for move in moves.split(",")
    }

    assert drawn == {
        (state, move, target)
        for state, row in TRANSITIONS.items()
        for move, targets in row.items()
        for target in targets
    }


def test_the_table_of_causes_is_that_of_the_program() -> None:
    """Each cause stands there once, with its reason."""
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \|$", PAGE, re.MULTILINE)

    assert rows == [(str(cause), str(cause.reason)) for cause in Cause]


@pytest.mark.parametrize("word", [*Outcome, *Reason, *PolicyName])
def test_every_word_is_explained(word: str) -> None:
    """Each outcome, reason and policy that a reader can meet stands on the page."""
    assert f"`{word}`" in PAGE
