"""Metrics: the values of a golden process, which labels they carry, and what is there from the start."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from recallscope.runtime.events import (
    NotAsked,
    PolicyName,
    Reason,
    RecallClosed,
    RecallWaited,
    SessionOpened,
    ToolFinished,
    TurnFinished,
)
from recallscope.telemetry import names
from recallscope.telemetry.testing.golden import (
    AT,
    WALL,
    golden_process,
    golden_turn,
    lexical_turn,
    tool_free_turn,
    unlucky_turn,
)

Make = Callable[..., Any]


def _only(points: dict[str, Any], metric: Any) -> Any:
    (value,) = points[metric.name].values()
    return value


def _point(points: dict[str, Any], metric: Any, **labels: str) -> Any:
    found = [value for key, value in points[metric.name].items() if labels.items() <= dict(key).items()]
    assert len(found) == 1, (metric.name, labels, points[metric.name])
    return found[0]


def _feed(metrics: Any, events: Any) -> dict[str, Any]:
    for event in events:
        metrics.observer(event)
    return metrics.points()


def test_the_turn_is_measured_without_queue_and_permission(make_metrics: Make) -> None:
    """`turn.duration` leaves out the 5 ms in the queue; `invoke_agent.duration` is the whole wall."""
    points = _feed(make_metrics(), golden_turn())

    assert _point(points, names.TURN_DURATION, agent="main", policy="tiered", outcome="end_turn") == (1, 2.995)
    assert _only(points, names.INVOKE_AGENT_DURATION) == (1, 3.0)
    assert _only(points, names.TURN_TIME_TO_FIRST_TOKEN) == (1, 0.37)


def test_each_phase_is_recorded_once_and_they_add_up(make_metrics: Make) -> None:
    """The phases of the golden turn are one observation each and sum to its wall time."""
    phases = _feed(make_metrics(), golden_turn())[names.TURN_PHASE_DURATION.name]

    assert {dict(key)["phase"]: count for key, (count, _) in phases.items()} == dict.fromkeys(
        ("queue", "prepare", "recall_wait", "model", "tool", "other"), 1
    )
    assert round(sum(seconds for _, seconds in phases.values()), 6) == 3.0


def test_a_delivered_recall_is_counted_with_its_waits_and_deliveries(make_metrics: Make) -> None:
    """Two waits, two deliveries, one outcome, one turn of the table, its waits added."""
    points = _feed(make_metrics(), golden_turn())

    assert _only(points, names.RECALL_STARTED) == 1
    assert _point(points, names.RECALL_WAIT_DURATION, point="initial", ended_by="fast") == (1, 0.002)
    assert _point(points, names.RECALL_WAIT_DURATION, point="tool_result", ended_by="already_settled") == (1, 0.0)
    assert _point(points, names.RECALL_DURATION, phase="fast", outcome="delivered") == (1, 0.004)
    assert _point(points, names.RECALL_DURATION, phase="refined", outcome="delivered") == (1, 0.908)
    assert _point(points, names.RECALL_DELIVERIES, phase="fast", point="initial", strategy="lexical") == 1
    assert _point(points, names.RECALL_DELIVERIES, phase="refined", point="tool_result", strategy="model") == 1
    assert _point(points, names.RECALL_DELIVERY_DURATION, phase="refined", point="tool_result") == (1, 1.88)
    assert _point(points, names.RECALL_OUTCOMES, outcome="delivered", reason="none") == 1
    assert _point(points, names.RECALL_TURNS, scenario="slow_with_tools", delivered="both", reason="none") == 1
    assert _point(points, names.RECALL_TURN_WAIT_DURATION, policy="tiered", scenario="slow_with_tools") == (1, 0.002)
    assert _only(points, names.RECALL_ACTIVE) == 0


def test_the_time_until_notes_were_there_is_measured_from_the_question_of_the_first_send(make_metrics: Make) -> None:
    """What the recall's end says of it is measured, 0 as well; nothing if no notes ever came."""
    ready = names.RECALL_READY_DURATION.name
    came_later = _feed(make_metrics(), tool_free_turn())
    never_came = [
        replace(event, ready_seconds=None) if isinstance(event, RecallClosed) else event for event in tool_free_turn()
    ]

    assert _only(_feed(make_metrics(), golden_turn()), names.RECALL_READY_DURATION) == (1, 0.0)
    assert [(count, round(total, 6)) for count, total in came_later[ready].values()] == [(1, 0.048)]
    assert ready not in _feed(make_metrics(), never_came)


def test_what_went_wrong_is_counted_with_its_reason(make_metrics: Make) -> None:
    """The unlucky turn: an overrun, a rollback, a skip, a late result, a failed call, a failed follow-up."""
    points = _feed(make_metrics(), unlucky_turn())

    assert _point(points, names.RECALL_WAIT_OVERRUNS, policy="tiered") == 1
    assert _point(points, names.RECALL_ROLLED_BACK, point="initial", cause="refused") == 1
    assert _point(points, names.RECALL_SKIPPED_DELIVERIES, point="initial", reason="not_settled") == 1
    assert _point(points, names.RECALL_LATE_RESULTS, policy="tiered") == 1
    assert _point(points, names.RECALL_OUTCOMES, outcome="discarded", reason="no_safe_delivery_point") == 1
    assert _point(points, names.RECALL_TURNS, scenario="not_sent", delivered="none") == 1
    assert _only(points, names.TURN_POST_FAILURES) == 1
    failed = {"recallscope.status": "failed", "error.type": "connection_error"}
    assert _point(points, names.INFERENCE_DURATION, **failed) == (1, 1.8)


def test_a_selection_that_was_passed_over_or_failed_is_counted_with_its_reason(make_metrics: Make) -> None:
    """Whatever stood in for the selector, its share of the recalls can be read off: what failed carries its trace."""
    passed_over = lexical_turn(number=1, at=AT, not_asked=NotAsked.EXACT_TITLE)
    failed = lexical_turn(number=2, at=AT, error=Reason.SELECTOR_TIMEOUT)
    points = _feed(make_metrics(), [*passed_over, *failed])

    assert _only(points, names.RECALL_REFINEMENTS_SKIPPED) == 1
    assert _point(points, names.RECALL_REFINEMENTS_SKIPPED, policy="tiered", reason="exact_title") == 1
    assert _only(points, names.RECALL_REFINEMENTS_FAILED) == 1
    assert _point(points, names.RECALL_REFINEMENTS_FAILED, policy="tiered", reason="selector_timeout") == 1


def test_an_overrun_is_longer_than_ceiling_and_five_milliseconds(make_metrics: Make) -> None:
    """A wait of 105 ms under a ceiling of 100 ms is none, whatever ended it; 106 ms is one."""
    waited = next(event for event in golden_turn() if isinstance(event, RecallWaited))
    metrics = make_metrics(policies=(PolicyName.TIERED,))

    assert _only(_feed(metrics, [replace(waited, waited=0.105)]), names.RECALL_WAIT_OVERRUNS) == 0
    assert _only(_feed(metrics, [replace(waited, waited=0.106)]), names.RECALL_WAIT_OVERRUNS) == 1


def test_model_calls_are_measured_by_purpose_with_their_tokens(make_metrics: Make) -> None:
    """Selector and main model stand apart; tokens are text; only streamed calls have a first chunk."""
    points = _feed(make_metrics(), golden_turn())

    assert _point(points, names.INFERENCE_DURATION, **{"recallscope.purpose": "selector"}) == (1, 0.885)
    assert _point(points, names.INFERENCE_DURATION, **{"recallscope.purpose": "main"}) == (2, 2.4)
    assert _only(points, names.INFERENCE_FIRST_CHUNK) == (2, 0.8)
    text = {"recallscope.purpose": "main", "gen_ai.token.modality": "text"}
    assert _point(points, names.INFERENCE_INPUT_TOKENS, **text) == 420
    assert _point(points, names.INFERENCE_OUTPUT_TOKENS, **text) == 52
    assert _point(points, names.INFERENCE_CACHE_READ_TOKENS, **text) == 40
    assert _point(points, names.EXECUTE_TOOL_DURATION, **{"gen_ai.tool.name": "read_file"}) == (1, 0.5)


def test_error_type_stands_on_failures_only(make_metrics: Make) -> None:
    """A call that was answered has no `error.type` label."""
    points = _feed(make_metrics(), golden_turn())

    assert all("error.type" not in dict(key) for key in points[names.INFERENCE_DURATION.name])


def test_active_turns_recalls_and_sessions_rise_and_fall(make_metrics: Make) -> None:
    """While a turn runs one of each is active, and its age is told."""
    metrics = make_metrics()
    session = next(event for event in golden_process() if isinstance(event, SessionOpened))
    during = _feed(metrics, [session, *golden_turn()[:2]])
    after = _feed(metrics, [*golden_turn()[2:], golden_process()[-1]])
    active = (names.TURN_ACTIVE, names.RECALL_ACTIVE, names.SESSION_ACTIVE)

    assert [_only(during, metric) for metric in active] == [1, 1, 1]
    assert _only(during, names.TURN_OLDEST_AGE) == 100
    assert [_only(after, metric) for metric in active] == [0, 0, 0]
    assert _only(after, names.TURN_OLDEST_AGE) == 0


def test_the_catalog_tells_its_size_and_its_last_sync_on_the_wall(make_metrics: Make) -> None:
    """Notes and time are gauges by scope, the duration a histogram."""
    points = _feed(make_metrics(), golden_process()[:2])

    assert _point(points, names.CATALOG_NOTES, scope="project") == 42
    assert _point(points, names.CATALOG_LAST_SYNC, scope="project") == WALL
    assert _point(points, names.CATALOG_SYNC_DURATION, scope="project") == (1, 0.02)


def test_counters_of_ratios_start_at_zero_for_the_policies_in_force(make_metrics: Make) -> None:
    """Before the first event the series exist, for these policies only; `off` has none."""
    points = make_metrics(policies=(PolicyName.TIERED, PolicyName.OFF)).points()

    assert points[names.RECALL_STARTED.name] == {(("policy", "tiered"),): 0}
    assert points[names.RECALL_WAIT_OVERRUNS.name] == {(("policy", "tiered"),): 0}
    turns = points[names.RECALL_TURNS.name]
    assert set(turns.values()) == {0}
    assert {dict(key)["policy"] for key in turns} == {"tiered"}
    assert len(turns) < 60


def test_labels_are_those_that_are_documented(make_metrics: Make) -> None:
    """No point of a golden process carries a label that its metric does not list."""
    points = _feed(make_metrics(policies=(PolicyName.TIERED,)), golden_process())
    documented = {metric.name: set(metric.labels) for metric in names.METRICS}

    for name, found in points.items():
        assert {label for key in found for label, _ in key} <= documented[name]


def test_every_metric_of_turn_recall_model_tool_and_memory_is_emitted(make_metrics: Make) -> None:
    """A golden process has all of them; only telemetry's own come from elsewhere."""
    points = _feed(make_metrics(), golden_process())
    elsewhere = {
        names.LOOP_LAG.name,
        names.TELEMETRY_DROPPED.name,
        names.TELEMETRY_EXPORTED.name,
        names.TELEMETRY_UNCLOSED.name,
        names.OBSERVER_FAILURES.name,
    }

    assert set(points) == {metric.name for metric in names.METRICS} - elsewhere


def test_ids_and_text_never_become_labels(make_metrics: Make) -> None:
    """No label value of a golden process is an id of a session, turn, note or call."""
    points = _feed(make_metrics(), golden_process())
    values = {value for found in points.values() for key in found for _, value in key}

    assert values & {"s", "s.1", "s.2", "n1", "n2", "n3", "call_1", "resp-s-1-send1"} == set()


def test_finishes_without_a_start_are_ignored(make_metrics: Make) -> None:
    """An observer that came late measures nothing that it cannot measure."""
    finishes = [event for event in golden_turn() if isinstance(event, TurnFinished | ToolFinished)]
    points = _feed(make_metrics(), finishes)

    assert names.TURN_DURATION.name not in points
    assert names.EXECUTE_TOOL_DURATION.name not in points


def test_many_turns_add_up(make_metrics: Make) -> None:
    """Ten turns are ten observations."""
    metrics = make_metrics()
    points = _feed(metrics, [event for number in range(10) for event in tool_free_turn(number=number, at=AT + number)])

    assert _only(points, names.TURN_DURATION) == (10, 10.0)
    assert _point(points, names.RECALL_TURNS, scenario="settled_before_send", delivered="initial") == 10
