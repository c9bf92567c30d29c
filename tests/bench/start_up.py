"""What `recallscope --version` and `--help` cost in CPU, beside a bare interpreter that imports click.

Run alone (`python tests/bench/start_up.py`) or by `make bench`. Target: at most 150 ms of CPU
(docs/performance.md). Pairs are taken in turn within one run, so that a busy machine slows both sides alike.
"""

import resource
import statistics
import subprocess
import sys
from collections.abc import Sequence

ROUNDS = 11
TARGET_SECONDS = 0.150
COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "python -c 'import click'": ["-c", "import click"],
    "recallscope --version": ["-m", "recallscope.runtime.cli", "--version"],
    "recallscope --help": ["-m", "recallscope.runtime.cli", "--help"],
}


def cpu_seconds(arguments: Sequence[str]) -> float:
    """Return the CPU seconds, user and system, of one run of this interpreter with `arguments`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, timeout=60)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def measure(rounds: int = ROUNDS) -> dict[str, float]:
    """Return the median of CPU seconds for each command."""
    taken: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(rounds):
        for name, arguments in COMMANDS.items():
            taken[name].append(cpu_seconds(arguments))
    return {name: statistics.median(seconds) for name, seconds in taken.items()}


def main() -> int:
    """Print a line for each command; return 1 when one of ours passes the target."""
    medians = measure()
    click = medians["python -c 'import click'"]
    for name, seconds in medians.items():
        sys.stdout.write(f"{name:26} {seconds * 1000:6.0f} ms of CPU  {seconds / click:5.2f} x python with click\n")
    ours = [seconds for name, seconds in medians.items() if name.startswith("recallscope")]
    return 1 if max(ours) > TARGET_SECONDS else 0


if __name__ == "__main__":
    sys.exit(main())
