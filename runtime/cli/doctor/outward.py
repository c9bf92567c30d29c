"""Whether telemetry leaves the process: the journal's folder, `/metrics`, the OTLP endpoints."""

import errno
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator, Mapping

from recallscope.runtime import __version__
from recallscope.runtime.cli.doctor.finding import Finding, failed, fine, not_applicable, warning
from recallscope.runtime.cli.doctor.heard import heard
from recallscope.runtime.config import Metrics, Settings
from recallscope.runtime.config.load import Origin
from recallscope.runtime.config.masking import mask_text
from recallscope.telemetry import environment
from recallscope.telemetry import settings as telemetry_settings
from recallscope.telemetry.probe import Probe, probe_exports
from recallscope.telemetry.read.figures import ReadError
from recallscope.telemetry.read.process import read_process
from recallscope.telemetry.sdk import TelemetrySettings, open_telemetry

__all__ = ["check_exports", "check_journal", "check_metrics"]

JOURNAL, METRICS, OTLP = "journal", "metrics", "otlp"

HEADERS_LOGGER = "opentelemetry.util.re"
HEADERS_WRONG = (
    "OTEL_EXPORTER_OTLP_HEADERS, or that of a signal, is no list such as name=value,name=value (values URL-encoded): "
    "what is no such pair is not sent"
)

JOURNAL_BYTES = 512 * 1024 * 1024
"""What all files of a journal may hold together."""


def check_journal(settings: Settings) -> Finding:
    """Say whether the journal's folder can be written to, and whether its disk has room."""
    folder = settings.telemetry.journal_dir
    if not settings.telemetry.journal:
        return not_applicable(JOURNAL, "telemetry.journal is off")
    try:
        there = next(path for path in (folder, *folder.parents) if path.exists())
    except OSError as error:  # a name that is too long, a folder that may not be entered
        return failed(JOURNAL, f"{folder} cannot be written to ({error.strerror}); {_other_folder(settings)}")
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
        free = shutil.disk_usage(there).free
    except OSError as error:
        why = (
            f"nothing can be made in {there}" if error.errno == errno.ENOENT else f"{there}: {error.strerror or error}"
        )
        return failed(JOURNAL, f"{folder} cannot be written to ({why}); {_other_folder(settings)}")
    if free < JOURNAL_BYTES:
        return warning(
            JOURNAL,
            f"{folder} has {free / 2**20:.0f} MiB left and a journal takes up to {JOURNAL_BYTES / 2**20:.0f} MiB; "
            "make room, or set telemetry.journal_dir",
        )
    return fine(JOURNAL, f"{folder} can be written to")


def _other_folder(settings: Settings) -> str:
    """Say what to set, by what named the folder."""
    if settings.sources["telemetry.journal_dir"].origin is Origin.DEFAULT and os.environ.get("XDG_STATE_HOME"):
        return "XDG_STATE_HOME names it: set that, or telemetry.journal_dir, to a folder of yours"
    return "set telemetry.journal_dir to a folder of yours"


def check_metrics(settings: Settings, environ: Mapping[str, str]) -> Finding:
    """Serve `/metrics` for a moment and scrape it; where the port is taken, say by whom."""
    telemetry = settings.telemetry
    if telemetry.metrics is Metrics.OFF:
        return not_applicable(METRICS, "telemetry.metrics is off")
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return not_applicable(METRICS, "OTEL_SDK_DISABLED switches it off")
    host, port = telemetry.metrics_host, telemetry.metrics_port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        return _taken(host, port, error)
    wanted = TelemetrySettings(
        version=__version__,
        front_end="doctor",
        serve_metrics=True,
        journal=False,
        metrics_host=host,
        metrics_port=port,
        environ={},
    )
    with open_telemetry(wanted) as opened:
        if opened.metrics_url is None:
            return failed(
                METRICS, f"{host}:{port} cannot be opened; set telemetry.metrics_port to a free port, or to 0"
            )
        try:
            served = read_process(opened.metrics_url)
        except ReadError as error:
            return failed(METRICS, f"{error}; please report it")
        return fine(METRICS, f"{opened.metrics_url} can be served and scraped ({served.families} metrics at rest)")


def _taken(host: str, port: int, error: OSError) -> Finding:
    """Say who has the port: one of ours, whose observers are looked at, or something else."""
    reason = (error.strerror or str(error)).partition(" (while ")[0]
    unknown = error.errno is not None and error.errno < 0  # a failed look-up has numbers of its own, below 0
    if unknown or error.errno == errno.EADDRNOTAVAIL:
        what = "no address is known by that name" if unknown else "this machine has it not"
        return warning(
            METRICS,
            f"/metrics cannot be served at telemetry.metrics_host {host} ({what}); set it to an address of this "
            "machine, such as 127.0.0.1",
        )
    advice = "set telemetry.metrics_port to a free port, or to 0"
    shown = f"[{host}]" if ":" in host else host
    try:
        served = read_process(f"http://{shown}:{port}/metrics")
    except ReadError:
        return warning(METRICS, f"{host}:{port} cannot be opened ({reason}), and no /metrics answers there; {advice}")
    if served.front_end is None:
        return warning(METRICS, f"{host}:{port} is taken by another program that serves metrics; {advice}")
    who = f"`recallscope {served.front_end}` (process {served.pid})"
    if served.observer_failures:
        failures = ", ".join(f"{name} {count:.0f}" for name, count in served.observer_failures.items())
        return warning(
            METRICS,
            f"in {who} observers failed on events and lost them ({failures}); one is switched off after 10 in a row: "
            "look into its log, and start it again",
        )
    return fine(METRICS, f"{who} serves it at {host}:{port}, it scrapes, and its observers have lost nothing")


def check_exports(environ: Mapping[str, str] | None = None) -> Iterator[Finding]:
    """Send a span, empty metrics and empty logs to where they would be exported to. Blocks for some seconds at most."""
    environ = os.environ if environ is None else environ
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        yield not_applicable(OTLP, "OTEL_SDK_DISABLED switches it off")
        return
    with heard(telemetry_settings.__name__, environment.__name__, HEADERS_LOGGER) as said:
        probes = probe_exports(environ, version=__version__)
    # The library repeats the headers that it does not like, which may be a secret.
    told = [HEADERS_WRONG if text.startswith("Header format invalid") else text for text in said]
    yield from (warning(OTLP, text) for text in dict.fromkeys(told))
    if not probes:
        yield not_applicable(OTLP, "no endpoint is set; OTEL_EXPORTER_OTLP_ENDPOINT names one")
    for probe in probes:
        yield _probed(probe)


def _probed(probe: Probe) -> Finding:
    check = f"{OTLP} {probe.signal}"
    where = f"{mask_text(probe.endpoint)} over {probe.protocol}"
    what = "a span" if probe.signal == "traces" else probe.signal
    if probe.problem is None:
        return fine(check, f"{where} took {what} after {probe.seconds * 1000:.0f} ms")
    problem = mask_text(probe.problem).rstrip(".")
    if probe.misnamed:
        return failed(check, f"{mask_text(probe.endpoint)}: {problem}")
    return failed(
        check,
        f"{where} did not take {what}: {problem}; check that the collector runs, the address, "
        "OTEL_EXPORTER_OTLP_PROTOCOL and OTEL_EXPORTER_OTLP_HEADERS",
    )
