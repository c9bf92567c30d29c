"""The comparison of live traffic: what was counted, since when, under which ceilings, and what is not in the table."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from recallscope.runtime.lab.comparison import Comparison, compare_figures
from recallscope.runtime.lab.expectations import Verdict, live
from recallscope.runtime.lab.wording import count, seconds
from recallscope.runtime.terms import PolicyName, Scenario
from recallscope.telemetry import names
from recallscope.telemetry.queries import TABLE_SCENARIOS
from recallscope.telemetry.read.counts import Counts
from recallscope.telemetry.read.levels import FEW, LevelName, ServiceLevel, service_levels
from recallscope.telemetry.read.prometheus import Reading
from recallscope.telemetry.report.words import duration, instant, share

__all__ = ["LiveTraffic", "compare_counts", "hold_of", "reading_notes", "traffic_notes"]


NOT_TOLD = 2.0
"""So many turns, and one in a hundred, may end while a scrape collects: some of its metrics have them already."""


def compare_counts(
    counts: Counts,
    *,
    configured: float,
    policies: Sequence[PolicyName],
    scenarios: Sequence[Scenario] = TABLE_SCENARIOS,
) -> Comparison:
    """Compare what was counted of live traffic, each policy by the highest ceiling that its recalls had.

    `configured` (seconds) stands in where the traffic does not tell the ceiling of `tiered`.
    """
    ceilings = {policy: found.highest for policy, found in counts.ceilings.items()}
    ceilings.setdefault(PolicyName.TIERED, configured)
    return compare_figures(
        counts.figures, live(ceilings), ceiling=ceilings[PolicyName.TIERED], policies=policies, scenarios=scenarios
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveTraffic:
    """A comparison of what the job `job` counted, as `reading` has it from a Prometheus."""

    comparison: Comparison
    reading: Reading
    job: str

    @property
    def differs(self) -> bool:
        """Whether a cell is not as stated, or `tiered` held first sends more often than it promises."""
        hold = hold_of(self.reading.counts) if PolicyName.TIERED in self.comparison.policies else None
        return self.comparison.verdict is Verdict.DIFFERS or (hold is not None and hold.met is False)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know beside the table, in sentences."""
        return (*reading_notes(self.reading, self.job), *traffic_notes(self.reading.counts, self.comparison))

    def as_data(self) -> dict[str, Any]:
        """Return the comparison as plain data, and what it was read from; moments are seconds since 1970."""
        counts, reading = self.reading.counts, self.reading
        return self.comparison.as_data() | {
            "traffic": {
                "job": self.job,
                "asked_from": reading.asked,
                "figures_from": reading.first,
                "to": reading.at,
                "turns_without_recall": round(_without_recall(counts)),
                "ceilings_seconds": {policy.value: [c.lowest, c.highest] for policy, c in counts.ceilings.items()},
                "initial_waits": {
                    level.of: {
                        "all": round(level.total),
                        "beyond_ceiling": round(level.total - level.good),
                        "target": level.target,
                        "met": level.met,
                    }
                    for level in service_levels(counts)
                    if level.name is LevelName.HOLD
                },
            }
        }


def reading_notes(reading: Reading, job: str) -> tuple[str, ...]:
    """Say where a Prometheus knows less than it was asked for."""
    asked = duration(reading.at - reading.asked)
    if reading.first is None:
        return (f"In the last {asked} no process of job {job} was known there.",)
    notes: list[str] = []
    if reading.short:
        since = duration(reading.at - reading.first)
        notes.append(f"Of the {asked} asked for, job {job} is known for {since} only, since {instant(reading.first)}.")
    if reading.silent and reading.last is not None:
        notes.append(f"No process of job {job} is known since {instant(reading.last)}.")
    return tuple(notes)


def traffic_notes(counts: Counts, comparison: Comparison) -> tuple[str, ...]:
    """Say under which ceilings the traffic ran, how often they were passed, and which turns are not counted."""
    notes: list[str] = []
    tiered = counts.ceilings.get(PolicyName.TIERED)
    if PolicyName.TIERED in comparison.policies and comparison.turns + comparison.turns_apart > 0:
        if tiered is None:
            notes.append(
                f"This traffic does not tell the ceiling of tiered: it is judged by the configured one, "
                f"{seconds(comparison.ceiling)}."
            )
        elif not tiered.one:
            notes.append(
                f"tiered ran with ceilings from {seconds(tiered.lowest)} to {seconds(tiered.highest)}: its cells are "
                "judged by the highest, its hold wait for wait."
            )
    hold = hold_of(counts)
    if hold is not None:
        notes.append(
            f"Hold of {hold.of}: {count(hold.good)} of {count(hold.total)} first sends waited no longer than their "
            f"ceiling and 5 ms ({share(hold.good, hold.total)}); {_judged(hold)}."
        )
    without = _without_recall(counts)
    turns = counts.total(names.TURN_DURATION)
    if without > NOT_TOLD + turns / 100:
        notes.append(
            f"{count(without)} of {count(turns)} turns began no recall (policy off, no "
            "memory, no prompt of a person), and are in no row."
        )
    return tuple(notes)


def hold_of(counts: Counts) -> ServiceLevel | None:
    """Return the service level of the hold of `tiered`, judged as the report judges it; None: nothing was counted."""
    levels = service_levels(counts)
    return next((each for each in levels if each.name is LevelName.HOLD and each.of == PolicyName.TIERED), None)


def _judged(level: ServiceLevel) -> str:
    if level.target is None or level.met is None:
        return f"too few to judge, {FEW} are needed"
    promised = f"{level.target:.1%}".replace("%", " %")
    return f"expected are {promised}: {'as stated' if level.met else 'it differs'}"


def _without_recall(counts: Counts) -> float:
    return max(counts.total(names.TURN_DURATION) - counts.total(names.RECALL_TURNS), 0.0)
