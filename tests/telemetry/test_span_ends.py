"""How spans end: failed, cancelled, late, out of order, and which are marked for the collector to keep."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import StatusCode, get_current_span

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
from recallscope.telemetry.spans import SpanObserver
from recallscope.telemetry.testing.golden import AT, golden_turn, unlucky_turn

TURN, RECALL = OpId("s-1-turn"), OpId("s-1-recall")


def _attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def _events(span: ReadableSpan) -> list[tuple[str, dict[str, Any]]]:
    return [(event.name, dict(event.attributes or {})) for event in span.events]


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
