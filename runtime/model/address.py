"""Where a model server is, and how requests to it are signed and traced: what all its clients check alike."""

from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from recallscope.runtime.errors import ConfigError
from recallscope.runtime.events import OpId

__all__ = ["TraceHeaders", "check_key", "no_headers", "where"]

TraceHeaders = Callable[[OpId], Mapping[str, str]]
"""Gives the headers that carry the trace context of an operation to another process."""

DEFAULT_PORTS = {"http": 80, "https": 443}


def no_headers(_op: OpId) -> Mapping[str, str]:
    """Give no headers: the trace ends here."""
    return {}


def where(base_url: str, name: str) -> tuple[str, int, str]:
    """Return host, port, and the URL as errors may show it: without user, password and query.

    Raises:
        ConfigError: it is no such address.
    """
    source = f"model {name}"
    allowed = "an address like http://127.0.0.1:8000/v1 or https://api.example.com/v1"
    try:
        parts = urlsplit(base_url)
        port = parts.port or DEFAULT_PORTS[parts.scheme]
    except (ValueError, KeyError):
        raise ConfigError(key="base_url", value=base_url, allowed=allowed, source=source) from None
    if not parts.hostname:
        raise ConfigError(key="base_url", value=base_url, allowed=allowed, source=source)
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return parts.hostname, port, f"{parts.scheme}://{host}:{port}{parts.path}"


def check_key(api_key: str | None, name: str) -> None:
    """Make sure that the key of the model `name` can stand in a header.

    Raises:
        ConfigError: it cannot; the value is not shown.
    """
    if api_key is None or (api_key.isascii() and api_key.isprintable() and " " not in api_key and api_key):
        return
    allowed = "printable ASCII without blanks (look for a pasted line break or quotation mark)"
    raise ConfigError(key="api_key", value="***", allowed=allowed, source=f"model {name}")
