"""What telemetry is asked to do: plain values from the front end, and the standard `OTEL_…` variables."""

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum, unique
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from recallscope.runtime.events import PolicyName
from recallscope.telemetry.environment import choice, number

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.id_generator import IdGenerator

__all__ = ["ExportPlan", "Protocol", "TelemetrySettings", "plan_export"]

_log = logging.getLogger(__name__)

DEFAULT_EXPORT_TIMEOUT_SECONDS = 2.0
DEFAULT_METRICS_HOST = "127.0.0.1"
DEFAULT_METRICS_PORT = 9464


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetrySettings:
    """How one process is observed.

    Attributes:
        version: the product's version, for the resource.
        front_end: which command or protocol runs (`run`, `compare`, `serve`, …), for the resource.
        policies: the recall policies in force; their counters start at 0.
        serve_metrics: open `/metrics`.
        metrics_host, metrics_port: where; None: `OTEL_EXPORTER_PROMETHEUS_HOST` and `_PORT`, else 127.0.0.1:9464.
        slow_turn_seconds: when a turn is marked as slow.
        journal: write the journal.
        journal_directory: the folder of its files; None: `recallscope/journal` in `$XDG_STATE_HOME`, else in
            `~/.local/state`.
        log_stream: where logs go as JSON lines; None: this leaves logging as it is.
        log_level: the lowest level of `recallscope` loggers that is logged.
        ids: makes the ids of traces and spans; None: at random.
        environ: the variables that say what is exported and served; the exporters themselves read endpoint and headers
            from the process, as OpenTelemetry prescribes.
    """

    version: str
    front_end: str
    policies: tuple[PolicyName, ...] = ()
    serve_metrics: bool = False
    metrics_host: str | None = None
    metrics_port: int | None = None
    slow_turn_seconds: float = 10.24
    journal: bool = True
    journal_directory: Path | None = None
    log_stream: TextIO | None = None
    log_level: int = logging.INFO
    ids: "IdGenerator | None" = None
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)

    @property
    def disabled(self) -> bool:
        """Whether `OTEL_SDK_DISABLED` switches everything but the journal off."""
        return self.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"

    @property
    def metrics_address(self) -> tuple[str, int]:
        """Host and port of `/metrics`; a port that is no number is a warning and the default."""
        host = self.metrics_host or self.environ.get("OTEL_EXPORTER_PROMETHEUS_HOST") or DEFAULT_METRICS_HOST
        port = self.metrics_port
        if port is None:
            port = round(
                number(self.environ, "OTEL_EXPORTER_PROMETHEUS_PORT", DEFAULT_METRICS_PORT, least=0, most=65_535)
            )
        return host, port

    @property
    def journal_folder(self) -> Path:
        """The folder of the journal's files."""
        if self.journal_directory is not None:
            return self.journal_directory
        state = self.environ.get("XDG_STATE_HOME")
        return (Path(state) if state else Path.home() / ".local" / "state") / "recallscope" / "journal"


@unique
class Protocol(StrEnum):
    """How OTLP travels."""

    HTTP = "http/protobuf"
    GRPC = "grpc"


@dataclass(frozen=True, slots=True)
class ExportPlan:
    """How one signal (`TRACES`, `METRICS`, `LOGS`) is exported.

    Attributes:
        signal: which one.
        protocol: over what.
        timeout: seconds that one export may take.
        compression: `none`, `gzip`, or over HTTP `deflate`.
    """

    signal: str
    protocol: Protocol
    timeout: float
    compression: str


def plan_export(environ: Mapping[str, str], signal: str, *, by_default: bool) -> ExportPlan | None:
    """Read the standard variables for `signal` (`TRACES`, `METRICS`, `LOGS`); None: it is not exported.

    A signal is exported when its exporter is `otlp`, or, with `by_default`, when an endpoint is set and no exporter
    is named. A value that this runtime does not know is a warning, never an error; of a list, the known ones count.
    """
    said = environ.get(f"OTEL_{signal}_EXPORTER", "").lower()
    exporters = {name for part in said.split(",") if (name := part.strip())}
    exported = "otlp" in exporters
    for name in sorted(exporters - {"otlp", "none"}):
        outcome = "only otlp is used" if exported else "nothing is exported"
        _log.warning("OTEL_%s_EXPORTER=%s is not known here: use otlp or none; %s", signal, name, outcome)
    endpoint = environ.get(f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT") or environ.get("OTEL_EXPORTER_OTLP_ENDPOINT")
    if not (exported or (not exporters and by_default and endpoint)):
        return None
    variable = _of(environ, signal, "PROTOCOL")
    named = environ.get(variable) or ""
    try:
        protocol = Protocol(named.strip().lower() or Protocol.HTTP)
    except ValueError:
        _log.warning("%s=%s is not known here: use grpc or http/protobuf (used now)", variable, named)
        protocol = Protocol.HTTP
    timeout = number(environ, _of(environ, signal, "TIMEOUT"), DEFAULT_EXPORT_TIMEOUT_SECONDS, least=0.001)
    known = ("none", "gzip", "deflate") if protocol is Protocol.HTTP else ("none", "gzip")
    return ExportPlan(signal, protocol, timeout, choice(environ, _of(environ, signal, "COMPRESSION"), known))


def _of(environ: Mapping[str, str], signal: str, what: str) -> str:
    """Name the variable that says `what` for `signal`: its own if it is set, else the one for all."""
    own = f"OTEL_EXPORTER_OTLP_{signal}_{what}"
    return own if environ.get(own) else f"OTEL_EXPORTER_OTLP_{what}"
