"""What another ceiling would give: the share of first sends that could have taken memory along, by how long one waits.

The buckets of `recallscope.recall.ready.duration` are the ceilings. A hold ends when something is there, so a longer
ceiling delays nobody who has it already; what came after the turn had ended is in no bucket, so the curve is a lower
bound beyond the lengths of the turns.
"""

from recallscope.runtime.events import Point
from recallscope.telemetry import names
from recallscope.telemetry.queries.shape import increase, series

__all__ = ["asked", "ready_buckets", "ready_quantile", "share_by_ceiling"]


def ready_buckets(selector: str, window: str) -> str:
    """Count the first sends by how long after they asked notes were there, as a classic histogram, by policy."""
    return increase(series(names.RECALL_READY_DURATION, selector, "_bucket"), window, names.POLICY, "le")


def asked(selector: str, window: str) -> str:
    """Count the first sends that asked for memory, by policy."""
    waits = series(names.RECALL_WAIT_DURATION, f'{selector}, {names.POINT}="{Point.INITIAL}"', "_count")
    return increase(waits, window, names.POLICY)


def share_by_ceiling(selector: str, window: str) -> str:
    """Give the share of first sends that notes would have reached, by policy and by the ceiling `le` in seconds."""
    of_all = f"on({names.POLICY}) group_left {asked(selector, window)}"
    finite = f'{selector}, le!="+Inf"'  # a graph has no place for an endless ceiling
    return f"{ready_buckets(finite, window)} / {of_all}"


def ready_quantile(share: float, selector: str, window: str) -> str:
    """Give the ceiling (seconds) within which this share of the first sends has notes that ever have any, by policy."""
    return f"histogram_quantile({share:g}, {ready_buckets(selector, window)})"
