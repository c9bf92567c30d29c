"""The section of what became of recalls: how far they came, and why memory did not arrive."""

from typing import Final

from recallscope.runtime.events import Outcome, PolicyName, RecallPhase
from recallscope.telemetry import names
from recallscope.telemetry.read.counts import Counts
from recallscope.telemetry.report.blocks import Bar, Bars, Block, Column, Figure, Grid, Remark, Row, Section
from recallscope.telemetry.report.times import TONES
from recallscope.telemetry.report.words import count, share

__all__ = ["recall_section"]

_STEPS: Final = (
    ("begun", "begun"),
    ("fast", "the search answered"),
    ("settled", "the refined result stood"),
    ("delivered", "notes reached the model"),
)


def recall_section(counts: Counts) -> Section:
    """Return the section: a funnel for each policy, then the reasons of skipped deliveries and of the outcomes."""
    begun = counts.by(names.RECALL_STARTED, names.POLICY)
    blocks: list[Block] = [_funnel(counts, policy) for policy in PolicyName if (policy.value,) in begun]
    if blocks:
        blocks += [_skipped(counts), _undelivered(counts)]
    return Section(
        key="recall",
        title="What became of recalls",
        intro="How many recalls came how far, and why memory was not delivered at a point, or not at all.",
        blocks=tuple(blocks) or (Remark(text="No recall was counted."),),
    )


def _funnel(counts: Counts, policy: PolicyName) -> Figure:
    of_policy = {names.POLICY: (policy.value,)}
    delivered = {**of_policy, names.OUTCOME: (Outcome.DELIVERED.value,)}
    numbers = (
        counts.total(names.RECALL_STARTED, where=of_policy),
        counts.total(names.RECALL_DURATION, where={**of_policy, names.PHASE: (RecallPhase.FAST.value,)}),
        counts.total(names.RECALL_DURATION, where={**of_policy, names.PHASE: (RecallPhase.REFINED.value,)}),
        counts.total(names.RECALL_OUTCOMES, where=delivered),
    )
    begun = numbers[0]
    steps = tuple(zip(_STEPS, numbers, strict=True))
    bars = tuple(
        Bar(
            label=f"{name}: {meaning}" if name != meaning else name,
            value=number,
            text=_of(number, begun),
            tone=TONES[policy],
        )
        for (name, meaning), number in steps
    )
    rows = tuple(
        Row(
            cells=(name, count(number), share(number, begun)),
            data={"policy": policy.value, "step": name, "recalls": number},
        )
        for (name, _), number in steps
    )
    columns = (Column(title="step"), Column(title="recalls", numeric=True), Column(title="of all begun", numeric=True))
    return Figure(
        key=f"funnel-{policy}",
        plot=Bars(
            title=f"Recalls under {policy}, from begin to delivery",
            about="A bar for each step, as long as the number of recalls that reached it.",
            bars=bars,
            full=begun,
        ),
        grid=Grid(caption=f"Recalls under {policy}", columns=columns, rows=rows),
    )


def _skipped(counts: Counts) -> Block:
    found = counts.by(names.RECALL_SKIPPED_DELIVERIES, names.POINT, names.REASON, names.POLICY)
    return _reasons(
        {
            (f"at {point}" if point != "none" else "at no point", reason, policy): n
            for (point, reason, policy), n in found.items()
        },
        key="skipped",
        title="Deliveries that did not happen",
        about="Each bar is a reason, as long as its number of skipped deliveries.",
        first="where",
        unit="deliveries",
    )


def _undelivered(counts: Counts) -> Block:
    found = counts.by(names.RECALL_OUTCOMES, names.OUTCOME, names.REASON, names.POLICY)
    return _reasons(
        {
            (outcome, reason, policy): number
            for (outcome, reason, policy), number in found.items()
            if outcome != Outcome.DELIVERED.value
        },
        key="undelivered",
        title="Recalls that delivered nothing",
        about="Each bar is an outcome with its reason, as long as its number of recalls.",
        first="outcome",
        unit="recalls",
    )


def _reasons(
    found: dict[tuple[str, str, str], float], *, key: str, title: str, about: str, first: str, unit: str
) -> Block:
    """Return the figure of numbers by (what, reason, policy), the most frequent first."""
    if not found:
        return Remark(text=f"{title}: none.")
    policies = [policy for policy in PolicyName if any(name == policy.value for _, _, name in found)]
    pairs: dict[tuple[str, str], dict[str, float]] = {}
    for (what, reason, policy), number in found.items():
        pairs.setdefault((what, reason), {})[policy] = number
    ordered = sorted(pairs.items(), key=lambda item: (-sum(item[1].values()), item[0]))
    bars = tuple(
        Bar(label=f"{reason}, {what}", value=sum(numbers.values()), text=count(sum(numbers.values())))
        for (what, reason), numbers in ordered
    )
    columns = (
        Column(title=first),
        Column(title="reason"),
        *(Column(title=policy.value, numeric=True) for policy in policies),
        Column(title=unit, numeric=True),
    )
    rows = tuple(
        Row(
            cells=(
                what,
                reason,
                *(count(numbers.get(policy.value, 0.0)) for policy in policies),
                count(sum(numbers.values())),
            ),
            data={"what": what, "reason": reason, "number": sum(numbers.values())},
        )
        for (what, reason), numbers in ordered
    )
    return Figure(
        key=key, plot=Bars(title=title, about=about, bars=bars), grid=Grid(caption=title, columns=columns, rows=rows)
    )


def _of(number: float, whole: float) -> str:
    return f"{count(number)} ({share(number, whole)})"
