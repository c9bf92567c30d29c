"""What the comparison says, in words: for the table in a terminal and for the report alike."""

import math

from recallscope.runtime.lab.comparison import Cell, Comparison
from recallscope.runtime.lab.expectations import Measured, Verdict
from recallscope.runtime.terms import PolicyName, Reason, Scenario

__all__ = [
    "MARKS",
    "MEANINGS",
    "about_policy",
    "apart_lines",
    "cell_lines",
    "conclusion",
    "count",
    "footnotes",
    "promise",
    "remarks",
    "seconds",
    "two_digits",
]

MARKS = {Verdict.AS_STATED: "✔", Verdict.DIFFERS: "✘", Verdict.NOT_MEASURED: "○"}

MEANINGS = {
    Scenario.SETTLED_BEFORE_SEND: "recall was done before the first send",
    Scenario.SLOW_WITH_TOOLS: "done later, before the last tool result",
    Scenario.TIMED_OUT: "done after 1 s, or after the last tool result",
    Scenario.SLOW_WITHOUT_TOOLS: "done later, and no tool was called",
    Scenario.SUPERSEDED: "not done when the next prompt came",
    Scenario.INTERRUPTED: "closed before it was done",
    Scenario.NOT_SENT: "no request was accepted",
    Scenario.UNAVAILABLE: "memory or the selector failed",
    Scenario.NOTHING_FOUND: "nothing was selected",
}
"""What happened to the recall in each row."""

_POLICIES = {
    PolicyName.DEADLINE: "the old way: waits",
    PolicyName.PREFETCH: "never waits",
    PolicyName.TIERED: "waits ≤ {ceiling}",
}


def about_policy(policy: PolicyName, comparison: Comparison) -> str:
    """Say how a policy waits."""
    return _POLICIES[policy].format(ceiling=seconds(comparison.ceiling))


def promise(policy: PolicyName, comparison: Comparison) -> str | None:
    """Say what must be seen in each cell of a policy of live traffic; None where it was played: each has its own."""
    promised = {str(cell.expected) for row, cell in comparison.cells.items() if row.policy is policy}
    return f"expected: {promised.pop()}" if not comparison.played and len(promised) == 1 else None


def cell_lines(cell: Cell) -> tuple[str, ...]:
    """Say where memory went, why it did not, and how long the turns waited: a line each."""
    measured = cell.measured
    if measured.turns <= 0:
        return ("not measured",)
    lines = [" ".join(f"{value} {_share(number, measured.turns)}" for value, number in measured.delivered.items())]
    lines += _reasons(measured)
    if measured.p50 is not None and measured.p95 is not None and measured.highest is not None:
        lines.append(_wait(measured.p50, measured.p95, measured.highest))
    return tuple(lines)


def apart_lines(measured: Measured) -> tuple[str, ...]:
    """Say how many turns of a policy stand apart, and why where there is more than one reason."""
    why = [f"{reason} {count(number)}" for reason, number in measured.reasons.items() if reason is not Reason.NONE]
    return (count(measured.turns), *(why if len(why) > 1 else ()))


def footnotes(comparison: Comparison) -> list[str]:
    """Say how to read the table, and what stands apart from it."""
    lag = "not measured" if comparison.loop_lag is None else f"≤ {seconds(comparison.loop_lag)}"
    lines = [
        (
            "In a cell: where memory entered the turns; why nothing did, or why the refined notes did not; "
            "how long a turn waited for memory: p50 · p95 · longest (the bound of its histogram bucket)."
        ),
        f"The last four rows stand apart, since they say nothing about a policy: {_apart(comparison)}.",
        f"Worst loop lag: {lag}.",
    ]
    if comparison.readings > 1:
        lines.append(
            f"This is reading {comparison.readings}: before it the loop was held up for more than 25 ms (a busy "
            "machine?), and nothing of that is used."
        )
    if Scenario.SUPERSEDED in comparison.scenarios:
        lines.append("superseded: in the code that deadline stands for two recalls competed; here only one is pending.")
    return lines


def remarks(comparison: Comparison) -> list[tuple[Cell, str]]:
    """Say of each cell that is not as stated what it is."""
    differing = comparison.with_verdict(Verdict.DIFFERS)
    missing = comparison.with_verdict(Verdict.NOT_MEASURED)
    return [
        (cell, f"{cell.row.scenario} under {cell.row.policy}: {'; '.join(cell.remarks)} (expected: {cell.expected})")
        for cell in (*differing, *(missing if comparison.played else ()))
    ]


def conclusion(comparison: Comparison) -> str:
    """Say the verdict of the whole."""
    measured = [cell for cell in comparison.cells.values() if cell.verdict is not Verdict.NOT_MEASURED]
    if not measured:
        return "Nothing was measured."
    if remarks(comparison):
        good = len(comparison.with_verdict(Verdict.AS_STATED))
        judged = f"{len(comparison.cells)}" if comparison.played else f"{len(measured)} measured"
        return f"{good} of {judged} cells are as stated."
    which = "" if len(measured) == len(comparison.cells) else "measured "
    return f"{f'All {len(measured)} {which}cells are' if len(measured) > 1 else f'The one {which}cell is'} as stated."


def count(number: float) -> str:
    """Write a number of turns."""
    return f"{number:.0f}"


def seconds(value: float) -> str:
    """Write a time: milliseconds below a second, with as many digits as say something."""
    return f"{two_digits(value * 1000)} ms" if value < 1 else f"{value:g} s"


def two_digits(milliseconds: float) -> str:
    """Write milliseconds without their unit: one place behind the point below ten, none above."""
    return f"{milliseconds:.1f}".removesuffix(".0") if milliseconds < 10 else f"{milliseconds:.0f}"  # noqa: PLR2004 - two digits


def _apart(comparison: Comparison) -> str:
    numbers: dict[Scenario, float] = {}
    for row, measured in comparison.apart.items():
        numbers[row.scenario] = numbers.get(row.scenario, 0.0) + measured.turns
    all_of_them = f"{count(comparison.turns_apart)} of {count(comparison.turns + comparison.turns_apart)} turns"
    which = [f"{count(number)} {scenario} ({MEANINGS[scenario]})" for scenario, number in numbers.items() if number > 0]
    return f"{all_of_them}: {', '.join(which)}" if which else all_of_them


def _reasons(measured: Measured) -> list[str]:
    return [
        str(reason) if number == measured.turns else f"{reason} {_share(number, measured.turns)}"
        for reason, number in measured.reasons.items()
        if reason is not Reason.NONE
    ]


def _share(number: float, total: float) -> str:
    return f"{count(number)}/{count(total)}"


def _wait(p50: float, p95: float, highest: float) -> str:
    """Return the three figures in the unit that suits them, as short as a cell is narrow."""
    if math.isinf(highest):
        return f"{p50:.3g} · {p95:.3g} · > 30 s"
    if highest < 1:
        return f"{two_digits(p50 * 1000)} · {two_digits(p95 * 1000)} · ≤ {seconds(highest)}"
    return f"{p50:.2f} · {p95:.2f} · ≤ {seconds(highest)}"
