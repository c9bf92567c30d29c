"""Whether the clocks can be trusted: spans, notes and journals of several machines are put in order by them."""

import email.utils
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from recallscope.runtime.cli.compose import DEFAULT_BASE_URL
from recallscope.runtime.cli.doctor.finding import Finding, failed, fine, not_applicable, warning
from recallscope.runtime.config import Settings

__all__ = ["ClockReading", "check_against_others", "check_steps", "date_of", "read_clocks", "servers"]

STEPS, OTHERS = "clock", "clock of others"

STEP_SECONDS = 0.05
"""More than the wall clock may gain or lose against the monotonic one within the seconds of a doctor's visit."""

APART_SECONDS = 2.0
"""A `Date` header has whole seconds; from here on the order of spans across machines is wrong."""

FAR_APART_SECONDS = 300.0
"""From here on certificates, tokens and time ranges of dashboards fail, too."""

PATIENCE_SECONDS = 5.0
EARLIEST = 1_767_225_600.0
"""The first second of 2026: no clock that is right can show an earlier time."""


@dataclass(frozen=True, slots=True)
class ClockReading:
    """Both clocks at one moment, in seconds: the wall clock since 1970, and the monotonic one."""

    wall: float
    monotonic: float


def read_clocks() -> ClockReading:
    """Read both clocks."""
    return ClockReading(time.time(), time.monotonic())


def check_steps(before: ClockReading, after: ClockReading) -> Finding:
    """Say whether the wall clock went as the monotonic one did, and shows a time that can be."""
    if after.wall < EARLIEST:
        shown = email.utils.formatdate(after.wall, usegmt=True)
        return failed(STEPS, f"the wall clock shows {shown}, which cannot be; set it, and let NTP keep it")
    step = (after.wall - before.wall) - (after.monotonic - before.monotonic)
    if abs(step) > STEP_SECONDS:
        return warning(
            STEPS,
            f"the wall clock moved by {step * 1000:+.0f} ms against the monotonic one within "
            f"{after.monotonic - before.monotonic:.1f} s: times of spans and of notes do not fit together; "
            "let NTP slew the clock instead of setting it",
        )
    return fine(STEPS, "the wall clock goes as the monotonic one does")


def servers(settings: Settings, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the addresses whose `Date` can be asked: of the model and, over HTTP, of the OTLP endpoint."""
    found: list[str] = []
    if settings.model.name is not None:
        found.append(settings.model.base_url or DEFAULT_BASE_URL)
    endpoint = environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") or environ.get("OTEL_EXPORTER_OTLP_ENDPOINT") or ""
    protocol = environ.get("OTEL_EXPORTER_OTLP_PROTOCOL", "").strip().lower()
    if endpoint.startswith("http") and protocol != "grpc":
        found.append(endpoint)
    return tuple(found)


def check_against_others(
    urls: Sequence[str], *, ask: Callable[[str], float | None] | None = None, wall: Callable[[], float] = time.time
) -> Finding:
    """Compare the wall clock with the `Date` headers of `urls`; blocks for some seconds at most.

    `ask` returns the seconds since 1970 that the server at a URL states, None where it states none.
    """
    ask = ask or date_of
    stated: list[str] = []
    for url in urls:
        asked = wall()
        date = ask(url)
        answered = wall()
        if date is None:
            continue
        host = urlsplit(url).netloc.rpartition("@")[2]
        # The header was written at some moment between both, in whole seconds.
        apart = max(asked - (date + 1.0), date - answered, 0.0)
        sign = "ahead of" if asked > date else "behind"
        if apart > FAR_APART_SECONDS:
            return failed(OTHERS, f"this clock is {apart:.0f} s {sign} that of {host}; set it, and let NTP keep it")
        if apart > APART_SECONDS:
            return warning(
                OTHERS,
                f"this clock is {apart:.0f} s {sign} that of {host}, so spans of both machines are out of order; "
                "let NTP keep both",
            )
        stated.append(host)
    if not stated:
        return not_applicable(OTHERS, "no server that is asked states its time")
    return fine(OTHERS, f"it agrees with that of {', '.join(stated)}")


def date_of(url: str) -> float | None:
    """Return the time that the server at `url` states in its answer, whatever the answer is; None if it states none."""
    request = Request(url, method="HEAD")  # noqa: S310 - the configuration allows http and https alone
    try:
        with urlopen(request, timeout=PATIENCE_SECONDS) as response:  # noqa: S310 - as above
            header = response.headers.get("Date")
    except HTTPError as error:
        header = error.headers.get("Date")
    except (URLError, OSError, HTTPException, ValueError):
        return None
    try:
        return email.utils.parsedate_to_datetime(header).timestamp() if header else None
    except ValueError:
        return None
