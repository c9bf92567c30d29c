"""Turns: how long they take, how they end, where their time goes."""

from recallscope.runtime.events import TurnPhase
from recallscope.telemetry import names
from recallscope.telemetry.queries.service_levels import slow_turns
from recallscope.telemetry.queries.shape import buckets, increase, quantile, rate, series

__all__ = [
    "active",
    "backoff_quantile",
    "by_outcome",
    "count",
    "duration_buckets",
    "duration_quantile",
    "first_token_quantile",
    "loop_lag_quantile",
    "oldest_age",
    "phase_quantile",
    "phase_seconds_per_turn",
    "phase_share",
    "post_turn_failures",
    "process_series",
    "sessions",
    "slow_turns_budget_left",
    "slow_turns_burn",
    "turn_series",
    "versions",
]


def count(selector: str, window: str) -> str:
    """Count the turns that ended within `window`."""
    return increase(series(names.TURN_DURATION, selector, "_count"), window)


def by_outcome(selector: str, window: str) -> str:
    """Give the turns a minute by how they ended."""
    return f"60 * {rate(series(names.TURN_DURATION, selector, '_count'), window, names.OUTCOME)}"


def duration_buckets(selector: str, window: str) -> str:
    """Count the turns by duration, as a classic histogram."""
    return buckets(names.TURN_DURATION, selector, window)


def duration_quantile(share: float, selector: str, window: str, *by: str) -> str:
    """Give a quantile of the duration of turns, in seconds."""
    return quantile(share, names.TURN_DURATION, selector, window, *by)


def first_token_quantile(share: float, selector: str, window: str, *by: str) -> str:
    """Give a quantile of the time to the first visible text, in seconds."""
    return quantile(share, names.TURN_TIME_TO_FIRST_TOKEN, selector, window, *by)


def slow_turns_burn(allowed: float, selector: str, window: str) -> str:
    """Say how many times the `allowed` share of slow turns there is (1: the budget lasts as long as it must)."""
    return f"({slow_turns(selector, window)}) / {allowed:g}"


def slow_turns_budget_left(allowed: float, selector: str, window: str) -> str:
    """Give the share of the budget of slow turns (`allowed` of all) that `window` has left; below 0 it is overdrawn."""
    return f"1 - {slow_turns_burn(allowed, selector, window)}"


def active(selector: str) -> str:
    """Count the turns under way."""
    return f"sum({series(names.TURN_ACTIVE, selector)})"


def sessions(selector: str) -> str:
    """Count the open sessions."""
    return f"sum({series(names.SESSION_ACTIVE, selector)})"


def oldest_age(selector: str) -> str:
    """Give the age of the oldest turn under way, in seconds."""
    return f"max({series(names.TURN_OLDEST_AGE, selector)})"


def post_turn_failures(selector: str, window: str) -> str:
    """Count the turns whose follow-up work could not be scheduled."""
    return increase(series(names.TURN_POST_FAILURES, selector), window)


def versions(selector: str) -> str:
    """Show each version for the five minutes after its first process appeared."""
    version = f"group by (service_version) (target_info{{{selector}}}"
    return f"{version}) unless {version} offset 5m)"


def phase_share(selector: str, window: str) -> str:
    """Give the share that each phase has in the time of all turns; the phases add up to 1."""
    seconds = series(names.TURN_PHASE_DURATION, selector, "_sum")
    return f"{rate(seconds, window, names.PHASE)} / on () group_left () {rate(seconds, window)}"


def phase_seconds_per_turn(selector: str, window: str) -> str:
    """Give the seconds that a turn spends in each phase, on average over all turns."""
    seconds = increase(series(names.TURN_PHASE_DURATION, selector, "_sum"), window, names.PHASE)
    return f"{seconds} / on () group_left () {count(selector, window)}"


def phase_quantile(share: float, selector: str, window: str) -> str:
    """Give a quantile of each phase's duration, of the turns that had it, in seconds."""
    return quantile(share, names.TURN_PHASE_DURATION, selector, window, names.PHASE)


def backoff_quantile(share: float, selector: str, window: str) -> str:
    """Give a quantile of the time that turns waited between attempts of a model call, in seconds."""
    only = f'{selector}, {names.PHASE}="{TurnPhase.BACKOFF}"'
    return quantile(share, names.TURN_PHASE_DURATION, only, window)


def loop_lag_quantile(share: float, selector: str, window: str) -> str:
    """Give a quantile of the worst loop lag per 100 ms, in seconds."""
    return quantile(share, names.LOOP_LAG, selector, window)


def process_series(selector: str = "") -> str:
    """Name a series that every process has from its start."""
    return series(names.TURN_ACTIVE, selector)


def turn_series(selector: str) -> str:
    """Name a series that every agent and policy has once a turn of it has ended."""
    return series(names.TURN_DURATION, selector, "_count")
