"""Reads the figures of the comparison table from a process's own `/metrics`."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from urllib.error import URLError
from urllib.request import Request, urlopen

from prometheus_client import Metric
from prometheus_client.openmetrics import parser

from recallscope.telemetry import names
from recallscope.telemetry.read.figures import Figures, ReadError, collect_buckets, collect_turns, collect_waits

__all__ = ["figures_of", "scrape"]

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
    request = Request(url, headers={"Accept": ACCEPT})  # noqa: S310 - `/metrics` of this process, or what a test serves
    try:
        with urlopen(request, timeout=TIMEOUT_SECONDS) as response:  # noqa: S310 - as above
            text = response.read(MAX_BYTES).decode()
    except (URLError, OSError) as error:
        reason = error.reason if isinstance(error, URLError) else error
        raise ReadError(f"{url} could not be scraped: {reason}") from error
    try:
        return figures_of(text)
    except ValueError as error:
        raise ReadError(f"{url} does not answer in OpenMetrics: {error}") from error


def figures_of(text: str) -> Figures:
    """Return the figures that stand in `text`; a metric that is missing counts nothing.

    Raises:
        ValueError: `text` is not OpenMetrics.
    """
    samples: dict[str, list[tuple[Mapping[str, str], float]]] = {}
    for name, labels, value in _samples(text):
        samples.setdefault(name, []).append((labels, value))
    return Figures(
        turns=collect_turns(samples.get(names.RECALL_TURNS.prometheus, ())),
        waits=collect_waits(samples.get(_WAIT_BUCKET, ())),
        loop_lag=collect_buckets(samples.get(_LAG_BUCKET, ())),
    )


def _samples(text: str) -> Iterator[tuple[str, Mapping[str, str], float]]:
    # The library's parser has no types.
    parse: Callable[[str], Iterable[Metric]] = getattr(parser, "text_string_to_metric_families")  # noqa: B009 - by name it is partly unknown
    for family in parse(text):
        for sample in family.samples:
            yield sample.name, sample.labels, float(sample.value)
