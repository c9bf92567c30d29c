"""Fixtures of the telemetry tests."""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from recallscope.runtime.events import Event
from recallscope.telemetry.anchor import Anchor
from recallscope.telemetry.histograms import HistogramReader, Histograms
from recallscope.telemetry.metrics import MetricObserver
from recallscope.telemetry.readers import PullReader
from recallscope.telemetry.spans import SpanObserver
from recallscope.telemetry.testing.golden import AT, WALL
from recallscope.telemetry.testing.receiver import OtlpReceiver


@pytest.fixture(autouse=True)
def no_detach_errors(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fail on any error of the context machinery: it means that a span was current in the wrong task."""
    yield
    records = [record for record in caplog.get_records("call") if record.name.startswith("opentelemetry.context")]
    assert [record.getMessage() for record in records if record.levelno >= logging.ERROR] == []


@pytest.fixture
def until() -> Callable[..., bool]:
    """Return a function that waits until a condition holds, at most 10 s, and says whether it does."""
    pause = threading.Event()

    def wait(condition: Callable[[], bool]) -> bool:
        deadline = time.monotonic() + 10
        while not condition() and time.monotonic() < deadline:
            pause.wait(0.01)
        return condition()

    return wait


@pytest.fixture
def receiver() -> Iterator[OtlpReceiver]:
    """Run an OTLP receiver on loopback."""
    with OtlpReceiver() as receiver:
        yield receiver


@dataclass
class Spans:
    """A span observer with an exporter in memory."""

    observer: SpanObserver
    exporter: InMemorySpanExporter

    def feed(self, events: Sequence[Event]) -> "dict[str, ReadableSpan]":
        """Feed events and return the finished spans by name; a later one of the same name gets a number."""
        for event in events:
            self.observer(event)
        return self.finished()

    def finished(self) -> "dict[str, ReadableSpan]":
        """Return the finished spans by name, numbered from the second of a name on."""
        found: dict[str, ReadableSpan] = {}
        for span in self.exporter.get_finished_spans():
            name, number = span.name, 2
            while name in found:
                name, number = f"{span.name} #{number}", number + 1
            found[name] = span
        return found


@pytest.fixture
def make_spans() -> Callable[..., Spans]:
    """Return a function that makes a span observer in memory; it takes the observer's keyword arguments."""

    def make(**more: Any) -> Spans:
        exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        anchor = Anchor.stated(at=AT, wall=WALL)
        return Spans(SpanObserver(provider.get_tracer("test"), anchor=anchor, **more), exporter)

    return make


@pytest.fixture
def spans(make_spans: Callable[..., Spans]) -> Spans:
    """Return a span observer in memory."""
    return make_spans()


@dataclass
class Metrics:
    """A metric observer with a reader that is asked."""

    observer: MetricObserver
    reader: PullReader
    provider: MeterProvider
    kept: list[Any] = field(default_factory=list[Any])

    def points(self) -> dict[str, dict[tuple[tuple[str, Any], ...], Any]]:
        """Collect: by metric name and attributes, a number, or (count, sum) of a histogram."""
        data = self.reader.pull()
        found: dict[str, dict[tuple[tuple[str, Any], ...], Any]] = {}
        for resource in data.resource_metrics if data else ():
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    points = found.setdefault(metric.name, {})
                    for point in metric.data.data_points:
                        key = tuple(sorted((point.attributes or {}).items()))
                        points[key] = _value(point)
        return found


def _value(point: Any) -> Any:
    return (point.count, round(point.sum, 6)) if hasattr(point, "bucket_counts") else point.value


@pytest.fixture
def make_metrics() -> Iterator[Callable[..., Metrics]]:
    """Return a function that makes a metric observer; it takes the observer's keyword arguments."""
    providers: list[MeterProvider] = []

    def make(**more: Any) -> Metrics:
        reader = PullReader()
        provider = MeterProvider(metric_readers=[reader], shutdown_on_exit=False)
        providers.append(provider)
        anchor = Anchor.stated(at=AT, wall=WALL)
        histograms = Histograms(InstrumentationScope("test"), Resource({}))
        reader.read(HistogramReader(histograms))
        meter = provider.get_meter("test")
        observer = MetricObserver(meter, histograms, anchor=anchor, now=lambda: AT + 100, **more)
        return Metrics(observer, reader, provider)

    yield make
    for provider in providers:
        provider.shutdown()


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
