"""Fetches JSON over HTTP from a trace back end, and says in one sentence why it could not."""

import json
from collections.abc import Mapping
from http.client import HTTPException
from typing import Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import orjson

from recallscope.telemetry.read.address import Address
from recallscope.telemetry.read.figures import ReadError

__all__ = ["NoAnswerError", "fetch"]

TIMEOUT_SECONDS: Final = 30.0
MAX_BYTES: Final = 256 * 1024 * 1024
NOT_FOUND: Final = 404
SHOWN_CHARACTERS: Final = 200


class NoAnswerError(ReadError):
    """Nobody answers at an address."""


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
            raise ReadError(f"{url}{path} answered {error.code}: {_refusal(error)}") from error
    except (URLError, OSError, HTTPException) as error:
        reason = error.reason if isinstance(error, URLError) else error
        raise NoAnswerError(f"no answer from {url}: {reason}; check the address of --from") from error
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


def _refusal(error: HTTPError) -> str:
    """Return what the server says of its refusal, in one short line."""
    try:
        said = error.read(SHOWN_CHARACTERS).decode("utf-8", "replace")
    except (OSError, HTTPException):
        return str(error.reason)
    return " ".join(json.dumps(said, ensure_ascii=True).strip('"').split()) or str(error.reason)
