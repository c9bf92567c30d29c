"""Real processes of the command line, each in an empty folder with an empty home, beside servers on loopback."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import ByteReceiveStream, Process

from recallscope.runtime.agent.host import Agent, RecallSettings
from recallscope.runtime.agent.send import Attempts, SendSettings
from recallscope.runtime.agent.tools.registry import Tool, Toolbox
from recallscope.runtime.events import OpId
from recallscope.runtime.lab.scenarios import MAIN_MODEL as MODEL
from recallscope.runtime.lab.scenarios import SMALL_MODEL, write_sample_notes
from recallscope.runtime.memory.memory import open_memory
from recallscope.runtime.memory.scopes import MemoryRoots
from recallscope.runtime.model.openai_compat import OpenAICompatModel, TraceHeaders
from recallscope.runtime.observe import Observers
from recallscope.runtime.recall.fence import EXPLANATION
from recallscope.runtime.recall.policy import Arm, PolicySplit
from recallscope.runtime.terms import PolicyName
from recallscope.runtime.testing.recorder import EventRecorder

PATIENCE_SECONDS = 45.0
"""The end of a test that hangs; nothing that works comes near it."""

CEILING_SECONDS = 5.0
"""How long a first send may wait for memory: a busy machine changes nothing. Tests of the ceiling use the default."""


MakeAgent = Callable[..., AbstractAsyncContextManager[Agent]]
OpenAgent = Callable[..., AbstractAsyncContextManager[Agent]]


@dataclass(frozen=True, slots=True)
class Done:
    """How a process ended and what it wrote."""

    code: int
    out: str
    err: str
    seconds: float

    @property
    def events(self) -> list[dict[str, Any]]:
        """The lines of stdout, each of which is JSON."""
        return [json.loads(line) for line in self.out.splitlines()]


@dataclass(slots=True)
class Running:
    """A process under way: what it has written so far, and a way to wait for that."""

    process: Process
    started: float
    out: bytearray = field(default_factory=bytearray)
    err: bytearray = field(default_factory=bytearray)
    ended: float = 0.0
    _more: anyio.Event = field(default_factory=anyio.Event)
    _finished: anyio.Event = field(default_factory=anyio.Event)

    async def read(self, stream: ByteReceiveStream | None, into: bytearray) -> None:
        """Collect what comes from `stream` until its end."""
        if stream is None:
            return
        async for piece in stream:
            into += piece
            more, self._more = self._more, anyio.Event()
            more.set()

    async def collect(self) -> None:
        """Collect both streams and wait for the process."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.read, self.process.stdout, self.out)
            tasks.start_soon(self.read, self.process.stderr, self.err)
        await self.process.wait()
        self.ended = anyio.current_time()
        self._finished.set()
        self._more.set()

    async def wait_for(self, text: str) -> None:
        """Wait until `text` stands in what was written to stdout or stderr."""
        while text.encode() not in self.out and text.encode() not in self.err:
            assert not self._finished.is_set(), f"it ended without {text!r}: {bytes(self.out)!r} {bytes(self.err)!r}"
            await self._more.wait()

    def interrupt_group(self) -> None:
        """Send what Ctrl-C sends: SIGINT to the process and to the others of its group."""
        os.killpg(self.process.pid, signal.SIGINT)

    async def done(self) -> Done:
        """Wait for the end."""
        await self._finished.wait()
        code = self.process.returncode
        assert code is not None
        return Done(code, self.out.decode(), self.err.decode(), self.ended - self.started)


@dataclass(frozen=True, slots=True)
class Place:
    """An empty home, an empty working folder, a folder of notes, and `recallscope` started in them."""

    home: Path
    work: Path
    notes: Path

    def environ(self, url: str | None = None, **more: str) -> dict[str, str]:
        """Return a clean environment; `url` configures the model that is served there."""
        wanted = {name: value for name, value in os.environ.items() if name in {"PATH", "PYTHONPATH", "LANG"}}
        wanted |= {"HOME": str(self.home), "RECALLSCOPE_MEMORY_PROJECT_DIR": str(self.notes)}
        wanted |= {"RECALLSCOPE_RECALL_CEILING_SECONDS": str(CEILING_SECONDS)}
        if url is not None:
            wanted |= {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "key", "RECALLSCOPE_MODEL_NAME": MODEL}
        return wanted | more

    @asynccontextmanager
    async def start(
        self,
        *arguments: str,
        environ: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        own_group: bool = False,
    ) -> AsyncGenerator[Running]:
        """Start `recallscope` with `stdin` to read; whatever happens, the process is gone when the block ends.

        `own_group` makes it the head of a process group, as a shell does.
        """
        command = [sys.executable, "-W", "error::ResourceWarning", "-m", "recallscope.runtime.cli"]
        with anyio.fail_after(PATIENCE_SECONDS):
            async with await anyio.open_process(
                [*command, *arguments],
                stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
                cwd=self.work,
                env=self.environ() if environ is None else environ,
                start_new_session=own_group,
            ) as process:
                running = Running(process, anyio.current_time())
                if process.stdin is not None:
                    await process.stdin.send(stdin)
                    await process.stdin.aclose()
                try:
                    async with anyio.create_task_group() as tasks:
                        tasks.start_soon(running.collect)
                        yield running
                        await running.done()
                finally:
                    if process.returncode is None:
                        process.kill()

    async def run(self, *arguments: str, environ: Mapping[str, str] | None = None, stdin: bytes = b"") -> Done:
        """Run `recallscope` to its end."""
        async with self.start(*arguments, environ=environ, stdin=stdin) as running:
            return await running.done()

    def journal(self) -> list[dict[str, Any]]:
        """Return the lines of all journals in this home."""
        files = sorted(self.home.rglob("journal-*.jsonl"))
        return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def make_place(tmp_path: Path) -> Callable[[str], Place]:
    """Give a function that makes a place with the sample notes."""

    def make(name: str) -> Place:
        place = Place(*(tmp_path / name / part for part in ("home", "work", "notes")))
        place.home.mkdir(parents=True)
        place.work.mkdir()
        write_sample_notes(place.notes)
        return place

    return make


@pytest.fixture
def place(make_place: Callable[[str], Place]) -> Place:
    """Give a place with the sample notes."""
    return make_place("here")


@pytest.fixture
def recorder() -> EventRecorder:
    """Give a recorder of what the agents of this test state."""
    return EventRecorder()


def _no_headers(_: OpId) -> Mapping[str, str]:
    return {}


@pytest.fixture(scope="session")
def open_agent() -> OpenAgent:
    """Give a function that opens an agent in this process, with the real memory and the real model client."""

    @asynccontextmanager
    async def open_one(
        url: str,
        notes: Path,
        cache: Path,
        observers: Observers,
        *,
        trace_headers: TraceHeaders = _no_headers,
        policy: PolicyName = PolicyName.TIERED,
        attempts: Attempts | None = None,
        tools: Sequence[Tool] = (),
    ) -> AsyncGenerator[Agent]:
        roots, toolbox = MemoryRoots(project=notes, base=cache), Toolbox(tools)
        async with (
            OpenAICompatModel(name=MODEL, base_url=url, trace_headers=trace_headers) as model,
            OpenAICompatModel(name=SMALL_MODEL, base_url=url, trace_headers=trace_headers) as small,
            open_memory(roots, observers=observers, catalog_path=cache / "catalog.sqlite3", read_only=True) as memory,
        ):
            await memory.wait_synced()
            yield Agent(
                name="e2e",
                model=model,
                selector_model=small,
                memory=memory,
                recall=RecallSettings(split=PolicySplit((Arm(policy, 1),)), ceiling=CEILING_SECONDS),
                observers=observers,
                toolbox=toolbox,
                settings=SendSettings(system=EXPLANATION, tools=toolbox.specs, attempts=attempts or Attempts()),
            )

    return open_one


@pytest.fixture
def make_agent(open_agent: OpenAgent, place: Place, tmp_path: Path, recorder: EventRecorder) -> MakeAgent:
    """Give a function that opens an agent at a URL with the sample notes; `recorder` watches it."""

    def make(url: str, **more: Any) -> AbstractAsyncContextManager[Agent]:
        return open_agent(url, place.notes, tmp_path, Observers((recorder,)), **more)

    return make


@pytest.fixture
def free_port() -> int:
    """Find a port of loopback where nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
