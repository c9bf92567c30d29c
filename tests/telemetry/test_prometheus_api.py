"""What a Prometheus is asked over its HTTP API, and what is said when it does not answer well."""

import json
import math
import socket
import threading
from base64 import b64encode
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs

import pytest

from recallscope.runtime.events import Delivered, PolicyName, Reason, Scenario
from recallscope.telemetry import names, queries
from recallscope.telemetry.queries import exact
from recallscope.telemetry.read.address import without_login
from recallscope.telemetry.read.ceilings import Ceilings
from recallscope.telemetry.read.counts import TABLE
from recallscope.telemetry.read.figures import Figures, ReadError, Row, TurnKind
from recallscope.telemetry.read.prometheus import Reading, read_prometheus
from recallscope.telemetry.read.prometheus_api import PrometheusApi
from recallscope.telemetry.read.quantile import Buckets

SELECTOR = queries.job("agents")
NOW = 1_800_000_000.0
TOKEN = "a-token"  # noqa: S105 - it opens nothing
ROW = {"policy": "tiered", "scenario": "timed_out"}

SERIES = {
    "min by": (({"policy": "tiered"}, "0.05"), ({"policy": "strange"}, "1")),
    "max by": (({"policy": "tiered"}, "0.1"), ({"policy": "strange"}, "1")),
    f"{names.RECALL_TURNS.prometheus}{{": (({**ROW, "delivered": "both", "reason": "none"}, "5"),),
    f"{names.RECALL_TURN_WAIT_DURATION.prometheus}_bucket": (
        ({**ROW, "le": "+Inf"}, "5"),
        ({**ROW, "le": "0.001"}, "0"),
        ({**ROW, "le": "0.0025"}, "5"),
    ),
    f"{names.LOOP_LAG.prometheus}_bucket": (({"le": "0.001"}, "100"), ({"le": "+Inf"}, "NaN")),
}
"""What is answered to a query in which the text stands."""

Asked = Mapping[str, str]
Answer = Callable[[str, Asked], tuple[int, object]]


@contextmanager
def _api(answer: Answer, *, authorization: str | None = None) -> Generator[str]:
    """Serve the API at a free port; `answer` gives status and body for a path and its arguments."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            asked = {name: values[0] for name, values in parse_qs(body).items()}
            if authorization is not None and self.headers.get("Authorization") != authorization:
                status, value = 401, b"who are you?"
            else:
                status, value = answer(self.path, asked)
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
    result = [{"metric": metric, "value": [NOW, value]} for metric, value in series]
    return 200, {"status": "success", "data": {"resultType": "vector", "result": result}}


def _traffic(path: str, asked: Asked, *, seen_from: float = NOW - 3_600, seen_to: float = NOW) -> tuple[int, object]:
    """Answer as a Prometheus that has seen a few turns from `seen_from` to `seen_to`."""
    if path.endswith("query_range"):
        start, end, step = (float(asked[name]) for name in ("start", "end", "step"))
        moments = [start + number * step for number in range(int((end - start) / step + 1e-6) + 1)]
        values = [[moment, "1"] for moment in moments if seen_from <= moment and moment - step < seen_to]
        result: list[object] = [{"metric": {}, "values": values}] if values else []
        return 200, {"status": "success", "data": {"resultType": "matrix", "result": result}}
    query = asked["query"]
    if query == "vector(time())":
        return _vector(({}, str(NOW)))
    assert float(asked["time"]) == NOW
    return _vector(*next((series for part, series in SERIES.items() if part in query), ()))


def _read(url: str) -> Reading:
    return read_prometheus(PrometheusApi.at(url), selector=SELECTOR, seconds=3_600, wanted=TABLE)


def test_figures_are_read_from_the_api() -> None:
    """The figures of the table and the ceilings; an address with a slash at its end is the same address."""
    with _api(_traffic) as url:
        reading = _read(f"{url}/")

    place = Row(PolicyName.TIERED, Scenario.TIMED_OUT)
    assert reading.counts.figures == Figures(
        turns={TurnKind(place, Delivered.BOTH, Reason.NONE): 5.0},
        waits={place: Buckets((0.001, 0.0025, math.inf), (0.0, 5.0, 5.0))},
        ceilings={PolicyName.TIERED: Ceilings(0.05, 0.1)},
    )
    assert (reading.asked, reading.at, reading.first, reading.last) == (NOW - 3_600, NOW, NOW - 3_600, NOW)
    assert (reading.short, reading.silent) == (False, False)


def test_less_history_than_was_asked_for_is_noticed() -> None:
    """Where the first figures are later than the span's begin, and where nothing is known any more."""
    with _api(lambda path, asked: _traffic(path, asked, seen_from=NOW - 1_000)) as url:
        young = _read(url)
    with _api(lambda path, asked: _traffic(path, asked, seen_to=NOW - 600)) as url:
        gone = _read(url)
    with _api(lambda path, asked: _traffic(path, asked, seen_to=0)) as url:
        nothing = _read(url)

    assert (young.short, young.silent) == (True, False)
    assert young.first is not None
    assert abs(young.first - (NOW - 1_000)) <= 1
    assert (gone.short, gone.silent) == (False, True)
    assert (nothing.first, nothing.last, nothing.short, nothing.silent) == (None, None, False, False)


@pytest.mark.parametrize(
    ("status", "body", "problem"),
    [
        (400, {"status": "error", "error": "parse error: unexpected character"}, r"answered 400: parse error"),
        (404, b"not here", r"answered 404: no Prometheus answers there; name the address at which its own pages stand"),
        (405, b"", r"answered 405: no Prometheus answers there; .* with its path if it has one and without /api"),
        (500, b"<html><h1>Oops</h1>", r"answered 500: Internal Server Error$"),
        (502, b"upstream\n is  gone", r"answered 502: upstream is gone$"),
        (403, b"", r"answered 403: it wants to know who asks; write http://user:password@host, or set telemetry\."),
        (422, {"error": "too many samples"}, r"answered 422: too many samples; ask for less, with a shorter --since"),
        (503, {"error": "query timed out"}, r"answered 503: query timed out; ask for less, with a shorter --since"),
        (200, b"<html>", r"does not answer in JSON; is it a Prometheus\?"),
        (200, {"data": {"result": [{"metric": {"policy": "tiered"}}]}}, r"does not answer as a Prometheus does"),
        (200, ["something else"], r"does not answer as a Prometheus does"),
        (200, {"data": {"result": []}}, r"does not answer as a Prometheus does"),
    ],
)
def test_what_is_no_answer_is_told(status: int, body: object, problem: str) -> None:
    """A refusal, another program and another shape are told apart."""
    with _api(lambda _path, _asked: (status, body)) as url, pytest.raises(ReadError, match=problem):
        _read(url)


def test_who_asks_is_told_as_the_address_or_the_setting_has_it() -> None:
    """A name and a password in the address go before the token; neither stands in an error."""
    basic = f"Basic {b64encode(b'me:p@ss').decode()}"
    with _api(_traffic, authorization=basic) as url:
        assert PrometheusApi.at(url.replace("://", "://me:p%40ss@"), token=TOKEN).now() == NOW
        with pytest.raises(ReadError) as refused:
            PrometheusApi.at(url.replace("://", "://me:wrong@")).now()
    with _api(_traffic, authorization=f"Bearer {TOKEN}") as url:
        assert PrometheusApi.at(url, token=TOKEN).now() == NOW

    assert "wrong" not in str(refused.value)
    assert "answered 401" in str(refused.value)


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        (
            "http://127.0.0.1:1",
            r"no answer from http://127\.0\.0\.1:1/api/v1/query: nothing listens there \(connection ",
        ),
        ("http://no-such-host.invalid", r": no host of that name is known \("),
    ],
)
def test_why_nobody_answers_is_told_in_words(url: str, problem: str) -> None:
    """No number of an error of the operating system stands there."""
    with pytest.raises(ReadError, match=problem) as told:
        PrometheusApi.at(url).now()

    assert "Errno" not in str(told.value)


@pytest.mark.parametrize(
    ("scheme", "said", "problem"),
    [
        ("http", b"SSH-2.0-OpenSSH\r\n", "it does not answer in HTTP"),
        ("http", b"", "it closed the connection without an answer"),
        ("https", b"HTTP/1.0 200 OK\r\n\r\n", "it does not speak TLS, as https needs"),
    ],
)
def test_a_server_of_another_protocol_is_told_in_words(scheme: str, said: bytes, problem: str) -> None:
    """What answers otherwise than in HTTP is told apart from nobody."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection, suppress(ConnectionError):  # who does not understand may leave
                connection.sendall(said)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(65_536):
                    pass

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(ReadError, match=problem):
            PrometheusApi.at(f"{scheme}://127.0.0.1:{server.getsockname()[1]}").now()
        thread.join()


def test_silence_has_an_end() -> None:
    """A server that takes the connection and says nothing is told after the time that it had."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(ReadError, match=r"did not answer within \d+ s; check that it is well, or ask for less"):
            PrometheusApi.at(url, timeout=0.1, grace=0.1).now()


@pytest.mark.parametrize("url", ["localhost:9090", "ftp://localhost", "http://", "", "http://[", "http://a:b"])
def test_an_address_that_is_none_is_told(url: str) -> None:
    """The error shows what an address looks like."""
    with pytest.raises(ReadError, match=r"is no address of a Prometheus; it looks like http://localhost:9090"):
        PrometheusApi.at(url)


def test_a_login_is_never_shown() -> None:
    """Of an address only what is no secret is shown."""
    assert without_login("https://me:secret@host:9090/a") == "https://…@host:9090/a"
    assert without_login("http://host:9090") == "http://host:9090"
    with pytest.raises(ReadError) as told:
        PrometheusApi.at("ftp://me:secret@host")
    assert "secret" not in str(told.value)


@pytest.mark.parametrize(
    "query",
    [
        exact.counted(names.RECALL_TURNS.prometheus, names.RECALL_TURNS.labels, SELECTOR, 60),
        exact.counted(f"{names.LOOP_LAG.prometheus}_bucket", ("le",), SELECTOR, 60),
        exact.ceilings_lowest(SELECTOR, 60),
        exact.ceilings_highest(SELECTOR, 60),
        exact.seen(SELECTOR, 60),
    ],
)
def test_every_series_of_an_exact_query_is_asked_for_in_one_job(query: str) -> None:
    """As of every query: one series may reach a Prometheus on two ways."""
    assert query.count("{") == query.count(f"{{{SELECTOR}}}")
    assert query.count("(") == query.count(")")
