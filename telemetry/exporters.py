"""Makes exporters so that no variable can end the process: one that refuses its own is left out, with a warning."""

import logging
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Final, TypeVar

from recallscope.telemetry.environment import set_aside
from recallscope.telemetry.settings import ExportPlan, Protocol

__all__ = ["REFUSALS", "exporter_of", "telling"]

_log = logging.getLogger(__name__)

Item = TypeVar("Item")
Made = TypeVar("Made")

REFUSALS: Final = (ValueError, LookupError, TypeError, AttributeError, RuntimeError, OSError, ImportError)
"""What exporters raise for variables that they do not like, some only when they export."""

SIGNALS: Final = ("TRACES", "METRICS", "LOGS")


def exporter_of(plan: ExportPlan, environ: Mapping[str, str], make: Callable[[ModuleType], Made]) -> Made | None:
    """Return what `make` makes with the module of the plan's protocol; None with a warning if the exporter refuses.

    From the first exporter on, the exporters' own log is off until the process ends, for some of their threads may last
    until then: `ExportQueue` says once that exports fail, and counts.
    """
    logging.getLogger("opentelemetry.exporter").setLevel(logging.CRITICAL)
    stated = [f"OTEL_EXPORTER_OTLP_{which}{what}" for which in ("", f"{plan.signal}_") for what in STATED]
    try:
        with set_aside(*stated):
            return make(_module(plan.protocol))
    except REFUSALS as error:
        signal = plan.signal.lower()
        _log.warning("%s are not exported: wrong value in one of %s: %s", signal, _named(plan.signal, environ), error)
        return None


STATED: Final = ("TIMEOUT", "COMPRESSION")
"""What the plan says, so that the exporters need not look: over gRPC they refuse wrong values that they do not use."""


def telling(export: Callable[[Sequence[Item]], object], success: object) -> Callable[[Sequence[Item]], bool]:
    """Make a function that exports and says whether that was a `success`; it raises nothing that exporters raise."""

    def attempt(items: Sequence[Item]) -> bool:
        try:
            return export(items) is success
        except REFUSALS:
            return False

    return attempt


def _module(protocol: Protocol) -> ModuleType:
    match protocol:
        case Protocol.HTTP:
            from recallscope.telemetry import otlp_http  # noqa: PLC0415 - costly, only when an endpoint is set

            return otlp_http
        case Protocol.GRPC:
            from recallscope.telemetry import otlp_grpc  # noqa: PLC0415 - costly, only when gRPC is asked for

            return otlp_grpc


def _named(signal: str, environ: Mapping[str, str]) -> str:
    """List the exporter's variables for `signal` that are set; not their values, which may be secret."""
    others = tuple(f"OTEL_EXPORTER_OTLP_{other}_" for other in SIGNALS if other != signal)
    names = [name for name in environ if name.startswith(("OTEL_EXPORTER_OTLP_", "OTEL_PYTHON_EXPORTER_OTLP_"))]
    return ", ".join(sorted(name for name in names if not name.startswith(others))) or "its variables"
