"""Two processes change one memory while a third recalls from it, and nothing stale is delivered and nothing lost.

`python tests/e2e/soak.py SECONDS [SEED]` runs it and prints what happened; `make soak SECONDS=600` does. The same seed
makes the same changes in each process; how they interleave is the machine's.

What is checked: a delivered version of a note was the content of its file at some moment of the send's wait for memory
(`consume`). Each writer logs, on a clock that all processes share, when each change of a path began and ended. A
delivery is stale if every write of its version was followed by another change of that path that began after the write
had ended, and ended before the wait began; and so is a version that nobody ever wrote.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio

from recallscope.runtime.errors import MemoryWriteError, NoteError
from recallscope.runtime.events import Event, OpId, RecallClosed, RecallWithdrawn
from recallscope.runtime.memory.catalog import Catalog
from recallscope.runtime.memory.edit import Draft
from recallscope.runtime.memory.memory import Memory, open_memory
from recallscope.runtime.memory.note import Note, note_id, version_of
from recallscope.runtime.memory.scopes import MemoryRoots, Root, list_notes
from recallscope.runtime.memory.store import read_note
from recallscope.runtime.memory.sync import sync_root
from recallscope.runtime.observe import Observers
from recallscope.runtime.recall.policy import policy_named
from recallscope.runtime.recall.recaller import Recaller, RecallTurn
from recallscope.runtime.terms import Cause, Outcome, Point, PolicyName, ScopeName

WRITERS = 2
NAMES = 40
FOLDERS = ("project", "deep/er", "moved")
TIME_BACK = 1_000
OTHERS_AT_WORK = ("exists", "is gone", "was changed", "No such file", "it is empty")
"""What another process may have done to a file meanwhile; who writes in place empties it first."""


def text_of(name: str, number: int) -> str:
    """Return a note that only a query for `name` finds; `number` keeps its length."""
    return f"---\nname: Quokka{name}\ndescription: about the colony {name}\n---\nstate {number:09}\n"


@dataclass(slots=True)
class Log:
    """What one writer did: per change the path, the version it put there (None: the file went), begin and end."""

    changes: list[tuple[str, str | None, int, int]] = field(default_factory=list[tuple[str, str | None, int, int]])
    kinds: Counter[str] = field(default_factory=Counter[str])

    @contextmanager
    def change(self, relative: str) -> Generator[list[str | None]]:
        """Log a change of `relative` to the versions that the block appends: more than one if it is not certain."""
        put: list[str | None] = []
        begun = time.monotonic_ns()
        try:
            yield put
        finally:
            ended = time.monotonic_ns()
            self.changes.extend((relative, version, begun, ended) for version in put)


class Writer:
    """Changes notes at random, as people, editors and our own tools do."""

    def __init__(self, memory: Memory, root: Root, random: random.Random) -> None:
        self.memory = memory
        self.root = root
        self.random = random
        self.log = Log()
        self.number = 0
        self.kinds = {
            "create": self.create,
            "update": self.update,
            "delete": self.delete,
            "write": self.write,
            "replace": self.replace,
            "same_look": self.same_look,
            "rename": self.rename,
            "unlink": self.unlink,
        }

    async def step(self) -> None:
        """Make one change; that another process was there first is no fault."""
        kind = self.random.choice(sorted(self.kinds))
        relative = f"{self.random.choice(FOLDERS)}/n{self.random.randrange(NAMES)}.md"
        try:
            await self.kinds[kind](relative)
            self.log.kinds[kind] += 1
        except FileNotFoundError:
            self.log.kinds["late"] += 1
        except (NoteError, MemoryWriteError) as error:
            if not any(known in str(error) for known in OTHERS_AT_WORK):
                raise
            self.log.kinds["late"] += 1

    def _text(self, relative: str) -> str:
        self.number += 1
        return text_of(Path(relative).stem, self.random.randrange(10**9))

    def _note(self, relative: str) -> Note:
        return read_note(self.root, relative)[0]

    async def create(self, relative: str) -> None:
        """Make a note through `memory/edit`."""
        name = Path(relative).stem
        draft = Draft(title=f"Quokka{name}", description=f"about the colony {name}", body=self._text(relative)[-10:])
        with self.log.change(relative) as put:
            put.append((await self.memory.edit.create(ScopeName.PROJECT, draft, relative=relative)).version)

    async def update(self, relative: str) -> None:
        """Change a note through `memory/edit`."""
        note = self._note(relative)
        draft = replace(Draft.of(note), body=self._text(relative)[-10:])
        with self.log.change(relative) as put:
            put.append((await self.memory.edit.update(note, draft)).version)

    async def delete(self, relative: str) -> None:
        """Delete a note through `memory/edit`."""
        note = self._note(relative)
        with self.log.change(relative) as put:
            await self.memory.edit.delete(note)
            put.append(None)

    async def write(self, relative: str) -> None:
        """Write a file in place, its folder with it."""
        data = self._text(relative).encode()
        path = self.root.path / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        with self.log.change(relative) as put:
            path.write_bytes(data)
            put.append(version_of(data))

    async def replace(self, relative: str) -> None:
        """Save as an editor does: another file takes the place."""
        data = self._text(relative).encode()
        path = self.root.path / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        copy = path.with_name(f".{path.name}.{os.getpid()}")
        copy.write_bytes(data)
        with self.log.change(relative) as put:
            copy.replace(path)
            put.append(version_of(data))

    async def same_look(self, relative: str) -> None:
        """Write in place as many bytes as before, and put the time back."""
        data = self._text(relative).encode()
        path = self.root.path / relative
        if not path.exists():
            raise FileNotFoundError(relative)
        with self.log.change(relative) as put:
            path.write_bytes(data)
            put.append(version_of(data))
            os.utime(path, (TIME_BACK, TIME_BACK))

    async def rename(self, relative: str) -> None:
        """Move a note to another folder, over what is there."""
        source = self.root.path / relative
        target = f"{self.random.choice(FOLDERS)}/{source.name}"
        (self.root.path / target).parent.mkdir(parents=True, exist_ok=True)
        if target == relative:
            return
        before = version_of(source.read_bytes())
        with self.log.change(target) as put, self.log.change(relative) as left:
            source.replace(self.root.path / target)
            left.append(None)
            put.append(before)  # or what another process wrote since it was read
            put.append(version_of((self.root.path / target).read_bytes()))

    async def unlink(self, relative: str) -> None:
        """Delete a file."""
        with self.log.change(relative) as put:
            (self.root.path / relative).unlink()
            put.append(None)


async def write(root: Root, catalog: Path, seed: int, seconds: float) -> dict[str, Any]:
    """Change notes for so long; return the log."""
    async with open_memory(
        MemoryRoots(project=root.path), observers=Observers(), catalog_path=catalog, watch=True
    ) as memory:
        writer = Writer(memory, root, random.Random(seed))
        until = anyio.current_time() + seconds
        while anyio.current_time() < until:
            await writer.step()
            await anyio.sleep(writer.random.choice((0.0, 0.002, 0.02)))
    return {"changes": writer.log.changes, "kinds": writer.log.kinds}


async def recall(root: Root, catalog: Path, seed: int, seconds: float) -> dict[str, Any]:
    """Recall for so long, as turns do; return what was delivered, with the wait that it was delivered in."""
    events: list[Event] = []
    observers = Observers([events.append])
    choices = random.Random(seed)
    deliveries: list[tuple[str, str, int, int]] = []
    async with open_memory(
        MemoryRoots(project=root.path), observers=observers, catalog_path=catalog, read_only=True, watch=True
    ) as memory:
        await memory.wait_synced()
        recaller = Recaller(memory=memory, selector=None, policy=policy_named(PolicyName.TIERED), observers=observers)
        until = anyio.current_time() + seconds
        turn = 0
        while anyio.current_time() < until:
            turn += 1
            async with anyio.create_task_group() as tasks:
                recaller.begin(
                    RecallTurn(op=OpId(f"turn{turn}"), session="s", turn=f"s.{turn}", tasks=tasks, cause=_no_cause),
                    f"what is quokkan{choices.randrange(NAMES)} about",
                    surfaced=frozenset(),
                    recent_tools=(),
                )
                begun = time.monotonic_ns()
                handover = await recaller.consume(Point.INITIAL)
                ended = time.monotonic_ns()
                if handover.part is not None:
                    deliveries.extend(
                        (version.note, version.version, begun, ended) for version in handover.part.versions
                    )
                handover.accepted()
                await recaller.finish(Cause.TURN_END)
            await anyio.sleep(0.002)
    closed = [event for event in events if isinstance(event, RecallClosed)]
    return {
        "deliveries": deliveries,
        "turns": turn,
        "failed": [event.reason for event in closed if event.outcome is Outcome.FAILED],
        "withdrawn": sum(isinstance(event, RecallWithdrawn) for event in events),
    }


def _no_cause() -> Cause | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """What a soak came to: empty lists and no problem are what is right."""

    seed: int
    changes: Counter[str]
    turns: int
    delivered: int
    withdrawn: int
    stale: list[str]
    failed: list[str]
    notes: int
    lost: list[str]
    different: list[str]
    problems: list[str]


def soak(seconds: float, seed: int) -> Outcomes:
    """Run the processes and judge what they tell."""
    with tempfile.TemporaryDirectory(prefix="soak-") as name:
        folder = Path(name).resolve()
        root = Root(ScopeName.PROJECT, folder / "notes")
        catalog = folder / "cache" / "catalog.sqlite3"
        parts = [("write", seed * 10 + at) for at in range(WRITERS)] + [("recall", seed * 10 + 9)]
        processes = [
            subprocess.Popen(
                [sys.executable, __file__, part, str(root.path), str(catalog), str(number), str(seconds)],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for part, number in parts
        ]
        told = [process.communicate(timeout=seconds + 60) for process in processes]
        problems = [line for _, errors in told for line in errors.splitlines()]
        problems += [f"{process.args} ended with {process.returncode}" for process in processes if process.returncode]
        if problems:
            return Outcomes(
                seed=seed, changes=Counter(), turns=0, delivered=0, withdrawn=0, stale=[], failed=[], notes=0, lost=[],
                different=[], problems=problems,
            )  # fmt: skip
        *writers, recaller = (json.loads(out) for out, _ in told)
        shared, fresh = rows_after_a_sync(catalog, root), rows_after_a_sync(folder / "fresh.sqlite3", root)
        files = list_notes(root.path).files
        kinds: Counter[str] = Counter()
        for writer in writers:
            kinds.update(writer["kinds"])
        return Outcomes(
            seed=seed,
            changes=kinds,
            turns=recaller["turns"],
            delivered=len(recaller["deliveries"]),
            withdrawn=recaller["withdrawn"],
            stale=list(stale(recaller["deliveries"], [change for writer in writers for change in writer["changes"]])),
            failed=recaller["failed"],
            notes=len(files),
            lost=sorted(set(files) - {str(row[1]) for row in shared if row[0] == "note"}),
            different=[str(row) for row in sorted(shared ^ fresh, key=str)],
            problems=problems,
        )


def stale(
    deliveries: list[tuple[str, str, int, int]], changes: list[tuple[str, str | None, int, int]]
) -> Iterator[str]:
    """Yield the deliveries whose version was certainly not on disk while the send waited."""
    by_note: dict[str, list[tuple[str | None, int, int]]] = defaultdict(list)
    for relative, version, begun, ended in changes:
        by_note[note_id(ScopeName.PROJECT, relative)].append((version, begun, ended))
    for note, version, wait_begun, wait_ended in deliveries:
        history = by_note[note]
        writes = [(begun, ended) for put, begun, ended in history if put == version and begun <= wait_ended]
        if not writes:
            yield f"{note} {version} was never written before {wait_ended}"
        elif all(any(begun > written and ended < wait_begun for _, begun, ended in history) for _, written in writes):
            yield f"{note} {version} was replaced before {wait_begun}"


def rows_after_a_sync(path: Path, root: Root) -> set[tuple[object, ...]]:
    """Return everything that a catalog holds after a scan, without the numbers that are its own."""
    with closing(Catalog(path)) as catalog:
        catalog.open()
        synced = sync_root(catalog, root)
        number = catalog.root_id(root.path)
        with catalog.writing() as connection:
            columns = [row[1] for row in connection.execute("PRAGMA table_info(notes)")]
            wanted = ", ".join(f"n.{name}" for name in columns if name not in {"id", "root", "relative", "racy"})
            rows: set[tuple[object, ...]] = {("count", synced.notes, catalog.count(number))}
            query = f"SELECT n.relative, {wanted}, body FROM notes n JOIN bodies USING (id)"  # noqa: S608 - names
            rows.update(("note", *row) for row in connection.execute(query))
            rows.update(("term", *row) for row in connection.execute("SELECT * FROM terms"))
            connection.execute("CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab (main, words, instance)")
            index = "SELECT v.term, n.relative FROM temp.vocabulary v LEFT JOIN notes n ON n.id = v.doc"
            rows.update(("word", *row) for row in connection.execute(index))
    return rows


def main(arguments: list[str]) -> int:
    """Run a part in its own process, or the whole."""
    if arguments[0] in {"write", "recall"}:
        part, root, catalog, seed, seconds = arguments
        run = write if part == "write" else recall
        told = anyio.run(run, Root(ScopeName.PROJECT, Path(root)), Path(catalog), int(seed), float(seconds))
        sys.stdout.write(json.dumps(told))
        return 0
    seed = int(arguments[1]) if len(arguments) > 1 else random.SystemRandom().randrange(10**6)
    outcomes = soak(float(arguments[0]), seed)
    sys.stdout.write(f"{outcomes}\n")
    wrong = outcomes.stale or outcomes.failed or outcomes.lost or outcomes.different or outcomes.problems
    return int(bool(wrong) or not outcomes.delivered)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["15"]))
