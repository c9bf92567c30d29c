"""Names: as the conventions have them, as Prometheus calls them, and as the documentation lists them."""

import re
from pathlib import Path

import pytest
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv.attributes import error_attributes, server_attributes, service_attributes

from recallscope.telemetry import names
from recallscope.telemetry.contract import ATTRIBUTES, EVENT_ATTRIBUTES, SPAN_ATTRIBUTES
from recallscope.telemetry.metric import Metric, MetricKind, prometheus_family, prometheus_label

DOCS = Path(__file__).parents[2] / "docs" / "telemetry.md"

NOT_YET_IN_PYTHON = {
    names.MEMORY_STORE_ID,
    names.MEMORY_RECORD_ID,
    names.MEMORY_RECORD_COUNT,
}
"""Names of the conventions v0.1.0 that the Python constants do not have."""


def test_attributes_of_the_conventions_are_spelled_as_the_conventions_spell_them() -> None:
    """Every `gen_ai.*` attribute is a constant of the conventions' package, but for the memory ones."""
    known = {
        value
        for module in (gen_ai_attributes, error_attributes, server_attributes, service_attributes)
        for key, value in vars(module).items()
        if key.isupper()
    }
    ours = {name for name in ATTRIBUTES if name.startswith(("gen_ai.", "error.", "server."))}

    assert ours - known == NOT_YET_IN_PYTHON


def test_what_is_ours_stands_under_our_prefix() -> None:
    """Metrics and attributes are either the conventions' or begin with `recallscope.`."""
    foreign = ("gen_ai.", "error.", "server.", "service.", "deployment.", "host.", "process.", "http.")
    mine = [name for name in (*ATTRIBUTES, *(metric.name for metric in names.METRICS)) if not name.startswith(foreign)]

    assert [name for name in mine if not name.startswith("recallscope.")] == []


def test_metric_names_are_unique_in_both_worlds() -> None:
    """No two metrics share a name, neither as OpenTelemetry nor as Prometheus has it."""
    plain = [metric.name for metric in names.METRICS]
    translated = [metric.prometheus for metric in names.METRICS]

    assert (len(set(plain)), len(set(translated))) == (len(plain), len(translated))


def test_every_histogram_has_float_buckets_in_order() -> None:
    """Boundaries are floats and rise; nothing else has buckets."""
    for metric in names.METRICS:
        if metric.kind is MetricKind.HISTOGRAM:
            assert metric.unit == "s"
            assert list(metric.buckets) == sorted(set(metric.buckets))
            assert all(isinstance(bound, float) for bound in metric.buckets)
        else:
            assert metric.buckets == ()


def test_bounds_that_verdicts_use_are_boundaries() -> None:
    """The ceiling, the ceiling with its tolerance, the limits of `deadline` and the slow turn are boundaries."""
    assert {0.005, 0.1, 0.105, 0.85, 1.0, 1.1, 2.5} <= set(names.BUCKETS_R)
    assert 10.24 in names.BUCKETS_T
    assert (names.BUCKETS_T[0], names.BUCKETS_T[-1]) == (0.08, 327.68)


@pytest.mark.parametrize(
    ("name", "unit", "gauge", "expected"),
    [
        ("recallscope.turn.duration", "s", False, "recallscope_turn_duration_seconds"),
        ("recallscope.recall.turns", "{turn}", False, "recallscope_recall_turns"),
        ("recallscope.catalog.last_sync.timestamp", "s", True, "recallscope_catalog_last_sync_timestamp_seconds"),
        ("a.total.of-things", "", False, "a_of_things"),
        ("share", "1", True, "share_ratio"),
        ("share", "1", False, "share"),
        ("size.bytes", "By", False, "size_bytes"),
        ("2.things", "", False, "_2_things"),
    ],
)  # fmt: skip
def test_families_are_translated_as_the_collector_does(name: str, unit: str, gauge: bool, expected: str) -> None:
    """Dots become underscores, units become suffixes, annotations vanish."""
    assert prometheus_family(name, unit, gauge=gauge) == expected


def test_a_counter_ends_with_total_and_a_gauge_does_not() -> None:
    """The PromQL name of a counter ends with `_total`."""
    counter = Metric("x.things", MetricKind.COUNTER, "{thing}", "")
    gauge = Metric("x.things", MetricKind.GAUGE, "{thing}", "")

    assert (counter.prometheus, gauge.prometheus) == ("x_things_total", "x_things")


def test_labels_are_translated_as_the_collector_does() -> None:
    """What is no letter, digit or underscore becomes an underscore."""
    assert [prometheus_label(name) for name in ("gen_ai.agent.name", "policy", "2x")] == [
        "gen_ai_agent_name",
        "policy",
        "key_2x",
    ]


def test_no_other_file_spells_a_name() -> None:
    """Outside `names.py`, no string of the telemetry package begins with `recallscope.` or `gen_ai.`."""
    spelled = re.compile(r"""["']((?:recallscope|gen_ai)\.[a-z_.]+)["']""")
    package = Path(__file__).parents[2] / "telemetry"
    found = {
        (path.name, name)
        for path in package.rglob("*.py")
        if path.name != "names.py"
        for name in spelled.findall(path.read_text("utf-8"))
        if not name.startswith(("recallscope.telemetry", "recallscope.runtime"))
    }

    assert found == set()


def _section(heading: str) -> str:
    """Return the text under a heading of the documentation."""
    section = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", DOCS.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert section is not None, f"no heading {heading} in {DOCS}"
    return section[1]


def _listed(heading: str) -> set[str]:
    """Return the names in the first column of the tables under a heading of the documentation."""
    return set(re.findall(r"^\| `([^`]+)`", _section(heading), re.MULTILINE))


def test_every_metric_is_documented_and_every_documented_one_exists() -> None:
    """The metric tables list each metric once, with its name in Prometheus and its labels."""
    rows = _section("Metrics").splitlines()

    assert _listed("Metrics") == {metric.name for metric in names.METRICS}
    for metric in names.METRICS:
        row = next(line for line in rows if line.startswith(f"| `{metric.name}`"))
        assert f"`{metric.prometheus}`" in row
        assert re.findall(r"`([^`]+)`", row.split("|")[4]) == list(metric.labels)


def test_every_span_is_documented_and_every_documented_one_exists() -> None:
    """The span table lists each span."""
    assert _listed("Spans") == set(names.SPANS) == set(SPAN_ATTRIBUTES)


def test_every_event_is_documented_and_every_documented_one_exists() -> None:
    """The event table lists each span event."""
    assert _listed("Span events") == set(names.SPAN_EVENTS) == set(EVENT_ATTRIBUTES)


def test_every_attribute_is_documented_and_every_documented_one_exists() -> None:
    """The attribute tables list each attribute of a span, an event or the resource."""
    assert _listed("Attributes") == set(ATTRIBUTES)
