"""The end of a process: it never takes long, whatever the collector does, and what is lost is counted."""

import os
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from recallscope.runtime.events import OpId, ToolStarted
from recallscope.telemetry import names
from recallscope.telemetry.flow import Flow
from recallscope.telemetry.sdk import open_telemetry
from recallscope.telemetry.span_table import MAX_OPEN
from recallscope.telemetry.testing.process import feed, settings_for
from recallscope.telemetry.testing.receiver import Behaviour, OtlpReceiver

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
    with open_telemetry(settings_for(exporting(receiver.environ()))) as telemetry:
        tools = [ToolStarted(op=OpId(f"x{n}"), at=1.0, parent=None, tool="t", call_id="") for n in range(MAX_OPEN + 2)]
        feed(telemetry, tools)
        (lost,) = [
            dict(flow.lost)[names.LOST_TOO_MANY_OPEN] for flow in telemetry.statistics() if flow.signal == "traces"
        ]

    assert lost == 2
