"""Histograms: counted as the SDK counts them, with exemplars, since the start or since the last collection."""

import math
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import AggregationTemporality, InMemoryMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import set_span_in_context

from recallscope.telemetry import names
from recallscope.telemetry.histograms import MOST_SERIES, Exemplars, Histogram, HistogramReader, Histograms
from recallscope.telemetry.metric import histogram
from recallscope.telemetry.span_table import NO_SPAN

METRIC = histogram("x.wait", "a wait", "kind", buckets=(0.1, 1.0))
SCOPE = InstrumentationScope("test", "1")


def _made(**more: Any) -> tuple[Histograms, Histogram]:
    ticks = iter(range(1, 10**6))
    histograms = Histograms(SCOPE, Resource({}), clock_ns=lambda: next(ticks), **more)
    return histograms, histograms.make(METRIC)


def _points(reader: HistogramReader) -> dict[Any, Any]:
    data = reader.add_to(None)
    if data is None:
        return {}
    (metric,) = data.resource_metrics[0].scope_metrics[0].metrics
    points: Any = metric.data.data_points
    return {tuple(point.attributes.values()): point for point in points}


@settings(max_examples=100)
@given(st.lists(st.tuples(st.floats(-1, 3), st.sampled_from(["a", "b", ""])), max_size=30))
def test_observations_are_counted_as_the_sdk_counts_them(observed: list[tuple[float, str]]) -> None:
    """Counts per bucket, sum, least and most of every series are those of the SDK's own histogram."""
    histograms, ours = _made()
    theirs = InMemoryMetricReader()
    provider = MeterProvider(metric_readers=[theirs], shutdown_on_exit=False)
    instrument = provider.get_meter("t").create_histogram("x", explicit_bucket_boundaries_advisory=METRIC.buckets)
    for seconds, kind in observed:
        ours.record(seconds, (kind,), NO_SPAN)
        instrument.record(max(seconds, 0.0), {"kind": kind} if kind else {})
    data: Any = theirs.get_metrics_data()
    expected = {
        tuple(point.attributes.values()): (list(point.bucket_counts), point.count, point.sum, point.min, point.max)
        for point in (data.resource_metrics[0].scope_metrics[0].metrics[0].data.data_points if data else ())
    }

    assert {
        key: (list(point.bucket_counts), point.count, point.sum, point.min, point.max)
        for key, point in _points(HistogramReader(histograms)).items()
    } == expected


def test_what_is_no_number_is_not_recorded() -> None:
    """NaN and infinity would spoil the sum for ever."""
    histograms, ours = _made()
    for odd in (math.nan, math.inf, -math.inf):
        ours.record(odd, ("a",), NO_SPAN)

    assert HistogramReader(histograms).add_to(None) is None


def test_a_delta_reader_tells_what_came_since_its_last_collection() -> None:
    """Counts and sums are differences, quiet series are left out, and another reader is not disturbed."""
    histograms, ours = _made()
    delta, total = HistogramReader(histograms, delta=True), HistogramReader(histograms)
    ours.record(0.05, ("a",), NO_SPAN)
    ours.record(0.5, ("b",), NO_SPAN)
    first = {key: point.bucket_counts for key, point in _points(delta).items()}
    ours.record(5.0, ("a",), NO_SPAN)
    second = {key: (point.bucket_counts, point.sum) for key, point in _points(delta).items()}

    assert first == {("a",): [1, 0, 0], ("b",): [0, 1, 0]}
    assert second == {("a",): ([0, 0, 1], 5.0)}
    assert {key: point.count for key, point in _points(total).items()} == {("a",): 2, ("b",): 1}
    assert _points(delta) == {}


def test_a_delta_begins_where_the_last_one_ended() -> None:
    """No stretch of time is told twice or not at all."""
    histograms, ours = _made()
    reader = HistogramReader(histograms, delta=True)
    ours.record(0.05, ("a",), NO_SPAN)
    first = _points(reader)["a",]
    ours.record(0.05, ("a",), NO_SPAN)

    assert _points(reader)["a",].start_time_unix_nano == first.time_unix_nano


def test_too_many_series_become_one() -> None:
    """From the limit on, further labels are counted together, and nothing is lost."""
    histograms, ours = _made()
    for number in range(MOST_SERIES + 3):
        ours.record(0.05, (str(number),), NO_SPAN)
    points = _points(HistogramReader(histograms))

    assert (len(points), points[True,].count) == (MOST_SERIES + 1, 3)
    assert points[True,].attributes == {"otel.metric.overflow": True}


def test_the_filter_says_what_becomes_an_exemplar() -> None:
    """Only observations within sampled spans, or all, or none; the last of a bucket stays."""
    sampled = TracerProvider(shutdown_on_exit=False).get_tracer("t").start_span("x")
    unsampled = TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False).get_tracer("t").start_span("x")
    got: dict[Exemplars, list[tuple[float, int | None]]] = {}
    for which in Exemplars:
        histograms, ours = _made(exemplars=which)
        for seconds, context in ((0.2, NO_SPAN), (0.3, set_span_in_context(sampled)), (0.01, NO_SPAN)):
            ours.record(seconds, ("a",), context)
        ours.record(5.0, ("a",), set_span_in_context(unsampled))
        point = _points(HistogramReader(histograms))["a",]
        got[which] = sorted((exemplar.value, exemplar.trace_id) for exemplar in point.exemplars)
    trace = sampled.get_span_context().trace_id

    assert got[Exemplars.TRACED] == [(0.3, trace)]
    assert got[Exemplars.ALL] == [(0.01, None), (0.3, trace), (5.0, unsampled.get_span_context().trace_id)]
    assert got[Exemplars.NONE] == []


def test_histograms_stand_beside_the_other_metrics_of_their_scope() -> None:
    """A reader gets one scope with the meter's metrics and the histograms, cumulative unless it asks for deltas."""
    sdk = InMemoryMetricReader()
    provider = MeterProvider(metric_readers=[sdk], shutdown_on_exit=False)
    provider.get_meter("test", "1").create_counter("c").add(1)
    histograms, ours = _made()
    ours.record(0.05, ("a",), NO_SPAN)
    data = HistogramReader(histograms).add_to(sdk.get_metrics_data())

    assert data is not None
    (scope,) = data.resource_metrics[0].scope_metrics
    assert [metric.name for metric in scope.metrics] == ["c", "x.wait"]
    shown: Any = scope.metrics[1].data
    assert shown.aggregation_temporality is AggregationTemporality.CUMULATIVE
    assert names.RECALL_WAIT_DURATION.unit == scope.metrics[1].unit
