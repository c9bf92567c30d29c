"""Puts telemetry together for one process: observers, providers, exporters, `/metrics`, journal, logs.

Nothing here is global but the log handlers, which go when the `with` block ends (within 5 s, whatever the collector
does), and, if something is exported, the level of the exporters' own log, which stays.
"""

import logging
import os
import socket
import time
import uuid
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Protocol

import anyio
from opentelemetry.context import Context
from opentelemetry.metrics import Meter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource

from recallscope.runtime.events import Event, OpId
from recallscope.telemetry import names
from recallscope.telemetry.anchor import Anchor
from recallscope.telemetry.deferred import DeferredObserver
from recallscope.telemetry.environment import number
from recallscope.telemetry.exporters import exporter_of
from recallscope.telemetry.flow import Flow
from recallscope.telemetry.instruments import Labels, observe_counter
from recallscope.telemetry.journal import Journal
from recallscope.telemetry.logs import JsonHandler
from recallscope.telemetry.loop_lag import LoopLag
from recallscope.telemetry.metrics import MetricObserver
from recallscope.telemetry.pipelines import MetricPipeline, TracePipeline
from recallscope.telemetry.settings import TelemetrySettings, plan_export
from recallscope.telemetry.span_table import NO_SPAN
from recallscope.telemetry.spans import SpanObserver

if TYPE_CHECKING:
    from opentelemetry.sdk._logs.export import LogRecordExporter

    from recallscope.telemetry.log_export import LogPipeline

__all__ = ["ObserverState", "Telemetry", "TelemetrySettings", "open_telemetry"]

_log = logging.getLogger(__name__)

CLOSING_SECONDS = 3.5
"""What the exporters get together at the end; the journal gets half a second more."""

JOURNAL_CLOSING_SECONDS = 0.5


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
    """Telemetry of one process; made by `open_telemetry`.

    Attributes:
        observers: what to give to the engine, in this order.
        metrics_url: where `/metrics` is served; None if it is not.
        journal: the journal; None without one.
    """

    def __init__(self, settings: TelemetrySettings, stack: ExitStack) -> None:
        self.observers: tuple[Callable[[Event], None], ...] = ()
        self.metrics_url: str | None = None
        self.journal: Journal | None = None
        self._spans: SpanObserver | None = None
        self._flows: list[Callable[[], Iterable[Flow]]] = []
        self._observer_states: Callable[[], Iterable[ObserverState]] = tuple
        self._lag: LoopLag | None = None
        self._anchor = Anchor.now()
        if settings.log_stream is not None:
            handler = JsonHandler(settings.log_stream, context_of=self._context_of)
            stack.enter_context(_logging_to(handler, settings.log_level))
        stack.callback(self._tell_losses)
        if settings.journal:
            journal = self.journal = Journal(settings.journal_folder, anchor=self._anchor, trace_id=self.trace_id)
            self._flows.append(lambda: (journal.flow(),))
            stack.callback(journal.close, JOURNAL_CLOSING_SECONDS)
        if not settings.disabled:
            self._open_providers(settings, stack)
        if self.journal is not None:
            self.observers = (*self.observers, self.journal)

    def trace_headers(self, op: OpId) -> Mapping[str, str]:
        """Return the W3C headers that tell others of the span of `op`; empty if there is none."""
        return self._spans.trace_headers(op) if self._spans is not None else {}

    def trace_id(self, op: OpId) -> str | None:
        """Return the id of the trace that `op` is drawn in, 32 hexadecimal digits; None if there is none."""
        return self._spans.trace_id(op) if self._spans is not None else None

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

    def _context_of(self, op: OpId) -> Context:
        return self._spans.context_of(op) if self._spans is not None else NO_SPAN

    def _open_providers(self, settings: TelemetrySettings, stack: ExitStack) -> None:
        resource = _resource(settings)
        metrics = self._open_metrics(settings, resource, stack)
        traces = TracePipeline(settings, resource, metrics.provider)
        self._flows.append(traces.flows)
        tracer = traces.tracer(settings.version)
        spans = self._spans = SpanObserver(tracer, anchor=self._anchor, slow_turn_seconds=settings.slow_turn_seconds)
        traces.refused = lambda: spans.refused
        self.observers = (spans,)
        histogram, deferred = None, None
        if metrics.provider is not None:
            meter = metrics.provider.get_meter(names.SCOPE, settings.version)
            observer = MetricObserver(
                meter, metrics.histograms, context_of=spans.context_of, policies=settings.policies, anchor=self._anchor
            )
            deferred = DeferredObserver(observer, name=MetricObserver.name)
            for reader in metrics.readers:
                reader.before = deferred.settle
            self.observers = (spans, deferred)
            self._flows.append(lambda: (deferred.flow(),))
            histogram = metrics.histograms.make(names.LOOP_LAG)
            self._observe_itself(meter, spans)
        if histogram is not None or traces.queue is not None:
            self._lag = LoopLag(histogram, hooks=(spans.tick,))
        stack.callback(self._close, traces, metrics, self._open_logs(settings, resource, metrics, stack))
        if deferred is not None:
            stack.callback(deferred.close)

    def _open_metrics(self, settings: TelemetrySettings, resource: Resource, stack: ExitStack) -> MetricPipeline:
        metrics = MetricPipeline(settings, resource)
        if metrics.scraped is not None:
            from recallscope.telemetry.exposition import MetricsServer  # noqa: PLC0415 - costs 60 ms

            host, port = settings.metrics_address
            self.metrics_url = stack.enter_context(MetricsServer(metrics.scraped, host=host, port=port)).url
        self._flows.append(metrics.flows)
        return metrics

    def _open_logs(
        self, settings: TelemetrySettings, resource: Resource, metrics: MetricPipeline, stack: ExitStack
    ) -> "LogPipeline | None":
        plan = plan_export(settings.environ, "LOGS", by_default=False)
        if plan is None:
            return None
        from recallscope.telemetry.log_export import LogPipeline, log_limits  # noqa: PLC0415 - only when logs are exported

        environ = settings.environ
        exporter: LogRecordExporter | None = exporter_of(
            plan, environ, lambda otlp: otlp.log_exporter(plan, metrics.provider)
        )
        if exporter is None:
            return None
        delay = number(environ, "OTEL_BLRP_SCHEDULE_DELAY", 1_000) / 1_000
        logs = LogPipeline(exporter, resource, delay=delay, limits=log_limits(environ), context_of=self._context_of)
        self._flows.append(lambda: (logs.queue.flow(),))
        stack.enter_context(_logging_to(logs.handler, settings.log_level))
        return logs

    def _observe_itself(self, meter: Meter, spans: SpanObserver) -> None:
        def lost() -> dict[Labels, int]:
            return {(flow.signal, reason): number for flow in self.statistics() for reason, number in flow.lost}

        def exported() -> dict[Labels, int]:
            return {(flow.signal,): flow.exported for flow in self.statistics()}

        def failures() -> dict[Labels, int]:
            return {(state.name,): state.failures for state in self._observer_states()}

        observe_counter(meter, names.TELEMETRY_DROPPED, lost)
        observe_counter(meter, names.TELEMETRY_EXPORTED, exported)
        observe_counter(meter, names.TELEMETRY_UNCLOSED, lambda: {(): spans.unclosed})
        observe_counter(meter, names.OBSERVER_FAILURES, failures)

    def _close(self, traces: TracePipeline, metrics: MetricPipeline, logs: "LogPipeline | None") -> None:
        """End open spans and pass on what waits, all signals at once, within `CLOSING_SECONDS`."""
        if self._spans is not None:
            self._spans.close(time.monotonic())
        deadline = time.monotonic() + CLOSING_SECONDS
        traces.start_closing()
        metrics.start_closing(CLOSING_SECONDS)
        if logs is not None:
            logs.queue.start_closing()
        traces.finish_closing(deadline)
        metrics.finish_closing(deadline)
        if logs is not None:
            logs.queue.finish_closing(deadline - time.monotonic())
            logs.close_exporter()

    def _tell_losses(self) -> None:
        """Say in one line what was lost, if anything."""
        lost = [f"{flow.signal} {flow.lost_items}" for flow in self.statistics() if flow.lost_items]
        if lost:
            _log.warning("telemetry was lost: %s", ", ".join(lost))


@contextmanager
def open_telemetry(settings: TelemetrySettings) -> Generator[Telemetry]:
    """Open telemetry for one process; leaving the block takes at most 5 s, whatever the collector does."""
    with ExitStack() as stack:
        yield Telemetry(settings, stack)


@contextmanager
def _logging_to(handler: logging.Handler, level: int) -> Generator[None]:
    """Send what the process logs to `handler`: this package's records from `level` on, others' warnings."""
    root, ours = logging.getLogger(), logging.getLogger(names.SCOPE)
    before = ours.level
    root.addHandler(handler)
    ours.setLevel(level)
    try:
        yield
    finally:
        root.removeHandler(handler)
        ours.setLevel(before)


def _resource(settings: TelemetrySettings) -> Resource:
    """Return what this process is; `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` win."""
    ours = Resource(
        {
            names.SERVICE_NAME: "recallscope",
            names.SERVICE_NAMESPACE: "recallscope",
            names.SERVICE_VERSION: settings.version,
            names.SERVICE_INSTANCE: str(uuid.uuid4()),
            names.DEPLOYMENT: "local",
            names.HOST: socket.gethostname(),
            names.PROCESS: os.getpid(),
            names.FRONT_END: settings.front_end,
        }
    )
    return ours.merge(OTELResourceDetector().detect())
