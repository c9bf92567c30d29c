"""Every PromQL expression, of the comparison table and of the service levels, for the command and the dashboards.

Each is a function of `selector`, the matchers between the braces, which must name a `job`: one series may reach a
Prometheus on two ways (scrape and push), and a sum over both would count double. `window` is a PromQL range such as
`1h`; dashboards pass `$__rate_interval` or `$__range`.
"""

from recallscope.telemetry.queries.selector import is_range, job
from recallscope.telemetry.queries.service_levels import SLOW_TURN, delivery, hold, slow_turns, telemetry_loss
from recallscope.telemetry.queries.table import (
    TABLE_SCENARIOS,
    loop_lag_buckets,
    loop_lag_max,
    table_turns,
    table_wait_buckets,
    table_wait_max,
    table_wait_quantile,
)

__all__ = [
    "SLOW_TURN",
    "TABLE_SCENARIOS",
    "delivery",
    "hold",
    "is_range",
    "job",
    "loop_lag_buckets",
    "loop_lag_max",
    "slow_turns",
    "table_turns",
    "table_wait_buckets",
    "table_wait_max",
    "table_wait_quantile",
    "telemetry_loss",
]
