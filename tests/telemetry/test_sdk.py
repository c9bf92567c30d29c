"""Telemetry of a whole process: what arrives over OTLP, exemplars, logs, and an end that never takes long."""

import io
import json
import logging
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from prometheus_client.openmetrics import parser as openmetrics_parser

from recallscope.runtime.events import Event, OpId, PolicyName, ToolStarted
from recallscope.telemetry import names
from recallscope.telemetry.contract import RESOURCE_ATTRIBUTES
from recallscope.telemetry.flow import Flow
from recallscope.telemetry.sdk import Telemetry, TelemetrySettings, open_telemetry
from recallscope.telemetry.span_table import MAX_OPEN
from recallscope.telemetry.testing.golden import golden_process, golden_turn
from recallscope.telemetry.testing.journal import journal_events
from recallscope.telemetry.testing.receiver import Behaviour, OtlpReceiver, attributes_of

PARSER: Any = openmetrics_parser  # it says no types
DELTA = AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA
TURNS_ENDED = f"{names.TURN_DURATION.prometheus}_count"
OPENMETRICS = "application/openmetrics-text; version=1.0.0"


def _settings(environ: dict[str, str], **more: Any) -> TelemetrySettings:
    plain = TelemetrySettings(
        version="1.2.3", front_end="compare", policies=(PolicyName.TIERED,), journal=False, environ=environ
    )
    return replace(plain, **more)


def _feed(telemetry: Telemetry, events: Sequence[Event]) -> None:
    for event in events:
        for observer in telemetry.observers:
            observer(event)


def _scrape(url: str | None) -> list[Any]:
    assert url is not None
    request = urllib.request.Request(url, headers={"Accept": OPENMETRICS})  # noqa: S310 - a loopback address of this test
    with urllib.request.urlopen(request) as answer:  # noqa: S310 - a loopback address of this test
        text = answer.read().decode()
    return [sample for family in PARSER.text_string_to_metric_families(text) for sample in family.samples]


@pytest.fixture
def exporting(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, str]], dict[str, str]]:
    """Return a function that sets the standard variables, which exporters read themselves, and returns them."""

    def use(environ: dict[str, str]) -> dict[str, str]:
        for name in [name for name in os.environ if name.startswith("OTEL_")]:
            monkeypatch.delenv(name)
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        return environ

    return use


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_a_golden_process_arrives_at_a_collector(
    protocol: str, receiver: OtlpReceiver, exporting: Callable[[dict[str, str]], dict[str, str]]
) -> None:
    """Spans with their tree, metrics with their values and exemplars, and the resource arrive over HTTP and gRPC."""
    environ = exporting(receiver.environ(protocol))
    with open_telemetry(_settings(environ)) as telemetry:
        _feed(telemetry, golden_process())
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
    with open_telemetry(_settings(exporting(receiver.environ()))) as telemetry:
        _feed(telemetry, golden_process())
    by_id = {span.span_id: span for span in receiver.spans()}

    for span in by_id.values():
        if span.parent_id in by_id:
            assert span.end_ns <= by_id[span.parent_id].end_ns


def test_text_from_outside_does_not_cost_a_batch(
    receiver: OtlpReceiver, exporting: Callable[[dict[str, str]], dict[str, str]]
) -> None:
    """A model may invent a call id that is no Unicode: its span arrives all the same, and so do the others."""
    with open_telemetry(_settings(exporting(receiver.environ()))) as telemetry:
        tool = ToolStarted(op=OpId("x"), at=1.0, parent=None, tool="read_file", call_id="\ud800")
        _feed(telemetry, [*golden_turn(), tool])
    ids = [span.attributes.get(names.TOOL_CALL_ID) for span in receiver.spans() if span.name.startswith("execute_tool")]

    assert (len(receiver.spans()), sorted(str(one) for one in ids)) == (7, ["?", "call_1"])


def test_spans_arrive_while_the_process_runs(
    receiver: OtlpReceiver, exporting: Callable[[dict[str, str]], dict[str, str]]
) -> None:
    """They wait for company a second, not for the end."""
    environ = exporting(receiver.environ(OTEL_BSP_SCHEDULE_DELAY="20"))
    with open_telemetry(_settings(environ)) as telemetry:
        _feed(telemetry, golden_turn())
        assert receiver.wait_for(lambda: len(receiver.spans()) == 6)


def test_an_exemplar_on_the_page_names_the_trace_that_the_collector_has(
    receiver: OtlpReceiver, exporting: Callable[[dict[str, str]], dict[str, str]]
) -> None:
    """From a bucket of `/metrics` one gets to the recorded turn."""
    environ = exporting(receiver.environ(OTEL_EXPORTER_PROMETHEUS_PORT="0"))
    with open_telemetry(_settings(environ, serve_metrics=True)) as telemetry:
        _feed(telemetry, golden_turn())
        samples = _scrape(telemetry.metrics_url)
    traces = {sample.exemplar.labels["trace_id"] for sample in samples if sample.exemplar is not None}

    assert traces == {span.trace_id for span in receiver.spans()}


def test_a_scrape_takes_no_exemplar_from_the_collector(
    receiver: OtlpReceiver, exporting: Callable[[dict[str, str]], dict[str, str]]
) -> None:
    """Both ways out read one reader, and each gets the exemplars since its own last collection."""
    environ = exporting(receiver.environ(OTEL_EXPORTER_PROMETHEUS_PORT="0"))
    with open_telemetry(_settings(environ, serve_metrics=True)) as telemetry:
        _feed(telemetry, golden_turn())
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
    with open_telemetry(_settings(environ, serve_metrics=True)) as telemetry:
        _feed(telemetry, golden_turn())
        assert receiver.wait_for(lambda: names.TURN_DURATION.name in receiver.metrics())
        first = receiver.metrics()[names.TURN_DURATION.name].histogram
        _feed(telemetry, golden_turn(number=2))
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
    with open_telemetry(_settings(environ, serve_metrics=True)) as telemetry:
        _feed(telemetry, golden_process())
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
    with open_telemetry(_settings(environ, serve_metrics=True)) as telemetry:
        telemetry.watch_observers(lambda: [State("spans", 2)])
        _feed(telemetry, golden_process())
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
    with open_telemetry(_settings(environ, log_stream=stream)) as telemetry:
        _feed(telemetry, golden_turn()[:2])
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
    with open_telemetry(_settings(exporting(receiver.environ()))):
        logging.getLogger("recallscope.test").warning("x")

    assert receiver.logs() == []


def test_handlers_and_levels_are_left_as_they_were(exporting: Callable[[dict[str, str]], dict[str, str]]) -> None:
    """After the block, logging is what it was before."""
    root, ours = logging.getLogger(), logging.getLogger("recallscope")
    before = (list(root.handlers), ours.level, logging.getLogger("opentelemetry.exporter").level)
    with open_telemetry(_settings(exporting({}), log_stream=io.StringIO())):
        pass

    assert (list(root.handlers), ours.level, logging.getLogger("opentelemetry.exporter").level) == before


def test_headers_reach_the_collector(
    receiver: OtlpReceiver, exporting: Callable[[dict[str, str]], dict[str, str]]
) -> None:
    """`OTEL_EXPORTER_OTLP_HEADERS` goes with each request."""
    environ = exporting(receiver.environ(OTEL_EXPORTER_OTLP_HEADERS="x-tenant=staging"))
    with open_telemetry(_settings(environ)) as telemetry:
        _feed(telemetry, golden_turn())

    assert {headers["x-tenant"] for headers in receiver.headers} == {"staging"}


def test_a_signal_can_be_left_out(
    receiver: OtlpReceiver, exporting: Callable[[dict[str, str]], dict[str, str]]
) -> None:
    """`OTEL_TRACES_EXPORTER=none` exports metrics only."""
    environ = exporting(receiver.environ(OTEL_TRACES_EXPORTER="none"))
    with open_telemetry(_settings(environ)) as telemetry:
        _feed(telemetry, golden_turn())

    assert receiver.spans() == []
    assert "recallscope.recall.turns" in receiver.metrics()


def test_the_standard_variables_win_over_what_we_say_of_ourselves(
    receiver: OtlpReceiver, exporting: Callable[[dict[str, str]], dict[str, str]]
) -> None:
    """Service name and resource attributes are the operator's."""
    environ = exporting(
        receiver.environ(
            OTEL_SERVICE_NAME="mine", OTEL_RESOURCE_ATTRIBUTES="deployment.environment.name=staging,team=sre"
        )
    )
    with open_telemetry(_settings(environ)) as telemetry:
        _feed(telemetry, golden_turn())
    resource = receiver.spans()[0].resource

    assert (resource["service.name"], resource["deployment.environment.name"], resource["team"]) == (
        "mine",
        "staging",
        "sre",
    )


@pytest.mark.parametrize(("sampler", "expected"), [("", 6), ("always_off", 0), ("parentbased_always_on", 6)])
def test_the_sampler_can_be_overridden(
    sampler: str,
    expected: int,
    receiver: OtlpReceiver,
    exporting: Callable[[dict[str, str]], dict[str, str]],
) -> None:
    """Everything is recorded unless `OTEL_TRACES_SAMPLER` says otherwise."""
    environ = exporting(receiver.environ(**({"OTEL_TRACES_SAMPLER": sampler} if sampler else {})))
    with open_telemetry(_settings(environ)) as telemetry:
        _feed(telemetry, golden_turn())

    assert len(receiver.spans()) == expected


def test_the_sdk_tells_of_itself_when_asked(
    receiver: OtlpReceiver, exporting: Callable[[dict[str, str]], dict[str, str]]
) -> None:
    """`OTEL_PYTHON_SDK_INTERNAL_METRICS_ENABLED` adds the SDK's own metrics."""
    environ = exporting(receiver.environ(OTEL_PYTHON_SDK_INTERNAL_METRICS_ENABLED="true"))
    with open_telemetry(_settings(environ)) as telemetry:
        _feed(telemetry, golden_turn())

    assert "otel.sdk.span.started" in receiver.metrics()


def test_ids_can_be_those_of_another_maker(
    exporting: Callable[[dict[str, str]], dict[str, str]], receiver: OtlpReceiver
) -> None:
    """Traces and spans have the ids that the given maker makes, so that a play can be repeated to the id."""

    class Counting(RandomIdGenerator):
        def generate_trace_id(self) -> int:
            return 7

    with open_telemetry(_settings(exporting(receiver.environ()), ids=Counting())) as telemetry:
        _feed(telemetry, golden_turn())

    assert {span.trace_id for span in receiver.spans()} == {f"{7:032x}"}


def test_disabling_the_sdk_leaves_the_journal(
    tmp_path: Path, receiver: OtlpReceiver, exporting: Callable[[dict[str, str]], dict[str, str]]
) -> None:
    """`OTEL_SDK_DISABLED=true` switches spans, metrics and headers off."""
    environ = exporting(receiver.environ(OTEL_SDK_DISABLED="true"))
    settings = _settings(environ, serve_metrics=True, journal=True, journal_directory=tmp_path)
    with open_telemetry(settings) as telemetry:
        _feed(telemetry, golden_turn())
        assert telemetry.metrics_url is None
        assert telemetry.trace_headers(OpId("s-1-turn")) == {}

    assert receiver.spans() == []
    assert len(journal_events(tmp_path)) == len(golden_turn())


def test_without_a_collector_the_journal_and_the_headers_work(
    tmp_path: Path, exporting: Callable[[dict[str, str]], dict[str, str]]
) -> None:
    """The embedded default: spans exist for headers and logs, and the journal is written."""
    with open_telemetry(_settings(exporting({}), journal=True, journal_directory=tmp_path)) as telemetry:
        _feed(telemetry, golden_turn())
        headers = telemetry.trace_headers(OpId("s-1-send2"))

    assert list(headers) == ["traceparent"]
    assert len(journal_events(tmp_path)) == len(golden_turn())
    assert [getattr(observer, "name", None) for observer in telemetry.observers] == ["spans", "journal"]


def test_wrong_values_are_warnings(
    exporting: Callable[[dict[str, str]], dict[str, str]], caplog: pytest.LogCaptureFixture
) -> None:
    """An exporter, a protocol or a number that is not known is told, and never fatal."""
    environ = exporting(
        {
            "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1",
            "OTEL_TRACES_EXPORTER": "console",
            "OTEL_METRICS_EXPORTER": "otlp",
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json",
            "OTEL_METRIC_EXPORT_INTERVAL": "soon",
            "OTEL_EXPORTER_PROMETHEUS_PORT": "no",
        }
    )
    with open_telemetry(_settings(environ)) as telemetry:
        assert telemetry.metrics_url is None
    messages = [record.getMessage() for record in caplog.records]

    assert "OTEL_TRACES_EXPORTER=console is not known here: use otlp or none; nothing is exported" in messages
    assert any(message.startswith("OTEL_EXPORTER_OTLP_PROTOCOL=http/json is not known here") for message in messages)
    assert "OTEL_METRIC_EXPORT_INTERVAL=soon is no number from 1 to 2147483647: 15000 is used" in messages
    assert _settings(environ).metrics_address == ("127.0.0.1", 9464)


def test_of_a_list_of_exporters_the_known_ones_count(
    receiver: OtlpReceiver, exporting: Callable[[dict[str, str]], dict[str, str]], caplog: pytest.LogCaptureFixture
) -> None:
    """`otlp,console` exports over OTLP, and tells that `console` is not known."""
    environ = exporting(receiver.environ(OTEL_METRICS_EXPORTER="otlp, console"))
    with open_telemetry(_settings(environ)) as telemetry:
        _feed(telemetry, golden_turn())

    assert "recallscope.recall.turns" in receiver.metrics()
    assert [record.getMessage() for record in caplog.records] == [
        "OTEL_METRICS_EXPORTER=console is not known here: use otlp or none; only otlp is used"
    ]


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
@pytest.mark.parametrize(
    "nonsense",
    [
        "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=abc",
        "OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT=-1",
        "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT=x",
        "OTEL_ATTRIBUTE_COUNT_LIMIT=nan",
        "OTEL_LOGRECORD_ATTRIBUTE_COUNT_LIMIT=x",
        "OTEL_BSP_MAX_QUEUE_SIZE=inf",
        "OTEL_BSP_SCHEDULE_DELAY=1e300",
        "OTEL_BLRP_SCHEDULE_DELAY=nan",
        "OTEL_METRIC_EXPORT_INTERVAL=x",
        "OTEL_METRIC_EXPORT_TIMEOUT=x",
        "OTEL_METRICS_EXEMPLAR_FILTER=some",
        "OTEL_EXPORTER_OTLP_TIMEOUT=abc",
        "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT=abc",
        "OTEL_EXPORTER_OTLP_COMPRESSION=zip",
        "OTEL_EXPORTER_OTLP_METRICS_COMPRESSION=zip",
        "OTEL_TRACES_SAMPLER=some",
        "OTEL_RESOURCE_ATTRIBUTES=no pair",
        "OTEL_EXPORTER_OTLP_HEADERS=no pair",
    ],
)
def test_nonsense_is_told_and_everything_arrives(
    nonsense: str,
    protocol: str,
    receiver: OtlpReceiver,
    exporting: Callable[[dict[str, str]], dict[str, str]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A variable with a value that is none costs a warning, and no signal."""
    name, value = nonsense.split("=")
    environ = exporting(receiver.environ(protocol, OTEL_LOGS_EXPORTER="otlp", **{name: value}))
    with open_telemetry(_settings(environ)) as telemetry:
        _feed(telemetry, golden_turn())

    assert value in caplog.text
    assert [flow.lost_items for flow in telemetry.statistics()] == [0, 0, 0, 0]
    assert len(receiver.spans()) == 6
    assert "recallscope.recall.turns" in receiver.metrics()


def test_an_exporter_that_refuses_its_variables_is_left_out(
    receiver: OtlpReceiver, exporting: Callable[[dict[str, str]], dict[str, str]], caplog: pytest.LogCaptureFixture
) -> None:
    """One warning names the variables, not their values; the other signals are exported."""
    wrong = {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://[secret"}
    environ = exporting(receiver.environ("grpc", **wrong))
    with open_telemetry(_settings(environ)) as telemetry:
        _feed(telemetry, golden_turn())

    (told,) = [record.getMessage() for record in caplog.records]
    assert told.startswith("traces are not exported: wrong value in one of OTEL_EXPORTER_OTLP_ENDPOINT, ")
    assert "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT" in told
    assert "secret" not in told
    assert [flow.signal for flow in telemetry.statistics()] == ["metrics", "events"]
    assert "recallscope.recall.turns" in receiver.metrics()


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_headers_that_cannot_be_sent_are_losses(
    protocol: str, receiver: OtlpReceiver, exporting: Callable[[dict[str, str]], dict[str, str]]
) -> None:
    """What only the export refuses ends no thread: it is counted as lost."""
    environ = exporting(receiver.environ(protocol, OTEL_EXPORTER_OTLP_HEADERS="x-name=a%0Ab"))
    with open_telemetry(_settings(environ)) as telemetry:
        _feed(telemetry, golden_turn())
    lost = {flow.signal: flow.lost for flow in telemetry.statistics()}

    assert dict(lost["traces"])[names.LOST_EXPORT_FAILED] == 6
    assert dict(lost["metrics"])[names.LOST_EXPORT_FAILED] > 0


def test_settings_win_over_the_variables_of_the_page() -> None:
    """Host and port that the configuration states are used."""
    environ = {"OTEL_EXPORTER_PROMETHEUS_HOST": "0.0.0.0", "OTEL_EXPORTER_PROMETHEUS_PORT": "1"}  # noqa: S104 - not opened

    assert _settings(environ, metrics_host="127.0.0.1", metrics_port=0).metrics_address == ("127.0.0.1", 0)


def test_the_journal_stands_in_the_state_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    """`XDG_STATE_HOME`, else `~/.local/state`."""
    monkeypatch.setenv("HOME", "/somewhere")

    assert _settings({"XDG_STATE_HOME": "/state"}).journal_folder == Path("/state/recallscope/journal")
    assert _settings({}).journal_folder == Path("/somewhere/.local/state/recallscope/journal")


PROGRAM = """
import os, sys, time
from recallscope.telemetry.sdk import TelemetrySettings, open_telemetry
from recallscope.telemetry.testing.golden import golden_turn
settings = TelemetrySettings(version="1", front_end="test", journal=False)
with open_telemetry(settings) as telemetry:
    began = time.monotonic()
    for number in range(300):
        for event in golden_turn(number=number):
            for observer in telemetry.observers:
                observer(event)
    print("turns", time.monotonic() - began)
    print("leaving", flush=True)
    left = time.monotonic()
print("left", time.monotonic() - left)
for flow in telemetry.statistics():
    print("flow", flow.signal, flow.exported, flow.lost_items, flush=True)
"""


def _leave(environ: dict[str, str]) -> tuple[float, dict[str, Flow], str]:
    """Run 300 turns in a process; return the seconds from the end of its turns to its exit, flows, and stderr."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        env={**clean, **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    flows: dict[str, Flow] = {}
    leaving = 0.0
    for line in process.stdout:
        word, *rest = line.split()
        if word == "leaving":
            leaving = time.monotonic()
        elif word == "flow":
            flows[rest[0]] = Flow(rest[0], int(rest[1]), (("all", int(rest[2])),))
    errors = process.stderr.read()
    process.stdout.close()
    process.stderr.close()
    assert process.wait() == 0, errors
    return time.monotonic() - leaving, flows, errors


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
@pytest.mark.parametrize("behaviour", [Behaviour.UNAVAILABLE, Behaviour.HANG])
def test_a_collector_that_is_in_trouble_costs_five_seconds_at_most(
    protocol: str, behaviour: Behaviour, receiver: OtlpReceiver
) -> None:
    """Exit is bounded, all losses are counted and told in one line."""
    receiver.behaviour = behaviour
    seconds, flows, errors = _leave(receiver.environ(protocol))

    assert seconds <= 5
    assert (flows["traces"].exported, flows["traces"].lost_items) == (0, 1800)
    assert flows["metrics"].lost_items > 0
    assert errors.count("telemetry was lost") == 1


def test_nonsense_that_the_sdk_reads_as_it_is_imported_ends_no_process() -> None:
    """The SDK raises while it is imported if this one is no number; here it is a warning."""
    _, _, errors = _leave({"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "abc"})

    assert errors == "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=abc is no number from 0 to 2147483647: 128 is used\n"


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_exporters_are_quiet_to_the_end(protocol: str, receiver: OtlpReceiver) -> None:
    """Threads of exporters that outlive telemetry write nothing of their own."""
    receiver.behaviour = Behaviour.UNAVAILABLE
    _, _, errors = _leave(receiver.environ(protocol, OTEL_EXPORTER_OTLP_TIMEOUT="30"))

    assert [line for line in errors.splitlines() if "export" not in line and "telemetry was lost" not in line] == []
    assert "retry" not in errors


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_a_collector_that_is_not_there_costs_five_seconds_at_most(protocol: str) -> None:
    """Connection refused is bounded too."""
    seconds, flows, errors = _leave(
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL": protocol}
    )

    assert seconds <= 5
    assert (flows["traces"].exported, flows["traces"].lost_items) == (0, 1800)
    assert errors.count("telemetry was lost") == 1


def test_a_collector_that_is_there_loses_nothing(receiver: OtlpReceiver) -> None:
    """Everything arrives before the process ends, and nothing is said about it."""
    _, flows, errors = _leave(receiver.environ())

    assert (flows["traces"].exported, flows["traces"].lost_items) == (1800, 0)
    assert len(receiver.spans()) == 1800
    assert errors == ""


def test_an_operation_that_gets_no_span_is_counted_as_lost(
    receiver: OtlpReceiver, exporting: Callable[[dict[str, str]], dict[str, str]]
) -> None:
    """When 10,000 spans are open, the next operation has none, and the losses say so."""
    with open_telemetry(_settings(exporting(receiver.environ()))) as telemetry:
        tools = [ToolStarted(op=OpId(f"x{n}"), at=1.0, parent=None, tool="t", call_id="") for n in range(MAX_OPEN + 2)]
        _feed(telemetry, tools)
        (lost,) = [
            dict(flow.lost)[names.LOST_TOO_MANY_OPEN] for flow in telemetry.statistics() if flow.signal == "traces"
        ]

    assert lost == 2
