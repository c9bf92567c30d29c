"""The fleet's file in a real collector, in front of two samplers with the shipped file: no trace is spread."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from programs import FLEET_FILE, Collector, run_collector, wait_until
from relay import kept_spans, traces_of

from recallscope.telemetry.sdk import Telemetry, TelemetrySettings, open_telemetry
from recallscope.telemetry.testing.golden import golden_turn
from recallscope.telemetry.testing.receiver import OtlpReceiver

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]

TURNS = 60
SPANS_OF_A_TURN = 6


@contextmanager
def _sampler(folder: Path, store: OtlpReceiver) -> Generator[Collector]:
    folder.mkdir()
    with run_collector(
        folder,
        OTELCOL_DECISION_WAIT="10s",
        OTELCOL_DECISION_WAIT_AFTER_ROOT="500ms",
        OTELCOL_BASELINE_PERCENT="100",
        OTELCOL_NAME=folder.name,
        OTELCOL_TRACES_ENDPOINT=store.grpc_endpoint.removeprefix("http://"),
        OTELCOL_METRICS_ENDPOINT="http://127.0.0.1:9/api/v1/write",
    ) as running:
        yield running


def _static(folder: Path, samplers: list[Collector]) -> Path:
    """Write a second file that names the samplers: on one machine no host name has both of their ports."""
    resolver = {"dns": None, "static": {"hostnames": [one.grpc_endpoint.removeprefix("http://") for one in samplers]}}
    exporters = {f"load_balancing/{signal}": {"resolver": resolver} for signal in ("traces", "metrics")}
    path = folder / "samplers.yaml"
    path.write_text(json.dumps({"exporters": exporters}), encoding="utf-8")
    return path


def _turns(telemetry: Telemetry, number: int) -> None:
    for turn in range(number):
        for event in golden_turn(number=turn, at=1000.0 + 10 * turn):
            for observer in telemetry.observers:
                observer(event)


def test_each_trace_is_whole_in_one_sampler_and_each_agents_metrics_too(tmp_path: Path) -> None:
    """Both samplers get traces, each of them whole; what one agent counts goes to one of the two."""
    (tmp_path / "balancer").mkdir()
    settings = TelemetrySettings(version="0", front_end="test", journal=False)
    with (
        OtlpReceiver() as store,
        _sampler(tmp_path / "one", store) as one,
        _sampler(tmp_path / "two", store) as two,
        run_collector(tmp_path / "balancer", FLEET_FILE, _static(tmp_path, [one, two])) as balancer,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", balancer.endpoint)
        patch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "200")
        with open_telemetry(settings) as telemetry:
            _turns(telemetry, TURNS)
        wait_until(lambda: len(store.spans()) == TURNS * SPANS_OF_A_TURN, "all spans are kept")
        traces = [traces_of(kept_spans(sampler.kept)) for sampler in (one, two)]
        points = [sampler.own("otelcol_receiver_accepted_metric_points_total") for sampler in (one, two)]

    assert [len(found) > TURNS / 6 for found in traces] == [True, True]
    assert traces[0].keys() & traces[1].keys() == set()
    assert {len(trace.spans) for found in traces for trace in found.values()} == {SPANS_OF_A_TURN}
    assert sorted(value > 0 for value in points) == [False, True]


def test_the_samplers_are_found_by_name(tmp_path: Path) -> None:
    """With the file as it is, the host name and the port of the samplers are enough."""
    (tmp_path / "balancer").mkdir()
    settings = TelemetrySettings(version="0", front_end="test", journal=False)
    with (
        OtlpReceiver() as store,
        _sampler(tmp_path / "one", store) as one,
        run_collector(
            tmp_path / "balancer",
            FLEET_FILE,
            OTELCOL_SAMPLERS_HOST="127.0.0.1",
            OTELCOL_SAMPLERS_PORT=str(one.grpc_port),
        ) as balancer,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", balancer.endpoint)
        with open_telemetry(settings) as telemetry:
            _turns(telemetry, 2)
        wait_until(lambda: len(store.spans()) == 2 * SPANS_OF_A_TURN, "all spans are kept")
