"""Alerts on turns and on the processes that run them."""

from recallscope.dashboards.alerting.config import Config, Severity
from recallscope.dashboards.alerting.model import COUNT, DURATION, SHARE, Alert, label, percent
from recallscope.telemetry.queries.alerts import loop_lagging, process_down, process_gone, turn_stuck, turns_failing

__all__ = ["alerts"]


def alerts(config: Config) -> tuple[Alert, ...]:
    """Return the alerts."""
    failing = config.turns_failing
    return (
        Alert(
            name="RecallscopeTurnsFailing",
            severity=Severity.PAGE,
            expr=turns_failing(config.selector, failing),
            held="5m",
            summary="Turns fail.",
            description=(
                f"{SHARE} of the turns of job {label('job')} failed within "
                f"{failing.window}; this fires above {percent(failing.above)}."
            ),
        ),
        Alert(
            name="RecallscopeTurnStuck",
            severity=Severity.TICKET,
            expr=turn_stuck(config.selector, age=config.turn_age),
            held="5m",
            summary="A turn does not end.",
            description=(
                f"The oldest turn of {label('instance')} (job {label('job')}) has been under way for "
                f"{DURATION}; "
                f"this fires above {config.turn_age / 60:g} minutes."
            ),
        ),
        Alert(
            name="RecallscopeLoopLag",
            severity=Severity.TICKET,
            expr=loop_lagging(
                config.selector, window=config.loop_lag_window, lag=config.loop_lag, least=config.loop_lag_least
            ),
            held="10m",
            summary="The event loop is held up.",
            description=(
                f"In {label('instance')} (job {label('job')}) ready work waited for the event loop for "
                f"{DURATION} (p99 within "
                f"{config.loop_lag_window}); this fires above {config.loop_lag * 1000:g} ms."
            ),
        ),
        Alert(
            name="RecallscopeProcessDown",
            severity=Severity.PAGE,
            expr=process_down(config.selector, known=config.known),
            held="5m",
            summary="A process does not answer scrapes.",
            description=(
                f"{label('instance')} (job {label('job')}) showed sessions within "
                f"{config.known} and has not answered a scrape for 5 minutes."
            ),
        ),
        Alert(
            name="RecallscopeProcessGone",
            severity=Severity.PAGE,
            expr=process_gone(config.selector, front_ends=config.front_ends, known=config.gone_known),
            held="5m",
            summary="No process sends metrics any more.",
            description=(
                f"{COUNT} processes of job {label('job')} that should stay ({config.front_ends.replace('|', ', ')}) "
                f"sent metrics within {config.gone_known}, and none does now."
            ),
        ),
    )
