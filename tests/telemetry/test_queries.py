"""The PromQL of the table and of the service levels: names that exist, one job, figures as an API answers them."""

import json
import math
import re
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs

import pytest

from recallscope.runtime.events import Delivered, PolicyName, Reason, Scenario
from recallscope.telemetry import names, queries
from recallscope.telemetry.read.figures import Figures, ReadError, Row, TurnKind
from recallscope.telemetry.read.prometheus import read_prometheus
from recallscope.telemetry.read.quantile import Buckets

SELECTOR = queries.job("agents")
ALL: dict[str, Callable[[str, str], str]] = {
    "table_turns": queries.table_turns,
    "table_wait_buckets": queries.table_wait_buckets,
    "table_wait_p95": lambda selector, window: queries.table_wait_quantile(0.95, selector, window),
    "table_wait_max": queries.table_wait_max,
    "loop_lag_buckets": queries.loop_lag_buckets,
    "loop_lag_max": queries.loop_lag_max,
    "hold": queries.hold,
    "delivery": queries.delivery,
    "slow_turns": queries.slow_turns,
    "telemetry_loss": queries.telemetry_loss,
}


@pytest.mark.parametrize("query", ALL.values(), ids=ALL)
def test_a_query_asks_for_metrics_that_exist(query: Callable[[str, str], str]) -> None:
    """Each series belongs to a metric that telemetry emits, and is asked for in one job alone."""
    known = {metric.prometheus for metric in names.METRICS}
    text = query(SELECTOR, "5m")
    series = re.findall(r"(\w+)\{([^}]*)\}\[5m\]", text)

    assert series
    assert {re.sub(r"_(?:bucket|count)$", "", name) for name, _ in series} <= known
    assert [matchers for _, matchers in series if not matchers.startswith('job="agents"')] == []
    assert text.count("(") == text.count(")")


def test_the_boundary_of_a_slow_turn_is_a_bucket() -> None:
    """A share above a bound can only be asked for at a boundary, spelled as the exposition spells it."""
    assert float(queries.SLOW_TURN) in names.BUCKETS_T


def test_the_labels_of_the_table_are_those_of_its_metric() -> None:
    """What the table groups by is what the counter carries."""
    grouped = re.search(r"sum by \(([^)]*)\)", queries.table_turns(SELECTOR, "1h"))

    assert grouped is not None
    assert tuple(grouped[1].split(", ")) == names.RECALL_TURNS.labels


def test_a_job_is_escaped() -> None:
    """A name with quotes stays one matcher."""
    assert queries.job('a"} or vector(1) #\\') == 'job="a\\"} or vector(1) #\\\\"'


@pytest.mark.parametrize(("text", "right"), [("1h", True), ("1h30m", True), ("90s", True), ("0s", False)])
def test_a_range_that_promql_takes(text: str, right: bool) -> None:
    """Numbers with units, one or several."""
    assert queries.is_range(text) is right


@pytest.mark.parametrize("text", ["", "1", "h", "1 h", "-1h", "1h]) or vector(1", "yesterday"])
def test_a_range_that_promql_refuses(text: str) -> None:
    """Anything else, and whatever would end the expression."""
    assert not queries.is_range(text)


# The HTTP API


@contextmanager
def _api(answer: Callable[[str], tuple[int, object]]) -> Generator[str]:
    """Serve the query API at a free port; `answer` gives status and body for a query."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            status, value = answer(parse_qs(body)["query"][0] if self.path == "/api/v1/query" else "")
            self.send_response(status)
            self.end_headers()
            self.wfile.write(value if isinstance(value, bytes) else json.dumps(value).encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the base class
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def _vector(*series: tuple[dict[str, str], str]) -> tuple[int, object]:
    result = [{"metric": metric, "value": [1_780_000_000.0, value]} for metric, value in series]
    return 200, {"status": "success", "data": {"resultType": "vector", "result": result}}


def test_figures_are_read_from_the_api() -> None:
    """Three queries give the figures of the table; an address with a slash at its end is the same address."""
    row = {"policy": "tiered", "scenario": "timed_out"}
    answers = {
        queries.table_turns(SELECTOR, "1h"): _vector(({**row, "delivered": "both", "reason": "none"}, "5.17")),
        queries.table_wait_buckets(SELECTOR, "1h"): _vector(
            ({**row, "le": "+Inf"}, "5.17"), ({**row, "le": "0.001"}, "0"), ({**row, "le": "0.0025"}, "5.17")
        ),
        queries.loop_lag_buckets(SELECTOR, "1h"): _vector(({"le": "0.001"}, "100"), ({"le": "+Inf"}, "100")),
    }

    with _api(lambda query: answers[query]) as url:
        figures = read_prometheus(f"{url}/", selector=SELECTOR, window="1h")

    place = Row(PolicyName.TIERED, Scenario.TIMED_OUT)
    assert figures == Figures(
        turns={TurnKind(place, Delivered.BOTH, Reason.NONE): 5.17},
        waits={place: Buckets((0.001, 0.0025, math.inf), (0.0, 5.17, 5.17))},
        loop_lag=Buckets((0.001, math.inf), (100.0, 100.0)),
    )


@pytest.mark.parametrize(
    ("status", "body", "problem"),
    [
        (400, {"status": "error", "error": "parse error: unexpected character"}, r"answered 400: parse error"),
        (404, b"not here", r"answered 404: Not Found"),
        (200, b"<html>", r"does not answer in JSON; is it a Prometheus\?"),
        (200, {"data": {"result": [{"metric": {"policy": "tiered"}}]}}, r"does not answer as a Prometheus does"),
        (200, ["something else"], r"does not answer as a Prometheus does"),
    ],
)
def test_what_is_no_answer_is_told(status: int, body: object, problem: str) -> None:
    """A refusal, another program and another shape are told apart."""
    with _api(lambda _: (status, body)) as url, pytest.raises(ReadError, match=problem):
        read_prometheus(url, selector=SELECTOR, window="1h")


@pytest.mark.parametrize("url", ["localhost:9090", "ftp://localhost", "http://", ""])
def test_an_address_that_is_none_is_told(url: str) -> None:
    """The error shows what an address looks like."""
    with pytest.raises(ReadError, match=r"is no address of a Prometheus; it looks like http://localhost:9090"):
        read_prometheus(url, selector=SELECTOR, window="1h")
