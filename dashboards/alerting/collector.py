"""Alerts on the collector between Recallscope and its stores."""

from recallscope.dashboards.alerting.config import Config, Severity
from recallscope.dashboards.alerting.model import Alert, percent
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
                "The queue of {{ $labels.exporter }} in {{ $labels.instance }} (job {{ $labels.job }}) is "
                "{{ $value | humanizePercentage }} full; "
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
                "The queue of {{ $labels.exporter }} (job {{ $labels.job }}) refused "
                f'{{{{ $value | printf "%.0f" }}}} items within {window}.'
            ),
        ),
        Alert(
            name="CollectorExportFailing",
            severity=Severity.TICKET,
            expr=export_failing(selector, failing),
            held="5m",
            summary="A collector gives up on what it should send.",
            description=(
                "{{ $labels.exporter }} (job {{ $labels.job }}) lost {{ $value | humanizePercentage }} of what it had to "
                f"send within {failing.window}; this fires above {percent(failing.above)}."
            ),
        ),
        Alert(
            name="CollectorRefusing",
            severity=Severity.TICKET,
            expr=refusing(selector, window=window, least=least),
            held="0s",
            summary="A collector refuses what is sent to it.",
            description=(
                "{{ $labels.receiver }} (job {{ $labels.job }}) refused "
                f'{{{{ $value | printf "%.0f" }}}} items within {window}.'
            ),
        ),
        Alert(
            name="CollectorDropsTracesEarly",
            severity=Severity.TICKET,
            expr=dropped_early(selector, window=window, least=least),
            held="0s",
            summary="The tail sampler drops traces before it has decided about them.",
            description=(
                "{{ $labels.instance }} (job {{ $labels.job }}) dropped "
                f'{{{{ $value | printf "%.0f" }}}} undecided traces within {window}; slow and failed turns may be among them.'
            ),
        ),
        Alert(
            name="CollectorDown",
            severity=Severity.TICKET,
            expr=collector_down(selector, known=config.known),
            held="5m",
            summary="A collector does not answer scrapes.",
            description=(
                f"{{{{ $labels.instance }}}} (job {{{{ $labels.job }}}}) answered within {config.known} and has not answered a "
                "scrape for 5 minutes; turns go on, their traces and pushed metrics may be lost."
            ),
        ),
    )
