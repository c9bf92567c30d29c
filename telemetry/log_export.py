"""Log records over OTLP: from stdlib logging through the SDK into a bounded queue. Imported when logs are exported."""

import logging
from collections.abc import Callable, Mapping
from typing import Final

from opentelemetry._logs import SeverityNumber
from opentelemetry.context import Context
from opentelemetry.sdk._logs import (
    LoggerProvider,
    LogRecordLimits,
    LogRecordProcessor,
    ReadableLogRecord,
    ReadWriteLogRecord,
)
from opentelemetry.sdk._logs.export import LogRecordExporter, LogRecordExportResult
from opentelemetry.sdk.resources import Resource
from opentelemetry.trace import NonRecordingSpan, set_span_in_context
from opentelemetry.util.types import AttributeValue

from recallscope.runtime.events import OpId
from recallscope.telemetry import names
from recallscope.telemetry.environment import MOST, whole
from recallscope.telemetry.export_queue import ExportQueue
from recallscope.telemetry.exporters import telling
from recallscope.telemetry.limits import ATTRIBUTES
from recallscope.telemetry.logs import error_text, masked, message_of, span_context_of_record
from recallscope.telemetry.span_table import NO_SPAN

__all__ = ["LogPipeline", "log_limits"]

CAPACITY: Final = 4_096
BATCH: Final = 512

_SEVERITY = {
    logging.DEBUG: SeverityNumber.DEBUG,
    logging.INFO: SeverityNumber.INFO,
    logging.WARNING: SeverityNumber.WARN,
    logging.ERROR: SeverityNumber.ERROR,
    logging.CRITICAL: SeverityNumber.FATAL,
}


class LogPipeline:
    """The logger provider, the handler that feeds it, and the queue to the collector."""

    def __init__(
        self,
        exporter: LogRecordExporter,
        resource: Resource,
        *,
        delay: float,
        limits: LogRecordLimits,
        context_of: Callable[[OpId], Context],
    ) -> None:
        self.queue: ExportQueue[ReadableLogRecord] = ExportQueue(
            telling(exporter.export, LogRecordExportResult.SUCCESS),
            signal=names.LOGS,
            capacity=CAPACITY,
            batch=BATCH,
            delay=delay,
        )
        self.close_exporter: Callable[[], None] = exporter.shutdown
        provider = LoggerProvider(resource=resource, shutdown_on_exit=False, log_record_limits=limits)
        provider.add_log_record_processor(_LogQueueProcessor(self.queue))
        self.handler = _OtlpHandler(provider, context_of)


def log_limits(environ: Mapping[str, str]) -> LogRecordLimits:
    """Return the limits of log records; a value that is none is a warning and the default."""
    attributes = whole(environ, "OTEL_ATTRIBUTE_COUNT_LIMIT", ATTRIBUTES)
    length = whole(environ, "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", MOST)
    return LogRecordLimits(
        max_attributes=attributes,
        max_attribute_length=length,
        max_log_record_attributes=whole(environ, "OTEL_LOGRECORD_ATTRIBUTE_COUNT_LIMIT", attributes),
        max_log_record_attribute_length=whole(environ, "OTEL_LOGRECORD_ATTRIBUTE_VALUE_LENGTH_LIMIT", length),
    )


class _OtlpHandler(logging.Handler):
    """Passes stdlib records on, but none of the exporters' own: they would feed themselves."""

    def __init__(self, provider: LoggerProvider, context_of: Callable[[OpId], Context]) -> None:
        super().__init__()
        self._provider = provider
        self._context_of = context_of

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.startswith("opentelemetry"):
            return
        span = span_context_of_record(record, self._context_of)
        attributes: dict[str, AttributeValue] = {}
        error = error_text(record)
        if error is not None:
            attributes[names.EXCEPTION_STACKTRACE] = masked(error)
            if record.exc_info and record.exc_info[0] is not None:
                attributes[names.EXCEPTION_TYPE] = record.exc_info[0].__name__
        self._provider.get_logger(record.name).emit(
            timestamp=round(record.created * 1e9),
            context=set_span_in_context(NonRecordingSpan(span), NO_SPAN) if span is not None else NO_SPAN,
            severity_number=_SEVERITY.get(record.levelno // 10 * 10, SeverityNumber.UNSPECIFIED),
            severity_text=record.levelname,
            body=masked(message_of(record)),
            attributes=attributes,
        )


class _LogQueueProcessor(LogRecordProcessor):
    """Puts log records into a queue."""

    def __init__(self, queue: ExportQueue[ReadableLogRecord]) -> None:
        self._queue = queue

    def on_emit(self, log_record: ReadWriteLogRecord) -> None:
        if log_record.resource is not None:
            self._queue.put(
                ReadableLogRecord(
                    log_record=log_record.log_record,
                    resource=log_record.resource,
                    instrumentation_scope=log_record.instrumentation_scope,
                    limits=log_record.limits,
                )
            )

    def shutdown(self) -> None:
        """Do nothing: the queue is closed by its owner."""

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return True
