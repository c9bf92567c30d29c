"""Says in words why a server did not answer, or what it said when it refused; for every reader over HTTP."""

import json
import socket
import ssl
from collections.abc import Mapping
from http.client import BadStatusLine, HTTPException, RemoteDisconnected
from typing import Final
from urllib.error import HTTPError, URLError

from recallscope.telemetry.read.lenient import mapping, text

__all__ = ["refusal", "why"]

MAX_BYTES: Final = 64 * 1024
SHOWN_CHARACTERS: Final = 200

_WORDS: Final[tuple[tuple[type[Exception], str], ...]] = (
    (ConnectionRefusedError, "nothing listens there (connection refused)"),
    (RemoteDisconnected, "it closed the connection without an answer"),
    (ConnectionResetError, "it broke the connection off"),
    (TimeoutError, "it did not answer in time"),
    (ssl.SSLCertVerificationError, "its certificate is not trusted"),
    (ssl.SSLError, "it does not speak TLS, as https needs"),
    (BadStatusLine, "it does not answer in HTTP"),
)


def why(error: Exception) -> str:
    """Return the reason in words, without numbers of the operating system's errors."""
    reason = error.reason if isinstance(error, URLError) else error
    if isinstance(reason, socket.gaierror):
        return f"no host of that name is known ({(reason.strerror or 'the lookup failed').lower()})"
    for kind, words in _WORDS:
        if isinstance(reason, kind):
            return words
    if isinstance(reason, OSError) and reason.strerror:
        return reason.strerror
    if isinstance(reason, HTTPException):
        return "it does not answer in HTTP"
    return str(reason) or type(reason).__name__


def refusal(error: HTTPError) -> str:
    """Return what a server says of its refusal, in one short line; a page of HTML says no more than its status does."""
    try:
        said = error.read(MAX_BYTES).decode("utf-8", "replace").strip()
    except (OSError, HTTPException):
        said = ""
    try:
        told: Mapping[str, object] = mapping(json.loads(said))
    except (ValueError, RecursionError):
        told = {}
    for key in ("error", "message"):
        if (found := text(told.get(key))) is not None:
            said = found
            break
    else:
        said = "" if said.startswith("<") else said
    return " ".join("".join(c if c.isprintable() else " " for c in said).split())[:SHOWN_CHARACTERS] or str(
        error.reason
    )
