"""Where a turn's wall time goes: a partition of it."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallscope.runtime.agent.phases import PhaseClock
from recallscope.runtime.terms import TurnPhase

EIGHTHS = st.integers(0, 80).map(lambda eighths: eighths / 8)
STEPS = st.lists(st.tuples(EIGHTHS, st.sampled_from(TurnPhase), st.booleans()), max_size=20)


class _Watch:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def _nest(phases: PhaseClock, watch: _Watch, steps: Iterator[tuple[float, TurnPhase, bool]]) -> None:
    for seconds, phase, inside in steps:
        watch.now += seconds
        if not inside:
            phases.enter(phase)
            continue
        with phases.during(phase):
            _nest(phases, watch, steps)
            watch.now += seconds


@given(STEPS, EIGHTHS)
def test_the_phases_add_up_to_the_wall_time(steps: list[tuple[float, TurnPhase, bool]], rest: float) -> None:
    """However phases follow and enclose each other, there is no gap and no overlap."""
    watch = _Watch()
    phases = PhaseClock(watch, started_at=100.0, first=TurnPhase.QUEUE)
    _nest(phases, watch, iter(steps))
    end = watch.now + rest
    seconds = phases.seconds(at=end)

    assert sum(each for _, each in seconds) == end - 100.0
    assert [phase for phase, _ in seconds] == [phase for phase in TurnPhase if phase in dict(seconds)]
    assert all(each >= 0 for _, each in seconds)


def test_a_block_returns_to_the_phase_of_before() -> None:
    """A phase around a block ends with it, also when the block fails."""
    watch = _Watch()
    phases = PhaseClock(watch, started_at=100.0, first=TurnPhase.MODEL)

    def back_off() -> None:
        with phases.during(TurnPhase.BACKOFF):
            watch.now += 2
            raise OSError("broken")

    with pytest.raises(OSError, match="broken"):
        back_off()
    watch.now += 1

    assert phases.seconds(at=104.0) == ((TurnPhase.MODEL, 2.0), (TurnPhase.BACKOFF, 2.0))
