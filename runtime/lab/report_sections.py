"""The comparison and the what-if as sections of the report; figures, verdicts and words are those of the commands."""

from collections.abc import Sequence

from recallscope.runtime.lab.comparison import Cell as ComparisonCell
from recallscope.runtime.lab.comparison import Comparison
from recallscope.runtime.lab.expectations import Measured, Verdict
from recallscope.runtime.lab.whatif import Record, Setting, WhatIf
from recallscope.runtime.lab.wording import (
    MEANINGS,
    about_policy,
    apart_lines,
    cell_lines,
    conclusion,
    footnotes,
    remarks,
    seconds,
)
from recallscope.runtime.terms import Delivered, PolicyName, Scenario
from recallscope.telemetry.read.figures import Row as Place
from recallscope.telemetry.report.blocks import (
    Cell,
    Column,
    Curve,
    Figure,
    Grid,
    Level,
    Line,
    Mark,
    Remark,
    Row,
    Section,
    Tone,
)
from recallscope.telemetry.report.words import count

__all__ = ["CEILINGS", "comparison_section", "whatif_section"]

CEILINGS = (0.0, 0.025, 0.05, 0.1, 0.2, 0.5)
"""The ceilings (seconds) that the what-if asks for."""

_MARKS = {Verdict.AS_STATED: Mark.GOOD, Verdict.DIFFERS: Mark.BAD, Verdict.NOT_MEASURED: Mark.OPEN}
_POINTS = (
    ("at the first request", (Delivered.INITIAL, Delivered.BOTH), Tone.TIERED),
    ("anywhere", (Delivered.INITIAL, Delivered.BOTH, Delivered.TOOL_RESULT), Tone.PREFETCH),
)


def comparison_section(comparison: Comparison, *, notes: Sequence[str] = ()) -> Section:
    """Return the table of the comparison, its verdicts and remarks; `notes` are sentences to say beside it."""
    columns = (
        Column(title="scenario"),
        *(Column(title=policy.value, about=about_policy(policy, comparison)) for policy in comparison.policies),
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


def whatif_section(record: Record) -> Section:
    """Return what other ceilings of `tiered` would have given the recorded turns, as a table and a curve."""
    intro = (
        "Recorded turns, replayed through the rules of recall under tiered with other ceilings. Where the record does "
        "not decide what would have come, a turn is unknown; intervals hold for 95 of 100 such records."
    )
    title = "What another ceiling would have given"
    if not record.courses:
        text = "No recorded turn can be replayed."
        return Section(key="whatif", title=title, intro="", blocks=(Remark(text=text),))
    found = [(ceiling, record.under(Setting(policy=PolicyName.TIERED, ceiling=ceiling))) for ceiling in CEILINGS]
    left_out = ", ".join(f"{count(number)} {reason}" for reason, number in record.left_out.items() if number)
    remarked = (Remark(text=f"Left out: {left_out}."),) if left_out else ()
    return Section(
        key="whatif",
        title=title,
        intro=intro,
        blocks=(Figure(key="whatif-plot", plot=_curve(found), grid=_whatif_grid(found)), *remarked),
    )


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


def _curve(found: Sequence[tuple[float, WhatIf]]) -> Curve:
    # The ceilings stand at even distances: on a linear axis the small ones would be one.
    places = {ceiling: (number + 0.5) / len(found) for number, (ceiling, _) in enumerate(found)}
    lines: list[Line] = []
    for name, points, tone in _POINTS:
        shares = [(places[ceiling], whatif.at(*points)) for ceiling, whatif in found]
        lines.append(
            Line(
                name=name,
                points=tuple((x, one.share, one.interval.low, one.interval.high) for x, one in shares),
                tone=tone,
            )
        )
    return Curve(
        title="Turns that receive memory, by ceiling",
        about="Two lines of shares over the ceiling: memory at the first request, and anywhere; bands are intervals.",
        axis="ceiling of tiered",
        ticks=tuple((x, seconds(ceiling)) for ceiling, x in places.items()),
        lines=tuple(lines),
    )


def _whatif_grid(found: Sequence[tuple[float, WhatIf]]) -> Grid:
    columns = (
        Column(title="ceiling"),
        *(Column(title=name, numeric=True) for name, _, _ in _POINTS),
        Column(title="unknown", numeric=True),
        Column(title="wait p50", numeric=True),
        Column(title="p95", numeric=True),
        Column(title="turns", numeric=True),
    )
    rows = tuple(
        Row(
            cells=(
                seconds(ceiling),
                *(_interval(whatif, points) for _, points, _ in _POINTS),
                count(whatif.unknown),
                *(_between(whatif, q) for q in (0.5, 0.95)),
                count(whatif.turns),
            ),
            data={"ceiling": ceiling, "delivered": whatif.delivered.share},
        )
        for ceiling, whatif in found
    )
    return Grid(caption="What other ceilings would have given", columns=columns, rows=rows)


def _interval(whatif: WhatIf, points: tuple[Delivered, ...]) -> Cell:
    shares = whatif.at(*points)
    low, high = shares.interval.low or 0.0, 1.0 if shares.interval.high is None else shares.interval.high
    return Cell(lines=(f"{shares.share:.0%}", f"{low:.0%} to {high:.0%}"))


def _between(whatif: WhatIf, q: float) -> str:
    waits = whatif.wait(q)
    if waits.least is None or waits.most is None:
        return "—"
    least, most = seconds(waits.least), seconds(waits.most)
    return least if least == most else f"{least} to {most}"
