"""The shipped collector files speak of what Recallscope sends, take every address from outside, and hold no secret."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from recallscope.telemetry import names
from recallscope.telemetry.logs import masked

ROOT = Path(__file__).parents[2]
FILES = ("otel-collector.yaml", "otel-collector-fleet.yaml")
OURS = re.compile(r"\b(?:recallscope|gen_ai|error|deployment)\.[a-z][a-z_.]*[a-z]")
VARIABLE = re.compile(r"\$\{env:(OTELCOL_[A-Z_]+):-([^}]+)\}")
ADDRESS = re.compile(r"\b[\w.-]+:\d{2,5}\b")
KEYS = ("endpoint", "host", "hostname", "port", "path", "directory")


def _text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def _config(name: str) -> Any:
    return yaml.safe_load(_text(name))


def _known() -> set[str]:
    return {value for value in vars(names).values() if isinstance(value, str)} | {
        metric.name for metric in names.METRICS
    }


def _settings(tree: Any) -> Iterator[tuple[str, Any]]:
    """Yield every key of a mapping with its value, however deep."""
    match tree:
        case dict():
            for key, value in cast("dict[str, Any]", tree).items():
                yield key, value
                yield from _settings(value)
        case list():
            for item in cast("list[Any]", tree):
                yield from _settings(item)
        case _:
            return


@pytest.mark.parametrize("file", FILES)
def test_attribute_names_are_those_of_the_names(file: str) -> None:
    """Every attribute, span or metric of ours that a file names is one that Recallscope sends."""
    assert set(OURS.findall(_text(file))) - _known() == set()


def test_the_sampler_asks_for_the_marker() -> None:
    """What keeps a turn is the attribute of its marker span, and a failed status."""
    policies = {policy["type"]: policy for policy in _config(FILES[0])["processors"]["tail_sampling"]["policies"]}

    assert policies["boolean_attribute"]["boolean_attribute"] == {"key": names.TURN_KEEP, "value": True}
    assert policies["status_code"]["status_code"] == {"status_codes": ["ERROR"]}


def test_spans_are_counted_before_they_are_sampled() -> None:
    """The pipeline that makes metrics of spans has no sampler, and it comes before the one that has."""
    pipelines = _config(FILES[0])["service"]["pipelines"]

    assert "span_metrics" in pipelines["traces/in"]["exporters"]
    assert "tail_sampling" not in pipelines["traces/in"]["processors"]
    assert pipelines["traces/kept"]["receivers"] == ["forward/sample"]
    assert pipelines["traces/kept"]["processors"] == ["tail_sampling"]


def test_the_metrics_of_spans_have_enums_as_labels() -> None:
    """No dimension is an id: each is a label of ours, or an attribute that holds one of few values."""
    enums = {names.OPERATION_NAME, names.PURPOSE, names.TURN_POLICY, names.RECALL_POLICY, names.RECALL_OUTCOME}

    assert {one["name"] for one in _config(FILES[0])["connectors"]["span_metrics"]["dimensions"]} <= enums


def test_no_name_of_ours_is_taken_for_a_secret() -> None:
    """The redaction by name leaves every attribute and label alone that Recallscope sends."""
    patterns = [re.compile(pattern) for pattern in _config(FILES[0])["processors"]["redaction"]["blocked_key_patterns"]]

    assert [(name, rule.pattern) for name in _known() for rule in patterns if rule.search(name)] == []
    assert all(
        any(rule.search(name) for rule in patterns)
        for name in ("http.request.header.authorization", "api_key", "db.password")
    )


@pytest.mark.parametrize("file", FILES)
def test_every_address_and_folder_comes_from_outside(file: str) -> None:
    """Each is a variable with a default, and what is listened on is on loopback by default."""
    text, settings = _text(file), list(_settings(_config(file)))
    fixed = [
        (key, value)
        for key, value in settings
        if key in KEYS and isinstance(value, str | int) and not VARIABLE.fullmatch(str(value))
    ]
    listening = [default for name, default in VARIABLE.findall(text) if name.endswith(("_ADDRESS", "_METRICS_HOST"))]
    code = "\n".join(line.partition("#")[0] for line in text.splitlines())

    assert fixed == []
    assert ADDRESS.findall(VARIABLE.sub("", code)) == []
    assert {default.partition(":")[0] for default in listening} == {"127.0.0.1"}


@pytest.mark.parametrize("file", FILES)
def test_a_variable_has_one_default(file: str) -> None:
    """A variable that stands in several places, or in both files, means the same everywhere."""
    found = VARIABLE.findall(_text(file)) + VARIABLE.findall(_text(FILES[0]))

    assert len({name for name, _ in found}) == len(set(found))
    assert len(re.findall(r"\$\{", _text(file))) == len(VARIABLE.findall(_text(file)))


@pytest.mark.parametrize("file", FILES)
def test_no_credential_is_shipped(file: str) -> None:
    """No file holds anything that looks like one; headers and passwords are for whoever deploys."""
    values = [value for _, value in _settings(_config(file)) if isinstance(value, str)]

    assert [value for value in values if masked(value) != value and "[" not in value] == []
    assert not {"headers", "auth", "basicauth", "password", "token"} & {key for key, _ in _settings(_config(file))}


@pytest.mark.parametrize("file", FILES)
def test_the_page_explains_every_variable(file: str) -> None:
    """`docs/collector.md` lists each variable with its default."""
    page = (ROOT / "docs" / "collector.md").read_text(encoding="utf-8")

    assert [name for name, default in VARIABLE.findall(_text(file)) if f"| `{name}` | `{default}` |" not in page] == []
