"""`recallscope run` as a process against the scripted model server: what it prints, and how it ends."""

import os
import pty
import subprocess
import sys
import termios
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio.abc import Process

from recallscope.runtime.testing.model_server import ModelServer, RecordedRequest, serve
from recallscope.runtime.testing.script import Script, ScriptedToolCall, Select, Step

if TYPE_CHECKING:
    from conftest import Place, Running

pytestmark = pytest.mark.anyio

PROMPT = "What is the release branch of June called?"
SELECTION = Step(select=Select(contains=("Release branches",)))
CANCELLED = "recallscope: the turn was cancelled"


def of(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """Return the events of one kind."""
    return [event for event in events if event["event"] == kind]


async def test_the_answer_is_streamed_and_a_line_says_what_memory_did(place: "Place") -> None:
    """The first words are on stdout while the model still speaks; stderr has the recall's line alone; exit code 0."""
    answer = "It is called release/2026.06."
    slow = Step(answer=answer, chunks=20, chunk_delay=0.1)
    async with (
        serve(Script.of(slow, memory_selection=SELECTION)) as server,
        place.start("run", PROMPT, environ=place.environ(server.url)) as running,
    ):
        await running.wait_for(answer[:2])
        still_speaking = [request.answer_ended for request in server.requests if request.purpose == "main"]
        done = await running.done()

    assert still_speaking == [None]
    assert (done.code, done.out) == (0, f"{answer}\n")
    assert done.err.startswith("memory: 1 note with the first request (")
    assert len(done.err.splitlines()) == 1


async def test_json_prints_the_journal_and_nothing_else(place: "Place") -> None:
    """Each line is an event of version 1, from the process's start to the session's end; stdout has no answer."""
    async with serve(Script.of(Step(answer="It is."), memory_selection=SELECTION)) as server:
        done = await place.run("run", "--json", PROMPT, environ=place.environ(server.url))

    events = done.events
    assert done.code == 0
    assert {event["v"] for event in events} == {1}
    assert events[0]["event"] == "ProcessStarted"
    assert events[-1]["event"] == "SessionClosed"
    assert [len(of(events, kind)) for kind in ("TurnStarted", "RecallBegun", "RecallClosed", "TurnFinished")] == [1] * 4
    assert of(events, "RecallClosed")[0]["outcome"] == "delivered"
    assert of(events, "TurnFinished")[0]["outcome"] == "end_turn"
    assert place.journal() == events


async def test_the_demo_needs_neither_a_home_nor_a_network(place: "Place") -> None:
    """With nothing configured and no way out, the demo answers; it leaves nothing in the home."""
    nowhere = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), "http://127.0.0.1:9")
    environ = place.environ() | nowhere
    del environ["RECALLSCOPE_MEMORY_PROJECT_DIR"]

    done = await place.run("run", "--demo", environ=environ)

    assert (done.code, done.out[:16]) == (0, "release/2026.06,")
    assert "with the first request" in done.err
    assert "behind tool results" in done.err
    assert list(place.home.iterdir()) == []
    assert list(place.work.iterdir()) == []


async def test_without_a_model_one_sentence_says_how_to_configure_one(place: "Place") -> None:
    """The environment and the file are named, and the exit code is 2."""
    done = await place.run("run", PROMPT)

    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)
    assert done.err.startswith("recallscope: no model is configured: ")
    for way in ("OPENAI_BASE_URL", "RECALLSCOPE_MODEL_NAME", "recallscope.toml", "--demo"):
        assert way in done.err


async def test_ctrl_c_in_the_demo_reaches_the_demo_alone(place: "Place") -> None:
    """Ctrl-C goes to the whole group of a terminal's processes: the model server stays out of it and goes with it.

    A wrapper that passes on what the terminal has sent already changes nothing.
    """
    environ = place.environ(TMPDIR=str(place.home))
    async with place.start("run", "--demo", environ=environ, own_group=True) as running:
        await running.wait_for("release/2026.06")
        running.interrupt_group()
        running.interrupt_group()
        done = await running.done()

    lines = done.err.splitlines()
    assert (done.code, lines[0], lines[-1], len(lines)) == (130, "[list_directory]", CANCELLED, 3)
    assert lines[1].startswith("memory: 2 notes with the first request and behind tool results")
    assert list(place.home.iterdir()) == []


def selecting(request: RecordedRequest) -> bool:
    """Tell whether a request is the selector's."""
    return request.purpose == "memory_selection"


def main_model(request: RecordedRequest) -> bool:
    """Tell whether a request is a send of the turn."""
    return request.purpose == "main"


HANG = Step(hang=True)
ENDLESS_SEARCH = ScriptedToolCall(name="grep", arguments='{"pattern": "(a+)+$"}')


async def reach_selection(server: ModelServer, _: "Running") -> None:
    """Wait until the selector is asked, while the first send is held for it."""
    await server.wait_for(selecting)


async def reach_model(server: ModelServer, _: "Running") -> None:
    """Wait until model and selector are asked; neither answers."""
    await server.wait_for(selecting)
    await server.wait_for(main_model)


async def reach_stream(_: ModelServer, running: "Running") -> None:
    """Wait for the first words."""
    await running.wait_for("word")


async def reach_tool(_: ModelServer, running: "Running") -> None:
    """Wait for the tool."""
    await running.wait_for("[grep]")


NOTHING = "memory: nothing delivered, the turn was cancelled (abort); held the turn "
DELIVERED = "memory: 1 note with the first request (fast), held the turn "
STREAM = Step(answer="word ", endless=True, chunk_delay=0.02)
SEARCH = Step(tool_calls=(ENDLESS_SEARCH,))

STAGES: dict[str, tuple[Step, Callable[[ModelServer, "Running"], Awaitable[None]], str, tuple[str, ...]]] = {
    "selection": (HANG, reach_selection, "deadline", (NOTHING,)),
    "model": (HANG, reach_model, "tiered", (NOTHING,)),
    "stream": (STREAM, reach_stream, "tiered", (DELIVERED,)),
    "tool": (SEARCH, reach_tool, "tiered", ("[grep]", DELIVERED)),
}


@pytest.mark.parametrize("stage", STAGES)
async def test_ctrl_c_ends_the_turn_wherever_it_is(place: "Place", stage: str) -> None:
    """The turn is cancelled, the recall closed as `abort`, open requests closed by the client; exit code 130."""
    main, reach, policy, told = STAGES[stage]
    (place.work / "long.txt").write_text("a" * 40 + "b", encoding="utf-8")
    async with serve(Script.of(main, memory_selection=HANG)) as server:
        environ = place.environ(server.url, RECALLSCOPE_RECALL_POLICY=policy)
        async with place.start("run", PROMPT, environ=environ, own_group=True) as running:
            await reach(server, running)
            running.interrupt_group()
            done = await running.done()
        unanswered = [request.purpose for request in server.requests if not _whole(request)]
        await everything_ended(server)

    lines = done.err.splitlines()
    assert done.code == 130
    wanted = [*told, CANCELLED]
    assert [next((start for start in wanted if line.startswith(start)), line) for line in lines] == wanted
    assert done.out == "" or done.out.endswith("\n")
    events = place.journal()
    assert [(event["close_reason"], event["cause"]) for event in of(events, "RecallClosed")] == [
        ("abort", "user_cancel")
    ]
    assert [(event["outcome"], event["cause"]) for event in of(events, "TurnFinished")] == [
        ("cancelled", "user_cancel")
    ]
    assert "memory_selection" in unanswered
    assert _searches(place.work) == []


async def everything_ended(server: ModelServer) -> None:
    """Wait until each request was answered, or closed by the client."""
    with anyio.fail_after(10):
        for request in server.requests:
            await server.wait_for(lambda seen, number=request.number: seen.number == number and _ended(seen))


def _ended(request: RecordedRequest) -> bool:
    return request.answer_ended is not None


def _whole(request: RecordedRequest) -> bool:
    return request.answer_ended is not None and not request.client_closed


def _searches(folder: Path) -> list[str]:
    """Return the processes that search in `folder` still."""
    found: list[str] = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = entry.read_bytes()
            if b"grep_worker" in command and (entry.parent / "cwd").readlink() == folder:
                found.append(entry.parent.name)
        except OSError:
            continue  # it has ended meanwhile, or is somebody else's
    return found


async def test_sigterm_is_a_shutdown(place: "Place") -> None:
    """The turn ends with the cause `process_shutdown`, the recall as `shutdown`; exit code 143."""
    async with (
        serve(Script.of(HANG, memory_selection=HANG)) as server,
        place.start("run", PROMPT, environ=place.environ(server.url)) as running,
    ):
        await reach_model(server, running)
        running.process.terminate()
        done = await running.done()

    assert (done.code, done.out) == (143, "")
    assert "(shutdown)" in done.err
    events = place.journal()
    assert [(event["close_reason"], event["cause"]) for event in of(events, "RecallClosed")] == [
        ("shutdown", "process_shutdown")
    ]


LAUNCHER = (
    "import fcntl, os, sys, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
)


async def test_ctrl_c_leaves_the_terminal_clean(place: "Place") -> None:
    """Ctrl-C typed in a terminal while the answer streams: its modes are as before and the last line is whole."""
    controller, terminal = pty.openpty()
    os.set_blocking(controller, False)
    before = termios.tcgetattr(terminal)
    shown = bytearray()
    script = Script.of(STREAM, memory_selection=HANG)
    try:
        async with serve(script) as server, _in_terminal(terminal, place, server.url) as process:
            while b"word" not in shown:
                shown += await _read(controller)
            os.write(controller, b"\x03")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_read_on, controller, shown)
                await process.wait()
                tasks.cancel_scope.cancel()
        shown += _rest(controller)
        after = termios.tcgetattr(terminal)
    finally:
        os.close(controller)
        os.close(terminal)

    text = shown.decode()
    assert process.returncode == 130
    assert after == before
    assert "\x1b" not in text
    assert text.endswith("recallscope: the turn was cancelled\r\n")
    assert "Traceback" not in text


@asynccontextmanager
async def _in_terminal(terminal: int, place: "Place", url: str) -> AsyncGenerator[Process]:
    """Run a turn whose controlling terminal is `terminal`; the process is gone when the block ends."""
    command = [sys.executable, "-c", LAUNCHER, "-W", "error::ResourceWarning", "-m", "recallscope.runtime.cli"]
    with anyio.fail_after(45):
        async with await anyio.open_process(
            [*command, "run", PROMPT],
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            cwd=place.work,
            env=place.environ(url),
        ) as process:
            try:
                yield process
            finally:
                if process.returncode is None:
                    process.kill()


async def _read(controller: int) -> bytes:
    await anyio.wait_readable(controller)
    return os.read(controller, 65536)


async def _read_on(controller: int, into: bytearray) -> None:
    while True:
        into += await _read(controller)


def _rest(controller: int) -> bytes:
    try:
        return os.read(controller, 65536)
    except BlockingIOError:
        return b""


@pytest.mark.parametrize("arguments", [(), ("--json",)])
async def test_a_reader_that_leaves_early_ends_the_run_quietly(place: "Place", arguments: tuple[str, ...]) -> None:
    """Whoever reads stdout has gone: the turn ends, the model is told so, and nothing is complained about."""
    async with serve(Script.of(STREAM, memory_selection=HANG)) as server:
        with anyio.fail_after(45):
            command = f'{{ {sys.executable} -m recallscope.runtime.cli run "$@"; echo $? > code; }} | head -c 1'
            process = await anyio.run_process(
                ["sh", "-c", command, "sh", *arguments, PROMPT],
                stderr=subprocess.PIPE,
                cwd=place.work,
                env=place.environ(server.url),
            )
        await everything_ended(server)

    assert (len(process.stdout), process.stderr, (place.work / "code").read_text()) == (1, b"", "141\n")


async def test_a_workspace_that_is_not_there_is_a_wrong_configuration(place: "Place") -> None:
    """`run` wants a workspace that exists and says so; `config` shows what is set."""
    environ = place.environ("http://127.0.0.1:9", RECALLSCOPE_SESSION_WORKSPACE="/nonexistent")
    done = await place.run("run", PROMPT, environ=environ)
    shown = await place.run("config", environ=environ)

    assert (done.code, done.out, shown.code) == (2, "", 0)
    assert done.err.startswith("recallscope: session.workspace = '/nonexistent' (from environment ")
    assert len(done.err.splitlines()) == 1


async def test_the_limits_of_the_session_reach_the_turn(place: "Place") -> None:
    """A session that has used its tokens sends no more, here within its one turn."""
    listing = Step(tool_calls=(ScriptedToolCall(name="list_directory", arguments='{"path": "."}'),))
    async with serve(Script.of(listing, Step(answer="done"), memory_selection=SELECTION)) as server:
        done = await place.run("run", PROMPT, environ=place.environ(server.url, RECALLSCOPE_SESSION_MAX_TOKENS="1"))
        sends = [request.purpose for request in server.requests].count("main")

    assert (done.code, sends) == (1, 1)
    assert "the turn ended with max_tokens" in done.err


@pytest.mark.parametrize("arguments", [(), ("--json",)])
async def test_a_full_stdout_ends_the_turn_with_an_error(place: "Place", arguments: tuple[str, ...]) -> None:
    """What cannot be written ends the turn; stderr says what memory did and what was wrong; exit code 1."""
    async with serve(Script.of(STREAM, memory_selection=SELECTION)) as server:
        with anyio.fail_after(45):
            command = f'exec {sys.executable} -m recallscope.runtime.cli run "$@" >/dev/full'
            process = await anyio.run_process(
                ["sh", "-c", command, "sh", *arguments, PROMPT],
                check=False,
                stderr=subprocess.PIPE,
                cwd=place.work,
                env=place.environ(server.url),
            )
        await everything_ended(server)

    memory, error = process.stderr.decode().splitlines()
    assert process.returncode == 1
    assert memory.startswith("memory: ")
    assert "no recall" not in memory
    assert error == "recallscope: cannot write to stdout: No space left on device"


@pytest.mark.parametrize(
    ("environ", "told"),
    [
        ({"RECALLSCOPE_MEMORY_ENABLED": "false"}, "memory: no recall (memory is switched off)"),
        ({"RECALLSCOPE_RECALL_POLICY": "off"}, "memory: no recall (it is switched off)"),
    ],
)
async def test_no_recall_is_told_with_its_reason(place: "Place", environ: dict[str, str], told: str) -> None:
    """Without a recall the line says what is switched off."""
    async with serve(Script.of(Step(answer="It is."))) as server:
        done = await place.run("run", PROMPT, environ=place.environ(server.url, **environ))

    assert (done.code, done.out, done.err) == (0, "It is.\n", f"{told}\n")


async def test_a_tool_name_forges_no_line(place: "Place") -> None:
    """What the model calls a tool stays in one line on stderr, without orders to the terminal."""
    evil = Step(tool_calls=(ScriptedToolCall(name="evil\x1b[2J\nmemory: 9 notes", arguments="{}"),))
    async with serve(Script.of(evil, Step(answer="done"), memory_selection=SELECTION)) as server:
        done = await place.run("run", PROMPT, environ=place.environ(server.url))

    lines = done.err.splitlines()
    assert (lines[0], len(lines)) == ("[evil[2J memory: 9 notes]", 2)
    assert "\x1b" not in done.err
