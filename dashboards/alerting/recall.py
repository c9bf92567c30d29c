"""Alerts on recall and on the memory behind it."""

from recallscope.dashboards.alerting.config import Config, Severity
from recallscope.dashboards.alerting.model import COUNT, DURATION, SHARE, Alert, label, percent
from recallscope.telemetry.queries.alerts import (
    catalog_stale,
    nothing_delivered,
    nothing_found,
    selector_failing,
    skipped_deliveries,
    store_unavailable,
)

__all__ = ["alerts"]


def alerts(config: Config) -> tuple[Alert, ...]:
    """Return the alerts; all are tickets, since turns go on without memory."""
    skipped, selector, store = config.skipped_deliveries, config.selector_failing, config.store_unavailable
    return (
        Alert(
            name="RecallscopeDeliveriesSkipped",
            severity=Severity.TICKET,
            expr=skipped_deliveries(config.selector, skipped),
            held="30m",
            summary="Memory finds notes and no place for them.",
            description=(
                f"{SHARE} of the deliveries of job {label('job')} under tiered did not happen within "
                f"{skipped.window}; this fires above {percent(skipped.above)}."
            ),
        ),
        Alert(
            name="RecallscopeSelectorFailing",
            severity=Severity.TICKET,
            expr=selector_failing(config.selector, selector),
            held="5m",
            summary="The small model that selects notes fails.",
            description=(
                f"The selection failed in {SHARE} of the recalls of job {label('job')} "
                f"under policy {label('policy')} within {selector.window}; this fires above {percent(selector.above)}."
            ),
        ),
        Alert(
            name="RecallscopeMemoryUnavailable",
            severity=Severity.TICKET,
            expr=store_unavailable(config.selector, store),
            held="5m",
            summary="The memory catalog cannot be read.",
            description=(
                f"{SHARE} of the recalls of job {label('job')} could not read the "
                f"catalog within {store.window}; this fires above {percent(store.above)}."
            ),
        ),
        Alert(
            name="RecallscopeCatalogStale",
            severity=Severity.TICKET,
            expr=catalog_stale(config.selector, age=config.catalog_age),
            held="5m",
            summary="The memory catalog does not keep up with its files.",
            description=(
                f"The catalog of scope {label('scope')} in {label('instance')} (job {label('job')}) caught up "
                f"{DURATION} ago; "
                f"this fires above {config.catalog_age / 60:g} minutes."
            ),
        ),
        Alert(
            name="RecallscopeNothingFound",
            severity=Severity.TICKET,
            expr=nothing_found(config.selector, window=config.silence, least=config.silence_least),
            held="10m",
            summary="Recalls never find anything.",
            description=(
                f"{COUNT} recalls of job {label('job')} found nothing within {config.silence}, and none found anything."
            ),
        ),
        Alert(
            name="RecallscopeNothingDelivered",
            severity=Severity.TICKET,
            expr=nothing_delivered(config.selector, window=config.silence, least=config.silence_least),
            held="10m",
            summary="Recalls never deliver anything.",
            description=(
                f"{COUNT} turns of job {label('job')} could have received memory within {config.silence}, and none did."
            ),
        ),
    )
