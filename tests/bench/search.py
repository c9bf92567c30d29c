"""How long the fast result takes: p50 and p99 over stores of growing size, with ordinary prompts and with rare words.

Run as `python tests/bench/search.py [NOTES ...]`; the notes are made up (200 words, drawn as words are in prose).
"""

import itertools
import random
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import anyio
from anyio import to_thread
from rows import Row

from recallscope.runtime.agent.ready import ready_for_turns
from recallscope.runtime.memory.catalog import Catalog, Changes
from recallscope.runtime.memory.memory import Memory
from recallscope.runtime.memory.note import Note
from recallscope.runtime.memory.scopes import MemoryRoots, NoteFile
from recallscope.runtime.observe import Observers
from recallscope.runtime.terms import NoteType, ScopeName

QUERIES = 300
FIRST_SECONDS = 0.1
LARGE = 100_000
FAST_SECONDS = (0.010, 0.030)
"""The targets of the fast result: up to 10,000 notes, and at 100,000 (DESIGN section 10)."""

SYLLABLES = ("ka", "lo", "mi", "ren", "ta", "vo", "sul", "be", "dor", "fin", "gra", "pes", "qui", "zan", "hu", "ny")


def vocabulary(random_: random.Random, size: int) -> list[str]:
    """Return made-up words, all different."""
    words: dict[str, None] = {}
    while len(words) < size:
        words["".join(random_.choices(SYLLABLES, k=random_.randint(2, 4)))] = None
    return list(words)


class Store:
    """A made-up memory whose words are as unevenly spread as those of prose."""

    def __init__(self, root: Path, notes: int) -> None:
        self.random = random.Random(notes)
        self.root = root
        self.notes = notes
        self.words = vocabulary(self.random, 40_000)
        self.weights = list(itertools.accumulate(1 / (rank + 10) for rank in range(len(self.words))))

    def text(self, length: int) -> str:
        """Return running words."""
        return " ".join(self.random.choices(self.words, cum_weights=self.weights, k=length))

    def note(self, number: int) -> Note:
        """Return a note of 200 words."""
        relative = f"project/note-{number}.md"
        return Note(
            id=f"project:{relative}",
            version=str(number),
            scope=ScopeName.PROJECT,
            path=self.root / relative,
            relative=relative,
            title=self.text(5),
            description=self.text(12),
            type=NoteType.PROJECT,
            keywords=tuple(self.text(4).split()),
            body=self.text(180),
            updated=float(number),
        )

    def fill(self, catalog: Catalog) -> None:
        """Put the notes straight into the catalog: reading files is not what is measured here."""
        number = catalog.root_id(self.root)
        for start in range(0, self.notes, 1_000):
            batch = [
                (self.note(at), NoteFile(f"project/note-{at}.md", 0, 0, 0))
                for at in range(start, min(start + 1_000, self.notes))
            ]
            catalog.apply(number, Changes(notes=batch))
        catalog.optimize()

    def prompt(self) -> str:
        """Return 14 running words."""
        return self.text(14)

    def keywords(self) -> str:
        """Return 4 words that are not among the thousand commonest."""
        return " ".join(self.random.sample(self.words[1_000:], 4))


async def measure(memory: Memory, queries: Sequence[str]) -> tuple[float, float, int]:
    """Return p50 and p99 in milliseconds, and how many queries had a fast result."""
    times: list[float] = []
    answered = 0
    for query in queries:
        started = time.perf_counter()
        found = await memory.search(query, exclude=frozenset(), recent_tools=())
        times.append((time.perf_counter() - started) * 1_000)
        answered += bool(found.fast)
    times.sort()
    return times[len(times) // 2], times[int(len(times) * 0.99)], answered


async def measure_search(sizes: Sequence[int] = (10_000,)) -> list[Row]:
    """Measure stores of `sizes` notes: p99 of the fast result and the first recall, beside their targets."""
    return [row for notes in sizes for row in await _rows(notes)]


async def _rows(notes: int) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        root = (Path(folder) / "notes").resolve()
        path = Path(folder) / "catalog.sqlite3"
        store = Store(root, notes)
        catalog = Catalog(path)
        catalog.open()
        started = time.perf_counter()
        await to_thread.run_sync(store.fill, catalog)
        filled = time.perf_counter() - started
        catalog.close()
        catalog = Catalog(path)
        started = time.perf_counter()
        catalog.open()
        memory = Memory(MemoryRoots(project=root), catalog, observers=Observers())
        await memory.start(rebuilt=False)
        await memory.search(store.prompt(), exclude=frozenset(), recent_tools=())
        first = time.perf_counter() - started
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
        size = path.stat().st_size / 1e6
        detail = f"{first * 1e3:.1f} ms; filled in {filled:.1f} s, {size:.0f} MB on disk, peak {peak:.0f} MB"
        what = f"first recall after opening, {notes} notes / 100 ms"
        rows = [Row(what=what, ratio=first / FIRST_SECONDS, detail=detail, at_most=1.0)]
        target = FAST_SECONDS[notes >= LARGE]
        for kind, make in (("14 running words", store.prompt), ("4 rarer words", store.keywords)):
            with ready_for_turns():
                median, high, answered = await measure(memory, [make() for _ in range(QUERIES)])
            detail = f"p50 {median:.1f} ms, p99 {high:.1f} ms, {answered} of {QUERIES} answered"
            what = f"fast result of {kind}, {notes} notes: p99 / {target * 1e3:.0f} ms"
            rows.append(Row(what=what, ratio=high / 1e3 / target, detail=detail, at_most=1.0))
        catalog.close()
        return rows


def main(arguments: Sequence[str]) -> None:
    """Print a line for each figure of the named sizes."""
    for row in anyio.run(measure_search, [int(argument) for argument in arguments] or [1_000, 10_000, 100_000]):
        sys.stdout.write(f"{row.what:60}  {row.ratio:6.2f}  {row.target:8} {row.detail}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
