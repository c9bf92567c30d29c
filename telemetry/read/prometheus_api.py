"""Asks a Prometheus over its HTTP API: one moment or a range of moments, with errors that say what to do."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from http.client import HTTPException
from typing import Any, Final, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from recallscope.telemetry.read.address import Address
from recallscope.telemetry.read.figures import Point, ReadError
from recallscope.telemetry.read.unanswered import refusal, why

__all__ = ["PrometheusApi"]

TIMEOUT_SECONDS: Final = 30.0
GRACE_SECONDS: Final = 5.0
"""How much longer than the server's own limit is waited, so that the server's word comes first."""

MAX_BYTES: Final = 64 * 1024 * 1024

_T = TypeVar("_T")

_UNAUTHORIZED: Final = frozenset({401, 403})
_NOT_THERE: Final = frozenset({404, 405, 501})
"""What another server, a proxy, and one that takes no POST say."""

_TOO_MUCH: Final = frozenset({422, 503, 504})


@dataclass(frozen=True, slots=True)
class PrometheusApi:
    """The API at `address`.

    All methods block: the server gets `timeout` seconds for a query, and its silence `grace` seconds more.
    """

    address: Address
    timeout: float = TIMEOUT_SECONDS
    grace: float = GRACE_SECONDS

    @classmethod
    def at(
        cls, url: str, *, token: str | None = None, timeout: float = TIMEOUT_SECONDS, grace: float = GRACE_SECONDS
    ) -> "PrometheusApi":
        """Make the API of an address as a person writes it, which may hold `user:password@`; else `token` is sent.

        Raises:
            ReadError: it is no address.
        """
        address = Address.of(url, server="a Prometheus", example="http://localhost:9090")
        bearer = None if token is None else f"Bearer {token}"
        return cls(replace(address, authorization=address.authorization or bearer), timeout, grace)

    @property
    def base(self) -> str:
        """Where it is, as it may be shown."""
        return self.address.base

    def now(self) -> float:
        """Return what the Prometheus's clock shows, in seconds since 1970.

        Raises:
            ReadError: as below.
        """
        for _, value in self.instant("vector(time())"):
            return value
        raise ReadError(f"{self.base} does not answer as a Prometheus does")

    def instant(self, query: str, *, at: float | None = None) -> list[Point]:
        """Return the value of each series of `query` at the moment `at` (seconds since 1970), or now.

        Raises:
            ReadError: nobody answers, or it is no Prometheus, or it refuses the query.
        """
        moment = {} if at is None else {"time": f"{at:.3f}"}
        return self._read("query", {"query": query, **moment}, _points)

    def over(self, query: str, *, start: float, end: float, step: float) -> list[tuple[float, float]]:
        """Return the moments and values of `query`, all of its series one behind the other.

        Raises:
            ReadError: as above.
        """
        asked = {"query": query, "start": f"{start:.3f}", "end": f"{end:.3f}", "step": f"{step:.3f}"}
        return self._read("query_range", asked, _moments)

    def _read(self, what: str, asked: Mapping[str, str], reader: Callable[[Any], Iterator[_T]]) -> list[_T]:
        data = self._ask(what, asked)
        try:
            return list(reader(data["data"]["result"]))
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise ReadError(f"{self.base} does not answer as a Prometheus does") from error

    def _ask(self, what: str, asked: Mapping[str, str]) -> Any:
        address = f"{self.base}/api/v1/{what}"
        body = urlencode({**asked, "timeout": f"{max(self.timeout * 1000, 1):.0f}ms"}).encode()
        request = Request(address, data=body, headers=self.address.headers)  # noqa: S310 - `at` lets only http and https through
        try:
            with urlopen(request, timeout=self.timeout + self.grace) as response:  # noqa: S310 - as above
                return json.loads(response.read(MAX_BYTES))
        except HTTPError as error:
            with error:  # it holds the connection
                raise ReadError(_refused(address, error)) from error
        except TimeoutError as error:
            raise ReadError(_late(address, self.timeout + self.grace)) from error
        except (URLError, OSError, HTTPException) as error:
            if isinstance(error, URLError) and isinstance(error.reason, TimeoutError):
                raise ReadError(_late(address, self.timeout + self.grace)) from error
            raise ReadError(f"no answer from {address}: {why(error)}; check that the Prometheus runs there") from error
        except ValueError as error:
            raise ReadError(f"{address} does not answer in JSON; is it a Prometheus?") from error


def _points(result: Any) -> Iterator[Point]:
    for series in result:
        labels = {str(name): str(value) for name, value in series["metric"].items()}
        yield labels, float(series["value"][1])


def _moments(result: Any) -> Iterator[tuple[float, float]]:
    for series in result:
        for moment, value in series["values"]:
            yield float(moment), float(value)


def _refused(address: str, error: HTTPError) -> str:
    if error.code in _UNAUTHORIZED:
        return (
            f"{address} answered {error.code}: it wants to know who asks; write http://user:password@host, or set "
            "telemetry.prometheus_token"
        )
    if error.code in _NOT_THERE:
        return (
            f"{address} answered {error.code}: no Prometheus answers there; name the address at which its own pages "
            "stand, with its path if it has one and without /api"
        )
    said = f"{address} answered {error.code}: {refusal(error)}"
    return f"{said}; ask for less, with a shorter --since" if error.code in _TOO_MUCH else said


def _late(address: str, waited: float) -> str:
    return (
        f"{address} did not answer within {waited:.0f} s; check that it is well, or ask for less with a shorter --since"
    )
