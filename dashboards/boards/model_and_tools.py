"""*Model and tools*: are the servers and tools that turns wait for quick and well?"""

from typing import Final

from recallscope.dashboards import config
from recallscope.dashboards.board import Board, Row
from recallscope.dashboards.panels import (
    GREEN,
    ORANGE,
    RED,
    Lines,
    Link,
    Number,
    Stacked,
    Target,
    Threshold,
    runbook_of,
)
from recallscope.telemetry import names
from recallscope.telemetry.queries import model, turns
from recallscope.telemetry.queries.selector import STEP, WHOLE, variables

__all__ = ["MODEL_AND_TOOLS"]

_PROCESS: Final = variables()
_PHASES: Final = variables(names.AGENT)
_SLOW_TURN: Final = Link("Slow turn", config.board_url("slow-turn"))
_PURPOSE: Final = "{{recallscope_purpose}}"

MODEL_AND_TOOLS: Final = Board(
    name="model-and-tools",
    title="Recallscope / Model and tools",
    description="Are the models and tools that turns wait for quick and well? The conventions' own metrics.",
    by_agent=True,
    rows=(
        Row(
            "Models",
            (
                Number(
                    title="Failed calls",
                    description="Share of model calls that failed after all their attempts, over the time range, by "
                    "purpose. A failing selector costs the refined result only; a failing main model ends turns.",
                    unit="percentunit",
                    decimals=2,
                    wide=6,
                    high=8,
                    targets=(Target(model.failed_share(_PROCESS, WHOLE), _PURPOSE, instant=True),),
                    base=GREEN,
                    thresholds=(Threshold(0.001, ORANGE), Threshold(0.01, RED)),
                    links=(runbook_of("RecallscopeTurnsFailing"),),
                ),
                Stacked(
                    title="Calls",
                    description="Model calls a minute by purpose and how they ended. A cancelled selector is ordinary: "
                    "its turn was over first.",
                    unit="suffix:/min",
                    wide=9,
                    targets=(Target(model.calls(_PROCESS, STEP), f"{_PURPOSE}: {{{{recallscope_status}}}}"),),
                ),
                Stacked(
                    title="Failures by error",
                    description="Failed model calls a minute by purpose and error: a status of the server (429, 503), "
                    "connection_error, timeout.",
                    unit="suffix:/min",
                    wide=9,
                    targets=(Target(model.failed_calls(_PROCESS, STEP), f"{_PURPOSE}: {{{{error_type}}}}"),),
                ),
                Lines(
                    title="Call duration, p95",
                    wide=8,
                    description="Duration of model calls with all their attempts, by purpose. A dot leads to the trace "
                    "of such a call.",
                    unit="s",
                    targets=(
                        Target(model.call_quantile(0.95, _PROCESS, STEP, names.PURPOSE), _PURPOSE, exemplar=True),
                    ),
                    links=(_SLOW_TURN,),
                ),
                Lines(
                    title="Time to first chunk, p95",
                    wide=8,
                    description="From a streamed request to its first chunk, by model: how long the server thinks "
                    "before it speaks.",
                    unit="s",
                    targets=(
                        Target(
                            model.first_chunk_quantile(0.95, _PROCESS, STEP),
                            "{{gen_ai_request_model}}",
                            exemplar=True,
                        ),
                    ),
                    links=(_SLOW_TURN,),
                ),
                Lines(
                    title="Waiting before another attempt, p95",
                    wide=8,
                    description="Of the turns that had to try again, 95 % waited less between attempts. Nothing here "
                    "means that no attempt failed.",
                    unit="s",
                    targets=(Target(turns.backoff_quantile(0.95, _PHASES, STEP), "backoff", exemplar=True),),
                ),
            ),
        ),
        Row(
            "Tokens",
            (
                Lines(
                    title="Input tokens",
                    description="Tokens a minute that were sent, cached ones included, by purpose. Growing without "
                    "more turns means longer histories.",
                    unit="suffix:/min",
                    wide=8,
                    targets=(Target(model.input_tokens(_PROCESS, STEP), _PURPOSE),),
                ),
                Lines(
                    title="Output tokens",
                    description="Tokens a minute that models wrote, by purpose.",
                    unit="suffix:/min",
                    wide=8,
                    targets=(Target(model.output_tokens(_PROCESS, STEP), _PURPOSE),),
                ),
                Lines(
                    title="Input from the provider's cache",
                    description="Share of input tokens that the provider had in its cache, by purpose. A fall says "
                    "that the beginning of requests has changed. Providers that do not tell are not shown.",
                    unit="percentunit",
                    wide=8,
                    most=1,
                    targets=(Target(model.cache_share(_PROCESS, STEP), _PURPOSE),),
                ),
            ),
        ),
        Row(
            "Tools",
            (
                Lines(
                    title="Ten slowest tools, p95",
                    description="95 % of a tool's calls were quicker. The ten are those of the whole time range. A dot "
                    "leads to the trace of such a call.",
                    unit="s",
                    wide=8,
                    targets=(Target(model.tool_quantile(0.95, _PROCESS, STEP), "{{gen_ai_tool_name}}", exemplar=True),),
                    links=(_SLOW_TURN,),
                ),
                Stacked(
                    title="Ten busiest tools",
                    description="Tool calls a minute of the ten that were called most in the whole time range. Tools "
                    "that the model invented are _other.",
                    unit="suffix:/min",
                    wide=8,
                    targets=(Target(model.tool_calls(_PROCESS, STEP), "{{gen_ai_tool_name}}"),),
                ),
                Stacked(
                    title="Tool calls that did not end well",
                    description="Tool calls a minute that failed or were cancelled with their turn, by tool. A failure "
                    "that a tool reports to the model is no failure here.",
                    unit="suffix:/min",
                    wide=8,
                    targets=(
                        Target(model.failed_tools(_PROCESS, STEP), "{{gen_ai_tool_name}}: {{recallscope_status}}"),
                    ),
                ),
            ),
        ),
    ),
)
