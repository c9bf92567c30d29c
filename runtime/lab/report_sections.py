"""The comparison as a section of the report; figures, verdicts and words are those of `recallscope compare`."""

from collections.abc import Sequence

from recallscope.runtime.lab.comparison import Cell as ComparisonCell
from recallscope.runtime.lab.comparison import Comparison
from recallscope.runtime.lab.expectations import Measured, Verdict
from recallscope.runtime.lab.wording import (
    MEANINGS,
    about_policy,
    apart_lines,
    cell_lines,
    conclusion,
    footnotes,
    promise,
    remarks,
)
from recallscope.runtime.terms import PolicyName, Scenario
from recallscope.telemetry.read.figures import Row as Place
from recallscope.telemetry.report.blocks import (
    Cell,
    Column,
    Grid,
    Level,
    Mark,
    Remark,
    Row,
    Section,
)

__all__ = ["comparison_section"]

_MARKS = {Verdict.AS_STATED: Mark.GOOD, Verdict.DIFFERS: Mark.BAD, Verdict.NOT_MEASURED: Mark.OPEN}


def comparison_section(comparison: Comparison, *, notes: Sequence[str] = ()) -> Section:
    """Return the table of the comparison, its verdicts and remarks; `notes` are sentences to say beside it."""
    columns = (
        Column(title="scenario"),
        *(Column(title=policy.value, about=_about(policy, comparison)) for policy in comparison.policies),
    )
    rows = [
        Row(
            cells=(
                Cell(lines=(scenario.value, MEANINGS[scenario])),
                *(_cell(comparison.cells[Place(policy, scenario)]) for policy in comparison.policies),
            )
        )
        for scenario in comparison.scenarios
    ]
    rows += [
        Row(
            cells=(
                Cell(lines=(scenario.value, MEANINGS[scenario])),
                *(
                    _apart(comparison.apart[Place(policy, scenario)], policy, scenario)
                    for policy in comparison.policies
                ),
            ),
            quiet=True,
        )
        for scenario in dict.fromkeys(place.scenario for place in comparison.apart)
    ]
    return Section(
        key="comparison",
        title="Behaviour comparison",
        intro="Where memory entered the turns of each scenario, under each policy, and how long they waited for it.",
        blocks=(
            Remark(text=conclusion(comparison)),
            *_differing(comparison),
            Grid(caption="Behaviour of the policies, by scenario", columns=columns, rows=tuple(rows)),
            *(Remark(text=note) for note in notes),
            *(Remark(text=line) for line in footnotes(comparison)),
        ),
        data={"verdict": comparison.verdict.value},
    )


def _about(policy: PolicyName, comparison: Comparison) -> str:
    return "; ".join(filter(None, (about_policy(policy, comparison), promise(policy, comparison))))


def _differing(comparison: Comparison) -> tuple[Remark, ...]:
    told = tuple(text for _, text in remarks(comparison))
    return (Remark(text="What is not as stated:", items=told, level=Level.WARNING),) if told else ()


def _cell(cell: ComparisonCell) -> Cell:
    return Cell(
        lines=cell_lines(cell),
        mark=_MARKS[cell.verdict],
        data={
            "policy": cell.row.policy.value,
            "scenario": cell.row.scenario.value,
            "verdict": cell.verdict.value,
            "turns": cell.measured.turns,
        },
    )


def _apart(measured: Measured, policy: PolicyName, scenario: Scenario) -> Cell:
    return Cell(
        lines=apart_lines(measured),
        data={"policy": policy.value, "scenario": scenario.value, "turns": measured.turns},
    )
