"""Writes the generated blocks of the pages beside it, from the tables of the program itself: `make docs`.

A block stands between `<!-- generated: NAME -->` and `<!-- end of NAME -->`; a test says that each committed block is
what this makes.
"""  # noqa: INP001 - a script, no package

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from recallscope.runtime.recall.handle import TRANSITIONS, State
from recallscope.runtime.recall.policy import policy_named
from recallscope.runtime.terms import Cause, Point, PolicyName

HERE = Path(__file__).parent
BLOCK = re.compile(r"(?P<begin><!-- generated: (?P<name>\w+) -->\n).*?(?P<end><!-- end of (?P=name) -->)", re.DOTALL)


def states() -> str:
    """Draw the state diagram of a recall handle from its table."""
    arrows: dict[tuple[State, State], list[str]] = {}
    for state, row in TRANSITIONS.items():
        for move, targets in row.items():
            for target in State:
                if target in targets:
                    arrows.setdefault((state, target), []).append(move)
    lines = [f"    {state} --> {target}: {', '.join(moves)}" for (state, target), moves in arrows.items()]
    first, last = next(iter(TRANSITIONS)), State.CLOSED
    return "\n".join(["```mermaid", "stateDiagram-v2", f"    [*] --> {first}", *lines, f"    {last} --> [*]", "```"])


def causes() -> str:
    """List every cause with the reason that it stands for."""
    rows = [f"| `{cause}` | `{cause.reason}` |" for cause in Cause]
    return "\n".join(["| cause | close reason |", "|---|---|", *rows])


def policies() -> str:
    """List what each policy decides."""
    rows = [
        "| policy | first send held at most | word matches end the wait | selector limit | delivers at |",
        "|---|---|---|---|---|",
    ]
    for policy in map(policy_named, PolicyName):
        limit = "none" if policy.selector_limit is None else f"{policy.selector_limit:g} s"
        points = ", ".join(f"`{point}`" for point in Point if point in policy.points)
        held = f"{policy.ceiling:g} s" if policy.ceiling else "not at all"
        cells = (f"`{policy.name}`", held, "yes" if policy.fast else "no", limit, points)
        rows.append(f"| {' | '.join(cells)} |" if policy.points else f"| `{policy.name}` | - | - | - | nowhere |")
    return "\n".join(rows)


BLOCKS: Mapping[str, Callable[[], str]] = {"states": states, "causes": causes, "policies": policies}


def with_blocks(page: str) -> str:
    """Return a page with its generated blocks made anew."""
    return BLOCK.sub(lambda match: f"{match['begin']}{BLOCKS[match['name']]()}\n{match['end']}", page)


def main() -> None:
    """Rewrite the pages that changed."""
    for path in sorted(HERE.glob("*.md")):
        page = path.read_text(encoding="utf-8")
        if (made := with_blocks(page)) != page:
            path.write_text(made, encoding="utf-8")


if __name__ == "__main__":
    main()
