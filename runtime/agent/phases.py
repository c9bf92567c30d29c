"""Where a turn's wall time goes: a partition of it, without gap or overlap."""

from collections.abc import Generator
from contextlib import contextmanager

from recallscope.runtime.observe import Clock
from recallscope.runtime.terms import TurnPhase

__all__ = ["PhaseClock"]


class PhaseClock:
    """Adds up the seconds of each phase from `started_at` on; exactly one phase runs at any time."""

    def __init__(self, clock: Clock, *, started_at: float, first: TurnPhase) -> None:
        self._clock = clock
        self._current = first
        self._since = started_at
        self._seconds: dict[TurnPhase, float] = {}

    def enter(self, phase: TurnPhase) -> None:
        """End the current phase now and begin `phase`."""
        self._advance(phase, self._clock())

    @contextmanager
    def during(self, phase: TurnPhase) -> Generator[None]:
        """Run the block in `phase` and return to the phase of before, however the block ends."""
        before = self._current
        self.enter(phase)
        try:
            yield
        finally:
            self.enter(before)

    def seconds(self, *, at: float) -> tuple[tuple[TurnPhase, float], ...]:
        """Return the seconds of each phase that was entered, up to the moment `at`, in the order of `TurnPhase`."""
        self._advance(self._current, at)
        return tuple((phase, self._seconds[phase]) for phase in TurnPhase if phase in self._seconds)

    def _advance(self, phase: TurnPhase, now: float) -> None:
        self._seconds[self._current] = self._seconds.get(self._current, 0.0) + now - self._since
        self._current, self._since = phase, now
