"""Alerts on telemetry itself: whoever trusts a dashboard must know when it does not see everything."""

from recallscope.dashboards.alerting.config import Config, Severity
from recallscope.dashboards.alerting.model import COUNT, SHARE, Alert, label, percent
from recallscope.telemetry.queries.alerts import labels_overflow, observer_failing, telemetry_lost

__all__ = ["alerts"]


def alerts(config: Config) -> tuple[Alert, ...]:
    """Return the alerts."""
    lost = config.telemetry_lost
    return (
        Alert(
            name="RecallscopeTelemetryLost",
            severity=Severity.TICKET,
            expr=telemetry_lost(config.selector, lost),
            held="5m",
            summary="Telemetry is lost before it leaves the process.",
            description=(
                f"{SHARE} of the {label('signal')} of job {label('job')} were lost "
                f"within {lost.window}; this fires above {percent(lost.above)}."
            ),
        ),
        Alert(
            name="RecallscopeObserverFailing",
            severity=Severity.TICKET,
            expr=observer_failing(config.selector, window=config.observer_window, least=config.observer_least),
            held="0s",
            summary="An observer fails on events.",
            description=(
                f"The observer {label('observer')} of job {label('job')} failed on "
                f"{COUNT} events within "
                f"{config.observer_window}; what it tells is incomplete."
            ),
        ),
        Alert(
            name="RecallscopeLabelOverflow",
            severity=Severity.TICKET,
            expr=labels_overflow(config.selector),
            held="0s",
            summary="A metric has more series than its limit.",
            description=(
                f"{label('metric')} of job {label('job')} puts new label values into one series "
                "(otel_metric_overflow): totals are right, whatever filters by a label counts too little."
            ),
        ),
    )
