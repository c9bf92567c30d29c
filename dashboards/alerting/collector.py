"""Alerts on the collector between Recallscope and its stores."""

from recallscope.dashboards.alerting.config import Config, Severity
from recallscope.dashboards.alerting.model import COUNT, SHARE, Alert, label, percent
from recallscope.telemetry.queries.collector_alerts import (
    collector_down,
    dropped_early,
    export_failing,
    queue_dropping,
    queue_filling,
    refusing,
)

__all__ = ["alerts"]


def alerts(config: Config) -> tuple[Alert, ...]:
    """Return the alerts."""
    selector, window, least = config.collector_selector, config.collector_window, config.collector_least
    failing = config.collector_failing
    return (
        Alert(
            name="CollectorQueueFilling",
            severity=Severity.TICKET,
            expr=queue_filling(selector, above=config.collector_queue),
            held="5m",
            summary="A collector's queue fills up.",
            description=(
                f"The queue of {label('exporter')} in {label('instance')} (job {label('job')}) is "
                f"{SHARE} full; "
                f"this fires above {percent(config.collector_queue)}, and when it is full what comes is lost."
            ),
        ),
        Alert(
            name="CollectorQueueDropping",
            severity=Severity.PAGE,
            expr=queue_dropping(selector, window=window, least=least),
            held="0s",
            summary="A collector's queue is full, and what comes is lost.",
            description=(
                f"The queue of {label('exporter')} (job {label('job')}) refused {COUNT} items within {window}."
            ),
        ),
        Alert(
            name="CollectorExportFailing",
            severity=Severity.TICKET,
            expr=export_failing(selector, failing),
            held="5m",
            summary="A collector gives up on what it should send.",
            description=(
                f"{label('exporter')} (job {label('job')}) lost {SHARE} of what it had to "
                f"send within {failing.window}; this fires above {percent(failing.above)}."
            ),
        ),
        Alert(
            name="CollectorRefusing",
            severity=Severity.TICKET,
            expr=refusing(selector, window=window, least=least),
            held="0s",
            summary="A collector refuses what is sent to it.",
            description=(f"{label('receiver')} (job {label('job')}) refused {COUNT} items within {window}."),
        ),
        Alert(
            name="CollectorDropsTracesEarly",
            severity=Severity.TICKET,
            expr=dropped_early(selector, window=window, least=least),
            held="0s",
            summary="The tail sampler drops traces before it has decided about them.",
            description=(
                f"{label('instance')} (job {label('job')}) dropped "
                f"{COUNT} undecided traces within {window}; slow and failed turns may be among them."
            ),
        ),
        Alert(
            name="CollectorDown",
            severity=Severity.TICKET,
            expr=collector_down(selector, known=config.known),
            held="5m",
            summary="A collector does not answer scrapes.",
            description=(
                f"{label('instance')} (job {label('job')}) answered within {config.known} and has not answered a "
                "scrape for 5 minutes; turns go on, their traces and pushed metrics may be lost."
            ),
        ),
    )
