"""`explain` on the turns of every scenario: the golden verdicts, and the same ones from every kind of record."""

import base64
import copy
import io
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from scripted_turns import POLICIES

from recallscope.runtime.events import Event, Point, PolicyName, RecallWaited, Scenario
from recallscope.telemetry.explain.sentences import Sentences, sentences
from recallscope.telemetry.explain.terminal import ExplainedTurn
from recallscope.telemetry.explain.verdict import judge
from recallscope.telemetry.read.open_source import open_source
from recallscope.telemetry.read.recorded import Close, Record, RecordedTurn
from recallscope.telemetry.read.span_json import spans_in
from recallscope.telemetry.read.span_turns import turns_of
from recallscope.telemetry.read.turn_groups import TurnGrouper
from recallscope.telemetry.read.turn_lines import turn_of

GOLDEN = Path(__file__).parent / "golden"
NAMES = sorted(path.stem for path in GOLDEN.glob("*.txt"))

Played = Callable[..., list[Event]]
AsJournal = Callable[[Sequence[Event]], RecordedTurn]
AsOtlp = Callable[..., dict[str, Any]]
AsLines = Callable[..., list[dict[str, Any]]]


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


# A broken promise is said


@pytest.mark.parametrize(("waited", "over"), [(0.104, None), (0.106, "6.0 ms"), (0.19, "90 ms")])
def test_a_wait_over_its_ceiling_is_said(
    waited: float, over: str | None, played: Played, as_journal: AsJournal, as_otlp: AsOtlp
) -> None:
    """By how much a send was held longer than it may be stands in words; within the tolerance nothing is wrong."""
    stated = [
        replace(event, waited=waited) if isinstance(event, RecallWaited) else event
        for event in played("slow_without_tools", PolicyName.TIERED)
    ]
    (from_spans,) = turns_of(spans_in(as_otlp(stated)))
    said = " ".join(_drawn(as_journal(stated), 200).split())

    assert _said(from_spans) == _said(as_journal(stated))
    assert (f"{over} over the ceiling of 100 ms" in said) is (over is not None)
    assert (f"the wait passed its ceiling by {over}, which no setting does" in said) is (over is not None)
    assert ("over the ceiling" in said) is (over is not None)


# Nothing that a back end answers makes the reading or the judging fail

TEXT = st.text(st.characters(), max_size=8)  # half a surrogate pair as well
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | TEXT
JSON = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=6), inner, max_size=2)
)


def _children(document: Any) -> list[tuple[Any, Any]]:
    if isinstance(document, dict):
        return list(cast("dict[Any, Any]", document).items())
    return list(enumerate(cast("list[Any]", document))) if isinstance(document, list) else []


def _places(document: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Name every value in a document by the keys that lead to it."""
    below = [place for key, child in _children(document) for place in _places(child, (*above, key))]
    return [above, *below] if above else below


def _replaced(document: Any, place: Sequence[Any], value: object) -> None:
    """Put `value` there, if the way to it still exists."""
    key, *rest = place
    children = dict(_children(document))
    if key in children and rest:
        _replaced(children[key], rest, value)
    elif key in children:
        document[key] = value


def _changed(data: st.DataObject, document: Any) -> Any:
    """Put anything in place of up to four values of `document`."""
    told = copy.deepcopy(document)
    places = _places(told)
    for place in data.draw(st.lists(st.sampled_from(places), max_size=4)):
        _replaced(told, place, data.draw(JSON))
    return told


@given(data=st.data())
def test_no_answer_of_a_back_end_makes_the_verdict_fail(data: st.DataObject, played: Played, as_otlp: AsOtlp) -> None:
    """Whatever stands in place of values of a real trace, its turns are read, judged and drawn, or there is none."""
    document = as_otlp(played("slow_with_tools", PolicyName.TIERED))
    shape = SHAPES[data.draw(st.sampled_from(sorted(SHAPES)))]
    changed = _changed(data, shape(document))
    answer = data.draw(JSON, label="another answer") if data.draw(st.integers(0, 9)) == 0 else changed
    turns = list(turns_of(spans_in(answer)))

    assert all(_drawn(turn) for turn in turns)


@given(data=st.data())
def test_no_line_of_a_journal_makes_the_verdict_fail(data: st.DataObject, played: Played, as_lines: AsLines) -> None:
    """Whatever stands in place of values of a turn's lines, it is read, judged and drawn, or there is none."""
    lines: list[dict[str, Any]] = as_lines(played("slow_with_tools", PolicyName.TIERED))
    grouper = TurnGrouper()
    told: list[Any] = [line for line in _changed(data, lines) if isinstance(line, dict)]
    turns = [turn_of(group) for group in (*grouper.feed(told), *grouper.rest())]

    assert all(_drawn(turn) for turn in turns if turn is not None)


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
