"""Where the time went: the parts of any turn add up to it."""

import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from recallscope.runtime.events import EndedBy, Point, PolicyName, Purpose, TurnOutcome, TurnPhase
from recallscope.telemetry.explain.partition import partition
from recallscope.telemetry.explain.sentences import sentences
from recallscope.telemetry.explain.verdict import judge
from recallscope.telemetry.explain.waterfall import waterfall
from recallscope.telemetry.read.recorded import (
    FailedAttempt,
    ModelCall,
    Record,
    RecordedRecall,
    RecordedTurn,
    ToolCall,
    Wait,
)

MOMENTS = st.floats(0, 100)
CALLS: st.SearchStrategy[ModelCall] = st.builds(
    ModelCall,
    purpose=st.sampled_from(Purpose),
    model=st.just("m"),
    started=MOMENTS,
    ended=st.none() | MOMENTS,
    failed=st.lists(
        st.builds(
            FailedAttempt, at=MOMENTS, attempt=st.just(1), error_type=st.just("429"), retry_in=st.none() | MOMENTS
        ),
        max_size=2,
    ).map(tuple),
)
TOOLS: st.SearchStrategy[ToolCall] = st.builds(ToolCall, tool=st.just("t"), started=MOMENTS, ended=st.none() | MOMENTS)
WAITS: st.SearchStrategy[Wait] = st.builds(
    Wait,
    point=st.sampled_from(Point),
    asked_at=MOMENTS,
    waited=MOMENTS,
    ended_by=st.sampled_from(EndedBy),
    ceiling=st.just(0.1),
)
RECALLS: st.SearchStrategy[RecordedRecall] = st.builds(
    RecordedRecall,
    begun=MOMENTS,
    policy=st.sampled_from(PolicyName),
    ceiling=st.just(0.1),
    waits=st.lists(WAITS, max_size=2).map(tuple),
)
COMMON: dict[str, st.SearchStrategy[Any]] = {
    "record": st.sampled_from(Record),
    "turn": st.just("s.1"),
    "session": st.just("s"),
    "wall": st.just(1.8e9),
    "last_seen": MOMENTS,
    "whole": st.booleans(),
    "recall": st.none() | RECALLS,
    "calls": st.lists(CALLS, max_size=3).map(tuple),
    "tools": st.lists(TOOLS, max_size=3).map(tuple),
}
RUNNING: st.SearchStrategy[RecordedTurn] = st.builds(RecordedTurn, **COMMON)
PHASES = st.dictionaries(st.sampled_from(TurnPhase), st.floats(0, 100), max_size=5)


@st.composite
def ended_turns(draw: st.DrawFn) -> RecordedTurn:
    """Draw turns that ended, whose phases add up to their wall time."""
    phases = draw(PHASES)
    seconds = sum(phases.values())
    return draw(
        st.builds(
            RecordedTurn,
            **COMMON,
            seconds=st.just(seconds),
            outcome=st.sampled_from(TurnOutcome),
            phases=st.just(phases),
        )
    )


@given(ended_turns() | RUNNING)
def test_the_parts_add_up(turn: RecordedTurn) -> None:
    """The seconds of the parts are those of the turn, their shares are one, the largest stands first."""
    parts = partition(turn)
    seconds = [part.seconds for part in parts]

    assert math.isclose(sum(seconds), turn.length, abs_tol=1e-5)
    assert seconds == sorted(seconds, reverse=True)
    assert not parts or math.isclose(sum(part.share for part in parts), 1.0)


@given(ended_turns() | RUNNING)
def test_any_turn_is_explained(turn: RecordedTurn) -> None:
    """Whatever is recorded, there is a verdict in four sentences, and a row for the turn."""
    said = sentences(turn, judge(turn))

    assert [text.endswith(".") for _, text in said.labelled] == [True] * 4
    assert waterfall(turn)[0].label == "turn s.1"
