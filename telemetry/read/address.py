"""The address of an HTTP server as a person writes it: where it is, who asks, and how it may be shown."""

from base64 import b64encode
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit, urlunsplit

from recallscope.telemetry.read.figures import ReadError

__all__ = ["Address", "without_login"]


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server is (`base`: `http://host:9090`, with a path if it has one), and what tells it who asks.

    `base` may be shown; `authorization`, the value of the header of that name, may not.
    """

    base: str
    authorization: str | None = None

    @classmethod
    def of(cls, url: str, *, server: str, example: str) -> "Address":
        """Read `url`, which may hold `user:password@`.

        Raises:
            ReadError: it is no HTTP address; the sentence names the kind of `server` and an `example`, and no password.
        """
        try:
            parts = urlsplit(url)
            host, _ = parts.hostname, parts.port
        except ValueError:
            parts, host = urlsplit(""), None
        if parts.scheme not in {"http", "https"} or not host:
            raise ReadError(f"{without_login(url)!r} is no address of {server}; it looks like {example}")
        place = parts.netloc.rpartition("@")[2]
        base = urlunsplit((parts.scheme, place, parts.path.rstrip("/"), "", ""))
        if parts.username is None:
            return cls(base)
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        return cls(base, f"Basic {b64encode(login.encode()).decode()}")

    @property
    def headers(self) -> dict[str, str]:
        """The headers that tell the server who asks."""
        return {} if self.authorization is None else {"Authorization": self.authorization}


def without_login(url: str) -> str:
    """Return an address as it may be shown, without the name and the password that may stand in it."""
    before, at, after = url.rpartition("@")
    scheme = before.partition("://")[0] if "://" in before else ""
    return url if not at else f"{scheme}://…@{after}" if scheme else f"…@{after}"
