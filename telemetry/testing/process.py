"""Telemetry of a whole process, for tests: its settings, and events as the engine would state them."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from recallscope.runtime.events import Event, PolicyName
from recallscope.telemetry.sdk import Telemetry, TelemetrySettings

__all__ = ["feed", "settings_for"]


def settings_for(environ: dict[str, str], **more: Any) -> TelemetrySettings:
    """Return settings under the variables `environ`, without a journal; `more` are fields that differ."""
    plain = TelemetrySettings(
        version="1.2.3", front_end="compare", policies=(PolicyName.TIERED,), journal=False, environ=environ
    )
    return replace(plain, **more)


def feed(telemetry: Telemetry, events: Iterable[Event]) -> None:
    """Tell every observer of `telemetry` each event, in order."""
    for event in events:
        for observer in telemetry.observers:
            observer(event)
