"""What `recallscope load` says on stderr while it plays."""

import time

from recallscope.runtime.cli.output import complain
from recallscope.runtime.lab.load import BEHIND_SECONDS, LoadPlan, LoadProgress, LoadResult, Otherwise

__all__ = ["Told"]

TOLD_AT_ONCE = 10
PROGRESS_SECONDS = 10.0
BEHIND_TURNS, BEHIND_SHARE = 10, 0.05
"""So many turns, and such a share of all, must have begun late before a rate is called one that is not kept."""


class Told:
    """What is said on stderr: where the metrics are, how it goes, which turns ended otherwise, and the sum."""

    def __init__(self, plan: LoadPlan) -> None:
        self._plan = plan
        self._next = time.monotonic() + PROGRESS_SECONDS
        self._otherwise = 0
        self._behind_told = False

    def begin(self, url: str | None) -> None:
        """Say what is played, and where its metrics are (None: nowhere)."""
        arms = self._plan.split.arms
        split = arms[0].policy if len(arms) == 1 else ",".join(f"{arm.policy}:{arm.weight}" for arm in arms)
        where = "without /metrics" if url is None else f"metrics at {url}"
        complain(f"playing {_rate(self._plan.rate)} under {split}, seed {self._plan.seed}, {where}")

    def progress(self, progress: LoadProgress) -> None:
        """Say once that the machine does not keep the rate, and every 10 s how it goes."""
        begun = progress.ended + progress.active
        if not self._behind_told and progress.behind >= max(BEHIND_TURNS, BEHIND_SHARE * begun):
            self._behind_told = True
            complain(
                f"this machine does not keep {_rate(self._plan.rate)}: {progress.behind} of {_turns(begun)} began more "
                f"than {BEHIND_SECONDS:g} s late, {progress.most_behind:.1f} s at most, so what is measured is a busy "
                "machine; take a lower --rate"
            )
        now = time.monotonic()
        if now >= self._next:
            self._next = now + PROGRESS_SECONDS
            complain(f"{_turns(progress.ended)} ended, {progress.active} under way{_faults(progress)}")

    def otherwise(self, other: Otherwise) -> None:
        """Say which turn ended otherwise than scripted, of the first ten."""
        self._otherwise += 1
        if self._otherwise <= TOLD_AT_ONCE:
            complain(str(other))
        elif self._otherwise == TOLD_AT_ONCE + 1:
            complain("more turns ended otherwise; from here on they are only counted")

    def end(self, result: LoadResult) -> None:
        """Say the sum."""
        rate = result.turns / result.seconds if result.seconds > 0 else 0.0
        cut = f", {result.cut} of them cancelled at the end" if result.cut else ""
        complain(f"played {_turns(result.turns)} in {result.seconds:.0f} s ({rate:.1f}/s){cut}{_faults(result)}")


def _faults(counts: LoadProgress | LoadResult) -> str:
    otherwise = f", {counts.otherwise} otherwise than scripted" if counts.otherwise else ""
    late = f", {counts.late} late (no room: --at-once)" if counts.late else ""
    behind = f", {counts.behind} begun up to {counts.most_behind:.1f} s late (busy: --rate)" if counts.behind else ""
    return otherwise + late + behind


def _turns(number: int) -> str:
    return "1 turn" if number == 1 else f"{number} turns"


def _rate(rate: float) -> str:
    return f"{rate:g} {'turn' if rate == 1 else 'turns'}/s"
