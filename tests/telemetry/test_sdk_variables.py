"""Telemetry of a whole process under the standard variables: which win, which are off, which are nonsense."""

from collections.abc import Callable
from pathlib import Path

import pytest
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

from recallscope.runtime.events import OpId
from recallscope.telemetry import names
from recallscope.telemetry.sdk import open_telemetry
from recallscope.telemetry.testing.golden import golden_turn
from recallscope.telemetry.testing.journal import journal_events
from recallscope.telemetry.testing.process import feed, settings_for
from recallscope.telemetry.testing.receiver import OtlpReceiver


def test_headers_reach_the_collector(
    receiver: OtlpReceiver, exporting: Callable[[dict[str, str]], dict[str, str]]
) -> None:
    """`OTEL_EXPORTER_OTLP_HEADERS` goes with each request."""
    environ = exporting(receiver.environ(OTEL_EXPORTER_OTLP_HEADERS="x-tenant=staging"))
    with open_telemetry(settings_for(environ)) as telemetry:
        feed(telemetry, golden_turn())

    assert {headers["x-tenant"] for headers in receiver.headers} == {"staging"}


def test_a_signal_can_be_left_out(
    receiver: OtlpReceiver, exporting: Callable[[dict[str, str]], dict[str, str]]
) -> None:
    """`OTEL_TRACES_EXPORTER=none` exports metrics only."""
    environ = exporting(receiver.environ(OTEL_TRACES_EXPORTER="none"))
    with open_telemetry(settings_for(environ)) as telemetry:
        feed(telemetry, golden_turn())

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
    with open_telemetry(settings_for(environ)) as telemetry:
        feed(telemetry, golden_turn())
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
    with open_telemetry(settings_for(environ)) as telemetry:
        feed(telemetry, golden_turn())

    assert len(receiver.spans()) == expected


def test_the_sdk_tells_of_itself_when_asked(
    receiver: OtlpReceiver, exporting: Callable[[dict[str, str]], dict[str, str]]
) -> None:
    """`OTEL_PYTHON_SDK_INTERNAL_METRICS_ENABLED` adds the SDK's own metrics."""
    environ = exporting(receiver.environ(OTEL_PYTHON_SDK_INTERNAL_METRICS_ENABLED="true"))
    with open_telemetry(settings_for(environ)) as telemetry:
        feed(telemetry, golden_turn())

    assert "otel.sdk.span.started" in receiver.metrics()


def test_ids_can_be_those_of_another_maker(
    exporting: Callable[[dict[str, str]], dict[str, str]], receiver: OtlpReceiver
) -> None:
    """Traces and spans have the ids that the given maker makes, so that a play can be repeated to the id."""

    class Counting(RandomIdGenerator):
        def generate_trace_id(self) -> int:
            return 7

    with open_telemetry(settings_for(exporting(receiver.environ()), ids=Counting())) as telemetry:
        feed(telemetry, golden_turn())

    assert {span.trace_id for span in receiver.spans()} == {f"{7:032x}"}


def test_disabling_the_sdk_leaves_the_journal(
    tmp_path: Path, receiver: OtlpReceiver, exporting: Callable[[dict[str, str]], dict[str, str]]
) -> None:
    """`OTEL_SDK_DISABLED=true` switches spans, metrics and headers off."""
    environ = exporting(receiver.environ(OTEL_SDK_DISABLED="true"))
    settings = settings_for(environ, serve_metrics=True, journal=True, journal_directory=tmp_path)
    with open_telemetry(settings) as telemetry:
        feed(telemetry, golden_turn())
        assert telemetry.metrics_url is None
        assert telemetry.trace_headers(OpId("s-1-turn")) == {}

    assert receiver.spans() == []
    assert len(journal_events(tmp_path)) == len(golden_turn())


def test_without_a_collector_the_journal_and_the_headers_work(
    tmp_path: Path, exporting: Callable[[dict[str, str]], dict[str, str]]
) -> None:
    """The embedded default: spans exist for headers and logs, and the journal is written."""
    with open_telemetry(settings_for(exporting({}), journal=True, journal_directory=tmp_path)) as telemetry:
        feed(telemetry, golden_turn())
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
    with open_telemetry(settings_for(environ)) as telemetry:
        assert telemetry.metrics_url is None
    messages = [record.getMessage() for record in caplog.records]

    assert "OTEL_TRACES_EXPORTER=console is not known here: use otlp or none; nothing is exported" in messages
    assert any(message.startswith("OTEL_EXPORTER_OTLP_PROTOCOL=http/json is not known here") for message in messages)
    assert "OTEL_METRIC_EXPORT_INTERVAL=soon is no number from 1 to 2147483647: 15000 is used" in messages
    assert settings_for(environ).metrics_address == ("127.0.0.1", 9464)


def test_of_a_list_of_exporters_the_known_ones_count(
    receiver: OtlpReceiver, exporting: Callable[[dict[str, str]], dict[str, str]], caplog: pytest.LogCaptureFixture
) -> None:
    """`otlp,console` exports over OTLP, and tells that `console` is not known."""
    environ = exporting(receiver.environ(OTEL_METRICS_EXPORTER="otlp, console"))
    with open_telemetry(settings_for(environ)) as telemetry:
        feed(telemetry, golden_turn())

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
    with open_telemetry(settings_for(environ)) as telemetry:
        feed(telemetry, golden_turn())

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
    with open_telemetry(settings_for(environ)) as telemetry:
        feed(telemetry, golden_turn())

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
    with open_telemetry(settings_for(environ)) as telemetry:
        feed(telemetry, golden_turn())
    lost = {flow.signal: flow.lost for flow in telemetry.statistics()}

    assert dict(lost["traces"])[names.LOST_EXPORT_FAILED] == 6
    assert dict(lost["metrics"])[names.LOST_EXPORT_FAILED] > 0


def test_settings_win_over_the_variables_of_the_page() -> None:
    """Host and port that the configuration states are used."""
    environ = {"OTEL_EXPORTER_PROMETHEUS_HOST": "0.0.0.0", "OTEL_EXPORTER_PROMETHEUS_PORT": "1"}  # noqa: S104 - not opened

    assert settings_for(environ, metrics_host="127.0.0.1", metrics_port=0).metrics_address == ("127.0.0.1", 0)


def test_the_journal_stands_in_the_state_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    """`XDG_STATE_HOME`, else `~/.local/state`."""
    monkeypatch.setenv("HOME", "/somewhere")

    assert settings_for({"XDG_STATE_HOME": "/state"}).journal_folder == Path("/state/recallscope/journal")
    assert settings_for({}).journal_folder == Path("/somewhere/.local/state/recallscope/journal")
