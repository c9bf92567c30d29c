"""The probe of the OTLP endpoints: what is sent, and what is said where it is not taken."""

import logging
import os

import pytest

from recallscope.telemetry.names import DOCTOR_SPAN
from recallscope.telemetry.probe import probe_exports
from recallscope.telemetry.testing.receiver import Behaviour, OtlpReceiver

SIGNALS = ["traces", "metrics", "logs"]


@pytest.fixture(autouse=True)
def variables(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Take away what the process exports; the exporters read their own variables from it."""
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)
    return monkeypatch


def _set(variables: pytest.MonkeyPatch, values: dict[str, str]) -> dict[str, str]:
    for name, value in values.items():
        variables.setenv(name, value)
    return values


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_each_exported_signal_is_sent_once(variables: pytest.MonkeyPatch, protocol: str) -> None:
    """One span that belongs to no turn, and nothing in the metrics and logs."""
    with OtlpReceiver() as receiver:
        environ = _set(variables, receiver.environ(protocol, OTEL_LOGS_EXPORTER="otlp"))
        probes = probe_exports(environ, version="1")
        spans = receiver.spans()

    assert [(probe.signal, probe.protocol, probe.problem) for probe in probes] == [
        (signal, protocol, None) for signal in SIGNALS
    ]
    assert {probe.endpoint for probe in probes} == {environ["OTEL_EXPORTER_OTLP_ENDPOINT"]}
    assert [(span.name, span.parent_id, span.resource["recallscope.front_end"]) for span in spans] == [
        (DOCTOR_SPAN, "", "doctor")
    ]
    assert (receiver.metrics(), receiver.logs()) == ({}, [])


def test_a_dead_endpoint_is_told_in_the_words_of_the_system(variables: pytest.MonkeyPatch) -> None:
    """Not in those of the library, which only counts its attempts."""
    more = {"OTEL_EXPORTER_OTLP_TIMEOUT": "0.2", "OTEL_METRICS_EXPORTER": "none"}
    environ = _set(variables, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", **more})

    [probe] = probe_exports(environ, version="1")

    assert probe.problem == "Connection refused"


@pytest.mark.parametrize(("protocol", "words"), [("http/protobuf", "Service Unavailable"), ("grpc", "not now")])
def test_a_refusal_is_told_and_logged_nowhere(
    variables: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, protocol: str, words: str
) -> None:
    """The exporter's own words are the problem; its log is as it was before."""
    exporters = logging.getLogger("opentelemetry.exporter")
    before = exporters.level
    with OtlpReceiver(Behaviour.UNAVAILABLE) as receiver:
        more = {"OTEL_EXPORTER_OTLP_TIMEOUT": "0.2", "OTEL_METRICS_EXPORTER": "none"}
        environ = _set(variables, receiver.environ(protocol, **more))
        [probe] = probe_exports(environ, version="1")

    assert probe.signal == "traces"
    assert words in (probe.problem or "")
    assert (caplog.records, exporters.level, exporters.handlers) == ([], before, [])


def test_without_an_endpoint_nothing_is_sent() -> None:
    """No probe at all."""
    assert probe_exports({}, version="1") == ()


def test_an_exporter_that_refuses_its_variables_says_so(variables: pytest.MonkeyPatch) -> None:
    """A certificate that is not there is the problem, not a crash."""
    environ = _set(
        variables,
        {
            "OTEL_EXPORTER_OTLP_ENDPOINT": "https://127.0.0.1:1",
            "OTEL_EXPORTER_OTLP_CERTIFICATE": "/nowhere.pem",
            "OTEL_METRICS_EXPORTER": "none",
            "OTEL_EXPORTER_OTLP_TIMEOUT": "0.2",
        },
    )

    [probe] = probe_exports(environ, version="1")

    assert probe.problem
