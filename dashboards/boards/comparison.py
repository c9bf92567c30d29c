"""*Behaviour comparison*: the table of `recallscope compare`, drawn from live traffic."""

from typing import Final

from recallscope.dashboards import config
from recallscope.dashboards.board import Board, Row
from recallscope.dashboards.panels import (
    GREEN,
    ORANGE,
    RED,
    TEXT,
    Curve,
    Lines,
    Link,
    Matrix,
    Number,
    Rows,
    Target,
    Threshold,
)
from recallscope.telemetry import names, queries
from recallscope.telemetry.queries import table, traces, whatif
from recallscope.telemetry.queries.selector import STEP, WHOLE, variables

__all__ = ["COMPARISON"]

_RECALL: Final = variables(names.POLICY)
_ROWS: Final = table.rows(_RECALL)
_PROCESS: Final = variables()
_WAITS: Final = (Threshold(0, GREEN), Threshold(config.CEILING_SECONDS, ORANGE), Threshold(1.1, RED))
_CELL: Final = traces.turns_of_row("${__data.fields.policy}", "${__data.fields.scenario}")

COMPARISON: Final = Board(
    name="comparison",
    title="Recallscope / Behaviour comparison",
    description="What does each recall policy do to a turn? Rows are what happened to the recall, columns are "
    "policies; the same queries as `recallscope compare --from-prometheus`.",
    by_policy=True,
    with_traces=True,
    rows=(
        Row(
            "By policy, over the time range",
            (
                Matrix(
                    title="Turns",
                    description="Turns of each scenario under each policy. A comparison needs some dozens in each of "
                    "the cells compared; an empty cell was not measured.",
                    targets=(Target(table.table_turns_of_row(_ROWS, WHOLE), instant=True),),
                    row=names.SCENARIO,
                    column=names.POLICY,
                    decimals=0,
                ),
                Matrix(
                    title="Turns that received memory",
                    description="The share of a cell's turns that received memory anywhere. tiered should show 100 % "
                    "wherever words match a note; deadline and prefetch show 0 % where they must miss.",
                    unit="percentunit",
                    targets=(Target(table.table_delivered(_ROWS, WHOLE), instant=True),),
                    row=names.SCENARIO,
                    column=names.POLICY,
                    thresholds=(Threshold(0, RED), Threshold(0.5, ORANGE), Threshold(config.DELIVERY, GREEN)),
                    decimals=0,
                ),
                Matrix(
                    title="Wait of a turn, p95",
                    description="All waits for memory of a turn, added: 95 % of the cell's turns waited less. Under "
                    "tiered at most the ceiling, under prefetch nothing, under deadline about 1 s.",
                    unit="s",
                    targets=(Target(queries.table_wait_quantile(0.95, _ROWS, WHOLE), instant=True),),
                    row=names.SCENARIO,
                    column=names.POLICY,
                    thresholds=_WAITS,
                ),
                Matrix(
                    title="Wait of a turn, p50",
                    description="The same, of half of the turns.",
                    unit="s",
                    targets=(Target(queries.table_wait_quantile(0.5, _ROWS, WHOLE), instant=True),),
                    row=names.SCENARIO,
                    column=names.POLICY,
                    thresholds=_WAITS,
                ),
                Matrix(
                    title="Wait of a turn, at most",
                    description="The upper bound of the highest bucket that holds a turn's wait: no turn waited "
                    "longer. 30 s means longer than 30 s.",
                    unit="s",
                    targets=(Target(queries.table_wait_max(_ROWS, WHOLE), instant=True),),
                    row=names.SCENARIO,
                    column=names.POLICY,
                    thresholds=_WAITS,
                ),
                Number(
                    title="Event loop lag, at most",
                    description="The upper bound of the highest bucket of loop lag. Above 5 ms the waits of the table "
                    "are doubtful by as much; above 25 ms they say nothing about memory.",
                    unit="s",
                    wide=8,
                    high=8,
                    targets=(Target(queries.loop_lag_max(_PROCESS, WHOLE), "lag", instant=True),),
                    thresholds=(Threshold(0.0051, ORANGE), Threshold(config.LOOP_LAG_SECONDS, RED)),
                ),
            ),
        ),
        Row(
            "The table",
            (
                Rows(
                    title="Where memory went, and why it did not",
                    description="Each line is a kind of turn: its scenario and policy, where memory was delivered, why "
                    "it (or the refined part) was not, and how many there were. Scenarios that stand apart from the "
                    "table (interrupted, not_sent, unavailable, nothing_found) are shown, too. A click on a line looks "
                    "for its traces.",
                    unit="short",
                    decimals=0,
                    high=12,
                    base="text",
                    targets=(Target(queries.table_turns(_RECALL, WHOLE), instant=True),),
                    columns={
                        names.SCENARIO: "scenario",
                        names.POLICY: "policy",
                        names.DELIVERED: "delivered",
                        names.REASON: "reason",
                        "Value": "turns",
                    },
                    sort_by="scenario",
                    above_zero=True,
                    row_links=(Link("Traces of these turns", config.explore_url(_CELL)),),
                ),
            ),
        ),
        Row(
            "What if the ceiling were another",
            (
                Curve(
                    title="First sends that memory would have reached, by ceiling",
                    description="For each ceiling of the first wait, the share of first sends that notes would have "
                    "reached, from the moments when they were there. Where the line is flat, a longer wait brings "
                    "nothing; `recallscope whatif` gives counts and intervals.",
                    unit="percentunit",
                    wide=16,
                    most=1,
                    targets=(Target(whatif.share_by_ceiling(_RECALL, WHOLE), instant=True),),
                    column=names.POLICY,
                    bound_unit="s",
                    bound_name="ceiling",
                    bounds=(names.BUCKETS_R[0], names.BUCKETS_R[-1]),
                ),
                Number(
                    title="Ceiling that reaches 95 % of them",
                    description="Within this time 95 % of the first sends had notes, of those that had any before "
                    "their turn was over. A ceiling above it brings little more.",
                    unit="s",
                    wide=8,
                    high=8,
                    targets=(Target(whatif.ready_quantile(0.95, _RECALL, WHOLE), "{{policy}}", instant=True),),
                    base=TEXT,
                ),
            ),
        ),
        Row(
            "Over time",
            (
                Lines(
                    title="Turns that received memory",
                    description="The share of turns with something to deliver that received memory, by policy. The "
                    "dashed line is the 95 % that tiered should reach.",
                    unit="percentunit",
                    targets=(Target(queries.delivery(_RECALL, STEP), "{{policy}}"),),
                    most=1,
                    thresholds=(Threshold(config.DELIVERY, GREEN),),
                    links=(Link("Recall", config.board_url("recall")),),
                ),
                Lines(
                    title="Wait of a turn, p95",
                    description="All waits for memory of a turn, added, by policy. The dashed line is the default "
                    "ceiling and 5 ms. A dot leads to a turn that waited.",
                    unit="s",
                    logarithmic=True,
                    targets=(Target(table.wait_quantile_of_policy(0.95, _RECALL, STEP), "{{policy}}", exemplar=True),),
                    thresholds=(Threshold(config.CEILING_SECONDS, RED),),
                    links=(Link("Recall", config.board_url("recall")),),
                ),
            ),
        ),
    ),
)
