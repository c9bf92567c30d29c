"""The page about the scripted model server says what the server does."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from recallscope.runtime.testing.record import RecordedRequest
from recallscope.runtime.testing.script import PURPOSES, Step
from recallscope.runtime.testing.script_parser import parse_script

PAGE = Path(__file__).parents[2].joinpath("docs", "model-server.md").read_text(encoding="utf-8")
SCRIPTS = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_scripts_on_the_page_are_scripts(script: str) -> None:
    """Every YAML example on the page is read without an error."""
    assert parse_script(script).as_data()


def test_every_key_purpose_and_field_stands_on_the_page() -> None:
    """The page names every key of a step, every purpose and every field of a record that a user can look at."""
    names = {each.name for each in (*fields(Step), *fields(RecordedRequest))} - {"raw"} | set(PURPOSES)
    assert {name for name in names if f"`{name}`" not in PAGE} == set()
