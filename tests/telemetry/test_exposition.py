"""`/metrics`: formats, exemplars, what it cannot show, and a port that is taken."""

import math
import socket
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.metrics import Histogram, MeterProvider
from opentelemetry.sdk.metrics.export import AggregationTemporality
from opentelemetry.sdk.metrics.view import ExponentialBucketHistogramAggregation, View
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import set_span_in_context
from prometheus_client import parser as text_parser
from prometheus_client.openmetrics import parser as openmetrics_parser

from recallscope.telemetry.exemplars import ExemplarStore
from recallscope.telemetry.exposition import Exposition, MetricsServer
from recallscope.telemetry.readers import PullReader

OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
NEW_PARSER: Any = openmetrics_parser  # it says no types
OLD_PARSER: Any = text_parser
RESOURCE = Resource({"service.name": "recallscope", "process.pid": 7})


@pytest.fixture
def reader() -> PullReader:
    """Return a reader."""
    return PullReader()


@pytest.fixture
def provider(reader: PullReader) -> Iterator[MeterProvider]:
    """Return a meter provider in front of the reader."""
    provider = MeterProvider(metric_readers=[reader], resource=RESOURCE, shutdown_on_exit=False)
    yield provider
    provider.shutdown()


def _get(url: str, accept: str = "") -> tuple[str, str]:
    request = urllib.request.Request(url, headers={"Accept": accept})  # noqa: S310 - a loopback address of this test
    with urllib.request.urlopen(request) as answer:  # noqa: S310 - a loopback address of this test
        return answer.headers["content-type"], answer.read().decode()


def _samples(families: Any) -> dict[tuple[str, tuple[tuple[str, str], ...]], Any]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample for family in families for sample in family.samples
    }


def test_counters_gauges_and_histograms_are_served(reader: PullReader, provider: MeterProvider) -> None:
    """Each kind appears under its Prometheus name; bounds are floats; the resource is `target_info`."""
    meter = provider.get_meter("test")
    meter.create_counter("x.things", unit="{thing}").add(3, {"kind.of": "a"})
    meter.create_up_down_counter("x.active").add(-2)
    meter.create_gauge("x.age", unit="s").set(1.5)
    meter.create_histogram("x.wait", unit="s", explicit_bucket_boundaries_advisory=[0.1, 1]).record(0.5)
    with MetricsServer(reader, port=0) as server:
        assert server.url is not None
        samples = _samples(NEW_PARSER.text_string_to_metric_families(_get(server.url, OPENMETRICS)[1]))
    values = {key: sample.value for key, sample in samples.items()}

    assert values == {
        ("x_things_total", (("kind_of", "a"),)): 3,
        ("x_active", ()): -2,
        ("x_age_seconds", ()): 1.5,
        ("x_wait_seconds_bucket", (("le", "0.1"),)): 0,
        ("x_wait_seconds_bucket", (("le", "1.0"),)): 1,
        ("x_wait_seconds_bucket", (("le", "+Inf"),)): 1,
        ("x_wait_seconds_count", ()): 1,
        ("x_wait_seconds_sum", ()): 0.5,
        ("target_info", (("process_pid", "7"), ("service_name", "recallscope"))): 1,
    }


def test_the_format_is_negotiated(reader: PullReader, provider: MeterProvider) -> None:
    """OpenMetrics goes to whoever accepts it, the older text to others; both parse."""
    provider.get_meter("test").create_counter("x").add(1)
    with MetricsServer(reader, port=0) as server:
        assert server.url is not None
        new_type, new = _get(server.url, OPENMETRICS)
        old_type, old = _get(server.url)

    assert (new_type.split(";")[0], old_type.split(";")[0]) == ("application/openmetrics-text", "text/plain")
    assert new.endswith("# EOF\n")
    assert ("x_total", ()) in _samples(NEW_PARSER.text_string_to_metric_families(new))
    assert ("x_total", ()) in _samples(OLD_PARSER.text_string_to_metric_families(old))


def _record_in_span(provider: MeterProvider, seconds: float) -> str:
    span = TracerProvider(shutdown_on_exit=False).get_tracer("test").start_span("x")
    histogram = provider.get_meter("test").create_histogram("x", explicit_bucket_boundaries_advisory=[0.1, 1.0])
    histogram.record(seconds, {}, set_span_in_context(span))
    return f"{span.get_span_context().trace_id:032x}"


def _exemplars(exposition: Exposition) -> dict[str, tuple[str, float]]:
    return {
        sample.labels["le"]: (sample.exemplar.labels["trace_id"], sample.exemplar.value)
        for family in exposition.families()
        for sample in family.samples
        if sample.exemplar is not None
    }


def test_exemplars_stay_between_scrapes(reader: PullReader, provider: MeterProvider) -> None:
    """The SDK tells an exemplar once; two scrapers see it both, and a newer one replaces it."""
    exposition = Exposition(reader)
    first = _record_in_span(provider, 0.5)
    seen_once, seen_twice = _exemplars(exposition), _exemplars(exposition)
    second = _record_in_span(provider, 0.6)
    replaced = _exemplars(exposition)

    assert seen_once == seen_twice == {"1.0": (first, 0.5)}
    assert replaced == {"1.0": (second, 0.6)}


def test_an_exemplar_stands_on_the_bucket_of_its_value(reader: PullReader, provider: MeterProvider) -> None:
    """A value on a boundary belongs to the bucket that ends there; one above all belongs to +Inf."""
    boundary, above = _record_in_span(provider, 0.1), _record_in_span(provider, 3.0)

    assert _exemplars(Exposition(reader)) == {"0.1": (boundary, 0.1), "+Inf": (above, 3.0)}


def test_exemplars_are_forgotten_after_ten_minutes() -> None:
    """An old exemplar would point to a trace that is no more."""
    later: list[float] = []
    store = ExemplarStore(wall=lambda: later[0] if later else 0.0)
    reader = PullReader(store=store)
    provider = MeterProvider(metric_readers=[reader], shutdown_on_exit=False)
    _record_in_span(provider, 0.5)
    kept = _exemplars(Exposition(reader))
    later.append(math.inf)
    forgotten = _exemplars(Exposition(reader))
    provider.shutdown()

    assert (len(kept), forgotten) == (1, {})


def test_an_exponential_histogram_is_skipped_and_the_rest_is_served() -> None:
    """What the text formats cannot show costs that metric only, and is counted."""
    reader = PullReader()
    views = [View(instrument_name="expo", aggregation=ExponentialBucketHistogramAggregation())]
    provider = MeterProvider(metric_readers=[reader], views=views, shutdown_on_exit=False)
    meter = provider.get_meter("test")
    meter.create_histogram("expo").record(1)
    meter.create_counter("x").add(1)
    exposition = Exposition(reader)
    served = [family.name for family in exposition.families()]
    provider.shutdown()

    assert (served, exposition.skipped) == (["x", "target"], 1)


def test_two_metrics_of_one_name_but_two_kinds_do_not_break_the_page(
    reader: PullReader, provider: MeterProvider
) -> None:
    """The first kind is served, the second skipped and counted."""
    provider.get_meter("one").create_counter("x").add(1)
    provider.get_meter("two").create_histogram("x").record(1)
    exposition = Exposition(reader)

    assert [family.name for family in exposition.families()] == ["x", "target"]
    assert exposition.skipped == 1


def test_an_empty_meter_is_an_empty_page(reader: PullReader, provider: MeterProvider) -> None:
    """Nothing measured is no error."""
    provider.get_meter("test").create_counter("x")

    assert Exposition(reader).families() == []


def test_series_over_the_limit_go_into_the_overflow_series() -> None:
    """The limit of a reader bounds the page."""
    reader = PullReader(cardinality_limits={Histogram: 2})
    provider = MeterProvider(metric_readers=[reader], shutdown_on_exit=False)
    histogram = provider.get_meter("test").create_histogram("x", explicit_bucket_boundaries_advisory=[1.0])
    for number in range(5):
        histogram.record(1, {"user": str(number)})
    (family, _) = Exposition(reader).families()
    provider.shutdown()
    counts = {tuple(sample.labels.items()): sample.value for sample in family.samples if sample.name == "x_count"}

    assert counts == {(("user", "0"),): 1, (("user", "1"),): 1, (("otel_metric_overflow", "true"),): 3}


def test_the_reader_is_always_cumulative(reader: PullReader, provider: MeterProvider) -> None:
    """Two scrapes of one increment show the same number."""
    provider.get_meter("test").create_counter("x").add(1)
    pulled: list[Any] = [reader.pull(), reader.pull()]
    data = [one.resource_metrics[0].scope_metrics[0].metrics[0].data for one in pulled]

    assert [one.data_points[0].value for one in data] == [1, 1]
    assert {one.aggregation_temporality for one in data} == {AggregationTemporality.CUMULATIVE}


def test_a_port_that_is_taken_is_a_warning(reader: PullReader, caplog: pytest.LogCaptureFixture) -> None:
    """The process goes on without `/metrics`, and the log says what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with MetricsServer(reader, port=port) as server:
            url = server.url

    assert url is None
    (message,) = [record.getMessage() for record in caplog.records]
    assert message.startswith(f"no /metrics: 127.0.0.1:{port} cannot be opened")
    assert message.endswith("set OTEL_EXPORTER_PROMETHEUS_PORT to a free port, or to 0")


@pytest.mark.usefixtures("provider")
def test_the_port_is_free_again_after_closing(reader: PullReader) -> None:
    """Leaving the block closes the socket."""
    with MetricsServer(reader, port=0) as server:
        assert server.url is not None
        port = int(server.url.rsplit(":", 1)[1].split("/")[0])
    with MetricsServer(reader, port=port) as again:
        assert again.url is not None
