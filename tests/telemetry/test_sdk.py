"""Telemetry of a whole process: spans, metrics, exemplars and logs as they arrive over OTLP and on the page."""

import io
import json
import logging
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import anyio
import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality
from prometheus_client.openmetrics import parser as openmetrics_parser

from recallscope.runtime.events import OpId, ToolStarted
from recallscope.telemetry import names
from recallscope.telemetry.contract import RESOURCE_ATTRIBUTES
from recallscope.telemetry.sdk import Telemetry, open_telemetry
from recallscope.telemetry.testing.golden import golden_process, golden_turn
from recallscope.telemetry.testing.process import feed, settings_for
from recallscope.telemetry.testing.receiver import OtlpReceiver, attributes_of

PARSER: Any = openmetrics_parser  # it says no types
DELTA = AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA
TURNS_ENDED = f"{names.TURN_DURATION.prometheus}_count"
OPENMETRICS = "application/openmetrics-text; version=1.0.0"


def _scrape(url: str | None) -> list[Any]:
    assert url is not None
    request = urllib.request.Request(url, headers={"Accept": OPENMETRICS})  # noqa: S310 - a loopback address of this test
    with urllib.request.urlopen(request) as answer:  # noqa: S310 - a loopback address of this test
        text = answer.read().decode()
    return [sample for family in PARSER.text_string_to_metric_families(text) for sample in family.samples]


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_a_golden_process_arrives_at_a_collector(
    protocol: str, receiver: OtlpReceiver, exporting: Callable[[dict[str, str]], dict[str, str]]
) -> None:
    """Spans with their tree, metrics with their values and exemplars, and the resource arrive over HTTP and gRPC."""
    environ = exporting(receiver.environ(protocol))
    with open_telemetry(settings_for(environ)) as telemetry:
        feed(telemetry, golden_process())
    spans = {span.name: span for span in receiver.spans()}
    metrics = receiver.metrics()
    turns = [span for span in receiver.spans() if span.name == "invoke_agent main"]
    recalls = [span for span in receiver.spans() if span.name == "search_memory"]

    assert [recall.parent_id for recall in recalls] == [turn.span_id for turn in turns]
    assert spans["chat small"].parent_id == recalls[0].span_id
    assert [name for name, _ in recalls[0].events] == [
        names.EVENT_BEGIN,
        names.EVENT_FAST_RESULT,
        names.EVENT_DELIVERED,
        names.EVENT_SETTLED,
        names.EVENT_DELIVERED,
    ]
    assert recalls[0].attributes[names.RECALL_POINTS] == ("initial", "tool_result")
    assert set(turns[0].resource) == set(RESOURCE_ATTRIBUTES)
    assert turns[0].resource["service.version"] == "1.2.3"
    waits = metrics["recallscope.recall.wait.duration"].histogram.data_points
    assert sum(point.count for point in waits) == 3
    traces = {exemplar.trace_id.hex() for point in waits for exemplar in point.exemplars}
    assert traces == {turn.trace_id for turn in turns[:2]}  # the other turns sent nothing, so they did not wait
    assert {metric for metric in metrics if metric not in {known.name for known in names.METRICS}} == set()
    assert [flow.lost_items for flow in telemetry.statistics()] == [0, 0, 0]


def test_nothing_outlives_what_is_above_it(
    receiver: OtlpReceiver, exporting: Callable[[dict[str, str]], dict[str, str]]
) -> None:
    """No span that arrives ends after its parent."""
    with open_telemetry(settings_for(exporting(receiver.environ()))) as telemetry:
        feed(telemetry, golden_process())
    by_id = {span.span_id: span for span in receiver.spans()}

    for span in by_id.values():
        if span.parent_id in by_id:
            assert span.end_ns <= by_id[span.parent_id].end_ns


def test_text_from_outside_does_not_cost_a_batch(
    receiver: OtlpReceiver, exporting: Callable[[dict[str, str]], dict[str, str]]
) -> None:
    """A model may invent a call id that is no Unicode: its span arrives all the same, and so do the others."""
    with open_telemetry(settings_for(exporting(receiver.environ()))) as telemetry:
        tool = ToolStarted(op=OpId("x"), at=1.0, parent=None, tool="read_file", call_id="\ud800")
        feed(telemetry, [*golden_turn(), tool])
    ids = [span.attributes.get(names.TOOL_CALL_ID) for span in receiver.spans() if span.name.startswith("execute_tool")]

    assert (len(receiver.spans()), sorted(str(one) for one in ids)) == (7, ["?", "call_1"])


def test_spans_arrive_while_the_process_runs(
    receiver: OtlpReceiver, exporting: Callable[[dict[str, str]], dict[str, str]]
) -> None:
    """They wait for company a second, not for the end."""
    environ = exporting(receiver.environ(OTEL_BSP_SCHEDULE_DELAY="20"))
    with open_telemetry(settings_for(environ)) as telemetry:
        feed(telemetry, golden_turn())
        assert receiver.wait_for(lambda: len(receiver.spans()) == 6)


def test_an_exemplar_on_the_page_names_the_trace_that_the_collector_has(
    receiver: OtlpReceiver, exporting: Callable[[dict[str, str]], dict[str, str]]
) -> None:
    """From a bucket of `/metrics` one gets to the recorded turn."""
    environ = exporting(receiver.environ(OTEL_EXPORTER_PROMETHEUS_PORT="0"))
    with open_telemetry(settings_for(environ, serve_metrics=True)) as telemetry:
        feed(telemetry, golden_turn())
        samples = _scrape(telemetry.metrics_url)
    traces = {sample.exemplar.labels["trace_id"] for sample in samples if sample.exemplar is not None}

    assert traces == {span.trace_id for span in receiver.spans()}


def test_a_scrape_takes_no_exemplar_from_the_collector(
    receiver: OtlpReceiver, exporting: Callable[[dict[str, str]], dict[str, str]]
) -> None:
    """Both ways out read one reader, and each gets the exemplars since its own last collection."""
    environ = exporting(receiver.environ(OTEL_EXPORTER_PROMETHEUS_PORT="0"))
    with open_telemetry(settings_for(environ, serve_metrics=True)) as telemetry:
        feed(telemetry, golden_turn())
        _scrape(telemetry.metrics_url)
    sums = receiver.metrics()[names.RECALL_TURNS.name].sum.data_points
    waits = receiver.metrics()[names.RECALL_TURN_WAIT_DURATION.name].histogram.data_points
    traces = {exemplar.trace_id.hex() for point in (*sums, *waits) for exemplar in point.exemplars}

    assert traces == {span.trace_id for span in receiver.spans()}


def test_a_collector_that_wants_deltas_gets_them_and_the_page_stays_cumulative(
    receiver: OtlpReceiver, exporting: Callable[[dict[str, str]], dict[str, str]]
) -> None:
    """The exporter's preference holds for its own way out alone."""
    wanted = {"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE": "delta", "OTEL_METRIC_EXPORT_INTERVAL": "50"}
    environ = exporting(receiver.environ(OTEL_EXPORTER_PROMETHEUS_PORT="0", **wanted))
    with open_telemetry(settings_for(environ, serve_metrics=True)) as telemetry:
        feed(telemetry, golden_turn())
        assert receiver.wait_for(lambda: names.TURN_DURATION.name in receiver.metrics())
        first = receiver.metrics()[names.TURN_DURATION.name].histogram
        feed(telemetry, golden_turn(number=2))
        (count,) = [sample.value for sample in _scrape(telemetry.metrics_url) if sample.name == TURNS_ENDED]
    last = receiver.metrics()[names.TURN_DURATION.name].histogram

    assert (first.aggregation_temporality, last.aggregation_temporality) == (DELTA, DELTA)
    assert ([point.count for point in first.data_points], [point.count for point in last.data_points]) == ([1], [1])
    assert count == 2


def test_both_ways_out_give_the_same_names_and_values(
    receiver: OtlpReceiver, exporting: Callable[[dict[str, str]], dict[str, str]]
) -> None:
    """What a scrape shows is, translated, what the collector gets."""
    environ = exporting(receiver.environ(OTEL_EXPORTER_PROMETHEUS_PORT="0"))
    with open_telemetry(settings_for(environ, serve_metrics=True)) as telemetry:
        feed(telemetry, golden_process())
        samples = _scrape(telemetry.metrics_url)
    known = {metric.name: metric for metric in names.METRICS}
    scraped = {sample.name.removesuffix("_count") for sample in samples}
    exported = {known[name].prometheus for name in receiver.metrics()}

    assert exported - scraped == set()
    turns = receiver.metrics()["recallscope.recall.turns"].sum.data_points
    assert {_key(attributes_of(point.attributes)): point.as_int for point in turns} == {
        _key(sample.labels): sample.value for sample in samples if sample.name == names.RECALL_TURNS.prometheus
    }


def _key(labels: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(labels.items()))


def test_every_metric_is_on_the_page_of_a_process_that_does_everything(
    receiver: OtlpReceiver, exporting: Callable[[dict[str, str]], dict[str, str]]
) -> None:
    """Each documented metric is emitted, telemetry's own included, and each emitted one is documented."""

    @dataclass
    class State:
        name: str
        failures: int

    async def measure(telemetry: Telemetry) -> list[Any]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(telemetry.run)
            await anyio.sleep(0.15)
            tasks.cancel_scope.cancel()
        return _scrape(telemetry.metrics_url)

    environ = exporting(receiver.environ(OTEL_EXPORTER_PROMETHEUS_PORT="0"))
    with open_telemetry(settings_for(environ, serve_metrics=True)) as telemetry:
        telemetry.watch_observers(lambda: [State("spans", 2)])
        feed(telemetry, golden_process())
        samples = anyio.run(measure, telemetry)
    suffixes = ("_bucket", "_count", "_sum")
    found = {sample.name for sample in samples} - {"target_info"}
    histograms = {metric.prometheus for metric in names.METRICS if metric.buckets}
    plain = {
        next((name.removesuffix(end) for end in suffixes if name.removesuffix(end) in histograms), name)
        for name in found
    }

    assert plain == {metric.prometheus for metric in names.METRICS}
    failures = [sample.value for sample in samples if sample.name == names.OBSERVER_FAILURES.prometheus]
    assert failures == [2]


def test_logs_arrive_with_the_span_of_their_operation(
    receiver: OtlpReceiver, exporting: Callable[[dict[str, str]], dict[str, str]]
) -> None:
    """With `OTEL_LOGS_EXPORTER=otlp` records go to the collector, masked, with trace and span."""
    environ = exporting(receiver.environ(OTEL_LOGS_EXPORTER="otlp"))
    stream = io.StringIO()
    with open_telemetry(settings_for(environ, log_stream=stream)) as telemetry:
        feed(telemetry, golden_turn()[:2])
        log = logging.getLogger("recallscope.test")
        log.info("key %s", "sk-abcdefgh12345678", extra={"op": OpId("s-1-recall")})
        header = telemetry.trace_headers(OpId("s-1-recall"))["traceparent"].split("-")
    (record,) = receiver.logs()
    (line,) = [json.loads(line) for line in stream.getvalue().splitlines()]

    assert (record.body.string_value, record.severity_text) == ("key ***", "INFO")
    assert [record.trace_id.hex(), record.span_id.hex()] == header[1:3]
    assert (line["message"], line["trace_id"], line["span_id"]) == ("key ***", *header[1:3])


def test_logs_are_not_exported_unless_asked_for(
    receiver: OtlpReceiver, exporting: Callable[[dict[str, str]], dict[str, str]]
) -> None:
    """An endpoint alone exports traces and metrics."""
    with open_telemetry(settings_for(exporting(receiver.environ()))):
        logging.getLogger("recallscope.test").warning("x")

    assert receiver.logs() == []


def test_handlers_and_levels_are_left_as_they_were(exporting: Callable[[dict[str, str]], dict[str, str]]) -> None:
    """After the block, logging is what it was before."""
    root, ours = logging.getLogger(), logging.getLogger("recallscope")
    before = (list(root.handlers), ours.level, logging.getLogger("opentelemetry.exporter").level)
    with open_telemetry(settings_for(exporting({}), log_stream=io.StringIO())):
        pass

    assert (list(root.handlers), ours.level, logging.getLogger("opentelemetry.exporter").level) == before
