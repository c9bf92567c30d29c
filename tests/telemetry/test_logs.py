"""Logs: one JSON line per record, with the span it belongs to and without credentials."""

import io
import json
import logging
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import set_span_in_context, use_span

from recallscope.runtime.events import OpId
from recallscope.telemetry.logs import JsonHandler, masked
from recallscope.telemetry.span_table import NO_SPAN

TRACER = TracerProvider(shutdown_on_exit=False).get_tracer("test")


def _record(message: Any, *args: object, **more: Any) -> logging.LogRecord:
    record = logging.LogRecord("recallscope.x", logging.WARNING, "x.py", 1, message, args, more.pop("exc_info", None))
    vars(record).update(more)
    return record


def _line(record: logging.LogRecord, context_of: Callable[[OpId], Any] = lambda _: NO_SPAN) -> dict[str, Any]:
    stream = io.StringIO()
    JsonHandler(stream, context_of=context_of).emit(record)
    (line,) = stream.getvalue().splitlines()
    parsed: dict[str, Any] = json.loads(line)
    return parsed


def test_a_line_has_time_level_logger_and_message() -> None:
    """What everyone needs, and nothing else without a span."""
    line = _line(_record("%d things", 3, created=1_800_000_000.5))

    assert line == {
        "time": "2027-01-15T08:00:00.500+00:00",
        "level": "WARNING",
        "logger": "recallscope.x",
        "message": "3 things",
    }


def test_a_line_names_the_current_span() -> None:
    """A record inside a span carries its ids."""
    span = TRACER.start_span("x")
    with use_span(span):
        line = _line(_record("x"))
    context = span.get_span_context()

    assert (line["trace_id"], line["span_id"]) == (f"{context.trace_id:032x}", f"{context.span_id:016x}")


def test_a_line_names_the_span_of_its_operation() -> None:
    """Without a current span, `extra={"op": …}` says which one it is."""
    span = TRACER.start_span("x")
    line = _line(_record("x", op="o1"), lambda op: set_span_in_context(span) if op == "o1" else NO_SPAN)

    assert line["span_id"] == f"{span.get_span_context().span_id:016x}"
    assert "span_id" not in _line(_record("x", op="unknown"))


def test_a_traceback_stays_on_its_line() -> None:
    """An error is one line of JSON too."""
    try:
        raise ValueError("no")  # noqa: TRY301 - the record needs a traceback
    except ValueError:
        line = _line(_record("failed", exc_info=sys.exc_info()))

    assert line["error"].endswith("ValueError: no")


def test_a_message_that_does_not_fit_its_arguments_is_told_all_the_same() -> None:
    """A wrong format is no reason to lose the record."""
    assert _line(_record("%d", "x"))["message"] == "%d ('x',)"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Authorization: Bearer abcdef123456", "Authorization: Bearer ***"),
        ("key sk-proj-abc_DEF-123456 refused", "key *** refused"),
        ("OPENAI_API_KEY=abcdef123456 is wrong", "OPENAI_API_KEY=*** is wrong"),
        ('{"api_key": "abcdef123456"}', '{"api_key": "***"}'),
        ("https://user:hunter2@host/x", "https://user:***@host/x"),
        ("token: ghp_abcdefghijkl", "token: ***"),
        ("12 tokens: fine", "12 tokens: fine"),
        ("nothing secret here", "nothing secret here"),
    ],
)
def test_credentials_are_masked(text: str, expected: str) -> None:
    """What looks like a credential never reaches a log."""
    assert masked(text) == expected


def test_credentials_are_masked_in_tracebacks_and_arguments() -> None:
    """Not only the format string is looked at."""
    try:
        raise ValueError("Bearer abcdef123456")  # noqa: TRY301 - the record needs a traceback
    except ValueError:
        line = _line(_record("got %s", "sk-abcdefgh12345678", exc_info=sys.exc_info()))

    assert "abcdef" not in json.dumps(line)


@given(text=st.text())
def test_masking_never_raises_and_is_stable(text: str) -> None:
    """Masking a masked text changes nothing more."""
    assert masked(masked(text)) == masked(text)


def test_text_that_is_no_unicode_does_not_cost_the_record() -> None:
    """A lone surrogate, as in a file name that is no UTF-8, becomes a question mark."""
    assert _line(_record("a %s", "\udcff"))["message"] == "a ?"


def test_a_stream_that_is_closed_loses_the_record_silently() -> None:
    """A reader that is gone is no reason to fail."""
    stream = io.StringIO()
    handler = JsonHandler(stream, context_of=lambda _: NO_SPAN)
    stream.close()
    handler.emit(_record("x"))
