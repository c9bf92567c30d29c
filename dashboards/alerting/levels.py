"""The service levels: what is recorded of them, and their burn-rate alerts."""

from dataclasses import dataclass
from typing import Final

from recallscope.dashboards.alerting.config import Burn, Config, Objective
from recallscope.dashboards.alerting.model import SHARE, Alert, Group, Record, label, percent, total_of
from recallscope.telemetry.queries.alerts import burning
from recallscope.telemetry.queries.service_levels import DELIVERY_LEVEL, HOLD_LEVEL, SLOW_TURNS_LEVEL, ServiceLevel

__all__ = ["Promise", "alerts", "promises", "recordings"]

SLOW_SECONDS: Final = 86_400
"""Counts within a window of a day or more move slowly, so they are made less often."""

_SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """A service level with its objective, and the words of its alert; `what` ends the sentence "… of the turns …"."""

    alert: str
    level: ServiceLevel
    objective: Objective
    summary: str
    what: str


def promises(config: Config) -> tuple[Promise, ...]:
    """Return the service levels that are promised."""
    return (
        Promise(
            alert="RecallscopeSlowTurns",
            level=SLOW_TURNS_LEVEL,
            objective=config.slow_turns,
            summary="Too many turns are slow.",
            what="turns took longer than 10.24 s",
        ),
        Promise(
            alert="RecallscopeRecallHoldsTurns",
            level=HOLD_LEVEL,
            objective=config.recall_holds,
            summary="Sends wait for memory longer than their ceiling.",
            what="first sends waited for memory longer than the ceiling and 5 ms",
        ),
        Promise(
            alert="RecallscopeMemoryNotDelivered",
            level=DELIVERY_LEVEL,
            objective=config.delivery,
            summary="Turns do not receive the memory that was found for them.",
            what="turns with a recall received no memory",
        ),
    )


def seconds_of(window: str) -> int:
    """Return the length of a window such as `5m`, in seconds."""
    return int(window[:-1]) * _SECONDS[window[-1]]


def alerts(config: Config) -> tuple[Alert, ...]:
    """Return four burn-rate alerts for each promise."""
    return tuple(_alert(promise, burn) for promise in promises(config) for burn in promise.objective.burns)


def recordings(config: Config) -> tuple[Group, ...]:
    """Return the groups that count good and bad events for the windows of the alerts."""
    used = {
        window for promise in promises(config) for burn in promise.objective.burns for window in (burn.short, burn.long)
    }
    windows = sorted(used, key=seconds_of)
    short = [window for window in windows if seconds_of(window) < SLOW_SECONDS]
    long = [window for window in windows if seconds_of(window) >= SLOW_SECONDS]
    return (
        Group(name="recallscope-levels", interval="1m", rules=_records(config, short)),
        Group(name="recallscope-levels-long", interval="2m", rules=_records(config, long)),
    )


def _records(config: Config, windows: list[str]) -> tuple[Record, ...]:
    return tuple(
        record
        for promise in promises(config)
        for window in windows
        for record in (
            Record(name=promise.level.recorded_bad(window), expr=promise.level.bad(config.selector, window)),
            Record(name=promise.level.recorded_total(window), expr=promise.level.total(config.selector, window)),
        )
    )


def _alert(promise: Promise, burn: Burn) -> Alert:
    objective = promise.objective
    allowed = 1 - objective.target
    counted = f"{promise.level.recorded_total(burn.long)}{{job=%q, policy=%q}}"
    return Alert(
        name=promise.alert,
        severity=objective.severity(burn),
        expr=burning(
            promise.level,
            long=burn.long,
            short=burn.short,
            above=burn.factor * allowed,
            least=objective.least,
            of=objective.of,
        ),
        held=burn.held,
        summary=promise.summary,
        description=(
            f"{SHARE} of {total_of(counted)} {promise.what} within {burn.long} "
            f"(job {label('job')}, policy {label('policy')}). {percent(allowed)} are allowed; this fires above "
            f"{percent(burn.factor * allowed)} within {burn.long} and {burn.short}."
        ),
        labels={"long": burn.long, "short": burn.short},
    )
