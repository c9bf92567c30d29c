"""Puts telemetry together for one process: providers, exporters, `/metrics`, and takes it apart in time.

Nothing here is global: providers are made, used and closed inside one `with` block.
"""

import logging
import os
import socket
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Protocol

import anyio
from opentelemetry.sdk.resources import OTELResourceDetector, Resource

from recallscope.runtime.events import Event, OpId
from recallscope.telemetry import names
from recallscope.telemetry.anchor import Anchor
from recallscope.telemetry.export_queue import Flow
from recallscope.telemetry.instruments import ExemplarHistogram, Labels, observe_counter
from recallscope.telemetry.loop_lag import LoopLag
from recallscope.telemetry.metrics import MetricObserver
from recallscope.telemetry.pipelines import CARDINALITY_LIMITS, MetricPipeline, TracePipeline
from recallscope.telemetry.settings import TelemetrySettings
from recallscope.telemetry.spans import SpanObserver

__all__ = ["ObserverState", "Telemetry", "TelemetrySettings", "open_telemetry"]

_log = logging.getLogger(__name__)

CLOSING_SECONDS = 4.0
"""What the exporters get together at the end; the journal and the rest need well under a second more."""


class ObserverState(Protocol):
    """What telemetry asks of an observer's statistics (`runtime.observe.ObserverStatistics` has it)."""

    @property
    def name(self) -> str:
        """The observer's name."""
        ...

    @property
    def failures(self) -> int:
        """How many events it failed on."""
        ...


class Telemetry:
    """Telemetry of one process, inside `open_telemetry`.

    Attributes:
        observers: what to give to the engine, in this order.
        metrics_url: where `/metrics` is served; None if it is not.
    """

    def __init__(self, settings: TelemetrySettings, stack: ExitStack) -> None:
        self.observers: tuple[Callable[[Event], None], ...] = ()
        self.metrics_url: str | None = None
        self._spans: SpanObserver | None = None
        self._flows: list[Callable[[], tuple[Flow, ...]]] = []
        self._observer_states: Callable[[], Iterable[ObserverState]] = tuple
        self._lag: LoopLag | None = None
        self._anchor = Anchor.now()
        if not settings.disabled:
            self._open_providers(settings, stack)

    def trace_headers(self, op: OpId) -> Mapping[str, str]:
        """Return the W3C headers that tell others of the span of `op`; empty if there is none."""
        return self._spans.trace_headers(op) if self._spans is not None else {}

    def watch_observers(self, states: Callable[[], Iterable[ObserverState]]) -> None:
        """Show the failures that `states` tells as `recallscope.telemetry.observer.failures`."""
        self._observer_states = states

    def statistics(self) -> tuple[Flow, ...]:
        """Say for each signal what was passed on and what was lost."""
        return tuple(flow for flows in self._flows for flow in flows())

    async def run(self) -> None:
        """Measure the running loop and mark slow turns until cancelled; start this once in a task group."""
        if self._lag is not None:
            await self._lag.run()
        await anyio.sleep_forever()

    def _open_providers(self, settings: TelemetrySettings, stack: ExitStack) -> None:
        resource = _resource(settings)
        traces = TracePipeline(settings, resource)
        tracer = traces.provider.get_tracer(names.SCOPE, settings.version)
        spans = self._spans = SpanObserver(tracer, anchor=self._anchor, slow_turn_seconds=settings.slow_turn_seconds)
        self._flows.append(traces.flows)
        metrics = self._open_metrics(settings, resource, stack)
        meter = metrics.provider.get_meter(names.SCOPE, settings.version) if metrics.provider is not None else None
        self.observers = (spans,)
        histogram = None
        if meter is not None:
            observer = MetricObserver(
                meter, context_of=spans.context_of, policies=settings.policies, anchor=self._anchor
            )
            self.observers = (spans, observer)
            histogram = ExemplarHistogram(meter, names.LOOP_LAG)
            observe_counter(meter, names.TELEMETRY_DROPPED, self._lost)
            observe_counter(meter, names.TELEMETRY_EXPORTED, self._exported)
            observe_counter(meter, names.TELEMETRY_UNCLOSED, lambda: {(): spans.unclosed})
            observe_counter(meter, names.OBSERVER_FAILURES, self._failures)
        if histogram is not None or traces.queue is not None:
            self._lag = LoopLag(histogram, hooks=(spans.tick,))
        stack.callback(self._close, traces, metrics)

    def _open_metrics(self, settings: TelemetrySettings, resource: Resource, stack: ExitStack) -> MetricPipeline:
        if not settings.serve_metrics:
            return self._made(MetricPipeline(settings, resource, ()))
        from recallscope.telemetry.exposition import ExemplarReader, MetricsServer  # noqa: PLC0415 - costs 60 ms

        reader = ExemplarReader(cardinality_limits=CARDINALITY_LIMITS)
        metrics = self._made(MetricPipeline(settings, resource, (reader,)))
        host, port = settings.metrics_address
        self.metrics_url = stack.enter_context(MetricsServer(reader, host=host, port=port)).url
        return metrics

    def _made(self, metrics: MetricPipeline) -> MetricPipeline:
        self._flows.append(metrics.flows)
        return metrics

    def _close(self, traces: TracePipeline, metrics: MetricPipeline) -> None:
        """End open spans, pass on what waits within `CLOSING_SECONDS`, and say in one line what was lost."""
        if self._spans is not None:
            self._spans.close(time.monotonic())
        deadline = time.monotonic() + CLOSING_SECONDS
        traces.start_closing()
        metrics.start_closing(CLOSING_SECONDS)
        traces.finish_closing(deadline)
        metrics.finish_closing(deadline)
        lost = [f"{flow.lost_items} of {flow.signal}" for flow in self.statistics() if flow.lost_items]
        if lost:
            _log.warning("telemetry was lost: %s", ", ".join(lost))

    def _lost(self) -> dict[Labels, int]:
        return {(flow.signal, reason): number for flow in self.statistics() for reason, number in flow.lost}

    def _exported(self) -> dict[Labels, int]:
        return {(flow.signal,): flow.exported for flow in self.statistics()}

    def _failures(self) -> dict[Labels, int]:
        return {(state.name,): state.failures for state in self._observer_states()}


@contextmanager
def open_telemetry(settings: TelemetrySettings) -> Iterator[Telemetry]:
    """Open telemetry for one process; leaving the block takes at most 5 s, whatever the collector does."""
    with ExitStack() as stack:
        yield Telemetry(settings, stack)


def _resource(settings: TelemetrySettings) -> Resource:
    """Return what this process is; `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` win."""
    ours = Resource(
        {
            "service.name": "recallscope",
            "service.namespace": "recallscope",
            "service.version": settings.version,
            "service.instance.id": str(uuid.uuid4()),
            "deployment.environment.name": "local",
            "host.name": socket.gethostname(),
            "process.pid": os.getpid(),
            "recallscope.front_end": settings.front_end,
        }
    )
    return ours.merge(OTELResourceDetector().detect())
