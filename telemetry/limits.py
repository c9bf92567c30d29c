"""The SDK's limits and choices that come from `OTEL_…` variables, read tolerantly."""

from collections.abc import Mapping
from typing import Final

from opentelemetry.sdk.trace import SpanLimits

from recallscope.telemetry.environment import choice, whole
from recallscope.telemetry.histograms import Exemplars

__all__ = ["ATTRIBUTES", "ATTRIBUTE_LENGTH", "span_limits", "which_exemplars"]

ATTRIBUTES: Final = 128
"""Attributes of one span, event, link or log record; and events and links of one span."""

ATTRIBUTE_LENGTH: Final = 4_096
"""Characters of one attribute."""


def span_limits(environ: Mapping[str, str]) -> SpanLimits:
    """Return the limits of spans."""
    attributes = whole(environ, "OTEL_ATTRIBUTE_COUNT_LIMIT", ATTRIBUTES)
    length = whole(environ, "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", ATTRIBUTE_LENGTH)
    return SpanLimits(
        max_attributes=attributes,
        max_events=whole(environ, "OTEL_SPAN_EVENT_COUNT_LIMIT", ATTRIBUTES),
        max_links=whole(environ, "OTEL_SPAN_LINK_COUNT_LIMIT", ATTRIBUTES),
        max_span_attributes=whole(environ, "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", attributes),
        max_event_attributes=whole(environ, "OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT", attributes),
        max_link_attributes=whole(environ, "OTEL_LINK_ATTRIBUTE_COUNT_LIMIT", attributes),
        max_attribute_length=length,
        max_span_attribute_length=whole(environ, "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", length),
    )


def which_exemplars(environ: Mapping[str, str]) -> Exemplars:
    """Return which measurements may become exemplars: those within a sampled trace unless the variable says else."""
    return Exemplars(choice(environ, "OTEL_METRICS_EXEMPLAR_FILTER", tuple(Exemplars)))
