"""*Telemetry health*: can the other dashboards be believed?"""

from typing import Final

from recallscope.dashboards import config
from recallscope.dashboards.board import Board, Row
from recallscope.dashboards.panels import ORANGE, RED, TEXT, Lines, Number, Stacked, Target, Threshold, runbook_of
from recallscope.telemetry.queries import collector, health, service_levels, turns
from recallscope.telemetry.queries import selector as select
from recallscope.telemetry.queries.selector import STEP, WHOLE, variables

__all__ = ["HEALTH"]

_PROCESS: Final = variables()
_COLLECTOR: Final = select.collector()
_SPANS: Final = "suffix:/min"
_LOSS: Final = (Threshold(0.0001, ORANGE), Threshold(config.TELEMETRY_LOSS, RED))

HEALTH: Final = Board(
    name="telemetry-health",
    title="Recallscope / Telemetry health",
    description="Can the other dashboards be believed? What was lost on the way, in the process and in the collector.",
    with_collector=True,
    rows=(
        Row(
            "The process",
            (
                Number(
                    title="Lost",
                    description="Share of spans, metric points, log records, journal lines and events that were lost, "
                    "by signal, over the time range. Below 0.1 % is allowed. Turns are not slowed by it; only what is "
                    "known of them is missing.",
                    unit="percentunit",
                    decimals=3,
                    wide=8,
                    targets=(Target(service_levels.telemetry_loss(_PROCESS, WHOLE), "{{signal}}", instant=True),),
                    thresholds=_LOSS,
                    links=(runbook_of("RecallscopeTelemetryLost"),),
                ),
                Number(
                    title="Processes that report",
                    description="How many processes the chosen job and instances have now.",
                    targets=(Target(health.processes(_PROCESS), "processes", instant=True),),
                    base=RED,
                    thresholds=(Threshold(1, TEXT),),
                    decimals=0,
                ),
                Number(
                    title="Series beyond a metric's limit",
                    description="Metrics whose labels had more values than a metric may have: what came after is added "
                    "up in one series. Totals stay right, figures by label are too low. It should be 0.",
                    targets=(Target(health.overflowing(_PROCESS), "series", instant=True),),
                    thresholds=(Threshold(1, RED),),
                    decimals=0,
                    links=(runbook_of("RecallscopeLabelOverflow"),),
                ),
                Number(
                    title="Spans closed by force",
                    description="Spans that had to be ended because their parent ended, over the time range. It should "
                    "be 0: something did not say that it had finished.",
                    targets=(Target(health.unclosed_spans(_PROCESS, WHOLE), "spans", instant=True),),
                    thresholds=(Threshold(1, ORANGE),),
                    decimals=0,
                ),
                Number(
                    title="Observer failures",
                    description="Events that an observer failed on and lost, over the time range. Ten in a row switch "
                    "an observer off: then its signal is missing until the process starts anew.",
                    targets=(Target(health.observer_failures(_PROCESS, WHOLE), "{{observer}}", instant=True),),
                    thresholds=(Threshold(1, RED),),
                    decimals=0,
                    missing="none",
                    links=(runbook_of("RecallscopeObserverFailing"),),
                ),
                Stacked(
                    title="Passed on",
                    description="Spans, metric points, log records and journal lines a minute that left the process. A "
                    "signal that falls to nothing while turns go on has lost its way out.",
                    unit="suffix:/min",
                    targets=(Target(health.exported(_PROCESS, STEP), "{{signal}}"),),
                ),
                Stacked(
                    title="Lost, by reason",
                    description="What was lost in each minute. queue_full: the collector is slow or away for long; "
                    "export_failed: it refused or did not answer; write_failed: the journal's disk; shutdown: the "
                    "process ended first.",
                    unit="suffix:/min",
                    targets=(Target(health.dropped(_PROCESS, STEP), "{{signal}}: {{reason}}"),),
                ),
                Lines(
                    title="Age of the newest sample",
                    description="Since each process last reported. It saws between 0 and the scrape or push interval; "
                    "a line that climbs and ends is a process that went away.",
                    unit="s",
                    targets=(Target(health.sample_age(_PROCESS), "{{instance}}"),),
                    links=(runbook_of("RecallscopeProcessGone"),),
                ),
                Lines(
                    title="Event loop lag, p99",
                    description="The longest that ready work was held up in each 100 ms. Telemetry runs beside the "
                    "loop: if this rises with the figures above, it costs too much.",
                    unit="s",
                    logarithmic=True,
                    targets=(Target(turns.loop_lag_quantile(0.99, _PROCESS, STEP), "p99"),),
                    thresholds=(Threshold(config.LOOP_LAG_SECONDS, RED),),
                ),
            ),
        ),
        Row(
            "The collector",
            (
                Lines(
                    title="Queue",
                    description="The share of each exporter's queue that is full. Near 0 is healthy; a rise says that "
                    "the store of traces is slow or away; at 1 what comes is lost.",
                    unit="percentunit",
                    wide=8,
                    most=1,
                    targets=(Target(collector.queue_used(_COLLECTOR), "{{exporter}}"),),
                    thresholds=(Threshold(0.5, ORANGE), Threshold(0.9, RED)),
                    links=(runbook_of("CollectorQueueFilling"),),
                ),
                Lines(
                    title="Spans in and out",
                    description="Spans a minute that it took, and that it passed on. It keeps all slow, failed and "
                    "missed turns and a share of the rest, so less goes out than comes in.",
                    unit=_SPANS,
                    wide=8,
                    targets=(
                        Target(collector.received(_COLLECTOR, STEP), "in"),
                        Target(collector.sent(_COLLECTOR, STEP), "out to {{exporter}}"),
                    ),
                ),
                Stacked(
                    title="Traces by decision",
                    description="Traces a minute that the tail sampler kept (true) or let go (false). Marked turns are "
                    "always kept.",
                    unit="suffix:/min",
                    wide=8,
                    targets=(Target(collector.decided(_COLLECTOR, STEP), "kept: {{sampled}}"),),
                ),
                Stacked(
                    title="Lost in the collector",
                    description="What was lost for good, a minute: spans that found the queue full, spans that a store "
                    "refused, points that a Prometheus refused. It should be 0.",
                    unit="suffix:/min",
                    wide=8,
                    targets=(
                        Target(collector.queue_overflowed(_COLLECTOR, STEP), "queue full: {{exporter}}"),
                        Target(collector.stores_refused(_COLLECTOR, STEP), "spans refused: {{exporter}}"),
                        Target(collector.points_refused(_COLLECTOR, STEP), "points refused: {{exporter}}"),
                    ),
                    links=(runbook_of("CollectorQueueDropping"),),
                ),
                Lines(
                    title="Refused on arrival",
                    description="Spans a minute that it did not take since it was out of memory. Their senders try "
                    "again, and drop what does not fit into their own queues.",
                    unit=_SPANS,
                    wide=8,
                    targets=(Target(collector.refused(_COLLECTOR, STEP), "refused"),),
                    thresholds=(Threshold(1, RED),),
                    links=(runbook_of("CollectorRefusing"),),
                ),
                Lines(
                    title="Traces dropped undecided",
                    description="Traces a minute that left the sampler's memory before it had decided: more at a time "
                    "than it may hold. They are lost whatever they were.",
                    unit="suffix:/min",
                    wide=8,
                    targets=(Target(collector.dropped_too_early(_COLLECTOR, STEP), "dropped"),),
                    thresholds=(Threshold(1, RED),),
                    links=(runbook_of("CollectorDropsTracesEarly"),),
                ),
            ),
        ),
    ),
)
