"""What a query costs whose words are silent: its vector compared with those of all notes, in one run.

Run as `python tests/bench/vectors.py [NOTES ...]`; vectors of 384 random numbers, numpy of the extra `semantic`.
"""

import sys
import time
from collections.abc import Callable

import numpy as np

from recallscope.runtime.memory.vector_index import VectorIndex

DIMENSION = 384
QUERIES = 40
NEAREST = 40
AT_ONCE = 8_000


def measure(notes: int) -> str:
    """Return how long loading and a query take with so many notes, and what the matrix holds."""
    random = np.random.default_rng(notes)
    index = VectorIndex()
    started = time.perf_counter()
    for first in range(0, notes, AT_ONCE):
        rows = random.integers(-127, 128, (min(AT_ONCE, notes - first), DIMENSION), dtype=np.int8)
        index.change(add=[(first + number, 0.01, row.tobytes()) for number, row in enumerate(rows)])
    loaded = time.perf_counter() - started
    queries = random.standard_normal((QUERIES, DIMENSION)).tolist()
    times = sorted(_timed(lambda query=query: index.nearest(query, NEAREST)) for query in queries)
    middle, worst = times[len(times) // 2], times[-1]
    size = notes * DIMENSION * 4 / 1e6
    return (
        f"{notes:7} notes: p50 {middle * 1e3:.1f} ms, max {worst * 1e3:.1f} ms; loaded in {loaded:.2f} s, {size:.0f} MB"
    )


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


if __name__ == "__main__":
    for notes in map(int, sys.argv[1:] or ("1000", "10000", "100000")):
        sys.stdout.write(measure(notes) + "\n")
