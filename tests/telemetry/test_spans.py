"""Spans drawn from events: the tree, its times, and every attribute and event."""

from typing import Any

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind, StatusCode

from recallscope.telemetry import names
from recallscope.telemetry.contract import EVENT_ATTRIBUTES, SPAN_ATTRIBUTES
from recallscope.telemetry.testing.golden import WALL, golden_process, golden_turn


def _ns(seconds: float) -> int:
    return round((WALL + seconds) * 1e9)


def _attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def _events(span: ReadableSpan) -> list[tuple[str, dict[str, Any]]]:
    return [(event.name, dict(event.attributes or {})) for event in span.events]


def _parents(found: dict[str, ReadableSpan]) -> dict[str, str | None]:
    by_id = {span.context.span_id: name for name, span in found.items() if span.context is not None}
    return {name: by_id.get(span.parent.span_id) if span.parent is not None else None for name, span in found.items()}


def test_a_golden_turn_is_one_tree(spans: Any) -> None:
    """The turn holds the recall, its sends and its tool; the selector stands below the recall."""
    found = spans.feed(golden_turn())

    assert _parents(found) == {
        "invoke_agent main": None,
        "search_memory": "invoke_agent main",
        "chat small": "search_memory",
        "chat big": "invoke_agent main",
        "chat big #2": "invoke_agent main",
        "execute_tool read_file": "invoke_agent main",
    }
    assert len({span.context.trace_id for span in found.values()}) == 1
    assert {name: span.kind for name, span in found.items() if span.kind is not SpanKind.INTERNAL} == dict.fromkeys(
        ("chat small", "chat big", "chat big #2"), SpanKind.CLIENT
    )


def test_times_are_those_of_the_events(spans: Any) -> None:
    """Start and end are the events' times on the wall that the process stated."""
    found = spans.feed(golden_turn())

    for name, start, end in (("invoke_agent main", 0.0, 3.0), ("search_memory", 0.01, 2.995), ("chat big", 0.06, 0.86)):
        assert abs(found[name].start_time - _ns(start)) < 1_000
        assert abs(found[name].end_time - _ns(end)) < 1_000


def test_the_turn_says_what_became_of_it(spans: Any) -> None:
    """The root carries who, what, how it ended and where its time went."""
    turn = spans.feed(golden_turn())["invoke_agent main"]

    assert _attributes(turn) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "main",
        "gen_ai.conversation.id": "s",
        "recallscope.turn.id": "s.1",
        "recallscope.turn.origin": "prompt",
        "recallscope.turn.policy": "tiered",
        "recallscope.turn.outcome": "end_turn",
        "recallscope.turn.sends": 2,
        "recallscope.turn.scenario": "slow_with_tools",
        "recallscope.turn.delivered": "both",
        "recallscope.turn.reason": "none",
        "recallscope.turn.waited.seconds": 0.002,
        "recallscope.turn.time_to_first_token.seconds": 0.37,
        "recallscope.turn.phase.queue.seconds": 0.005,
        "recallscope.turn.phase.prepare.seconds": 0.055,
        "recallscope.turn.phase.recall_wait.seconds": 0.002,
        "recallscope.turn.phase.model.seconds": 2.4,
        "recallscope.turn.phase.tool.seconds": 0.5,
        "recallscope.turn.phase.other.seconds": 0.038,
    } | {"recallscope.turn.time_to_first_token.seconds": _attributes(turn)[names.TURN_FIRST_TOKEN]}
    assert abs(_attributes(turn)[names.TURN_FIRST_TOKEN] - 0.37) < 1e-6
    assert turn.status.status_code is StatusCode.UNSET


def test_the_recall_says_its_verdict_in_attributes(spans: Any) -> None:
    """Whoever cannot query events finds the essentials as attributes."""
    recall = spans.feed(golden_turn())["search_memory"]

    assert _attributes(recall) == {
        "gen_ai.operation.name": "search_memory",
        "gen_ai.conversation.id": "s",
        "gen_ai.memory.record.count": 3,
        "recallscope.turn.id": "s.1",
        "recallscope.turn.scenario": "slow_with_tools",
        "recallscope.turn.delivered": "both",
        "recallscope.recall.policy": "tiered",
        "recallscope.recall.ceiling.seconds": 0.1,
        "recallscope.recall.outcome": "delivered",
        "recallscope.recall.reason": "none",
        "recallscope.recall.cause": "turn_end",
        "recallscope.recall.phases": "both",
        "recallscope.recall.strategy": "model",
        "recallscope.recall.delivery.points": ("initial", "tool_result"),
        "recallscope.recall.fast.seconds": 0.004,
        "recallscope.recall.settled.seconds": 0.908,
        "recallscope.recall.delivered.seconds": 0.35,
        "recallscope.recall.asked.seconds": 0.04,
        "recallscope.recall.wait.initial.seconds": 0.002,
        "recallscope.recall.wait.ended_by": "fast",
        "recallscope.recall.fast.notes": 2,
        "recallscope.recall.waited.seconds": 0.002,
        "recallscope.recall.notes.delivered": 3,
        "recallscope.recall.skips": 0,
        "recallscope.recall.rollbacks": 0,
        "recallscope.recall.partial": False,
    }


def test_the_recall_tells_its_life_in_events(spans: Any) -> None:
    """Begin, fast result, deliveries and settling stand in order, with their values; nothing was cancelled."""
    recall = spans.feed(golden_turn())["search_memory"]

    assert _events(recall) == [
        (
            "recallscope.recall.begin",
            {
                "recallscope.recall.policy": "tiered",
                "recallscope.recall.ceiling.seconds": 0.1,
                "recallscope.recall.catalog.notes": 42,
            },
        ),
        (
            "recallscope.recall.fast_result",
            {
                "recallscope.recall.notes": 2,
                "recallscope.recall.elapsed.seconds": 0.004,
                "recallscope.recall.partial": False,
                "recallscope.recall.sources": ("words",),
            },
        ),
        (
            "recallscope.recall.delivered",
            {
                "recallscope.recall.phase": "fast",
                "recallscope.recall.point": "initial",
                "recallscope.recall.notes": 2,
                "recallscope.recall.elapsed.seconds": 0.35,
                "recallscope.recall.waited.seconds": 0.002,
            },
        ),
        (
            "recallscope.recall.refined_settled",
            {
                "recallscope.recall.notes": 3,
                "recallscope.recall.strategy": "model",
                "recallscope.recall.elapsed.seconds": 0.908,
            },
        ),
        (
            "recallscope.recall.delivered",
            {
                "recallscope.recall.phase": "refined",
                "recallscope.recall.point": "tool_result",
                "recallscope.recall.notes": 1,
                "recallscope.recall.elapsed.seconds": 1.88,
                "recallscope.recall.waited.seconds": 0.0,
            },
        ),
    ]


def test_a_send_says_what_was_asked_and_answered(spans: Any) -> None:
    """The model call carries the conventions' attributes and our send."""
    send = spans.feed(golden_turn())["chat big"]

    assert _attributes(send) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "big",
        "gen_ai.request.stream": True,
        "gen_ai.conversation.id": "s",
        "server.address": "127.0.0.1",
        "server.port": 8080,
        "recallscope.purpose": "main",
        "recallscope.send.index": 1,
        "recallscope.send.point": "initial",
        "recallscope.send.attempts": 1,
        "recallscope.send.notes": 2,
        "gen_ai.response.time_to_first_chunk": 0.3,
        "gen_ai.usage.input_tokens": 120,
        "gen_ai.usage.output_tokens": 12,
        "gen_ai.usage.cache_read.input_tokens": 40,
        "gen_ai.response.model": "big-1",
        "gen_ai.response.id": "resp-s-1-send1",
        "gen_ai.response.finish_reasons": ("tool_calls",),
    }


def test_every_documented_span_event_and_attribute_is_emitted_and_no_other(spans: Any) -> None:
    """A golden process emits exactly what the contract lists, but for values that only other fates have."""
    found = spans.feed(golden_process())
    seen: dict[str, set[str]] = {name: set() for name in SPAN_ATTRIBUTES}
    seen_events: dict[str, set[str]] = {}
    for span in found.values():
        seen[span.name.split(" ")[0]] |= {_generic(name) for name in span.attributes or ()}
        for event in span.events:
            seen_events.setdefault(event.name, set()).update(event.attributes or ())

    for name, attributes in SPAN_ATTRIBUTES.items():
        rest = set(attributes) - seen[name]
        assert seen[name] <= set(attributes)
        assert rest <= {names.STATUS, names.STATUS_CAUSE, names.ERROR_TYPE}
    assert set(seen_events) == set(EVENT_ATTRIBUTES)
    for name, attributes in EVENT_ATTRIBUTES.items():
        assert set(attributes) == seen_events[name]


def _generic(name: str) -> str:
    return names.TURN_PHASES if name.startswith("recallscope.turn.phase.") else name
