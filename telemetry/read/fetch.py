"""Fetches JSON over HTTP from a trace back end, and says in one sentence why it could not."""

from collections.abc import Mapping
from http.client import HTTPException
from typing import Final
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import orjson

from recallscope.telemetry.read.address import Address
from recallscope.telemetry.read.figures import ReadError
from recallscope.telemetry.read.unanswered import refusal, why

__all__ = ["NoAnswerError", "RefusedError", "fetch"]

TIMEOUT_SECONDS: Final = 30.0
MAX_BYTES: Final = 256 * 1024 * 1024
NOT_FOUND: Final = 404
UNAUTHORIZED: Final = frozenset({401, 403})


class NoAnswerError(ReadError):
    """Nobody answers at an address."""


class RefusedError(ReadError):
    """A server wants to know who asks."""


def fetch(server: Address, path: str, arguments: Mapping[str, str] | None = None) -> object:
    """Return the decoded JSON at `path` of `server`; None where nothing is there (404).

    An answer of several JSON objects, one per line, comes as a list of them.

    Raises:
        ReadError: nobody answers, it is refused, or the answer is no JSON.
    """
    url = server.base
    address = f"{url}{path}?{urlencode(arguments)}" if arguments else f"{url}{path}"
    request = Request(address, headers={"Accept": "application/json", **server.headers})  # noqa: S310 - the scheme is checked
    try:
        with urlopen(request, timeout=TIMEOUT_SECONDS) as response:  # noqa: S310 - as above
            body: bytes = response.read(MAX_BYTES)
    except HTTPError as error:
        with error:
            if error.code == NOT_FOUND:
                return None
            if error.code in UNAUTHORIZED:
                raise RefusedError(
                    f"{url}{path} answered {error.code}: it wants to know who asks; write http://user:password@host"
                ) from error
            raise ReadError(f"{url}{path} answered {error.code}: {refusal(error)}") from error
    except (OSError, HTTPException) as error:
        raise NoAnswerError(f"no answer from {url}: {why(error)}; check the address of --from") from error
    return _decoded(body, f"{url}{path}")


def _decoded(body: bytes, address: str) -> object:
    try:
        return orjson.loads(body)
    except ValueError:
        pass
    try:
        return [orjson.loads(line) for line in body.splitlines() if line]
    except ValueError as error:
        raise ReadError(f"{address} does not answer in JSON; is it a Tempo or a Jaeger?") from error
