"""*Slow turn*: where does the time go?"""

from typing import Final

from recallscope.dashboards import config
from recallscope.dashboards.alerting.config import COMMITTED
from recallscope.dashboards.board import Board, Row
from recallscope.dashboards.panels import ORANGE, RED, Bars, Lines, Link, Stacked, Target, Threshold, Traces, runbook_of
from recallscope.telemetry import names
from recallscope.telemetry.queries import model, traces, turns
from recallscope.telemetry.queries.selector import EACH, STEP, WHOLE, variables

__all__ = ["SLOW_TURN"]

_PROCESS: Final = variables()
_PHASES: Final = variables(names.AGENT)
_MODEL: Final = Link("Model and tools", config.board_url("model-and-tools"))

SLOW_TURN: Final = Board(
    name="slow-turn",
    title="Recallscope / Slow turn",
    description="Where does the time of a turn go? The phases of a turn add up to its wall time, without gap or "
    "overlap.",
    by_agent=True,
    with_traces=True,
    rows=(
        Row(
            "By phase",
            (
                Stacked(
                    title="Where the time goes",
                    wide=10,
                    description="The share of each phase in the time of the turns that ended in each step; a turn "
                    "counts in one. recall_wait is what memory held back; other is what no phase claims: it should be "
                    "thin.",
                    unit="percentunit",
                    targets=(Target(turns.phase_share(_PHASES, EACH), "{{phase}}"),),
                    most=1,
                ),
                Bars(
                    title="Seconds of a turn by phase",
                    description="What an average turn spends in each phase, over the time range shown. The longest bar "
                    "is where to look first.",
                    unit="s",
                    wide=6,
                    targets=(Target(turns.phase_seconds_per_turn(_PHASES, WHOLE), "{{phase}}", instant=True),),
                ),
                Lines(
                    title="p95 of each phase",
                    logarithmic=True,
                    description="Of the turns that had a phase, 95 % had less of it. A phase that jumps while the "
                    "others stay is the cause; a dot leads to the trace of such a turn.",
                    unit="s",
                    wide=8,
                    targets=(Target(turns.phase_quantile(0.95, _PHASES, STEP), "{{phase}}", exemplar=True),),
                ),
            ),
        ),
        Row(
            "Which turns",
            (
                Traces(
                    title="Slow turns",
                    description="Turns above 10.24 s that the collector kept, from Tempo, with outcome, policy, "
                    "scenario, where memory was delivered and how long it held the turn. Click a trace, or give its id "
                    "to `recallscope explain`. With Jaeger instead of Tempo this stays empty: search there for "
                    "recallscope.turn.keep=true.",
                    unit="s",
                    query=traces.slow_turns(),
                ),
            ),
        ),
        Row(
            "Who holds it up",
            (
                Lines(
                    title="Oldest running turn",
                    description="Age of the oldest turn under way. A line that rises without end is a turn that hangs. "
                    "The lines are 10.24 s and the age at which an alert fires.",
                    unit="s",
                    wide=8,
                    logarithmic=True,
                    targets=(Target(turns.oldest_age(_PROCESS), "age"),),
                    thresholds=(Threshold(config.SLOW_TURN_SECONDS, ORANGE), Threshold(COMMITTED.turn_age, RED)),
                    links=(runbook_of("RecallscopeTurnStuck"),),
                ),
                Lines(
                    title="Event loop lag",
                    description="The longest that ready work was held up in each 100 ms, by the event loop. Above 25 "
                    "ms figures of waits mean little; above 100 ms for minutes an alert fires: the process is too "
                    "busy, or something blocks it.",
                    unit="s",
                    wide=8,
                    logarithmic=True,
                    targets=(
                        Target(turns.loop_lag_quantile(0.5, _PROCESS, STEP), "p50"),
                        Target(turns.loop_lag_quantile(0.99, _PROCESS, STEP), "p99"),
                    ),
                    thresholds=(Threshold(config.LOOP_LAG_SECONDS, ORANGE), Threshold(COMMITTED.loop_lag, RED)),
                    links=(runbook_of("RecallscopeLoopLag"),),
                ),
                Lines(
                    title="Time to first chunk p95 by model",
                    description="From a streamed request to its first chunk. When this rises, the model's server is "
                    "the cause, not this process.",
                    unit="s",
                    wide=8,
                    targets=(
                        Target(
                            model.first_chunk_quantile(0.95, _PROCESS, STEP),
                            "{{gen_ai_request_model}}",
                            exemplar=True,
                        ),
                    ),
                    links=(_MODEL,),
                ),
                Lines(
                    title="Ten slowest tools, p95",
                    description="95 % of a tool's calls were quicker. The ten are those of the whole time range. Tools "
                    "that the model invented are _other.",
                    unit="s",
                    targets=(Target(model.tool_quantile(0.95, _PROCESS, STEP), "{{gen_ai_tool_name}}", exemplar=True),),
                    links=(_MODEL,),
                ),
                Lines(
                    title="Output tokens",
                    description="Tokens a minute that models wrote, by purpose. Turns that became slow together with "
                    "this line are slow because the answers are longer.",
                    unit="suffix:/min",
                    targets=(Target(model.output_tokens(_PROCESS, STEP), "{{recallscope_purpose}}"),),
                ),
            ),
        ),
    ),
)
