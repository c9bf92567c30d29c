"""Full-text engines side by side, for the choice that docs/engine.md explains: fill, change, query, start, size.

Run as `make bench-engines` (`SIZES="10000 100000"`); tantivy and bm25s are installed for it alone. The notes are those
of `search.py`, already cut into words, so that the engines are compared and not what stands before them. Each asks for
the best 60 of one root among two. Every figure is taken in a process of its own that has done its imports.
"""

import importlib
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from busy import busy_cores
from engine_kinds import ENGINES, ROOTS, Bm25s, Engine, Text, root_of
from search import Store

BATCH = 1_000
QUERIES = 200
CHANGES = 20


class Notes:
    """The notes and queries, always the same for a size."""

    def __init__(self, number: int) -> None:
        self.store = Store(Path("/nowhere"), number)

    def text(self) -> Text:
        """Return the next note."""
        words = self.store.text(201).split(" ")
        return {"t": words[:9], "d": words[9:21], "b": words[21:]}

    def queries(self) -> dict[str, list[list[str]]]:
        """Return the queries of each class."""
        chance, words = random.Random(7), self.store.words
        return {
            "1 rarer": [[chance.choice(words[1_000:])] for _ in range(QUERIES)],
            "4 rarer": [chance.sample(words[1_000:], 4) for _ in range(QUERIES)],
            "4 frequent": [chance.sample(words[:200], 4) for _ in range(QUERIES)],
            "14 running": [self.store.text(14).split(" ") for _ in range(QUERIES)],
        }


def fill(engine: Engine, number: int) -> dict[str, float]:
    """Fill an engine; milliseconds a note, of the clock and of CPU."""
    notes, taken, worked = Notes(number), 0.0, 0.0
    for start in range(1, number + 1, BATCH):
        batch = [(at, notes.text()) for at in range(start, min(start + BATCH, number + 1))]
        started, before = time.perf_counter(), time.process_time()
        engine.add(batch)
        taken, worked = taken + time.perf_counter() - started, worked + time.process_time() - before
    started, before = time.perf_counter(), time.process_time()
    engine.finish()
    taken, worked = taken + time.perf_counter() - started, worked + time.process_time() - before
    figures = {"fill": taken / number * 1e3, "fill CPU": worked / number * 1e3}
    if number < 100_000 or not isinstance(engine, Bm25s):
        figures["change"] = changed(engine, Notes(number))
    return figures


def changed(engine: Engine, notes: Notes) -> float:
    """Return the median milliseconds from a change to an answer that knows it; the first notes are changed."""
    times: list[float] = []
    for at in range(CHANGES if not isinstance(engine, Bm25s) else 3):
        number, old = at + 1, notes.text()
        new: Text = {**old, "t": [*old["t"], f"unheard{at}"]}
        started = time.perf_counter()
        engine.change(number, old, new)
        found = engine.query([f"unheard{at}"])
        times.append((time.perf_counter() - started) * 1e3)
        if root_of(number) == ROOTS[0] and number not in found:
            raise AssertionError(f"note {number} was changed and is not found")
    return sorted(times)[len(times) // 2]


def query(engine: Engine, number: int, opened: float) -> dict[str, float]:
    """Query an engine that was filled; milliseconds (CPU: mean of a query), and MB of memory."""
    asked = Notes(number).queries()
    started = time.perf_counter()
    engine.query(asked["14 running"][0])
    figures = {"first": opened + (time.perf_counter() - started) * 1e3}
    for state in ("idle", "busy"):
        with busy_cores(2 if state == "busy" else 0):
            for kind, queries in asked.items():
                times: list[float] = []
                before = time.process_time()
                for words in queries:
                    started = time.perf_counter()
                    engine.query(words)
                    times.append((time.perf_counter() - started) * 1e3)
                figures[f"{kind} {state} CPU"] = (time.process_time() - before) / len(queries) * 1e3
                times.sort()
                figures[f"{kind} {state} p50"] = times[len(times) // 2]
                figures[f"{kind} {state} p99"] = times[int(len(times) * 0.99)]
    figures["MB held"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    return figures


def main(arguments: Sequence[str]) -> None:
    """Print a table for each size."""
    if arguments[:1] == ["--one"]:
        _, step, name, folder, number = arguments
        importlib.import_module({"tantivy": "tantivy", "bm25s": "bm25s"}.get(name, "json"))
        started = time.perf_counter()
        engine = ENGINES[name](Path(folder))
        opened = (time.perf_counter() - started) * 1e3
        figures = fill(engine, int(number)) if step == "fill" else query(engine, int(number), opened)
        sys.stdout.write(json.dumps(figures))
        return
    for number in [int(argument) for argument in arguments] or [10_000]:
        table = {name: _measure(name, number) for name in ENGINES}
        sys.stdout.write(f"\n| {number} notes | " + " | ".join(table) + f" |\n|---|{'--:|' * len(table)}\n")
        for what in table["FTS5"]:
            cells = [f"{figures[what]:.2f}" if what in figures else "-" for figures in table.values()]
            sys.stdout.write(f"| {what} | " + " | ".join(cells) + " |\n")
        sys.stdout.flush()


def _measure(name: str, number: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        figures: dict[str, float] = {}
        for step in ("fill", "query"):
            done = subprocess.run(
                [sys.executable, __file__, "--one", step, name, folder, str(number)],
                check=True,
                stdout=subprocess.PIPE,
                text=True,
                timeout=3_600,
            )
            figures |= json.loads(done.stdout.splitlines()[-1])
            if step == "fill":
                files = [file for file in Path(folder).rglob("*") if file.is_file()]
                figures["MB on disk"] = sum(file.stat().st_size for file in files) / 1e6
    return figures


if __name__ == "__main__":
    main(sys.argv[1:])
