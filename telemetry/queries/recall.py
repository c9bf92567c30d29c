"""Recall: from begin to delivery, and why not; the catalog behind it."""

from recallscope.runtime.events import Outcome, Point, RecallPhase
from recallscope.telemetry import names
from recallscope.telemetry.queries.shape import increase, quantile, rate, series

__all__ = [
    "active",
    "begun",
    "catalog_age",
    "catalog_notes",
    "catalog_sync_quantile",
    "delivered",
    "deliveries",
    "delivery_quantile",
    "late_results",
    "outcomes",
    "overruns",
    "refinements_failed",
    "refinements_skipped",
    "result_quantile",
    "rollbacks",
    "settled",
    "skipped",
    "undelivered",
    "wait_quantile",
    "waits",
    "words_answered",
]

_INITIAL = f'{names.POINT}="{Point.INITIAL}"'


def begun(selector: str, window: str) -> str:
    """Count the recalls that began."""
    return increase(series(names.RECALL_STARTED, selector), window)


def words_answered(selector: str, window: str) -> str:
    """Count the recalls whose fast search answered before they closed."""
    return _results(selector, window, RecallPhase.FAST)


def settled(selector: str, window: str) -> str:
    """Count the recalls whose refined result stood before they closed."""
    return _results(selector, window, RecallPhase.REFINED)


def delivered(selector: str, window: str) -> str:
    """Count the recalls of which the model accepted a delivery."""
    return increase(series(names.RECALL_OUTCOMES, f'{selector}, {names.OUTCOME}="{Outcome.DELIVERED}"'), window)


def active(selector: str) -> str:
    """Count the recalls under way."""
    return f"sum({series(names.RECALL_ACTIVE, selector)})"


def outcomes(selector: str, window: str) -> str:
    """Give the recalls a minute by their one outcome."""
    return _a_minute(series(names.RECALL_OUTCOMES, selector), window, names.OUTCOME)


def undelivered(selector: str, window: str) -> str:
    """Give the recalls a minute that delivered nothing, by outcome and reason."""
    kept = f'{selector}, {names.OUTCOME}!="{Outcome.DELIVERED}"'
    return _a_minute(series(names.RECALL_OUTCOMES, kept), window, names.OUTCOME, names.REASON)


def deliveries(selector: str, window: str) -> str:
    """Give the deliveries a minute by result and point."""
    return _a_minute(series(names.RECALL_DELIVERIES, selector), window, names.PHASE, names.POINT)


def skipped(selector: str, window: str) -> str:
    """Give the skipped deliveries a minute by point and reason."""
    return _a_minute(series(names.RECALL_SKIPPED_DELIVERIES, selector), window, names.POINT, names.REASON)


def rollbacks(selector: str, window: str) -> str:
    """Give the deliveries a minute that did not reach the model, by cause."""
    return _a_minute(series(names.RECALL_ROLLED_BACK, selector), window, names.CAUSE)


def late_results(selector: str, window: str) -> str:
    """Give the results a minute that came after their recall had closed."""
    return _a_minute(series(names.RECALL_LATE_RESULTS, selector), window)


def refinements_failed(selector: str, window: str) -> str:
    """Give the recalls a minute whose selection failed, by reason."""
    return _a_minute(series(names.RECALL_REFINEMENTS_FAILED, selector), window, names.REASON)


def refinements_skipped(selector: str, window: str) -> str:
    """Give the recalls a minute whose selector was not asked, by reason."""
    return _a_minute(series(names.RECALL_REFINEMENTS_SKIPPED, selector), window, names.REASON)


def wait_quantile(share: float, selector: str, window: str, *by: str) -> str:
    """Give a quantile of the initial wait, in seconds."""
    return quantile(share, names.RECALL_WAIT_DURATION, f"{selector}, {_INITIAL}", window, *by)


def waits(selector: str, window: str) -> str:
    """Give the initial waits a minute by what ended them."""
    return _a_minute(series(names.RECALL_WAIT_DURATION, f"{selector}, {_INITIAL}", "_count"), window, names.ENDED_BY)


def overruns(selector: str, window: str) -> str:
    """Give the initial waits a minute that passed their ceiling, by policy."""
    return _a_minute(series(names.RECALL_WAIT_OVERRUNS, selector), window, names.POLICY)


def result_quantile(share: float, selector: str, window: str) -> str:
    """Give a quantile of the time from begin to the fast and to the refined result, in seconds."""
    return quantile(share, names.RECALL_DURATION, selector, window, names.PHASE)


def delivery_quantile(share: float, selector: str, window: str) -> str:
    """Give a quantile of the time from begin to an accepted delivery by result and point, in seconds."""
    return quantile(share, names.RECALL_DELIVERY_DURATION, selector, window, names.PHASE, names.POINT)


def catalog_notes(selector: str) -> str:
    """Count the notes in the catalog by scope, in the process that sees most."""
    return f"max by ({names.SCOPE_LABEL}) ({series(names.CATALOG_NOTES, selector)})"


def catalog_age(selector: str) -> str:
    """Give the seconds since the catalog last caught up by scope, in the process where that is longest ago."""
    return f"time() - min by ({names.SCOPE_LABEL}) ({series(names.CATALOG_LAST_SYNC, selector)})"


def catalog_sync_quantile(share: float, selector: str, window: str) -> str:
    """Give a quantile of the duration of a catalog sync by scope, in seconds."""
    return quantile(share, names.CATALOG_SYNC_DURATION, selector, window, names.SCOPE_LABEL)


def _results(selector: str, window: str, phase: RecallPhase) -> str:
    return increase(series(names.RECALL_DURATION, f'{selector}, {names.PHASE}="{phase}"', "_count"), window)


def _a_minute(what: str, window: str, *by: str) -> str:
    return f"60 * {rate(what, window, *by)}"
