"""Where one Prometheus scrapes an agent and takes what it pushes, an alert fires once: the stack marks one way."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from programs import COLLECTOR_FILE, ROOT, Prometheus, free_port, run_collector, run_prometheus, validate, wait_until

from recallscope.runtime.events import PolicyName
from recallscope.telemetry.sdk import TelemetrySettings, open_telemetry
from recallscope.telemetry.testing.golden import golden_process
from recallscope.telemetry.testing.receiver import OtlpReceiver

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]

STACK_FILE = ROOT / "dashboards" / "stack" / "otel-collector-stack.yaml"
RULES = ROOT / "dashboards" / "rules" / "recallscope-alerts.yaml"
SCRAPED, PUSHED = "recallscope", "recallscope/recallscope"
BOTH = {SCRAPED, PUSHED}
FAILURES = "recallscope_telemetry_observer_failures_total"
ALERT = "RecallscopeObserverFailing"


@dataclass(slots=True)
class Observer:
    """The statistics of an observer that fails."""

    name: str = "spans"
    failures: int = 1


def _every_second(folder: Path) -> Path:
    """Copy the alerts with groups that are evaluated every second."""
    data = yaml.safe_load(RULES.read_text(encoding="utf-8"))
    for group in data["groups"]:
        group["interval"] = "1s"
    copy = folder / RULES.name
    copy.write_text(json.dumps(data), encoding="utf-8")
    return copy


def _jobs(prometheus: Prometheus, query: str) -> set[str]:
    return {labels["job"] for labels, _ in prometheus.ask(query)}


def _firing(prometheus: Prometheus) -> list[str]:
    return sorted(
        alert["labels"]["job"]
        for alert in prometheus.get("alerts")["alerts"]
        if alert["labels"]["alertname"] == ALERT and alert["state"] == "firing"
    )


@pytest.mark.parametrize(
    ("configs", "expected"),
    [((COLLECTOR_FILE,), [SCRAPED, PUSHED]), ((COLLECTOR_FILE, STACK_FILE), [SCRAPED])],
    ids=["as shipped: each job", "as in the stack: once"],
)
def test_an_alert_fires_once_for_each_way_that_is_not_marked(
    tmp_path: Path, configs: Sequence[Path], expected: list[str]
) -> None:
    """Both jobs hold the same figures; of the stack's two jobs only the scraped one alerts."""
    port, observer = free_port(), Observer()
    with (
        OtlpReceiver() as store,
        run_prometheus(tmp_path, {SCRAPED: f"127.0.0.1:{port}"}, rules=[_every_second(tmp_path)]) as prometheus,
        run_collector(
            tmp_path,
            *configs,
            OTELCOL_METRICS_ENDPOINT=prometheus.write_url,
            OTELCOL_TRACES_ENDPOINT=store.grpc_endpoint.removeprefix("http://"),
        ) as collector,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint)
        patch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "500")
        settings = TelemetrySettings(
            version="0",
            front_end="serve",
            policies=(PolicyName.TIERED,),
            serve_metrics=True,
            metrics_port=port,
            journal=False,
        )
        with open_telemetry(settings) as telemetry:
            telemetry.watch_observers(lambda: [observer])
            for event in golden_process():
                for receive in telemetry.observers:
                    receive(event)
            wait_until(lambda: _jobs(prometheus, f"{FAILURES} > 0") == BOTH, "both jobs have the series")
            observer.failures = 4
            wait_until(lambda: _jobs(prometheus, f"increase({FAILURES}[15m]) >= 1") == BOTH, "both jobs have failures")
            known = prometheus.number("vector(time())")
            wait_until(
                lambda: prometheus.number(f'min(timestamp(ALERTS{{alertname="{ALERT}"}}))') > known + 2,
                "the rules were evaluated since",
            )

            turns = prometheus.ask("sum by (job) (recallscope_recall_turns_total)")
            assert _firing(prometheus) == expected
            assert _jobs(prometheus, 'target_info{service_instance_id=""}') == {PUSHED}
            assert {labels["job"] for labels, _ in turns} == BOTH
            assert len({value for _, value in turns}) == 1


def test_the_collector_takes_what_the_stack_adds() -> None:
    """Both files together are a configuration."""
    assert validate(COLLECTOR_FILE, STACK_FILE).returncode == 0
