"""Reads the figures of the comparison table from a process's own `/metrics`."""

from collections.abc import Callable, Iterable, Mapping
from http.client import HTTPException
from urllib.error import URLError
from urllib.request import Request, urlopen

from prometheus_client import Metric
from prometheus_client.openmetrics import parser

from recallscope.telemetry import names
from recallscope.telemetry.read.figures import Figures, ReadError, collect_buckets, collect_turns, collect_waits
from recallscope.telemetry.read.unanswered import why

__all__ = ["figures_of", "scrape", "scrape_families"]

ACCEPT = "application/openmetrics-text; version=1.0.0"
TIMEOUT_SECONDS = 10.0
MAX_BYTES = 64 * 1024 * 1024

_WAIT_BUCKET = f"{names.RECALL_TURN_WAIT_DURATION.prometheus}_bucket"
_LAG_BUCKET = f"{names.LOOP_LAG.prometheus}_bucket"


def scrape(url: str) -> Figures:
    """Fetch `url` (blocking, at most 10 s of silence) as OpenMetrics and return its figures.

    Raises:
        ReadError: nobody answers, the answer is an error, or it is no OpenMetrics text.
    """
    return _figures(scrape_families(url))


def scrape_families(url: str) -> tuple[Metric, ...]:
    """Fetch `url` (blocking, at most 10 s of silence) as OpenMetrics and return its metrics.

    Raises:
        ReadError: nobody answers, the answer is an error, or it is no OpenMetrics text.
    """
    request = Request(url, headers={"Accept": ACCEPT})  # noqa: S310 - `/metrics` of this process, or what a test serves
    try:
        with urlopen(request, timeout=TIMEOUT_SECONDS) as response:  # noqa: S310 - as above
            body = response.read(MAX_BYTES)
    except (URLError, OSError, HTTPException) as error:
        raise ReadError(f"{url} could not be scraped: {why(error)}") from error
    try:
        return _families(body.decode())
    except ValueError as error:
        raise ReadError(f"{url} does not answer in OpenMetrics: {error}") from error


def figures_of(text: str) -> Figures:
    """Return the figures that stand in `text`; a metric that is missing counts nothing.

    Raises:
        ValueError: `text` is not OpenMetrics.
    """
    return _figures(_families(text))


def _figures(families: Iterable[Metric]) -> Figures:
    samples: dict[str, list[tuple[Mapping[str, str], float]]] = {}
    for family in families:
        for sample in family.samples:
            samples.setdefault(sample.name, []).append((sample.labels, float(sample.value)))
    return Figures(
        turns=collect_turns(samples.get(names.RECALL_TURNS.prometheus, ())),
        waits=collect_waits(samples.get(_WAIT_BUCKET, ())),
        loop_lag=collect_buckets(samples.get(_LAG_BUCKET, ())),
    )


def _families(text: str) -> tuple[Metric, ...]:
    # The library's parser has no types.
    parse: Callable[[str], Iterable[Metric]] = getattr(parser, "text_string_to_metric_families")  # noqa: B009 - by name it is partly unknown
    return tuple(parse(text))
