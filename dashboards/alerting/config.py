"""Every threshold of the alerts, in one place: change a value in `COMMITTED`, then `make dashboards`.

Shares lie between 0 and 1, windows are PromQL ranges, ages and lags are seconds.
"""

from dataclasses import dataclass
from enum import StrEnum, unique
from typing import Final

from recallscope.dashboards import config as shared
from recallscope.telemetry.queries.alerts import Share, once

__all__ = ["BURNS", "COMMITTED", "MOST_SHARE", "Burn", "Config", "Objective", "Severity", "burns_for"]


@unique
class Severity(StrEnum):
    """What an alert asks of people: to come at once, or to look within days."""

    PAGE = "page"
    TICKET = "ticket"


@dataclass(frozen=True, slots=True)
class Burn:
    """One burn-rate alert: the error budget goes `factor` times too fast in both windows, for `held`."""

    severity: Severity
    long: str
    short: str
    factor: float
    held: str


BURNS: Final = (
    (
        Burn(Severity.PAGE, "1h", "5m", 14.4, "2m"),
        Burn(Severity.PAGE, "6h", "30m", 6, "15m"),
        Burn(Severity.TICKET, "1d", "2h", 3, "1h"),
        Burn(Severity.TICKET, "3d", "6h", 1, "3h"),
    ),
    (
        Burn(Severity.PAGE, "1h", "5m", 7, "2m"),
        Burn(Severity.PAGE, "6h", "30m", 4, "15m"),
        Burn(Severity.TICKET, "1d", "2h", 2, "1h"),
        Burn(Severity.TICKET, "3d", "6h", 1, "3h"),
    ),
)
"""For strict targets and for lax ones: at 95 %, a factor of 14.4 would want 72 % of all events to be bad."""

MOST_SHARE: Final = 0.5
"""No burn-rate alert may need a higher share of bad events than this before it fires."""


def burns_for(target: float) -> tuple[Burn, ...]:
    """Return the burn-rate alerts of a target: the first row of `BURNS` of which every alert can fire.

    Raises:
        ValueError: the target is not between 0 and 1, or too lax for every row.
    """
    if not 0 < target < 1:
        raise ValueError(f"a target of {target:g} is no share of good events; give one between 0 and 1, such as 0.95")
    for burns in BURNS:
        if all(burn.factor * (1 - target) <= MOST_SHARE for burn in burns):
            return burns
    raise ValueError(
        f"no burn-rate alert of a target of {target:g} could fire before half of all events are bad; "
        "raise the target or add a row with smaller factors to BURNS"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """The target of a service level; alerts ask for `least` bad events among `of` or more in their long window.

    `pages`: its fast burns wake somebody; otherwise all of them are tickets.
    """

    target: float
    pages: bool
    least: int = 3
    of: int = 20

    @property
    def burns(self) -> tuple[Burn, ...]:
        """The burn-rate alerts of the target."""
        return burns_for(self.target)

    def severity(self, burn: Burn) -> Severity:
        """Return what `burn` asks of people."""
        return burn.severity if self.pages else Severity.TICKET


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What the rules are made from; `COMMITTED` holds the values."""

    selector: str
    """Which series of Recallscope count: of two jobs that tell of the same turns, one."""
    collector_selector: str
    """Which series of collectors count."""
    runbooks: str
    """Where `dashboards/runbooks.md` can be read."""

    slow_turns: Objective
    recall_holds: Objective
    delivery: Objective

    turns_failing: Share
    turn_age: float
    loop_lag: float
    loop_lag_window: str
    loop_lag_least: int
    """Intervals of 100 ms: a minute of them."""

    skipped_deliveries: Share
    selector_failing: Share
    store_unavailable: Share
    silence: str
    """For how long recalls may find or deliver nothing."""
    silence_least: int
    catalog_age: float
    """A catalog is scanned every 5 minutes at the latest."""

    front_ends: str
    """Which processes are expected to stay; the others are a person's."""
    gone_known: str
    """For how long a process that pushed is missed: a Prometheus keeps what it knows for 15 days by default."""
    known: str
    """For how long a process that was scraped is missed."""

    telemetry_lost: Share
    observer_window: str
    observer_least: int

    collector_queue: float
    collector_window: str
    collector_failing: Share
    collector_least: int


COMMITTED: Final = Config(
    selector=once('job!=""'),
    collector_selector='job!=""',
    runbooks=shared.RUNBOOKS,
    slow_turns=Objective(target=1 - shared.SLOW_TURN_SHARE, pages=True),
    recall_holds=Objective(target=shared.HOLD, pages=True),
    delivery=Objective(target=shared.DELIVERY, pages=False),
    turns_failing=Share(window="15m", above=0.1, least=5, of=20),
    turn_age=1800.0,
    loop_lag=0.1,
    loop_lag_window="10m",
    loop_lag_least=600,
    skipped_deliveries=Share(window="1h", above=0.75, least=20, of=50),
    selector_failing=Share(window="15m", above=0.2, least=5, of=10),
    store_unavailable=Share(window="15m", above=0.05, least=3, of=10),
    silence="6h",
    silence_least=20,
    catalog_age=900.0,
    front_ends="serve|worker",
    gone_known="15d",
    known="1d",
    telemetry_lost=Share(window="30m", above=shared.TELEMETRY_LOSS, least=10, of=100),
    observer_window="15m",
    observer_least=1,
    collector_queue=0.8,
    collector_window="10m",
    collector_failing=Share(window="10m", above=0.01, least=10, of=100),
    collector_least=1,
)
"""The values of the committed rules."""
