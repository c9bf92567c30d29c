"""*Recall*: does memory come, does it come in time, and if not, why not?"""

from typing import Final

from recallscope.dashboards import config
from recallscope.dashboards.alerting.config import COMMITTED
from recallscope.dashboards.board import Board, Row
from recallscope.dashboards.panels import (
    GREEN,
    RED,
    Bars,
    Lines,
    Link,
    Number,
    Stacked,
    Target,
    Threshold,
    Traces,
    runbook_of,
)
from recallscope.telemetry import names
from recallscope.telemetry.queries import recall, service_levels, traces
from recallscope.telemetry.queries.selector import STEP, WHOLE, variables

__all__ = ["RECALL"]

_PROCESS: Final = variables()
_RECALL: Final = variables(names.POLICY)
_CEILING: Final = Threshold(config.CEILING_SECONDS, RED)
_COMPARISON: Final = Link("Behaviour comparison", config.board_url("comparison"))
_RATE: Final = "suffix:/min"

RECALL: Final = Board(
    name="recall",
    title="Recallscope / Recall",
    description="Does memory come, does it come in time, and if not, why not? Each recall ends with exactly one "
    "outcome.",
    by_policy=True,
    with_traces=True,
    rows=(
        Row(
            "Service levels",
            (
                Number(
                    title="Delivery",
                    description="Share of turns with something to deliver that received memory, by policy. tiered "
                    "should reach 95 %: a turn without a tool and without a word match is a miss by design.",
                    unit="percentunit",
                    decimals=1,
                    wide=6,
                    targets=(Target(service_levels.delivery(_RECALL, WHOLE), "{{policy}}", instant=True),),
                    base=RED,
                    thresholds=(Threshold(config.DELIVERY, GREEN),),
                    links=(
                        runbook_of("RecallscopeMemoryNotDelivered"),
                        _COMPARISON,
                    ),
                ),
                Number(
                    title="Hold",
                    description="Share of first sends that were not held for memory beyond the ceiling and 5 ms, by "
                    "policy. tiered must reach 99.9 %; a loop that lags is the usual cause of less.",
                    unit="percentunit",
                    decimals=2,
                    wide=6,
                    targets=(Target(service_levels.hold(_RECALL, WHOLE), "{{policy}}", instant=True),),
                    base=RED,
                    thresholds=(Threshold(config.HOLD, GREEN),),
                    links=(
                        runbook_of("RecallscopeRecallHoldsTurns"),
                        Link("Slow turn", config.board_url("slow-turn")),
                    ),
                ),
                Number(
                    title="Recalls under way",
                    description="Recalls that have begun and not ended. It follows the turns under way; more than "
                    "those would be a leak.",
                    targets=(Target(recall.active(_PROCESS), "recalls", instant=True),),
                    base="text",
                    decimals=0,
                ),
                Number(
                    title="Notes in the catalog",
                    description="How many notes recall searches, by scope. 0 means that nothing can be recalled.",
                    targets=(Target(recall.catalog_notes(_PROCESS), "{{scope}}", instant=True),),
                    base=RED,
                    thresholds=(Threshold(1, GREEN),),
                    decimals=0,
                ),
                Number(
                    title="Catalog age",
                    description="Since the catalog last caught up with the files, by scope. Edits older than this are "
                    "recalled as they are now; younger ones may be missing.",
                    unit="s",
                    targets=(Target(recall.catalog_age(_PROCESS), "{{scope}}", instant=True),),
                    thresholds=(Threshold(COMMITTED.catalog_age, RED),),
                    decimals=0,
                    links=(runbook_of("RecallscopeCatalogStale"),),
                ),
            ),
        ),
        Row(
            "From begin to delivery",
            (
                Bars(
                    title="Funnel",
                    wide=8,
                    description="Over the time range: recalls that began, those whose words were searched in time, "
                    "those whose refined result came before the turn was over, those that the model received. Where "
                    "the bar shrinks, memory is lost.",
                    targets=(
                        Target(recall.begun(_RECALL, WHOLE), "1 begun", instant=True),
                        Target(recall.words_answered(_RECALL, WHOLE), "2 fast result", instant=True),
                        Target(recall.settled(_RECALL, WHOLE), "3 refined settled", instant=True),
                        Target(recall.delivered(_RECALL, WHOLE), "4 delivered", instant=True),
                    ),
                    decimals=0,
                ),
                Stacked(
                    title="Outcomes",
                    description="Recalls a minute by their one outcome. empty had nothing to say; discarded had, and "
                    "no safe place came; failed could not look: unavailable is not empty.",
                    unit=_RATE,
                    wide=8,
                    targets=(Target(recall.outcomes(_RECALL, STEP), "{{outcome}}"),),
                    links=(runbook_of("RecallscopeMemoryUnavailable"),),
                ),
                Stacked(
                    title="Deliveries",
                    description="Deliveries a minute that the model accepted: which result (fast, refined) and where "
                    "(initial: with the first request; tool_result: behind tool results).",
                    unit="suffix:/min",
                    wide=8,
                    targets=(Target(recall.deliveries(_RECALL, STEP), "{{phase}} at {{point}}"),),
                ),
            ),
        ),
        Row(
            "Why not",
            (
                Stacked(
                    title="Skipped deliveries by reason",
                    description="At which point nothing was delivered and why, once per recall, point and reason. "
                    "not_settled at initial is ordinary: the refined result comes later.",
                    unit="suffix:/min",
                    wide=8,
                    targets=(Target(recall.skipped(_RECALL, STEP), "{{reason}} at {{point}}"),),
                    links=(runbook_of("RecallscopeDeliveriesSkipped"),),
                ),
                Stacked(
                    title="Recalls without delivery by reason",
                    description="How recalls ended that delivered nothing. no_safe_delivery_point: the turn was over "
                    "first; selector_timeout: the policy's own limit; new_query: the next prompt came.",
                    unit=_RATE,
                    wide=8,
                    targets=(Target(recall.undelivered(_RECALL, STEP), "{{outcome}}: {{reason}}"),),
                    links=(runbook_of("RecallscopeNothingDelivered"),),
                ),
                Stacked(
                    title="Selector failed, or was not asked",
                    description="Recalls a minute whose selection failed (words stand in for it, but under deadline), "
                    "and those where the selector could not have helped (exact_title, no_candidates).",
                    unit=_RATE,
                    wide=8,
                    targets=(
                        Target(recall.refinements_failed(_RECALL, STEP), "failed: {{reason}}"),
                        Target(recall.refinements_skipped(_RECALL, STEP), "not asked: {{reason}}"),
                    ),
                    links=(runbook_of("RecallscopeSelectorFailing"),),
                ),
                Stacked(
                    title="Rolled back, and too late",
                    description="Deliveries a minute that did not reach the model, by cause (their notes may be "
                    "offered again), and results that came after their recall had closed.",
                    unit="suffix:/min",
                    wide=8,
                    targets=(
                        Target(recall.rollbacks(_RECALL, STEP), "rolled back: {{cause}}"),
                        Target(recall.late_results(_RECALL, STEP), "late"),
                    ),
                ),
                Traces(
                    title="Recalls without delivery",
                    description="Recalls that delivered nothing, from Tempo, with outcome, reason and cause. Open one "
                    "to see when its results came and when the turn ended.",
                    unit="s",
                    wide=16,
                    query=traces.undelivered_recalls(),
                ),
            ),
        ),
        Row(
            "How long",
            (
                Lines(
                    title="Wait at the first send",
                    description="How long first sends were held for memory. The dashed line is the default ceiling and "
                    "5 ms. A dot leads to the trace of a turn that waited.",
                    unit="s",
                    wide=8,
                    targets=(
                        Target(recall.wait_quantile(0.5, _RECALL, STEP), "p50", exemplar=True),
                        Target(recall.wait_quantile(0.95, _RECALL, STEP), "p95", exemplar=True),
                        Target(recall.wait_quantile(0.99, _RECALL, STEP), "p99", exemplar=True),
                    ),
                    thresholds=(_CEILING,),
                    links=(_COMPARISON,),
                ),
                Stacked(
                    title="What ended the wait",
                    description="First sends a minute by what let them go. ceiling: nothing came in time; fast, "
                    "refined: there was something to deliver.",
                    unit="suffix:/min",
                    wide=8,
                    targets=(Target(recall.waits(_RECALL, STEP), "{{ended_by}}"),),
                ),
                Lines(
                    title="Waits over the ceiling",
                    description="First sends a minute that were held beyond their ceiling and 5 ms, by policy. Compare "
                    "with the event loop lag.",
                    unit="suffix:/min",
                    wide=8,
                    targets=(Target(recall.overruns(_RECALL, STEP), "{{policy}}"),),
                    links=(
                        runbook_of("RecallscopeRecallHoldsTurns"),
                        Link("Slow turn", config.board_url("slow-turn")),
                    ),
                ),
                Lines(
                    title="Fast against refined, p95",
                    description="From begin to the fast result (words) and to the refined one (the selector). The gap "
                    "is what the first send does not wait for.",
                    unit="s",
                    logarithmic=True,
                    wide=8,
                    targets=(Target(recall.result_quantile(0.95, _RECALL, STEP), "{{phase}}", exemplar=True),),
                ),
                Lines(
                    title="Begin to delivery, p95",
                    description="From begin to a delivery that the model accepted, by result and point: how old memory "
                    "is when it arrives.",
                    unit="s",
                    logarithmic=True,
                    wide=8,
                    targets=(
                        Target(recall.delivery_quantile(0.95, _RECALL, STEP), "{{phase}} at {{point}}", exemplar=True),
                    ),
                ),
                Bars(
                    title="Catalog sync, p95",
                    description="How long the catalog took to catch up with the files, by scope, over the time range. "
                    "It runs in the background: no turn waits for it.",
                    unit="s",
                    wide=8,
                    targets=(Target(recall.catalog_sync_quantile(0.95, _PROCESS, WHOLE), "{{scope}}", instant=True),),
                ),
            ),
        ),
    ),
)
