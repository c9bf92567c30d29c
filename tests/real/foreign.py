"""Speaks OTLP as JSON to a collector, as another program would that exports beside an agent."""

import json
import secrets
import time
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from programs import Collector

__all__ = ["Attributes", "new_trace", "offer", "pairs", "point", "send", "span", "value"]

Attributes = dict[str, str | bool | int]

_KINDS = {
    "traces": ("Spans", "spans"),
    "metrics": ("Metrics", "metrics"),
    "logs": ("Logs", "logRecords"),
}


def value(plain: str | bool | int) -> dict[str, Any]:
    """Return a plain value as OTLP has it."""
    match plain:
        case bool():
            return {"boolValue": plain}
        case int():
            return {"intValue": str(plain)}
        case str():
            return {"stringValue": plain}


def pairs(attributes: Attributes) -> list[dict[str, Any]]:
    """Return attributes as OTLP has them."""
    return [{"key": key, "value": value(plain)} for key, plain in attributes.items()]


def new_trace() -> str:
    """Return a new id of a trace."""
    return secrets.token_hex(16)


def span(trace: str, name: str, attributes: Attributes | None = None, **more: Any) -> dict[str, Any]:
    """Return a span of a millisecond that ends now; without `parentSpanId` in `more` it is a root."""
    now = time.time_ns()
    return {
        "traceId": trace,
        "spanId": secrets.token_hex(8),
        "name": name,
        "startTimeUnixNano": str(now - 1_000_000),
        "endTimeUnixNano": str(now),
        "attributes": pairs(attributes or {}),
        **more,
    }


def point(name: str) -> dict[str, Any]:
    """Return a gauge with one point."""
    return {"name": name, "gauge": {"dataPoints": [{"timeUnixNano": str(time.time_ns()), "asDouble": 1.0}]}}


def offer(collector: Collector, signal: str, items: list[dict[str, Any]], resource: Attributes | None = None) -> int:
    """Send `traces`, `metrics` or `logs` over HTTP and return the status of the answer."""
    kind, inner = _KINDS[signal]
    resources = {"attributes": pairs({"service.name": "other", **(resource or {})})}
    body = {f"resource{kind}": [{"resource": resources, f"scope{kind}": [{inner: items}]}]}
    request = Request(  # noqa: S310 - the collector on loopback
        f"{collector.endpoint}/v1/{signal}", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    try:
        with urlopen(request, timeout=10) as answer:  # noqa: S310 - as above
            return int(answer.status)
    except HTTPError as error:
        with error:
            return error.code


def send(collector: Collector, signal: str, items: list[dict[str, Any]], resource: Attributes | None = None) -> None:
    """Send something that must be taken."""
    assert offer(collector, signal, items, resource) == 200
