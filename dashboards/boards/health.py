"""*Telemetry health*: can the other dashboards be believed?"""

from collections.abc import Mapping
from typing import Final

from recallscope.dashboards import config
from recallscope.dashboards.alerting.config import COMMITTED
from recallscope.dashboards.board import Board, Row
from recallscope.dashboards.panels import ORANGE, RED, TEXT, Lines, Number, Stacked, Target, Threshold, runbook_of
from recallscope.telemetry.queries import collector, health, service_levels, turns
from recallscope.telemetry.queries import selector as select
from recallscope.telemetry.queries.selector import EACH, STEP, WHOLE, variables

__all__ = ["HEALTH"]

_PROCESS: Final = variables()
_COLLECTOR: Final = select.collector()
_SPANS: Final = "suffix:/min"
_LOSS: Final = (Threshold(0.0001, ORANGE), Threshold(config.TELEMETRY_LOSS, RED))


def _lost(window: str) -> Mapping[str, str]:
    """Return the queries of what the collector loses, by why."""
    passed_on = collector.sent_items(_COLLECTOR, window)
    return {
        "queue full": collector.lost(collector.queue_full(_COLLECTOR, window), passed_on),
        "refused for good": collector.lost(collector.given_up(_COLLECTOR, window), passed_on),
    }


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
                    wide=8,
                    targets=(Target(health.exported(_PROCESS, STEP), "{{signal}}"),),
                ),
                Number(
                    title="Lost, counted",
                    description="How many spans, metric points, log records, journal lines and events were lost over "
                    "the time range, to the item, by reason.",
                    wide=8,
                    high=8,
                    targets=(Target(health.lost(_PROCESS, WHOLE), "{{signal}}: {{reason}}", instant=True),),
                    thresholds=(Threshold(1, ORANGE),),
                    decimals=0,
                    links=(runbook_of("RecallscopeTelemetryLost"),),
                ),
                Stacked(
                    title="Lost, by reason",
                    description="What was lost in each minute. queue_full: the collector is slow or away for long; "
                    "export_failed: it refused or did not answer; write_failed: the journal's disk; shutdown: the "
                    "process ended first.",
                    unit="suffix:/min",
                    wide=8,
                    targets=(Target(health.dropped(_PROCESS, STEP), "{{signal}}: {{reason}}"),),
                ),
                Lines(
                    title="Age of the newest sample",
                    description="Since each process last reported. It saws between 0 and the scrape or push interval. "
                    "Where a process goes away, its line ends: at once if it is scraped; if it pushes, after climbing "
                    "for five minutes, for which a Prometheus takes its last word.",
                    unit="s",
                    targets=(Target(health.sample_age(_PROCESS), "{{instance}}"),),
                    links=(runbook_of("RecallscopeProcessDown"), runbook_of("RecallscopeProcessGone")),
                ),
                Lines(
                    title="Event loop lag, p99",
                    description="The longest that ready work was held up in each 100 ms. Telemetry runs beside the "
                    "loop: if this rises with the figures above, it costs too much.",
                    unit="s",
                    logarithmic=True,
                    targets=(Target(turns.loop_lag_quantile(0.99, _PROCESS, STEP), "p99"),),
                    thresholds=(Threshold(config.LOOP_LAG_SECONDS, ORANGE), Threshold(COMMITTED.loop_lag, RED)),
                    links=(runbook_of("RecallscopeLoopLag"),),
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
                    thresholds=(Threshold(0.5, ORANGE), Threshold(COMMITTED.collector_queue, RED)),
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
                Number(
                    title="Lost in the collector, counted",
                    description="What was lost for good over the time range, to the item: it found an exporter's queue "
                    "full, or its store refused it. Metric points that find a queue full are told to their agent, "
                    "which tries again. What a kill lost is not here: see the traces without a decision.",
                    wide=8,
                    high=8,
                    targets=tuple(
                        Target(query, f"{{{{item}}}}, {why}: {{{{exporter}}}}", instant=True)
                        for why, query in _lost(WHOLE).items()
                    ),
                    thresholds=(Threshold(1, RED),),
                    decimals=0,
                    links=(runbook_of("CollectorQueueDropping"), runbook_of("CollectorExportFailing")),
                ),
                Stacked(
                    title="Lost in the collector",
                    description="When it was lost: what was lost in each step of the graph. It should be 0.",
                    wide=8,
                    targets=tuple(
                        Target(query, f"{{{{item}}}}, {why}: {{{{exporter}}}}") for why, query in _lost(EACH).items()
                    ),
                    links=(runbook_of("CollectorQueueDropping"), runbook_of("CollectorExportFailing")),
                ),
                Lines(
                    title="Refused on arrival",
                    description="What it did not take in each step of the graph, mostly since it was out of "
                    "memory. Its senders try again, and drop what does not fit into their own queues.",
                    wide=8,
                    targets=(
                        Target(
                            collector.counted(collector.refused(_COLLECTOR, EACH), "receiver"), "{{item}}: {{receiver}}"
                        ),
                    ),
                    thresholds=(Threshold(1, RED),),
                    links=(runbook_of("CollectorRefusing"),),
                ),
                Lines(
                    title="Traces without a decision",
                    description="Traces in the memory of the tail sampler: turns under way, and those that have just "
                    "ended. A collector that is asked to end decides about them first; one that is killed loses them, "
                    "and counts nothing. So where it began anew, the second line tells how many it had at most in the "
                    "step before: lost if it was killed, safe if it was stopped. Its log knows which.",
                    wide=8,
                    targets=(
                        Target(collector.undecided(_COLLECTOR), "undecided: {{instance}}"),
                        Target(collector.undecided_at_restart(_COLLECTOR, STEP), "at a restart, at most: {{instance}}"),
                    ),
                    links=(runbook_of("CollectorDown"),),
                ),
                Lines(
                    title="Traces dropped undecided",
                    description="Traces that left the sampler's memory before it had decided, in each step of the "
                    "graph: more at a time than it may hold. They are lost whatever they were.",
                    wide=8,
                    targets=(Target(collector.dropped_too_early(_COLLECTOR, EACH), "dropped: {{instance}}"),),
                    thresholds=(Threshold(1, RED),),
                    links=(runbook_of("CollectorDropsTracesEarly"),),
                ),
                Number(
                    title="Restarts",
                    description="How often each collector began anew over the time range. What it had not decided "
                    "about is lost if it was killed; what waited in its queue on disk is not.",
                    wide=8,
                    high=8,
                    targets=(Target(collector.restarts(_COLLECTOR, WHOLE), "{{instance}}", instant=True),),
                    thresholds=(Threshold(1, ORANGE),),
                    decimals=0,
                    links=(runbook_of("CollectorDown"),),
                ),
            ),
        ),
    ),
)
