"""Reads the figures of the comparison table from a Prometheus, through its HTTP API."""

import json
from collections.abc import Iterator
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import Request, urlopen

from recallscope.telemetry import queries
from recallscope.telemetry.read.figures import Figures, Point, ReadError, collect_buckets, collect_turns, collect_waits

__all__ = ["read_prometheus"]

TIMEOUT_SECONDS = 30.0
MAX_BYTES = 64 * 1024 * 1024


def read_prometheus(url: str, *, selector: str, window: str) -> Figures:
    """Ask the Prometheus at `url` (blocking) for what `selector` counted within `window` up to now.

    `url` is the address under which its API stands (`http://host:9090`, with a path if it has one).

    Raises:
        ReadError: nobody answers, or it is no Prometheus, or it refuses the query.
    """
    if urlsplit(url).scheme not in {"http", "https"} or not urlsplit(url).netloc:
        raise ReadError(f"{url!r} is no address of a Prometheus; it looks like http://localhost:9090")
    return Figures(
        turns=collect_turns(_query(url, queries.table_turns(selector, window))),
        waits=collect_waits(_query(url, queries.table_wait_buckets(selector, window))),
        loop_lag=collect_buckets(_query(url, queries.loop_lag_buckets(selector, window))),
    )


def _query(url: str, query: str) -> list[Point]:
    address = f"{url.rstrip('/')}/api/v1/query"
    request = Request(address, data=urlencode({"query": query}).encode())  # noqa: S310 - the scheme is checked above
    try:
        with urlopen(request, timeout=TIMEOUT_SECONDS) as response:  # noqa: S310 - as above
            answer = json.loads(response.read(MAX_BYTES))
    except HTTPError as error:
        raise ReadError(f"{address} answered {error.code}: {_refusal(error)}") from error
    except (URLError, OSError, HTTPException) as error:
        reason = error.reason if isinstance(error, URLError) else error
        raise ReadError(f"no answer from {address}: {reason}; check that the Prometheus runs there") from error
    except ValueError as error:
        raise ReadError(f"{address} does not answer in JSON; is it a Prometheus?") from error
    try:
        return list(_points(answer))
    except (LookupError, TypeError, ValueError) as error:
        raise ReadError(f"{address} does not answer as a Prometheus does") from error


def _points(answer: Any) -> Iterator[Point]:
    for series in answer["data"]["result"]:
        labels = {str(name): str(value) for name, value in series["metric"].items()}
        yield labels, float(series["value"][1])


def _refusal(error: HTTPError) -> str:
    try:
        return str(json.loads(error.read(MAX_BYTES))["error"])
    except (OSError, HTTPException, LookupError, TypeError, ValueError):
        return str(error.reason)
