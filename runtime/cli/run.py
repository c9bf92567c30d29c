"""`recallscope run`: one turn, its answer on stdout as it comes, and one line on what memory did on stderr."""

import signal
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager

import anyio
import click

from recallscope.runtime.agent.turn_state import AnswerText, ToolCallStarted, TurnRequest, TurnResult, Update
from recallscope.runtime.cli.compose import open_agent
from recallscope.runtime.cli.observed import observers_of, telemetry_settings
from recallscope.runtime.cli.output import READER_LEFT, StdoutError, complain, discard_stdout, for_stdout
from recallscope.runtime.cli.recall_line import recall_line
from recallscope.runtime.cli.settings import settings_in_force
from recallscope.runtime.cli.signals import INTERRUPTED, on_signal
from recallscope.runtime.config import Settings
from recallscope.runtime.events import Cause, Event, OpId, RecallClosed, TurnOutcome, TurnStarted
from recallscope.runtime.lab.demo import DEMO_PROMPT, open_demo
from recallscope.runtime.terms import PolicyName
from recallscope.telemetry.anchor import Anchor
from recallscope.telemetry.encode import Encoder
from recallscope.telemetry.sdk import open_telemetry

__all__ = ["run"]

FRONT_END = "run"
FAILED = 1
TERMINATED = 143
FIRST_SYNC_SECONDS = 2.0
"""How long the first catalog of a memory may take before the turn begins; afterwards the catalog is on disk."""


@click.command("run")
@click.argument("prompt", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print the journal's lines instead of the answer.")
@click.option("--demo", is_flag=True, help="Use a scripted model and sample notes.")
@click.pass_context
def run(context: click.Context, prompt: str | None, as_json: bool, demo: bool) -> int:
    """Run one turn with PROMPT.

    The answer is streamed to stdout; a line on stderr says what memory did. Exit code 1: the turn failed, 130: Ctrl-C.
    When the reader of stdout leaves, the turn is cancelled.
    """
    if prompt is None and not demo:
        raise click.UsageError("a PROMPT is needed, such as: recallscope run 'How do we release?' (or use --demo)")
    settings = settings_in_force(context)
    if demo:
        return anyio.run(_demo, context, prompt or DEMO_PROMPT, as_json)
    return anyio.run(_run, settings, prompt or "", as_json, True)


async def _demo(context: click.Context, prompt: str, as_json: bool) -> int:
    async with open_demo() as demo:
        return await _run(settings_in_force(context, demo.flags), prompt, as_json, False)


class _Output:
    """Stdout. A reader that leaves, as `head` does, ends what writes: nobody would see the rest.

    So does a stdout that fails. It is an observer that writes, which may not raise: `failure` is kept for the end.
    """

    def __init__(self) -> None:
        self.left = False
        self.failure: StdoutError | None = None
        self.stop: Callable[[], object] = bool

    def write(self, text: str) -> None:
        """Write `text` at once; where nothing can be written any more, `stop` is called."""
        if self.usable:
            try:
                sys.stdout.write(text)
                sys.stdout.flush()
            except BrokenPipeError:
                self.left = True
                discard_stdout()
            except StdoutError as error:
                self.failure = error
                discard_stdout()
        if not self.usable:
            self.stop()

    @property
    def usable(self) -> bool:
        """Whether all that was written has been taken."""
        return not self.left and self.failure is None


class _Facts:
    """Remembers of the turn what its last lines say."""

    name = "command line's facts"

    def __init__(self) -> None:
        self.policy: PolicyName | None = None
        self.recall: RecallClosed | None = None

    def __call__(self, event: Event, /) -> None:
        """Remember the turn's policy, and how the recall ended."""
        match event:
            case TurnStarted():
                self.policy = event.policy
            case RecallClosed():
                self.recall = event
            case _:
                pass


class _Told:
    """What is told of the turn on the way: the journal's lines, or the answer and the tools."""

    name = "command line"

    def __init__(self, output: _Output, *, as_json: bool, trace_id: Callable[[OpId], str | None]) -> None:
        self._output = output
        self._encoder = Encoder(Anchor.now(), trace_id=trace_id) if as_json else None

    def __call__(self, event: Event, /) -> None:
        """Print a line of the journal."""
        if self._encoder is not None:
            self._output.write(self._encoder(event).decode() + "\n")

    async def update(self, update: Update) -> None:
        """Show the answer as it comes, unless the journal's lines say it all."""
        match update:
            case _ if self._encoder is not None:
                pass
            case AnswerText(text):
                self._output.write(for_stdout(text))
            case ToolCallStarted(tool=tool):
                complain(f"[{tool}]")
            case _:
                pass


async def _run(settings: Settings, prompt: str, as_json: bool, journal: bool) -> int:
    output = _Output()
    facts = _Facts()
    with open_telemetry(telemetry_settings(settings, FRONT_END, serves_metrics=False, journal=journal)) as telemetry:
        told = _Told(output, as_json=as_json, trace_id=telemetry.trace_id)
        observers = observers_of(telemetry, FRONT_END, (facts, told))
        async with open_agent(settings, telemetry.trace_headers, observers) as (agent, memory), _running(telemetry.run):
            if memory is not None:
                with anyio.move_on_after(FIRST_SYNC_SECONDS):
                    await memory.wait_synced()
            session = agent.open_session()
            async with on_signal(lambda number: session.cancel(_cause(number))) as interrupted:
                output.stop = session.cancel
                result = await session.prompt(TurnRequest(text=prompt), told.update)
            await session.close()
        if not output.left:
            # Before telemetry is closed, which a collector that is not there makes slow.
            if output.usable and not as_json and result.text and not result.text.endswith("\n"):
                output.write("\n")
            complain(_said_of_recall(facts, settings))
            if output.failure is None:
                _say_end(result)
    if output.failure is not None:
        raise output.failure
    return READER_LEFT if output.left else _exit_code(result, interrupted)


def _said_of_recall(facts: _Facts, settings: Settings) -> str:
    if facts.recall is not None:
        return recall_line(facts.recall)
    if not settings.memory.enabled:
        return "memory: no recall (memory is switched off)"
    if facts.policy is PolicyName.OFF:
        return "memory: no recall (it is switched off)"
    return "memory: no recall (the turn ended before it began)"


def _say_end(result: TurnResult) -> None:
    match result.outcome:
        case TurnOutcome.END_TURN:
            pass
        case TurnOutcome.CANCELLED:
            complain("recallscope: the turn was cancelled")
        case _:
            complain(f"recallscope: the turn ended with {result.outcome}{_because(result)}")


def _because(result: TurnResult) -> str:
    return f": {result.error}" if result.error else ""


def _cause(number: signal.Signals) -> Cause:
    return Cause.USER_CANCEL if number == signal.SIGINT else Cause.PROCESS_SHUTDOWN


def _exit_code(result: TurnResult, interrupted: list[signal.Signals]) -> int:
    if signal.SIGTERM in interrupted:
        return TERMINATED
    if interrupted:
        return INTERRUPTED
    return 0 if result.outcome is TurnOutcome.END_TURN else FAILED


@asynccontextmanager
async def _running(work: Callable[[], Coroutine[None, None, None]]) -> AsyncGenerator[None, None]:
    """Run `work` beside the block and end it with the block."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(work)
        yield
        tasks.cancel_scope.cancel()
