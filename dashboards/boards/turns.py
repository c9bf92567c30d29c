"""*Turns*: are turns as quick as promised, and how do they end?"""

from typing import Final

from recallscope.dashboards import config
from recallscope.dashboards.alerting.config import COMMITTED
from recallscope.dashboards.board import Board, Row
from recallscope.dashboards.panels import (
    GREEN,
    ORANGE,
    RED,
    Heat,
    Lines,
    Link,
    Number,
    Stacked,
    Target,
    Threshold,
    runbook_of,
)
from recallscope.telemetry import names
from recallscope.telemetry.queries import service_levels, turns
from recallscope.telemetry.queries.selector import EACH, STEP, WHOLE, variables

__all__ = ["TURNS"]

_PROCESS: Final = variables()
_TURN: Final = variables(names.AGENT, names.POLICY)
_WHERE: Final = Link("Where the time goes", config.board_url("slow-turn"))
_SLOW: Final = Threshold(config.SLOW_TURN_SECONDS, RED)
_ALLOWED: Final = Threshold(config.SLOW_TURN_SHARE, RED)
_FAST, _MEDIUM, *_, _SPENT = COMMITTED.slow_turns.burns
"""The two burns that page, and the one at which the budget lasts exactly as long as it must."""


TURNS: Final = Board(
    name="turns",
    title="Recallscope / Turns",
    description="Are turns as quick as promised, and how do they end? Begin here; Slow turn tells where the time goes.",
    by_agent=True,
    by_policy=True,
    rows=(
        Row(
            "Now, and over the time range",
            (
                Number(
                    title="Slow turns",
                    wide=6,
                    description="Share of turns above 10.24 s, cancelled ones left out, by policy. At most 5 % are "
                    "allowed; red means that the service level is broken over the time range shown.",
                    unit="percentunit",
                    decimals=2,
                    targets=(Target(service_levels.slow_turns(_TURN, WHOLE), "{{policy}}", instant=True),),
                    thresholds=(_ALLOWED,),
                    links=(
                        runbook_of("RecallscopeSlowTurns"),
                        _WHERE,
                    ),
                ),
                Number(
                    title="Error budget left",
                    wide=6,
                    description="What is left of the 5 % of turns that may be slow, over the time range shown: 100 % "
                    "is all of it, 0 % none, below 0 it is overdrawn.",
                    unit="percentunit",
                    decimals=0,
                    targets=(
                        Target(
                            turns.slow_turns_budget_left(config.SLOW_TURN_SHARE, _TURN, WHOLE),
                            "{{policy}}",
                            instant=True,
                        ),
                    ),
                    base=RED,
                    thresholds=(Threshold(0, ORANGE), Threshold(0.25, GREEN)),
                    links=(_WHERE,),
                ),
                Number(
                    title="Turns",
                    wide=3,
                    description="Turns that ended within the time range. With less than some hundred a share above "
                    "10.24 s says little.",
                    targets=(Target(turns.count(_TURN, WHOLE), "turns", instant=True),),
                    base="text",
                    decimals=0,
                ),
                Number(
                    title="Oldest running turn",
                    wide=3,
                    description="Age of the oldest turn under way, over all processes chosen. A turn has no trace and "
                    "no duration before it ends: this is where one that hangs shows first.",
                    unit="s",
                    targets=(Target(turns.oldest_age(_PROCESS), "age", instant=True),),
                    thresholds=(Threshold(config.SLOW_TURN_SECONDS, ORANGE), Threshold(COMMITTED.turn_age, RED)),
                    links=(
                        runbook_of("RecallscopeTurnStuck"),
                        _WHERE,
                    ),
                ),
                Number(
                    title="Turns under way",
                    wide=3,
                    description="How many turns run now. Many, with an old one among them, speak of a model or a tool "
                    "that does not answer.",
                    targets=(Target(turns.active(_PROCESS), "turns", instant=True),),
                    base="text",
                    decimals=0,
                ),
                Number(
                    title="Open sessions",
                    wide=3,
                    description="How many conversations are open now, idle ones included.",
                    targets=(Target(turns.sessions(_PROCESS), "sessions", instant=True),),
                    base="text",
                    decimals=0,
                ),
            ),
        ),
        Row(
            "How long",
            (
                Lines(
                    title="Turn duration",
                    description="Wall time of a turn less the time that it queued or waited for a permission: half, 95 "
                    "% and 99 % of turns were quicker. The dashed line is 10.24 s. A dot is an exemplar: click it and "
                    "open its trace.",
                    unit="s",
                    targets=(
                        Target(turns.duration_quantile(0.5, _TURN, STEP), "p50", exemplar=True),
                        Target(turns.duration_quantile(0.95, _TURN, STEP), "p95", exemplar=True),
                        Target(turns.duration_quantile(0.99, _TURN, STEP), "p99", exemplar=True),
                    ),
                    thresholds=(_SLOW,),
                    links=(_WHERE,),
                ),
                Heat(
                    title="Turn duration, all turns",
                    description="Each column is a step, each row a bucket of durations, darker where more turns fell "
                    "in that step: a turn counts once. Two dark bands are two kinds of turns, which a percentile would "
                    "mix.",
                    unit="s",
                    targets=(Target(turns.duration_buckets(_TURN, EACH), "{{le}}", exemplar=True),),
                ),
                Lines(
                    title="Time to first token",
                    description="From a prompt's arrival to the first visible text of its answer: what a person feels.",
                    unit="s",
                    targets=(
                        Target(turns.first_token_quantile(0.5, _TURN, STEP), "p50", exemplar=True),
                        Target(turns.first_token_quantile(0.95, _TURN, STEP), "p95", exemplar=True),
                        Target(turns.first_token_quantile(0.99, _TURN, STEP), "p99", exemplar=True),
                    ),
                ),
                Lines(
                    title="Turn duration p95 by policy",
                    description="The same 95th percentile for each recall policy. Lines that lie apart by as much as a "
                    "policy may wait (deadline: 1 s) are what that policy costs.",
                    unit="s",
                    targets=(
                        Target(turns.duration_quantile(0.95, _TURN, STEP, names.POLICY), "{{policy}}", exemplar=True),
                    ),
                    thresholds=(_SLOW,),
                    links=(Link("Behaviour comparison", config.board_url("comparison")),),
                ),
            ),
        ),
        Row(
            "How they end, and the service level",
            (
                Stacked(
                    title="Turns by outcome",
                    description="Turns a minute by how they ended. failed is a model or a tool that gave up, cancelled "
                    "a person who did; loop_stopped and max_turn_requests are turns that went round in circles.",
                    unit="suffix:/min",
                    targets=(Target(turns.by_outcome(_TURN, STEP), "{{outcome}}"),),
                    links=(
                        runbook_of("RecallscopeTurnsFailing"),
                        Link("Model and tools", config.board_url("model-and-tools")),
                    ),
                ),
                Lines(
                    title="Share of slow turns",
                    description="Turns above 10.24 s in each step, which counts a turn once, by policy; the dashed "
                    "line is the 5 % that are allowed. With few turns one slow one is a large share.",
                    unit="percentunit",
                    targets=(Target(service_levels.slow_turns(_TURN, EACH), "{{policy}}"),),
                    thresholds=(_ALLOWED,),
                    links=(_WHERE,),
                ),
                Lines(
                    title="Burn rate of the error budget",
                    description="How many times faster than allowed slow turns come. At "
                    f"{_SPENT.factor:g} the budget lasts exactly as long as it must; somebody is called above "
                    f"{_FAST.factor:g} over {_FAST.long}, or above {_MEDIUM.factor:g} over {_MEDIUM.long}.",
                    unit="suffix:times",
                    targets=tuple(
                        Target(
                            turns.slow_turns_burn(config.SLOW_TURN_SHARE, _TURN, burn.long),
                            f"{{{{policy}}}}, {burn.long}",
                        )
                        for burn in (_FAST, _MEDIUM)
                    ),
                    thresholds=(
                        Threshold(_SPENT.factor, ORANGE),
                        Threshold(_MEDIUM.factor, RED),
                        Threshold(_FAST.factor, RED),
                    ),
                    links=(runbook_of("RecallscopeSlowTurns"),),
                ),
                Lines(
                    title="Follow-up work that could not be scheduled",
                    description="Turns after which extraction or consolidation could not be queued, in each step, "
                    "each counted once. The turn itself was answered. It should be 0.",
                    targets=(Target(turns.post_turn_failures(_PROCESS, EACH), "failures"),),
                    thresholds=(Threshold(1, RED),),
                ),
            ),
        ),
    ),
)
