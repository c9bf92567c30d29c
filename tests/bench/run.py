"""The benchmarks of `make bench`: ratios measured in one run, beside the targets that docs/performance.md sets."""

import sys

import anyio
import start_up
from rows import Row
from search import measure_search
from turns import measure_turns
from waits import measure_collectors, measure_events, measure_waits

__all__ = ["main"]

PARTS = {
    "events": measure_events,
    "waits": measure_waits,
    "turns": measure_turns,
    "collectors": measure_collectors,
    "search": measure_search,
}


def main(arguments: list[str]) -> int:
    """Print a line for each figure of the named parts (default: all); return 1 when a target is missed."""
    missed = False
    sys.stdout.write("Ratios within this run; seconds are of this machine, targets of a quiet one.\n")
    for name in arguments or [*PARTS, "start-up"]:
        sys.stdout.write(f"\n{name}\n")
        missed |= bool(start_up.main()) if name == "start-up" else _show(anyio.run(PARTS[name]))
        sys.stdout.flush()
    return int(missed)


def _show(rows: list[Row]) -> bool:
    width = max(len(row.what) for row in rows)
    for row in rows:
        mark = "" if not row.target else ("met" if row.met else "MISSED")
        sys.stdout.write(f"  {row.what:{width}}  {row.ratio:6.2f}  {row.target:8} {mark:6}  {row.detail}\n")
    return any(not row.met for row in rows)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
