"""Asks the OTLP endpoints whether they take what this process would send: one span, and empty metrics and logs.

Blocking, some seconds at most (the exporters' own timeout); nothing of it goes through the pipelines of a process.
"""

import logging
import re
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any, Final
from urllib.parse import urlsplit

from opentelemetry.sdk._logs.export import LogRecordExportResult
from opentelemetry.sdk.metrics.export import MetricExportResult, MetricsData
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_ON

from recallscope.telemetry import names
from recallscope.telemetry.exporters import REFUSALS, exporter_of
from recallscope.telemetry.metric_export import MetricFlow
from recallscope.telemetry.settings import ExportPlan, Protocol, plan_export

__all__ = ["Probe", "probe_exports"]


LEAST_SECONDS: Final = 2.0
"""An exporter says why an attempt failed only if it has the time for another one, which it makes after a second."""

_SYSTEM_ERROR: Final = re.compile(r"\[Errno -?\d+\] ([^\"')]+)")
"""What the operating system says, within what the HTTP library makes of it."""

_STATUS: Final = re.compile(r"\bcode: (\d{3}), reason: ?(.*)")
_IN_WORDS: Final = (
    ("CERTIFICATE_VERIFY_FAILED", "its certificate is not trusted (OTEL_EXPORTER_OTLP_CERTIFICATE names one that is)"),
    ("[SSL: ", "it does not speak TLS, as https needs"),
    ("SSL_ERROR_SSL", "it does not speak TLS, as https needs"),
    ("Failed to resolve", "no host of that name is known"),
    ("Name or service not known", "no host of that name is known"),
    ("errors resolving", "no host of that name is known"),
    ("Failed parsing HTTP/2", "it does not speak gRPC"),
    ("invalid path: ", "the certificates of OTEL_EXPORTER_OTLP_CERTIFICATE are not there"),
    ("DNS resolution failed", "no host of that name is known"),
    ("BadStatusLine", "it does not answer in HTTP"),
    ("RemoteDisconnected", "it closed the connection without an answer"),
    ("Connection refused", "Connection refused"),
    ("timed out", "it did not answer in time"),
    ("Deadline Exceeded", "it did not answer in time"),
)
"""What the libraries say, by a part of it, in words."""


@dataclass(frozen=True, slots=True)
class Probe:
    """What became of one signal: where it was sent, over what, how long it took (seconds), and the problem if any.

    `misnamed`: the endpoint is no address, so nothing was sent; the problem names the variable to correct.
    """

    signal: str
    endpoint: str
    protocol: str
    seconds: float
    problem: str | None
    misnamed: bool = False


_BY_DEFAULT: Final = {"TRACES": True, "METRICS": True, "LOGS": False}
_LIBRARYS_ENDPOINT: Final = {"grpc": "http://localhost:4317", "http/protobuf": "http://localhost:4318"}


def probe_exports(environ: Mapping[str, str], *, version: str) -> tuple[Probe, ...]:
    """Send to the endpoint of each signal that is exported under `environ`, and say what came of it; none, none.

    Endpoint and headers are read from the process by the exporters themselves, as OpenTelemetry prescribes.
    """
    plans = [plan_export(environ, signal, by_default=by_default) for signal, by_default in _BY_DEFAULT.items()]
    return tuple(_probe(plan, environ, version) for plan in plans if plan is not None)


def _probe(plan: ExportPlan, environ: Mapping[str, str], version: str) -> Probe:
    started = time.monotonic()
    plan = replace(plan, timeout=max(plan.timeout, LEAST_SECONDS))
    name = _endpoint_of(plan, environ)
    if (wrong := _no_address(environ.get(name), plan)) is not None:
        return Probe(plan.signal.lower(), environ[name], plan.protocol.value, 0.0, f"{wrong}; correct {name}", True)
    with _heard() as said:
        export = exporter_of(plan, environ, lambda otlp: _export_of(otlp, plan, version))
        # The exporters log why they fail; where a process is observed that log is off, here it is the answer.
        logging.getLogger("opentelemetry.exporter").setLevel(logging.WARNING)
        problem = None
        try:
            if export is None or not export():
                problem = _reason(said)
        except REFUSALS as error:
            problem = str(error)
    return Probe(
        plan.signal.lower(),
        environ.get(name) or _LIBRARYS_ENDPOINT[plan.protocol],
        plan.protocol.value,
        time.monotonic() - started,
        problem,
    )


def _endpoint_of(plan: ExportPlan, environ: Mapping[str, str]) -> str:
    """Return the name of the variable that says where a signal is sent."""
    own = f"OTEL_EXPORTER_OTLP_{plan.signal}_ENDPOINT"
    return own if environ.get(own) else "OTEL_EXPORTER_OTLP_ENDPOINT"


def _no_address(endpoint: str | None, plan: ExportPlan) -> str | None:
    """Say why an endpoint is no address, before a library says it in its own way; gRPC needs no scheme."""
    if endpoint is None:
        return None
    example = _LIBRARYS_ENDPOINT[plan.protocol]
    text = endpoint if "://" in endpoint or plan.protocol is Protocol.HTTP else f"http://{endpoint}"
    try:
        parts = urlsplit(text.strip())
        good = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        good = False
    return None if good and " " not in text.strip() else f"that is no address such as {example}"


def _export_of(otlp: ModuleType, plan: ExportPlan, version: str) -> Callable[[], bool]:
    """Return what sends the least of one signal, once, and says whether it was taken."""
    exporter: Any
    items: object
    success: object
    match plan.signal:
        case "TRACES":
            exporter, items, success = otlp.span_exporter(plan, None), [_span(version)], SpanExportResult.SUCCESS
        case "METRICS":
            exporter, items = otlp.metric_exporter(plan, MetricFlow()), MetricsData(resource_metrics=[])
            success = MetricExportResult.SUCCESS
        case _:
            exporter, items, success = otlp.log_exporter(plan, None), [], LogRecordExportResult.SUCCESS

    def export() -> bool:
        try:
            return exporter.export(items) is success
        finally:
            exporter.shutdown()

    return export


def _span(version: str) -> Any:
    provider = TracerProvider(
        sampler=ALWAYS_ON,
        resource=Resource({names.SERVICE_NAME: "recallscope", names.FRONT_END: "doctor"}),
        shutdown_on_exit=False,
    )
    span = provider.get_tracer(names.SCOPE, version).start_span(names.DOCTOR_SPAN)
    span.end()
    return span


def _reason(said: Sequence[str]) -> str:
    """Return why it failed: of the last message its details (gRPC), else what the first attempt failed with (HTTP)."""
    if not said:
        return "no reason was given"
    everything = " ".join(said)
    for sign, words in _IN_WORDS:
        if sign in everything:
            return words
    if status := _STATUS.search(said[-1]):
        return f"it answered {status[1]} ({status[2]})" if status[2] else f"it answered {status[1]}"
    if details := said[-1].partition("error details: ")[2]:
        return details
    system = _SYSTEM_ERROR.search(said[0])
    return system[1] if system else said[0].partition(" encountered while")[0].removeprefix("Transient error ")


@contextmanager
def _heard() -> Generator[list[str]]:
    """Collect what the exporters log, for the block, instead of letting it out."""
    said: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())

    listener = Listener(logging.WARNING)
    loggers = [logging.getLogger(name) for name in ("opentelemetry.exporter", f"{names.SCOPE}.telemetry.exporters")]
    before = [(logger, logger.level, logger.propagate) for logger in loggers]
    for logger in loggers:
        logger.addHandler(listener)
        logger.propagate = False
    try:
        yield said
    finally:
        for logger, level, propagate in before:
            logger.removeHandler(listener)
            logger.setLevel(level)
            logger.propagate = propagate
