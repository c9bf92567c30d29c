"""Logs as JSON lines with trace and span ids, and as OTLP records; credentials are masked in both.

A line is `{"time", "level", "logger", "message"}`, with `trace_id` and `span_id` of the current span if there is one,
else of the operation that the caller names: `log.warning("…", extra={"op": op})`; `error` holds a traceback.
"""

import json
import logging
import re
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, TextIO

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import SpanContext

from recallscope.runtime.events import OpId

__all__ = ["JsonHandler", "masked", "span_context_of_record"]

MASK: Final = "***"
_CREDENTIALS: Final = (
    re.compile(r"(?i)(\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{6,}"),
    re.compile(r"()\b(?:sk|pk|rk)-[A-Za-z0-9_-]{8,}"),
    re.compile(r"()\b(?:gh[pousr]_|glpat-|xox[abprs]-|AKIA)[A-Za-z0-9_-]{8,}"),
    re.compile(
        r"""(?i)((?:api[_-]?key|token|secret|password|authorization)["']?\s*[:=]\s*["']?)(?!bearer|basic)[^\s"',;&}]{6,}"""
    ),
    re.compile(r"(://[^/\s:@]*:)[^/\s@]+(?=@)"),
)

ContextOf = Callable[[OpId], Context]


def masked(text: str) -> str:
    """Return `text` with what looks like a credential replaced by `***`, and what is no Unicode by `?`."""
    text = text.encode("utf-8", "replace").decode()
    for pattern in _CREDENTIALS:
        text = pattern.sub(rf"\g<1>{MASK}", text)
    return text


def span_context_of_record(record: logging.LogRecord, context_of: ContextOf) -> SpanContext | None:
    """Return the span that a record belongs to: the current one, else that of its `op`; None without either."""
    current = trace.get_current_span().get_span_context()
    if current.is_valid:
        return current
    op: object = getattr(record, "op", None)
    if not isinstance(op, str):
        return None
    named = trace.get_current_span(context_of(OpId(op))).get_span_context()
    return named if named.is_valid else None


class JsonHandler(logging.Handler):
    """Writes records to a stream as JSON lines; a stream that is gone loses them silently.

    Args:
        stream: where the lines go.
        context_of: the span of an operation (`SpanObserver.context_of`).
    """

    def __init__(self, stream: TextIO, *, context_of: ContextOf) -> None:
        super().__init__()
        self._stream = stream
        self._context_of = context_of
        self._writing = threading.Lock()

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        line = json.dumps(self._line(record), ensure_ascii=False, default=str)
        try:
            with self._writing:
                self._stream.write(line + "\n")
                self._stream.flush()
        except (OSError, ValueError):  # closed by its reader or by us: there is nowhere to complain
            return

    def _line(self, record: logging.LogRecord) -> dict[str, Any]:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": masked(message_of(record)),
        }
        span = span_context_of_record(record, self._context_of)
        if span is not None:
            line["trace_id"] = f"{span.trace_id:032x}"
            line["span_id"] = f"{span.span_id:016x}"
        error = error_text(record)
        if error is not None:
            line["error"] = masked(error)
        return line


def message_of(record: logging.LogRecord) -> str:
    """Return the record's text; a text that does not fit its arguments is told with them."""
    try:
        return record.getMessage()
    except (TypeError, ValueError, KeyError):
        return f"{record.msg} {record.args!r}"


def error_text(record: logging.LogRecord) -> str | None:
    """Return the traceback that a record carries, if any."""
    if record.exc_info and record.exc_info != (None, None, None):
        return logging.Formatter().formatException(record.exc_info)
    return record.exc_text
