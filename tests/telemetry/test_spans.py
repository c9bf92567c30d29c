"""Spans drawn from events: the tree, the values, and what must never happen."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import SpanKind, StatusCode, get_current_span

from recallscope.runtime.events import (
    Cause,
    Ended,
    Event,
    ModelCallStarted,
    OpId,
    Outcome,
    Point,
    PolicyName,
    Purpose,
    Reason,
    RecallClosed,
    RecallRolledBack,
    RecallSettled,
    RecallSkipped,
    RecallWaited,
    Status,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnOutcome,
    TurnStarted,
)
from recallscope.telemetry import names
from recallscope.telemetry.contract import EVENT_ATTRIBUTES, SPAN_ATTRIBUTES
from recallscope.telemetry.spans import SpanObserver
from recallscope.telemetry.testing.golden import AT, WALL, golden_process, golden_turn, unlucky_turn

TURN, RECALL = OpId("s-1-turn"), OpId("s-1-recall")


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


def test_a_failed_turn_is_an_error_and_a_cancelled_one_is_not(spans: Any) -> None:
    """ERROR with `error.type` is for failures; a cancellation leaves the status unset and names its cause."""
    failed = spans.feed(unlucky_turn())
    cancelled = spans.feed(
        [
            *golden_turn()[:1],
            TurnFinished(
                op=TURN,
                at=AT + 1,
                status=Status.CANCELLED,
                cause=Cause.USER_CANCEL,
                outcome=TurnOutcome.CANCELLED,
                sends=0,
                phases=(),
            ),
        ]
    )["invoke_agent main #2"]

    assert failed["invoke_agent main"].status.status_code is StatusCode.ERROR
    assert _attributes(failed["invoke_agent main"])["error.type"] == "connection_error"
    assert failed["search_memory"].status.status_code is StatusCode.UNSET
    assert cancelled.status.status_code is StatusCode.UNSET
    assert "error.type" not in _attributes(cancelled)
    assert _attributes(cancelled)["recallscope.turn.outcome"] == "cancelled"
    assert _attributes(cancelled)["recallscope.turn.cause"] == "user_cancel"


def test_a_cancelled_recall_does_not_look_like_a_success(spans: Any) -> None:
    """A recall that is closed before it settled has a cancelled event with reason and cause, and no error."""
    recall = spans.feed([*golden_turn()[:3], _closed(Outcome.DISCARDED, Reason.ABORT, Cause.USER_CANCEL)])[
        "search_memory"
    ]

    assert _events(recall)[-1] == (
        "recallscope.recall.cancelled",
        {"recallscope.recall.reason": "abort", "recallscope.recall.cause": "user_cancel"},
    )
    assert recall.status.status_code is StatusCode.UNSET
    assert _attributes(recall)["recallscope.recall.outcome"] == "discarded"


def test_a_recall_whose_store_failed_is_an_error(spans: Any) -> None:
    """Unavailable is not empty: the outcome `failed` sets the status and says which part failed."""
    closed = _closed(Outcome.FAILED, Reason.STORE_UNAVAILABLE, Cause.TURN_END, settled=0.01)
    recall = spans.feed([*golden_turn()[:2], closed])["search_memory"]

    assert recall.status.status_code is StatusCode.ERROR
    assert _attributes(recall)["error.type"] == "store_unavailable"
    assert [name for name, _ in _events(recall)] == ["recallscope.recall.begin"]


def test_a_failed_tool_is_an_error_and_a_cancelled_selector_is_not(spans: Any) -> None:
    """Work says `failed` or `cancelled`, and nothing when all went well."""
    tool, selector = OpId("t"), OpId("c")
    found = spans.feed(
        [
            *golden_turn()[:2],
            ToolStarted(op=tool, at=AT, parent=TURN, tool="glob", call_id="1"),
            ToolFinished(op=tool, at=AT + 1, status=Status.FAILED, error_type="OSError"),
            _selector_call(selector),
            _selector_call(selector).finished(_ended(Status.CANCELLED)),
        ]
    )

    assert found["execute_tool glob"].status.status_code is StatusCode.ERROR
    assert _attributes(found["execute_tool glob"])["error.type"] == "OSError"
    assert found["chat small"].status.status_code is StatusCode.UNSET
    assert _attributes(found["chat small"])["recallscope.status"] == "cancelled"
    assert _attributes(found["chat small"])["recallscope.cause"] == "superseded"


def test_a_hundred_and_twenty_nine_tool_rounds_still_show_begin(spans: Any) -> None:
    """However many deliveries are skipped or rolled back, a recall has at most 10 events, begin first."""
    rounds: list[Event] = []
    for number in range(129):
        at = AT + 1 + number
        rounds += [
            RecallSkipped(
                op=RECALL, at=at, policy=PolicyName.TIERED, point=Point.TOOL_RESULT, reason=Reason.NOT_SETTLED
            ),
            replace(_event(unlucky_turn(), RecallRolledBack), op=RECALL, at=at),
            replace(_event(golden_turn(), RecallSettled), op=RECALL, at=at),
        ]
    recall = spans.feed([*golden_turn()[:-2], *rounds, *golden_turn()[-2:]])["search_memory"]

    assert len(recall.events) <= 10
    assert recall.events[0].name == "recallscope.recall.begin"


def test_an_incoming_traceparent_is_continued(spans: Any) -> None:
    """A turn with a `traceparent` belongs to that trace, below that span."""
    turn = spans.feed(unlucky_turn())["invoke_agent main"]

    assert f"{turn.context.trace_id:032x}" == "0af7651916cd43dd8448eb211c80319c"
    assert f"{turn.parent.span_id:016x}" == "b7ad6b7169203331"
    assert turn.parent.is_remote


def test_a_broken_traceparent_begins_a_trace_of_its_own(spans: Any) -> None:
    """What is no `traceparent` is ignored."""
    events = [
        replace(event, traceparent="00-zz") if isinstance(event, TurnStarted) else event for event in golden_turn()
    ]

    assert spans.feed(events)["invoke_agent main"].parent is None


def test_trace_headers_name_the_span_from_its_start_on(spans: Any) -> None:
    """Headers are there as soon as the work has started, and name its span; unknown work has none."""
    events = golden_turn()
    spans.feed(events[:2])
    early = spans.observer.trace_headers(RECALL)
    found = spans.feed(events[2:])
    context = found["search_memory"].context

    assert early == {"traceparent": f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}"}
    assert spans.observer.trace_headers(RECALL) == early
    assert spans.observer.trace_headers(OpId("unknown")) == {}


def test_the_context_of_an_ended_span_is_kept_for_exemplars(spans: Any) -> None:
    """After its end a span's context still names it; unknown work has an explicit empty context."""
    found = spans.feed(golden_turn())
    kept = get_current_span(spans.observer.context_of(TURN)).get_span_context()

    assert kept.span_id == found["invoke_agent main"].context.span_id
    assert not get_current_span(spans.observer.context_of(OpId("unknown"))).get_span_context().is_valid


def test_work_that_begins_after_its_parent_ended_is_linked(spans: Any) -> None:
    """Such work outlives the turn: a root with a link, so that no span ends after its parent."""
    tool = OpId("late")
    found = spans.feed(
        [
            *golden_turn(),
            ToolStarted(op=tool, at=AT + 5, parent=TURN, tool="glob", call_id="1"),
            ToolFinished(op=tool, at=AT + 6, status=Status.OK),
        ]
    )
    late, turn = found["execute_tool glob"], found["invoke_agent main"]

    assert late.parent is None
    assert [link.context.span_id for link in late.links] == [turn.context.span_id]


def test_children_that_are_open_end_with_their_parent_and_are_counted(spans: Any) -> None:
    """A turn that ends takes its recall and the selector with it, at its own end."""
    events = [event for event in golden_turn() if not isinstance(event, RecallClosed)]
    found = spans.feed(events)

    assert found["search_memory"].end_time == found["invoke_agent main"].end_time
    assert spans.observer.unclosed == 1


def test_what_comes_after_the_end_is_not_added(spans: Any, caplog: Any) -> None:
    """Late events of an ended recall change nothing, and the SDK has nothing to warn of."""
    before = spans.feed(golden_turn())
    after = spans.feed(golden_turn()[1:-1])

    assert len(before) == len(after)
    assert caplog.records == []


def test_an_overrun_is_marked_at_once(spans: Any) -> None:
    """A wait over ceiling and tolerance gets the turn its marker span before the turn ends."""
    waited = replace(_event(golden_turn(), RecallWaited), at=AT + 0.2, waited=0.106)
    found = spans.feed([*golden_turn()[:2], waited])

    assert list(found) == ["recallscope.turn.mark"]
    assert _attributes(found["recallscope.turn.mark"]) == {
        "recallscope.turn.keep": True,
        "recallscope.turn.keep.reason": "overrun",
        "recallscope.turn.id": "s.1",
        "gen_ai.conversation.id": "s",
    }


def test_a_wait_within_the_tolerance_is_not_marked(spans: Any) -> None:
    """105 ms is what a ceiling of 100 ms allows."""
    waited = replace(_event(golden_turn(), RecallWaited), at=AT + 0.2, waited=0.105)

    assert spans.feed([*golden_turn()[:2], waited]) == {}


def test_a_slow_turn_is_marked_by_the_tick_once(spans: Any) -> None:
    """The marker comes when the turn passes 10.24 s, not when it ends, and only once."""
    spans.feed(golden_turn()[:1])
    spans.observer.tick(AT + 10.23)
    in_time = spans.finished()
    spans.observer.tick(AT + 10.25)
    spans.observer.tick(AT + 11)
    late = spans.finished()

    assert in_time == {}
    assert [_attributes(span)["recallscope.turn.keep.reason"] for span in late.values()] == ["slow"]


def test_a_turn_that_fails_or_misses_is_marked_for_the_first_reason(spans: Any) -> None:
    """An unlucky turn overran first: one marker says so, and the root repeats it."""
    found = spans.feed(unlucky_turn())

    assert [name for name in found if name.startswith("recallscope")] == ["recallscope.turn.mark"]
    assert _attributes(found["invoke_agent main"])["recallscope.turn.keep.reason"] == "overrun"


def test_a_miss_is_marked(spans: Any) -> None:
    """Something was selected and nothing delivered."""
    closed = _closed(Outcome.DISCARDED, Reason.NO_SAFE_DELIVERY_POINT, Cause.TURN_END, settled=0.9, selected=2)
    found = spans.feed([*golden_turn()[:2], closed])

    assert _attributes(found["recallscope.turn.mark"])["recallscope.turn.keep.reason"] == "miss"


def test_an_ordinary_turn_is_not_marked(spans: Any) -> None:
    """No marker, and no `keep` on the root."""
    found = spans.feed(golden_turn())

    assert "recallscope.turn.mark" not in found
    assert names.TURN_KEEP not in _attributes(found["invoke_agent main"])


def test_closing_ends_what_is_open(spans: Any) -> None:
    """At the end of a process open spans are recorded too."""
    spans.feed(golden_turn()[:4])
    spans.observer.close(AT + 2)

    assert sorted(spans.finished()) == ["chat small", "invoke_agent main", "search_memory"]


def test_an_unsampled_process_makes_headers_but_records_nothing() -> None:
    """With sampling off no span is recorded, and what asks for headers still gets them."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    observer = SpanObserver(provider.get_tracer("test"))
    for event in golden_turn():
        observer(event)

    assert exporter.get_finished_spans() == ()
    assert int(observer.trace_headers(TURN)["traceparent"][-2:], 16) & 1 == 0


STREAM = [*golden_turn(), *unlucky_turn(), *golden_turn(number=3, at=AT + 2, session="z")]


@settings(max_examples=120, deadline=None)
@given(order=st.permutations(range(len(STREAM))), length=st.integers(0, len(STREAM)))
def test_any_order_of_events_leaves_no_span_ending_after_its_parent(order: Sequence[int], length: int) -> None:
    """Whatever arrives in whatever order, nothing raises and spans stay inside their parents."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    observer = SpanObserver(provider.get_tracer("test"))
    for index in order[:length]:
        observer(STREAM[index])
    observer.close(AT + 100)
    found = {span.context.span_id: span for span in exporter.get_finished_spans() if span.context is not None}

    for span in found.values():
        assert span.start_time is not None
        assert span.end_time is not None
        assert span.start_time <= span.end_time
        above = found.get(span.parent.span_id) if span.parent is not None else None
        if above is not None and above.end_time is not None:
            assert span.end_time <= above.end_time
        assert len(span.events) <= 10


def test_prefixes_of_a_stream_never_raise(make_spans: Callable[..., Any]) -> None:
    """A process may end after any event."""
    for length in range(len(STREAM)):
        spans = make_spans()
        spans.feed(STREAM[:length])
        spans.observer.close(AT + 100)


def _event(events: Sequence[Event], kind: type[Any]) -> Any:
    return next(event for event in events if isinstance(event, kind))


def _closed(
    outcome: Outcome, reason: Reason, cause: Cause, *, settled: float | None = None, selected: int = 0
) -> RecallClosed:
    closed: RecallClosed = _event(golden_turn(), RecallClosed)
    return replace(
        closed,
        outcome=outcome,
        reason=reason,
        close_reason=cause.reason,
        cause=cause,
        settled_seconds=settled,
        notes_selected=selected,
        notes_delivered=0,
    )


def _selector_call(op: OpId) -> ModelCallStarted:
    return ModelCallStarted(
        op=op,
        at=AT,
        parent=RECALL,
        purpose=Purpose.SELECTOR,
        model="small",
        provider="openai",
        address="127.0.0.1",
        port=1,
        streamed=False,
    )


def _ended(status: Status) -> Any:
    return Ended(at=AT + 0.5, status=status, cause=Cause.SUPERSEDED)
