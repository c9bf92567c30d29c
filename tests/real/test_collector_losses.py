"""What the collector loses, and how much of that the dashboard *Telemetry health* tells: to the item where it can.

The truth is what was sent less what arrived, counted at both ends and not by the collector.
"""

import json
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest
from foreign import new_trace, offer, point, send, span
from health_board import COLLECTORS, HealthBoard
from programs import COLLECTOR_FILE, Collector, free_port, run_collector, run_prometheus, wait_until
from relay import kept_spans

from recallscope.telemetry.queries import collector_alerts, job
from recallscope.telemetry.testing.receiver import Behaviour, OtlpReceiver

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]

QUICK = {
    "OTELCOL_DECISION_WAIT": "1s",
    "OTELCOL_DECISION_WAIT_AFTER_ROOT": "100ms",
    "OTELCOL_BASELINE_PERCENT": "100",
    "OTELCOL_TRACES_TIMEOUT": "500ms",
    "OTELCOL_METRICS_ENDPOINT": "http://127.0.0.1:9/api/v1/write",
}
LOST = "Lost in the collector, counted"
UPTIME = f"otelcol_process_uptime_seconds_total{{{job(COLLECTORS)}}}"


@contextmanager
def _watched(folder: Path, *configs: Path, **environ: str) -> Generator[tuple[Collector, HealthBoard]]:
    """Run a collector, and a Prometheus that scrapes its own metrics."""
    own = free_port()
    for name in ("collector", "prometheus"):
        (folder / name).mkdir()
    with (
        run_prometheus(folder / "prometheus", {COLLECTORS: f"127.0.0.1:{own}"}) as prometheus,
        run_collector(folder / "collector", *configs, **(QUICK | environ), OTELCOL_METRICS_PORT=str(own)) as collector,
    ):
        wait_until(lambda: prometheus.number(UPTIME) > 0, "the collector is scraped")
        yield collector, HealthBoard(prometheus)


def _endpoint(store: OtlpReceiver) -> str:
    return store.grpc_endpoint.removeprefix("http://")


def test_spans_that_found_the_queue_full_are_told_to_the_span(tmp_path: Path) -> None:
    """With the store away 3,000 spans are sent: panels and alert tell as many as never arrive, all lost at once."""
    with (
        OtlpReceiver(Behaviour.UNAVAILABLE) as store,
        _watched(tmp_path, OTELCOL_TRACES_ENDPOINT=_endpoint(store), OTELCOL_QUEUE_SPANS="2000") as (collector, board),
    ):
        for _ in range(6):
            trace = new_trace()
            send(collector, "traces", [span(trace, f"span {number}") for number in range(500)])
        wait_until(lambda: len(kept_spans(collector.kept)) == 3000, "the sampler has kept all of them")
        wait_until(lambda: bool(board.shown(LOST)), "the loss is scraped")
        told, drawn = board.shown(LOST), board.shown("Lost in the collector")
        alerted = board.prometheus.number(collector_alerts.queue_dropping(job(COLLECTORS), window="10m", least=1))
        store.behaviour = Behaviour.ACCEPT
        wait_until(lambda: collector.own("otelcol_exporter_queue_size", "otlp_grpc") == 0, "the queue is delivered")
        wait_until(lambda: len(store.spans()) >= 2000, "what was queued arrives")
        missing = 3000 - len({one.span_id for one in store.spans()})

    assert told == drawn == {"spans, queue full: otlp_grpc/traces": missing}
    assert alerted == missing == 1000


def test_spans_that_the_store_refuses_for_good_are_told_to_the_span(tmp_path: Path) -> None:
    """Of a store that knows no traces, every span is told as lost, also those of the first refusal."""
    stranger = grpc.server(ThreadPoolExecutor(max_workers=1))
    port = stranger.add_insecure_port("127.0.0.1:0")
    stranger.start()
    try:
        with _watched(tmp_path, OTELCOL_TRACES_ENDPOINT=f"127.0.0.1:{port}") as (collector, board):
            send(collector, "traces", [span(new_trace(), "one") for _ in range(7)])
            wait_until(lambda: bool(board.shown(LOST)), "the loss is scraped")

            assert board.shown(LOST) == {"spans, refused for good: otlp_grpc/traces": 7}
    finally:
        stranger.stop(grace=None).wait()


def test_points_and_records_that_found_a_queue_full_are_told(tmp_path: Path) -> None:
    """Whatever the signal: lost in a queue and refused on arrival are what never arrives, and what was not taken."""
    small = tmp_path / "small.yaml"
    exporter = {
        "endpoint": "${env:OTELCOL_TRACES_ENDPOINT}",
        "tls": {"insecure": True},
        "retry_on_failure": {"initial_interval": "100ms", "max_interval": "100ms", "max_elapsed_time": "0s"},
        "sending_queue": {"queue_size": 2, "num_consumers": 1},
    }
    pipelines = {signal: {"exporters": ["otlp_grpc/small"]} for signal in ("logs", "metrics/agents")}
    small.write_text(
        json.dumps({"exporters": {"otlp_grpc/small": exporter}, "service": {"pipelines": pipelines}}), encoding="utf-8"
    )
    with (
        OtlpReceiver(Behaviour.UNAVAILABLE) as store,
        _watched(tmp_path, COLLECTOR_FILE, small, OTELCOL_TRACES_ENDPOINT=_endpoint(store)) as (collector, board),
    ):
        sent = range(8)
        points = [offer(collector, "metrics", [point(f"metric.{number}.{one}") for one in range(5)]) for number in sent]
        records = [offer(collector, "logs", [{"body": {"stringValue": f"{number}"}}] * 3) for number in sent]
        wait_until(lambda: len(board.shown(LOST)) == 2, "the losses are scraped")
        lost, refused = board.shown(LOST), board.shown("Refused on arrival")
        store.behaviour = Behaviour.ACCEPT
        taken = 5 * points.count(200), 3 * records.count(200)
        wait_until(lambda: (len(store.metrics()), len(store.logs())) == taken, "what was taken arrives")

    assert lost == {
        "metric points, queue full: otlp_grpc/small": 40 - taken[0],
        "log records, queue full: otlp_grpc/small": 24 - taken[1],
    }
    assert refused == {"metric points: otlp": 40 - taken[0], "log records: otlp": 24 - taken[1]}


def test_traces_without_a_decision_are_told_before_and_after_a_kill(tmp_path: Path) -> None:
    """What waits for its decision is shown; a kill loses all of it, which the restart shows."""
    wait = {"OTELCOL_DECISION_WAIT": "600s", "OTELCOL_TRACES_ENDPOINT": "127.0.0.1:9"}
    with _watched(tmp_path, **wait) as (collector, board):
        sent = {new_trace() for _ in range(23)}
        send(collector, "traces", [span(trace, "child", parentSpanId="1" * 16) for trace in sent])
        panel = "Traces without a decision"
        instance = collector.metrics_target
        wait_until(lambda: board.shown(panel) == {f"undecided: {instance}": 23}, "they are shown")
        wait_until(lambda: board.prometheus.number(UPTIME) > 3, "it has run longer than it takes to begin anew")
        collector.kill()
        collector.start()
        wait_until(lambda: bool(board.shown("Restarts")), "it is scraped again")
        last = new_trace()
        send(collector, "traces", [span(last, "root")])
        wait_until(lambda: bool(kept_spans(collector.kept)), "it decides again")
        told = board.shown(panel)

        assert {one.trace_id for one in kept_spans(collector.kept)} & sent == set()
        assert told[f"at a restart, at most: {instance}"] == len(sent)
        assert board.shown("Restarts") == {instance: 1}
        assert board.shown(LOST) == {}
