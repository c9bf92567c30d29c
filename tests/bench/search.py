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

from recallscope.runtime.agent.ready import ready_for_turns
from recallscope.runtime.memory.catalog import Catalog, Changes
from recallscope.runtime.memory.memory import Memory
from recallscope.runtime.memory.note import Note
from recallscope.runtime.memory.scopes import MemoryRoots, NoteFile
from recallscope.runtime.observe import Observers
from recallscope.runtime.terms import NoteType, ScopeName

QUERIES = 300
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


async def bench(notes: int) -> None:
    """Print one line per kind of query for a store of this size."""
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
        first = (time.perf_counter() - started) * 1_000
        for kind, make in (("prompt", store.prompt), ("keywords", store.keywords)):
            with ready_for_turns():
                median, high, answered = await measure(memory, [make() for _ in range(QUERIES)])
            print(  # noqa: T201 - a benchmark's output
                f"{notes:>7} notes  {kind:<8}  p50 {median:6.2f} ms  p99 {high:6.2f} ms  fast {answered}/{QUERIES}"
            )
        size = path.stat().st_size / 1e6
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
        print(  # noqa: T201 - a benchmark's output
            f"{notes:>7} notes  filled in {filled:.1f} s ({filled / notes * 1e6:.0f} µs a note), {size:.0f} MB, "
            f"first recall {first:.1f} ms after opening, peak {peak:.0f} MB"
        )
        catalog.close()


if __name__ == "__main__":
    for count in [int(argument) for argument in sys.argv[1:]] or [1_000, 10_000, 100_000]:
        anyio.run(bench, count)
