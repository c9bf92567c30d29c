"""The comparison: cells computed from figures alone, their verdicts, and their JSON."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recallscope.runtime.lab.expectations import (
    TOLERANCE,
    Expectation,
    Expectations,
    Measured,
    Verdict,
    judge,
    misplaced,
)
from recallscope.runtime.terms import Delivered, PolicyName, Reason, Scenario
from recallscope.telemetry.queries import TABLE_SCENARIOS
from recallscope.telemetry.read.figures import Figures, Row
from recallscope.telemetry.read.quantile import EMPTY

__all__ = ["APART", "SCHEMA", "Cell", "Comparison", "compare_figures"]

SCHEMA = 1

HELD_UP_SECONDS = 0.025
"""A loop that stood still for longer than this tells of the machine, not of memory: waits are judged at 5 ms."""

APART = (Scenario.INTERRUPTED, Scenario.NOT_SENT, Scenario.UNAVAILABLE, Scenario.NOTHING_FOUND)
"""The scenarios that say nothing about a policy and stand apart from the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell: what was measured, what must be seen, and the verdict with its sentences."""

    row: Row
    measured: Measured
    expected: Expectation
    verdict: Verdict
    remarks: tuple[str, ...]

    @property
    def differs_in_waits_alone(self) -> bool:
        """Say whether memory went where it should and only a wait was too long or too short."""
        return self.verdict is Verdict.DIFFERS and not misplaced(self.measured, self.expected)

    def as_data(self) -> dict[str, Any]:
        """Return the cell as plain data; a longest wait above all buckets (30 s) has no number and is None."""
        measured, highest = self.measured, self.measured.highest
        return {
            "policy": self.row.policy.value,
            "scenario": self.row.scenario.value,
            "turns": round(measured.turns),
            "delivered": {value.value: round(measured.delivered.get(value, 0.0)) for value in Delivered},
            "reasons": _counted(measured.reasons),
            "wait_seconds": {
                "p50": _rounded(measured.p50),
                "p95": _rounded(measured.p95),
                "max": None if highest is None or math.isinf(highest) else highest,
            },
            "expected": str(self.expected),
            "verdict": self.verdict.value,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The whole table. `apart`: turns of the scenarios that stand apart; `ceiling` (seconds) is that of `tiered`.

    `loop_lag`: the worst in seconds, None where it was not measured.
    `played`: every cell was played on purpose, so that one that was not measured is a fault. `readings`: which reading
    this is; those before it were void, because the machine had held the loop up.
    """

    ceiling: float
    policies: tuple[PolicyName, ...]
    scenarios: tuple[Scenario, ...]
    cells: Mapping[Row, Cell]
    apart: Mapping[Row, Measured]
    loop_lag: float | None
    played: bool
    readings: int = 1

    @property
    def verdict(self) -> Verdict:
        """`differs` if any cell does; `not_measured` if no cell is measured, or one is missing that was played."""
        verdicts = {cell.verdict for cell in self.cells.values()}
        if Verdict.DIFFERS in verdicts:
            return Verdict.DIFFERS
        missing = Verdict.NOT_MEASURED in verdicts if self.played else Verdict.AS_STATED not in verdicts
        return Verdict.NOT_MEASURED if missing else Verdict.AS_STATED

    @property
    def void(self) -> bool:
        """Say whether this tells of the machine and not of memory.

        So it does if the loop was held up for longer than `HELD_UP_SECONDS`, whatever it shows, and if it differs in
        waits alone while the loop was held up for longer than their tolerance.
        """
        if self.loop_lag is None:
            return False
        if self.loop_lag > HELD_UP_SECONDS:
            return True
        differing = self.with_verdict(Verdict.DIFFERS)
        waits_alone = bool(differing) and all(cell.differs_in_waits_alone for cell in differing)
        return waits_alone and self.loop_lag > TOLERANCE

    @property
    def turns(self) -> float:
        """How many turns were counted in the cells of the table."""
        return sum(cell.measured.turns for cell in self.cells.values())

    @property
    def turns_apart(self) -> float:
        """How many turns stand apart from the table."""
        return sum(measured.turns for measured in self.apart.values())

    def with_verdict(self, verdict: Verdict) -> tuple[Cell, ...]:
        """Return the cells of one verdict, in the table's order."""
        return tuple(cell for cell in self.cells.values() if cell.verdict is verdict)

    def as_data(self) -> dict[str, Any]:
        """Return the comparison as plain data, in the schema of `recallscope compare --json`."""
        return {
            "schema": SCHEMA,
            "ceiling_seconds": self.ceiling,
            "cells": [cell.as_data() for cell in self.cells.values()],
            "apart": [
                {
                    "policy": row.policy.value,
                    "scenario": row.scenario.value,
                    "turns": round(measured.turns),
                    "reasons": _counted(measured.reasons),
                }
                for row, measured in self.apart.items()
            ],
            "verdict": self.verdict.value,
        }


def compare_figures(
    figures: Figures,
    expectations: Expectations,
    *,
    ceiling: float,
    policies: Sequence[PolicyName],
    scenarios: Sequence[Scenario] = TABLE_SCENARIOS,
    played: bool = False,
    readings: int = 1,
) -> Comparison:
    """Compute and judge the cells of `policies` and `scenarios` from `figures` and nothing else.

    `played`: all of them were played on purpose. `readings`: which reading this is, counting from 1.
    """
    loop_lag = figures.loop_lag.highest
    rows = [Row(policy, scenario) for scenario in scenarios for policy in policies]
    cells: dict[Row, Cell] = {}
    for row in rows:
        measured, expected = _measured(figures, row), expectations[row.scenario, row.policy]
        verdict, remarks = judge(measured, expected, loop_lag=loop_lag)
        cells[row] = Cell(row=row, measured=measured, expected=expected, verdict=verdict, remarks=remarks)
    apart = {
        row: _measured(figures, row) for scenario in APART for policy in policies for row in (Row(policy, scenario),)
    }
    return Comparison(
        ceiling=ceiling,
        policies=tuple(policies),
        scenarios=tuple(scenarios),
        cells=cells,
        apart=apart,
        loop_lag=loop_lag,
        played=played,
        readings=readings,
    )


def _measured(figures: Figures, row: Row) -> Measured:
    delivered: dict[Delivered, float] = {}
    reasons: dict[Reason, float] = {}
    for kind, count in figures.turns.items():
        if kind.row == row and count > 0:
            delivered[kind.delivered] = delivered.get(kind.delivered, 0.0) + count
            reasons[kind.reason] = reasons.get(kind.reason, 0.0) + count
    waits = figures.waits.get(row, EMPTY)
    return Measured(
        delivered={value: delivered[value] for value in Delivered if value in delivered},
        reasons={reason: reasons[reason] for reason in Reason if reason in reasons},
        p50=waits.quantile(0.5),
        p95=waits.quantile(0.95),
        highest=waits.highest,
    )


def _counted(reasons: Mapping[Reason, float]) -> dict[str, int]:
    return {reason.value: round(count) for reason, count in reasons.items() if reason is not Reason.NONE}


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 6)
