"""The search over stores of growing size, in one run: fast result, first recall, a changed file, fill, memory used.

Beside it stands the reference system's approach (`scan_everything.py`): every file is read and parsed in every recall.
Run as `python tests/bench/search.py [NOTES ...]`; the notes are made up (200 words, drawn as words are in prose). Where
others use the machine too, the best of three rounds counts, the load says how much they do, and the CPU of a search
what it would take alone.
"""

import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio import to_thread
from busy import busy_cores
from rows import Row
from scan_everything import scan_everything

from recallscope.runtime.agent.ready import ready_for_turns
from recallscope.runtime.memory.catalog import Catalog
from recallscope.runtime.memory.memory import Memory, open_memory
from recallscope.runtime.memory.scopes import MemoryRoots, Root
from recallscope.runtime.memory.sync import sync_root
from recallscope.runtime.observe import Observers
from recallscope.runtime.terms import ScopeName

SIZES = (1_000, 10_000, 100_000)
ROUNDS = 3
QUERIES = 150
BUSY_QUERIES = 50
CHANGES = 5
LARGE = 100_000
FAST_SECONDS = (0.010, 0.030)
"""The targets of the fast result: up to 10,000 notes, and at 100,000 (docs/performance.md)."""
BUSY_SECONDS = 0.060
FIRST_SECONDS = 0.1
VISIBLE_SECONDS = 1.0

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

    def write(self, number: int, also: str = "") -> None:
        """Write a note of 200 words."""
        (self.root / "project" / f"note-{number}.md").write_text(
            f"---\nname: {self.text(5)} {also}\ndescription: {self.text(12)}\ntype: project\n"
            f"keywords: [{', '.join(self.text(4).split())}]\n---\n\n{self.text(180)}\n"
        )

    def write_all(self) -> None:
        """Write every note."""
        (self.root / "project").mkdir(parents=True)
        for number in range(self.notes):
            self.write(number)

    def queries(self) -> dict[str, list[str]]:
        """Return queries of each class; a rarer word is not among the thousand commonest, a frequent one leads them."""
        rarer, frequent = self.words[1_000:], self.words[:200]
        return {
            "1 rarer word": [self.random.choice(rarer) for _ in range(QUERIES)],
            "4 rarer words": [" ".join(self.random.sample(rarer, 4)) for _ in range(QUERIES)],
            "4 frequent words": [" ".join(self.random.sample(frequent, 4)) for _ in range(QUERIES)],
            "14 running words": [self.text(14) for _ in range(QUERIES)],
        }


async def measure_search(sizes: Sequence[int] = SIZES) -> list[Row]:
    """Measure stores of `sizes` notes, each figure beside its target where it has one."""
    return [row for notes in sizes for row in await _rows(notes)]


async def _rows(notes: int) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        root = (Path(folder) / "notes").resolve()
        path = Path(folder) / "catalog.sqlite3"
        store = Store(root, notes)
        await to_thread.run_sync(store.write_all)
        rows = [await to_thread.run_sync(_fill, store, path)]
        rows += [_in_new_process(root, path, store.text(14), notes)]
        scan = _scan(store)
        rows += await _fast(store, path, scan)
        rows += [await _visible(store, path)]
        return rows


def _fill(store: Store, path: Path) -> Row:
    catalog = Catalog(path)
    catalog.open()
    started, worked = time.perf_counter(), time.process_time()
    sync_root(catalog, Root(ScopeName.PROJECT, store.root))
    seconds, worked = time.perf_counter() - started, time.process_time() - worked
    catalog.close()
    load = os.getloadavg()[0]
    return Row(
        what=f"{store.notes} notes: filling from files, per note / 1 ms",
        ratio=seconds / store.notes * 1e3,
        detail=f"{seconds:.1f} s ({worked:.1f} s of CPU), {path.stat().st_size / 1e6:.0f} MB on disk; load {load:.1f}",
    )


def _in_new_process(root: Path, path: Path, query: str, notes: int) -> Row:
    taken: list[dict[str, float]] = []
    for _ in range(ROUNDS):
        command = [sys.executable, __file__, "--recall", str(root), str(path), query]
        taken.append(json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=300).stdout))
    first = min(one["first"] for one in taken)
    worked = min(one["worked"] for one in taken)
    memory = (
        f"{taken[-1]['imports']:.0f} MB of memory after the imports, {taken[-1]['recalled']:.0f} MB after 50 recalls"
    )
    return Row(
        what=f"{notes} notes: first recall of a new process / {FIRST_SECONDS * 1e3:.0f} ms",
        ratio=first / FIRST_SECONDS,
        detail=f"{first * 1e3:.1f} ms with opening ({worked * 1e3:.0f} of CPU); {memory} and a scan",
        at_most=1.0,
    )


async def _recall(root: Path, path: Path, query: str) -> None:
    """Print what the first recall of this process takes, and its memory before and after."""
    imports = _megabytes()
    with ready_for_turns():
        started, before = time.perf_counter(), time.process_time()
        async with open_memory(MemoryRoots(project=root), observers=Observers(), catalog_path=path) as memory:
            await memory.search(query, exclude=frozenset(), recent_tools=())
            first, worked = time.perf_counter() - started, time.process_time() - before
            await memory.wait_synced()
            for word in query.split():
                await memory.search(f"{word} {query}", exclude=frozenset(), recent_tools=())
            sys.stdout.write(
                json.dumps({"first": first, "worked": worked, "imports": imports, "recalled": _megabytes()})
            )


def _megabytes() -> float:
    """Return the memory that this process holds now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4_096 / 1e6


def _scan(store: Store) -> float:
    """Return the seconds that a recall takes which reads every file; the best of a few, of a large store one."""
    times: list[float] = []
    for _ in range(ROUNDS if store.notes < LARGE else 1):
        query = store.text(14)
        started = time.perf_counter()
        scan_everything(store.root, query)
        times.append(time.perf_counter() - started)
    return min(times)


async def _fast(store: Store, path: Path, scan: float) -> list[Row]:
    catalog = Catalog(path)
    catalog.open()
    memory = Memory(MemoryRoots(project=store.root), catalog, observers=Observers())
    await memory.start(rebuilt=False)
    target = FAST_SECONDS[store.notes >= LARGE]
    queries = store.queries()
    rows: list[Row] = []
    with ready_for_turns():
        for kind, asked in queries.items():
            rounds = [await _times(memory, asked) for _ in range(ROUNDS)]
            rows.append(_fast_row(f"{store.notes} notes: fast result, {kind}", rounds, target, scan))
        with busy_cores(2):
            for kind, asked in queries.items():
                rounds = [await _times(memory, asked[:BUSY_QUERIES]) for _ in range(ROUNDS)]
                what = f"{store.notes} notes, both cores busy: fast result, {kind}"
                rows.append(_fast_row(what, rounds, BUSY_SECONDS, None))
    catalog.close()
    return rows


def _fast_row(what: str, rounds: Sequence["_Round"], target: float, scan: float | None) -> Row:
    median = min(_quantile(one.seconds, 0.5) for one in rounds)
    high = min(_quantile(one.seconds, 0.99) for one in rounds)
    worked = [min(_quantile(one.cpu, share) for one in rounds) * 1e3 for share in (0.5, 0.99)]
    beside = "" if scan is None else f"; reading every file takes {scan * 1e3:.0f} ms: {scan / median:.0f} x"
    cpu = f"of CPU {worked[0]:.1f} and {worked[1]:.1f}"
    return Row(
        what=f"{what}: p99 / {target * 1e3:.0f} ms",
        ratio=high / target,
        detail=f"p50 {median * 1e3:.1f} ms, p99 {high * 1e3:.1f} ms; {cpu}{beside}",
        at_most=1.0,
    )


@dataclass(frozen=True, slots=True)
class _Round:
    """What each query of a round took, on the clock and of this process's CPU."""

    seconds: Sequence[float]
    cpu: Sequence[float]


def _quantile(values: Sequence[float], share: float) -> float:
    return sorted(values)[int(len(values) * share)]


async def _times(memory: Memory, queries: Sequence[str]) -> _Round:
    seconds: list[float] = []
    cpu: list[float] = []
    for query in queries:
        started, before = time.perf_counter(), time.process_time()
        await memory.search(query, exclude=frozenset(), recent_tools=())
        seconds.append(time.perf_counter() - started)
        cpu.append(time.process_time() - before)
    return _Round(seconds, cpu)


async def _visible(store: Store, path: Path) -> Row:
    """Change files as a person does, and search until it shows."""
    times: list[float] = []
    roots = MemoryRoots(project=store.root)
    async with open_memory(roots, observers=Observers(), catalog_path=path, watch=True) as memory:
        await memory.wait_synced()
        for number in range(CHANGES):
            word = f"unheard{number}of"
            started = time.perf_counter()
            await to_thread.run_sync(store.write, number, word)
            while not (await memory.search(word, exclude=frozenset(), recent_tools=())).fast:  # noqa: ASYNC110 - as a person asks again
                await anyio.sleep(0.005)
            times.append(time.perf_counter() - started)
    times.sort()
    return Row(
        what=f"{store.notes} notes: a file changed by a person to visible / {VISIBLE_SECONDS:g} s",
        ratio=times[len(times) // 2] / VISIBLE_SECONDS,
        detail=f"median {times[len(times) // 2] * 1e3:.0f} ms, longest {times[-1] * 1e3:.0f} ms",
        at_most=1.0,
    )


def main(arguments: Sequence[str]) -> None:
    """Print a line for each figure of the named sizes."""
    if arguments[:1] == ["--recall"]:
        anyio.run(_recall, Path(arguments[1]), Path(arguments[2]), arguments[3])
        return
    for notes in [int(argument) for argument in arguments] or SIZES:
        rows = anyio.run(measure_search, [notes])
        width = max(len(row.what) for row in rows)
        for row in rows:
            mark = "" if not row.target else ("met" if row.met else "MISSED")
            sys.stdout.write(f"{row.what:{width}}  {row.ratio:6.2f}  {row.target:8} {mark:6}  {row.detail}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
