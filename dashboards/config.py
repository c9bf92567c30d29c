"""What all dashboards share: their names, their variables, the service levels that they colour by, their links."""

import json
from typing import Final
from urllib.parse import quote

from recallscope.dashboards import RUNBOOKS

__all__ = [
    "CEILING_SECONDS",
    "DATASOURCE",
    "DELIVERY",
    "HOLD",
    "LEAST_STEP",
    "LOOP_LAG_SECONDS",
    "REFRESH",
    "RUNBOOKS",
    "RUNBOOKS_VARIABLE",
    "SAMPLED",
    "SCRAPE",
    "SLOW_TURN_SECONDS",
    "SLOW_TURN_SHARE",
    "TAG",
    "TELEMETRY_LOSS",
    "TIME_FROM",
    "TRACES",
    "board_url",
    "explore_url",
    "runbook",
    "uid",
]

TAG: Final = "recallscope"
"""The tag by which the dashboards find each other."""

DATASOURCE: Final = "datasource"
TRACES: Final = "traces"
RUNBOOKS_VARIABLE: Final = "runbooks"
"""Variables: the Prometheus, the Tempo, and the address of the runbooks."""

SCRAPE: Final = "15s"
"""How often processes are scraped, and how often they push."""

LEAST_STEP: Final = "1m"
"""The shortest step of a panel that counts per step: four scrapes, since fewer than two show no increase."""

SAMPLED: Final = (
    "Dots of ordinary turns mostly lead to traces that the tail sampler did not keep; those of slow, failed and missed "
    "turns are kept."
)
"""What every panel with exemplars says: a process does not know which traces a collector keeps."""

REFRESH: Final = "30s"
TIME_FROM: Final = "now-1h"

SLOW_TURN_SECONDS: Final = 10.24
SLOW_TURN_SHARE: Final = 0.05
CEILING_SECONDS: Final = 0.105
"""The default ceiling of an initial wait and its tolerance."""

HOLD: Final = 0.999
DELIVERY: Final = 0.95
TELEMETRY_LOSS: Final = 0.001
LOOP_LAG_SECONDS: Final = 0.025
"""From here on a loop lag makes figures of waits void (docs/comparison.md)."""


def uid(name: str) -> str:
    """Return the stable uid of the dashboard named `name`."""
    return f"{TAG}-{name}"


def board_url(name: str) -> str:
    """Return the address of the dashboard named `name` with the time range and the variables of this one."""
    return f"/d/{uid(name)}?${{__url_time_range}}&${{__all_variables}}"


def explore_url(query: str) -> str:
    """Return the address of a search for traces; `query` is TraceQL and may hold variables."""
    source = f"${{{TRACES}}}"
    search = {"refId": "A", "datasource": {"type": "tempo", "uid": source}, "queryType": "traceql", "query": query}
    pane = {"datasource": source, "queries": [search], "range": {"from": "${__from}", "to": "${__to}"}}
    return f"/explore?schemaVersion=1&panes={quote(json.dumps({'t': pane}), safe='${}')}"


def runbook(heading: str, base: str = RUNBOOKS) -> str:
    """Return the address of the runbook below `heading`, as its page makes anchors: lower case, words by hyphens."""
    kept = "".join(letter for letter in heading.lower() if letter.isalnum() or letter in " -_")
    return f"{base}#{kept.replace(' ', '-')}"
