"""What telemetry is told of a command: its settings, and the observers of its process.

Apart from `compose`, because importing telemetry costs a quarter of a second that commands without it need not pay.
"""

import logging
import os
import sys
import time
from collections.abc import Iterable

from recallscope.runtime import __version__
from recallscope.runtime.cli.compose import policy_split
from recallscope.runtime.config import Metrics, Settings
from recallscope.runtime.events import ProcessStarted
from recallscope.runtime.observe import Observer, Observers
from recallscope.telemetry.sdk import Telemetry, TelemetrySettings

__all__ = ["observers_of", "telemetry_settings"]


def telemetry_settings(settings: Settings, front_end: str, *, serves_metrics: bool, journal: bool) -> TelemetrySettings:
    """Return what telemetry is to do for the command `front_end`; `serves_metrics` decides where `auto` is set."""
    metrics = settings.telemetry.metrics
    return TelemetrySettings(
        version=__version__,
        front_end=front_end,
        policies=tuple(policy_split(settings).policies),
        serve_metrics=metrics is Metrics.ON or (metrics is Metrics.AUTO and serves_metrics),
        slow_turn_seconds=settings.telemetry.slow_turn_seconds,
        journal=journal and settings.telemetry.journal,
        journal_directory=settings.telemetry.journal_dir,
        metrics_host=settings.telemetry.metrics_host,
        metrics_port=settings.telemetry.metrics_port,
        log_stream=sys.stderr,
        log_level=logging.WARNING,
    )


def observers_of(telemetry: Telemetry, front_end: str, also: Iterable[Observer] = ()) -> Observers:
    """Return the observers of this process, with its clock tied to the wall by the first event."""
    observers = Observers((*telemetry.observers, *also))
    telemetry.watch_observers(observers.statistics)
    observers.emit(
        ProcessStarted(
            op=observers.new_op(),
            at=observers.now(),
            wall=time.time(),
            pid=os.getpid(),
            version=__version__,
            front_end=front_end,
        )
    )
    return observers
