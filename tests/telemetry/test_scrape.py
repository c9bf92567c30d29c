"""The figures of the table are read from OpenMetrics text, over HTTP."""

import math
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from recallscope.runtime.events import Delivered, PolicyName, Reason, Scenario
from recallscope.telemetry.read.figures import Figures, ReadError, Row, TurnKind
from recallscope.telemetry.read.quantile import EMPTY, Buckets
from recallscope.telemetry.read.scrape import figures_of, scrape

TEXT = """\
# TYPE recallscope_recall_turns counter
recallscope_recall_turns_total{delivered="both",policy="tiered",reason="none",scenario="timed_out"} 4.0
recallscope_recall_turns_total{delivered="none",policy="tiered",reason="new_query",scenario="superseded"} 1 # {a="b"} 1
recallscope_recall_turns_total{delivered="somewhere",policy="tiered",reason="none",scenario="timed_out"} 9.0
# TYPE recallscope_recall_turn_wait_duration_seconds histogram
recallscope_recall_turn_wait_duration_seconds_bucket{le="0.005",policy="tiered",scenario="timed_out"} 3.0
recallscope_recall_turn_wait_duration_seconds_bucket{le="0.105",policy="tiered",scenario="timed_out"} 4.0
recallscope_recall_turn_wait_duration_seconds_bucket{le="+Inf",policy="tiered",scenario="timed_out"} 4.0
recallscope_recall_turn_wait_duration_seconds_count{policy="tiered",scenario="timed_out"} 4.0
recallscope_recall_turn_wait_duration_seconds_sum{policy="tiered",scenario="timed_out"} 0.1
# TYPE recallscope_loop_lag_seconds histogram
recallscope_loop_lag_seconds_bucket{le="0.001"} 7.0
recallscope_loop_lag_seconds_bucket{le="+Inf"} 7.0
recallscope_loop_lag_seconds_count 7.0
recallscope_loop_lag_seconds_sum 0.001
# EOF
"""

TIMED_OUT = Row(PolicyName.TIERED, Scenario.TIMED_OUT)
SUPERSEDED = Row(PolicyName.TIERED, Scenario.SUPERSEDED)
FIGURES = Figures(
    turns={
        TurnKind(TIMED_OUT, Delivered.BOTH, Reason.NONE): 4.0,
        TurnKind(SUPERSEDED, Delivered.NONE, Reason.NEW_QUERY): 1.0,
    },
    waits={TIMED_OUT: Buckets((0.005, 0.105, math.inf), (3.0, 4.0, 4.0))},
    loop_lag=Buckets((0.001, math.inf), (7.0, 7.0)),
)


@contextmanager
def _served(text: str, *, status: int = 200) -> Generator[str]:
    """Serve `text` at a free port, to whoever asks for OpenMetrics."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked_well = "openmetrics" in self.headers.get("Accept", "")
            self.send_response(status if asked_well else 406)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the base class
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/metrics"
        finally:
            server.shutdown()
            thread.join()


def test_figures_are_read_from_text() -> None:
    """Turns, waits and loop lag are read; a label that this version does not know is left out."""
    assert figures_of(TEXT) == FIGURES


def test_what_is_not_there_counts_nothing() -> None:
    """A process that has not recalled yet has empty figures."""
    assert figures_of("# EOF\n") == Figures(turns={}, waits={}, loop_lag=EMPTY)


def test_a_scrape_asks_for_openmetrics() -> None:
    """A scrape goes over HTTP and asks for the format that it reads."""
    with _served(TEXT) as url:
        assert scrape(url) == FIGURES


def test_figures_since_an_earlier_reading() -> None:
    """A reading less itself is nothing, a reading less nothing is itself."""
    nothing = FIGURES.since(FIGURES)

    assert set(nothing.turns.values()) == {0.0}
    assert nothing.waits[TIMED_OUT].count == 0
    assert nothing.loop_lag.count == 0
    assert FIGURES.since(Figures()) == FIGURES


def test_text_that_is_no_openmetrics_is_an_error() -> None:
    """An answer in another format says so, with the address."""
    with _served("<html>") as url, pytest.raises(ReadError, match=f"{url} does not answer in OpenMetrics"):
        scrape(url)


def test_an_error_is_told_with_its_address() -> None:
    """A refusal and a silent port are told with the address and the reason."""
    with _served("", status=503) as url, pytest.raises(ReadError, match=rf"{url} could not be scraped: .*Service"):
        scrape(url)
    with pytest.raises(ReadError, match=r"could not be scraped: .*refused"):
        scrape(url)
