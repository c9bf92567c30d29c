"""`explain` on the turns of every scenario: the golden verdicts, and the same ones from every kind of record."""

import base64
import io
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from recallscope.runtime.events import Event, Point, PolicyName, Scenario
from recallscope.telemetry.explain.sentences import Sentences, sentences
from recallscope.telemetry.explain.terminal import ExplainedTurn
from recallscope.telemetry.explain.verdict import judge
from recallscope.telemetry.read.open_source import open_source
from recallscope.telemetry.read.recorded import Close, Record, RecordedTurn
from recallscope.telemetry.read.span_json import spans_in
from recallscope.telemetry.read.span_turns import turns_of

GOLDEN = Path(__file__).parent / "golden"
POLICIES = (PolicyName.DEADLINE, PolicyName.PREFETCH, PolicyName.TIERED)
NAMES = sorted(path.stem for path in GOLDEN.glob("*.txt"))

Played = Callable[..., list[Event]]
AsJournal = Callable[[Sequence[Event]], RecordedTurn]
AsOtlp = Callable[..., dict[str, Any]]


def _drawn(turn: RecordedTurn, width: int = 100) -> str:
    text = io.StringIO()
    Console(file=text, width=width, color_system=None, highlight=False).print(ExplainedTurn(turn))
    return "".join(f"{line.rstrip()}\n" for line in text.getvalue().splitlines())


def _said(turn: RecordedTurn) -> Sentences:
    return sentences(turn, judge(turn))


def drawn_golden(name: str, played: Played, as_journal: AsJournal) -> str:
    """Return what the golden file of a script holds: the turn under every policy."""
    parts = [f"### {name} under {policy}\n\n{_drawn(as_journal(played(name, policy)))}" for policy in POLICIES]
    return "\n".join(parts)


def test_every_script_has_a_golden_file_and_every_scenario_a_script(scripts: tuple[str, ...]) -> None:
    """The golden files are those of the scripts, and all nine rows of the comparison table are among them."""
    assert sorted(scripts) == NAMES
    assert {scenario.value for scenario in Scenario} <= set(scripts)


@pytest.mark.parametrize("name", NAMES)
def test_a_turn_is_explained_as_its_golden_file_says(name: str, played: Played, as_journal: AsJournal) -> None:
    """Waterfall, moments, times and verdict of each scenario under each policy are those of the golden file."""
    assert drawn_golden(name, played, as_journal) == (GOLDEN / f"{name}.txt").read_text("utf-8")


@pytest.mark.parametrize("scenario", list(Scenario))
def test_a_script_named_after_a_scenario_is_one(scenario: Scenario, played: Played, as_journal: AsJournal) -> None:
    """The turns that stand for a scenario are of it, under every policy."""
    closes = [recall.closed for policy in POLICIES if (recall := as_journal(played(scenario, policy)).recall)]

    assert [close.scenario for close in closes if close is not None] == [scenario] * len(POLICIES)


# The same from spans


def _hexadecimal(document: dict[str, Any]) -> dict[str, Any]:
    """Return OTLP as the collector writes it: ids in hexadecimal, kinds and statuses as numbers."""
    kinds = {"SPAN_KIND_INTERNAL": 1, "SPAN_KIND_CLIENT": 3}
    told = json.loads(json.dumps(document))
    for group in told["resourceSpans"]:
        for scope in group["scopeSpans"]:
            for span in scope["spans"]:
                for key in ("traceId", "spanId", "parentSpanId"):
                    if key in span:
                        span[key] = base64.b64decode(span[key]).hex()
                span["kind"] = kinds[span["kind"]]
    return told


def _jaeger(document: dict[str, Any]) -> dict[str, Any]:
    """Return the trace as Jaeger's own API answers: tags, logs, references, microseconds, lists as text."""
    spans: list[dict[str, Any]] = []
    for group in _hexadecimal(document)["resourceSpans"]:
        for scope in group["scopeSpans"]:
            spans.extend(_jaeger_span(span) for span in scope["spans"])
    trace = {"traceID": spans[0]["traceID"], "spans": spans, "processes": {"p1": {"serviceName": "recallscope"}}}
    return {"data": [trace], "total": 0, "limit": 0, "offset": 0, "errors": None}


def _jaeger_span(span: Mapping[str, Any]) -> dict[str, Any]:
    start, end = int(span["startTimeUnixNano"]) // 1000, int(span["endTimeUnixNano"]) // 1000
    trace = span["traceId"]
    parents = [span["parentSpanId"]] if "parentSpanId" in span else []
    return {
        "traceID": trace,
        "spanID": span["spanId"],
        "operationName": span["name"],
        "references": [{"refType": "CHILD_OF", "traceID": trace, "spanID": parent} for parent in parents],
        "startTime": start,
        "duration": end - start,
        "tags": [_tag(pair) for pair in span.get("attributes", [])],
        "logs": [
            {
                "timestamp": int(event["timeUnixNano"]) // 1000,
                "fields": [
                    {"key": "event", "type": "string", "value": event["name"]},
                    *(_tag(pair) for pair in event.get("attributes", [])),
                ],
            }
            for event in span.get("events", [])
        ],
        "processID": "p1",
        "warnings": None,
    }


def _tag(pair: Mapping[str, Any]) -> dict[str, Any]:
    (kind, value), *_ = pair["value"].items()
    match kind:
        case "intValue":
            return {"key": pair["key"], "type": "int64", "value": int(value)}
        case "arrayValue":
            items = [next(iter(item.values())) for item in value.get("values", [])]
            return {"key": pair["key"], "type": "string", "value": json.dumps(items)}
        case "doubleValue":
            return {"key": pair["key"], "type": "float64", "value": value}
        case "boolValue":
            return {"key": pair["key"], "type": "bool", "value": value}
        case _:
            return {"key": pair["key"], "type": "string", "value": value}


def _lists_as_text(document: dict[str, Any]) -> dict[str, Any]:
    """Return OTLP as Jaeger's third API answers: lists have become the text of their JSON."""
    for group in document["resourceSpans"]:
        for scope in group["scopeSpans"]:
            for span in scope["spans"]:
                for pair in span.get("attributes", []):
                    if "arrayValue" in pair["value"]:
                        pair["value"] = {"stringValue": _tag(pair)["value"]}
    return document


SHAPES: Mapping[str, Callable[[dict[str, Any]], Any]] = {
    "tempo": lambda document: {"batches": document["resourceSpans"]},
    "tempo v2": lambda document: {"trace": document},
    "collector": _hexadecimal,
    "jaeger": _jaeger,
    "jaeger v3": lambda document: {"result": _lists_as_text(_hexadecimal(document))},
}


@pytest.mark.parametrize("name", NAMES)
def test_the_verdict_is_the_same_from_a_trace(
    name: str, played: Played, as_journal: AsJournal, as_otlp: AsOtlp
) -> None:
    """Whatever back end tells the trace, and also when its span events are missing, the sentences are the journal's."""
    for policy, events in itertools.product(POLICIES, (True, False)):
        stated = played(name, policy)
        document = as_otlp(stated, events=events)
        for shape, reshaped in SHAPES.items():
            (turn,) = turns_of(spans_in(reshaped(document)))

            assert turn.record is Record.SPANS
            assert _said(turn) == _said(as_journal(stated)), (policy, shape, events)


@pytest.mark.parametrize("name", NAMES)
def test_the_verdict_is_the_same_from_the_collectors_file(
    name: str, played: Played, as_journal: AsJournal, as_otlp: AsOtlp, tmp_path: Path
) -> None:
    """A trace whose spans stand in several lines of a file, the first of them moved aside, is put together again."""
    stated = played(name, PolicyName.TIERED)
    told = _hexadecimal(as_otlp(stated))
    spans = told["resourceSpans"][0]["scopeSpans"][0]["spans"]
    lines = [json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}) for span in spans]
    file = tmp_path / "spans" / "kept.jsonl"
    file.parent.mkdir()
    file.with_name("kept-2027-01-15T08-00-00.000.jsonl").write_text(lines[0] + "\n")
    file.write_text("\n".join(lines[1:]) + '\n{"resourceSpans": [{"sco')
    source = open_source(str(file), journal=tmp_path)
    journal = as_journal(stated)

    assert _said(source.find("s.1")) == _said(journal)
    assert source.find("last").turn == "s.1"
    assert [turn.turn for turn in source.slowest(top=3)] == ["s.1"]


# What is advised is true


@pytest.mark.parametrize("name", NAMES)
def test_what_is_advised_changes_what_it_says(name: str, played: Played, as_journal: AsJournal) -> None:
    """Played again with the advised policy and ceiling, a turn gets memory at the first send or is held less for it."""
    for policy in POLICIES:
        turn = as_journal(played(name, policy))
        told = {one.key: one.value for one in judge(turn).advice.settings}
        if told.keys() & {"recall.policy", "recall.ceiling_seconds"}:
            ceiling = float(told.get("recall.ceiling_seconds", "0.1"))
            again = as_journal(played(name, PolicyName(told.get("recall.policy", policy)), ceiling=ceiling))
            before, after = _close(turn), _close(again)

            assert Point.INITIAL in after.points or after.waited < before.waited


def _close(turn: RecordedTurn) -> Close:
    assert turn.recall is not None
    assert turn.recall.closed is not None
    return turn.recall.closed


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_the_drawing_keeps_to_the_width(width: int, played: Played, as_journal: AsJournal) -> None:
    """No line is longer than the terminal is wide."""
    text = _drawn(as_journal(played("slow_with_tools", PolicyName.TIERED)), width)

    assert max(len(line) for line in text.splitlines()) <= width
