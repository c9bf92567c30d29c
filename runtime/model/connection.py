"""The connections to one model server: `openai` says where requests go and signs them, its transport carries them.

What a request needs from the library is the same for all of them, so it is asked once: building each request anew
would cost a quarter of a short one. Requests go to the transport itself: cookies, redirects and the flow of
authentication, which a client adds around it, are not wanted here and cost a twentieth of a turn.

Importing this module imports `openai`, which takes a second: only the constructor of the client does it.
"""

import email.utils
import importlib
import math
import os
import re
import urllib.request
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import cast

import httpx2
import openai

from recallscope.runtime.errors import ModelConnectionError, ModelStatusError, ModelStreamError

__all__ = ["Connection", "Reply"]

# asyncio would import this when it looks up the first host, which is within a turn.
importlib.import_module("concurrent.futures.thread")

ERROR_TEXT_LIMIT = 300
REFUSAL_BYTES = 64 * 1024
IDLE_CONNECTIONS = 100
IDLE_SECONDS = 30.0
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})

_CREDENTIAL = re.compile(r"(?i)\b(bearer\s+|sk-|pk-|key-)[A-Za-z0-9._*~+/=-]{6,}")


@dataclass(frozen=True, slots=True)
class Reply:
    """A response with a status of success: its content type, and its body as it comes."""

    content_type: str
    pieces: AsyncGenerator[bytes, None]


class Connection:
    """Posts bodies to the server at `base_url`; `url` is what errors call it, without any credentials.

    Any number of requests at once; idle connections are kept for a while. A server on loopback is reached without a
    proxy. Redirects are not followed: a POST would become a GET on the way.
    """

    def __init__(
        self,
        *,
        base_url: str,
        url: str,
        host: str,
        api_key: str | None,
        connect_timeout: float,
        first_byte_timeout: float,
        read_timeout: float,
        wall: Callable[[], float],
    ) -> None:
        self._url = url
        self._api_key = api_key
        self._connect_timeout = connect_timeout
        self._first_byte_timeout = first_byte_timeout
        self._read_timeout = read_timeout
        self._wall = wall
        timeout = httpx2.Timeout(read_timeout, connect=connect_timeout, pool=connect_timeout)
        self._timeout = timeout.as_dict()
        self._urls: dict[str, httpx2.URL] = {}
        self._transport = httpx2.AsyncHTTPTransport(
            limits=httpx2.Limits(
                max_connections=None, max_keepalive_connections=IDLE_CONNECTIONS, keepalive_expiry=IDLE_SECONDS
            ),
            proxy=None if host in LOOPBACK else _proxy_for(base_url, host),
        )
        self._client = openai.AsyncOpenAI(
            api_key=api_key or "none",
            base_url=base_url,
            max_retries=0,
            timeout=timeout,
            http_client=openai.DefaultAsyncHttpxClient(transport=self._transport),
        )
        signed = {**self._client.default_headers, **(self._client.auth_headers if api_key is not None else {})}
        self._headers = {name: value for name, value in signed.items() if isinstance(value, str)}

    async def aclose(self) -> None:
        """Close all connections; requests under way fail."""
        await self._client.close()

    @asynccontextmanager
    async def post(self, path: str, body: bytes, headers: Mapping[str, str]) -> AsyncGenerator[Reply]:
        """Send `body` and hold the reply; leaving the block closes the connection if the body was not read to its end.

        Raises:
            ModelConnectionError: no reply, or silence for longer than the read timeout.
            ModelStatusError: the server refused.
            ModelStreamError: the body was cut off.
        """
        response = await self._request(path, body, headers)
        try:
            async with aclosing(self._pieces(response)) as pieces:
                yield Reply(response.headers.get("content-type", "none"), pieces)
        finally:
            await response.aclose()

    async def _request(self, path: str, body: bytes, headers: Mapping[str, str]) -> httpx2.Response:
        # The transport reads its limit anew for the body, so one dictionary carries first the one and then the other.
        limits = {**self._timeout, "read": self._first_byte_timeout}
        request = httpx2.Request(
            "POST",
            self._url_of(path),
            headers={**self._headers, **headers},
            content=body,
            extensions={"timeout": limits},
        )
        try:
            response = await self._transport.handle_async_request(request)
        except httpx2.RequestError as error:
            raise self._no_answer(error, self._first_byte_timeout) from error
        response.request = request
        limits["read"] = self._read_timeout
        if response.is_success:
            return response
        try:
            async with aclosing(response):
                said = await self._beginning_of(response)
        except httpx2.RequestError as error:
            raise self._no_answer(error, self._read_timeout) from error
        raise self._refusal(response, said)

    async def _beginning_of(self, response: httpx2.Response) -> str:
        """Return the first part of a refusal's text: what is shown of it is short, and it may be endless."""
        said = bytearray()
        async for piece in response.aiter_bytes():
            said += piece
            if len(said) > REFUSAL_BYTES:
                break
        return said[:REFUSAL_BYTES].decode("utf-8", "replace")

    def _url_of(self, path: str) -> httpx2.URL:
        if path not in self._urls:
            base = self._client.base_url
            self._urls[path] = base.copy_with(path=base.path.rstrip("/") + path)
        return self._urls[path]

    async def _pieces(self, response: httpx2.Response) -> AsyncGenerator[bytes, None]:
        try:
            async for piece in response.aiter_bytes():
                yield piece
        except httpx2.TimeoutException as error:
            raise self._no_answer(error, self._read_timeout) from error
        except httpx2.RequestError as error:
            raise ModelStreamError(url=self._url, problem=f"it stopped early: {self.mask(_text_of(error))}") from error

    def _no_answer(self, error: BaseException, patience: float) -> ModelConnectionError:
        match error:
            case httpx2.ConnectTimeout() | httpx2.PoolTimeout():
                problem = f"no connection within {self._connect_timeout:g} seconds"
            case httpx2.TimeoutException():
                problem = f"silent for {patience:g} seconds"
            case _:
                problem = self.mask(_text_of(error))
        return ModelConnectionError(
            url=self._url, problem=problem, timed_out=isinstance(error, httpx2.TimeoutException)
        )

    def _refusal(self, response: httpx2.Response, said: str) -> ModelStatusError:
        location = response.headers.get("location")
        text = f"it redirects to {location}; use that address" if location else " ".join(said.split())
        return ModelStatusError(
            url=self._url,
            status_code=response.status_code,
            body=self.mask(text)[:ERROR_TEXT_LIMIT],
            retry_after=_retry_after(response.headers, self._wall),
        )

    def mask(self, text: str) -> str:
        """Return `text` without the API key and without what looks like one."""
        if self._api_key:
            text = text.replace(self._api_key, "***")
        return _CREDENTIAL.sub(lambda found: f"{found[1]}***", text)


def _proxy_for(url: str, host: str) -> str | None:
    """Return the proxy that the environment names for `url`; None without one, or if `NO_PROXY` excepts the host."""
    proxies = urllib.request.getproxies()
    proxy = proxies.get(url.partition(":")[0].lower()) or proxies.get("all")
    if not proxy or urllib.request.proxy_bypass(host):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _text_of(error: BaseException) -> str:
    """Return what the system said, found at the bottom of the chain, else what the error itself says."""
    link: BaseException | None = error
    while link is not None:
        if isinstance(link, ConnectionError) and link.errno:
            return os.strerror(link.errno)
        group = cast("BaseExceptionGroup[BaseException]", link) if isinstance(link, BaseExceptionGroup) else None
        link = group.exceptions[0] if group else link.__cause__ or link.__context__
    return str(error) or type(error).__name__


def _retry_after(headers: Mapping[str, str], wall: Callable[[], float]) -> float | None:
    """Return the seconds that the server asks to wait: `retry-after-ms`, or `Retry-After` as seconds or as a date."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after")
    seconds = _number(text)
    if seconds is not None or text is None:
        return seconds
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - wall())
    except (ValueError, OverflowError):
        return None


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return max(0.0, number) if math.isfinite(number) else None
