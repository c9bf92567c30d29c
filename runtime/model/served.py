"""A model behind an address: what all its clients check, open and close alike."""

import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import ClassVar, Self
from urllib.parse import urlsplit

from recallscope.runtime.errors import ConfigError
from recallscope.runtime.events import OpId
from recallscope.runtime.model.seam import Endpoint

__all__ = ["ServedModel", "TraceHeaders"]

TraceHeaders = Callable[[OpId], Mapping[str, str]]
"""Gives the headers that carry the trace context of an operation to another process."""

DEFAULT_PORTS = {"http": 80, "https": 443}


def no_headers(_op: OpId) -> Mapping[str, str]:
    """Give no headers: the trace ends here."""
    return {}


class ServedModel:
    """One model of a server, with its connections; closed by `aclose` or `async with`. Its clients derive from it.

    `name` is the model's name on the wire, `api_key` None sends no credentials. Seconds: `connect_timeout` bounds the
    way to a connection, `first_byte_timeout` the wait for the begin of a response (None: as `read_timeout`),
    `read_timeout` the silence within one (None: `READ_TIMEOUT`). `wall` is the wall clock that a date in `Retry-After`
    is compared with. The constructor imports `openai` (about a second of CPU in a new process), so no request does.

    Raises:
        ConfigError: the base URL or the key cannot be used.
    """

    READ_TIMEOUT: ClassVar = 300.0

    def __init__(
        self,
        *,
        name: str,
        base_url: str,
        api_key: str | None = None,
        provider: str = "openai",
        trace_headers: TraceHeaders = no_headers,
        connect_timeout: float = 5.0,
        first_byte_timeout: float | None = None,
        read_timeout: float | None = None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        silence = self.READ_TIMEOUT if read_timeout is None else read_timeout
        host, port, self._url = _where(base_url, name)
        _check_key(api_key, name)
        from recallscope.runtime.model.connection import Connection  # noqa: PLC0415 - imports openai: see the class

        self._endpoint = Endpoint(name, provider, host, port)
        self._trace_headers = trace_headers
        self._connection = Connection(
            base_url=base_url,
            url=self._url,
            host=host,
            api_key=api_key,
            connect_timeout=connect_timeout,
            first_byte_timeout=silence if first_byte_timeout is None else first_byte_timeout,
            read_timeout=silence,
            wall=wall,
        )

    @property
    def endpoint(self) -> Endpoint:
        """Which model this is."""
        return self._endpoint

    async def aclose(self) -> None:
        """Close all connections; requests under way fail."""
        await self._connection.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()


def _where(base_url: str, name: str) -> tuple[str, int, str]:
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


def _check_key(api_key: str | None, name: str) -> None:
    """Make sure that the key of the model `name` can stand in a header.

    Raises:
        ConfigError: it cannot; the value is not shown.
    """
    if api_key is None or (api_key.isascii() and api_key.isprintable() and " " not in api_key and api_key):
        return
    allowed = "printable ASCII without blanks (look for a pasted line break or quotation mark)"
    raise ConfigError(key="api_key", value="***", allowed=allowed, source=f"model {name}")
