"""The committed dashboards, every query in them and in the rules, and what a real scrape of a process exposes."""

from collections.abc import Mapping
from pathlib import Path
from urllib.request import Request, urlopen

import anyio
import pytest
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families,  # pyright: ignore[reportUnknownVariableType]  # the library has no types here
)

from recallscope.dashboards.reading import Dashboard, read_all
from recallscope.runtime.events import PolicyName
from recallscope.telemetry.sdk import Telemetry, TelemetrySettings, open_telemetry
from recallscope.telemetry.testing.golden import golden_process, tool_free_turn

OPENMETRICS = "application/openmetrics-text; version=1.0.0"
BY_PROMETHEUS = {"job", "instance"}
"""Labels that a Prometheus adds to whatever it scrapes."""

_ITEMS = ("spans", "metric_points", "log_records")
COLLECTOR: Mapping[str, set[str]] = {
    **{
        f"otelcol_exporter_{what}_{item}_total": {"exporter"}
        for what in ("sent", "send_failed", "enqueue_failed")
        for item in _ITEMS
    },
    **{
        f"otelcol_receiver_{what}_{item}_total": {"receiver", "transport"}
        for what in ("accepted", "refused")
        for item in _ITEMS
    },
    "otelcol_exporter_queue_capacity": {"exporter"},
    "otelcol_exporter_queue_size": {"exporter"},
    "otelcol_process_uptime_seconds_total": set(),
    "otelcol_processor_tail_sampling_global_count_traces_sampled_total": {"sampled"},
    "otelcol_processor_tail_sampling_sampling_trace_dropped_too_early_total": set(),
    "otelcol_processor_tail_sampling_sampling_traces_on_memory": set(),
}
"""The collector's own metrics that may be asked for; tests/real asks a real one for them."""


@pytest.fixture(scope="session")
def dashboards() -> tuple[Dashboard, ...]:
    """Give the committed dashboards."""
    return read_all()


@pytest.fixture(scope="session")
def exposed(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, frozenset[str]]:
    """Scrape a process that has seen every kind of event, and give the labels of each series' name."""
    settings = TelemetrySettings(
        version="0",
        front_end="test",
        policies=(PolicyName.TIERED,),
        serve_metrics=True,
        metrics_port=0,
        journal_directory=tmp_path_factory.mktemp("journal"),
        environ={},
    )
    labels: dict[str, set[str]] = {}
    with open_telemetry(settings) as telemetry:
        telemetry.watch_observers(lambda: [_Broken()])
        for event in [*golden_process(), *tool_free_turn(number=9, at=2_000.0)]:
            for observer in telemetry.observers:
                observer(event)
        anyio.run(_watch_a_loop, telemetry)
        assert telemetry.metrics_url is not None
        request = Request(telemetry.metrics_url, headers={"Accept": OPENMETRICS})  # noqa: S310 - it is the process above
        with urlopen(request, timeout=10) as answer:  # noqa: S310 - as above
            text = answer.read().decode()
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels.setdefault(sample.name, set(BY_PROMETHEUS)).update(sample.labels)
    labels |= {name: BY_PROMETHEUS | found for name, found in COLLECTOR.items()}
    labels["up"] = BY_PROMETHEUS  # what a Prometheus says of each scrape
    return {name: frozenset(found) for name, found in labels.items()}


async def _watch_a_loop(telemetry: Telemetry) -> None:
    """Let telemetry measure a loop for some of its intervals."""
    with anyio.move_on_after(0.35):
        await telemetry.run()


class _Broken:
    """The statistics of an observer that failed."""

    name = "spans"
    failures = 1


@pytest.fixture(scope="session")
def shipped() -> Path:
    """Give the folder of what is shipped."""
    return Path(__file__).parents[2] / "dashboards"
