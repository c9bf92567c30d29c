"""Where experiments play: sample notes, a scripted model server in its own process, and an agent that is ready.

All of it is used once before the first turn, so that no turn pays for an import or a connection.
"""

import tempfile
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from pathlib import Path

import anyio

from recallscope.runtime.agent.host import Agent, RecallSettings
from recallscope.runtime.agent.ready import ready_for_turns
from recallscope.runtime.agent.send import Attempts, SendSettings
from recallscope.runtime.agent.session import Session
from recallscope.runtime.agent.tools.registry import Toolbox
from recallscope.runtime.agent.turn_state import TurnRequest, TurnResult
from recallscope.runtime.errors import LabError
from recallscope.runtime.lab.scenarios import MAIN_MODEL, SMALL_MODEL, SecondPrompt, job_tool, write_sample_notes
from recallscope.runtime.memory.memory import Memory, open_memory
from recallscope.runtime.memory.scopes import MemoryRoots
from recallscope.runtime.messages import TextPart, UserMessage
from recallscope.runtime.model.openai_compat import OpenAICompatModel
from recallscope.runtime.model.seam import Model, ModelRequest
from recallscope.runtime.observe import Observers
from recallscope.runtime.recall.fence import EXPLANATION
from recallscope.runtime.testing.process import start_process
from recallscope.runtime.testing.script import Script
from recallscope.telemetry.sdk import Telemetry

__all__ = ["converse", "open_stage"]


@asynccontextmanager
async def open_stage(
    script: Script,
    telemetry: Telemetry,
    observers: Observers,
    *,
    name: str,
    recall: RecallSettings,
    attempts: Attempts | None = None,
) -> AsyncGenerator[Agent]:
    """Open an agent called `name` over the sample notes, whose models answer as `script` says; all goes with the block.

    Raises:
        LabError: the model server did not start.
    """
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=f"recallscope-{name}-")))
        write_sample_notes(folder / "notes")
        try:
            url = await stack.enter_async_context(start_process(script))
        except OSError as error:
            raise LabError(f"the scripted model server did not start: {error}") from error
        main, small = [
            await stack.enter_async_context(
                OpenAICompatModel(name=model, base_url=url, provider="scripted", trace_headers=telemetry.trace_headers)
            )
            for model in (MAIN_MODEL, SMALL_MODEL)
        ]
        roots = MemoryRoots(project=folder / "notes", base=folder)
        memory = await stack.enter_async_context(
            open_memory(roots, observers=observers, catalog_path=folder / "catalog.sqlite3", read_only=True)
        )
        await memory.wait_synced()
        await _use_once(main, small, memory, observers)
        stack.enter_context(ready_for_turns())
        toolbox = Toolbox([job_tool()])
        yield Agent(
            name=name,
            model=main,
            selector_model=small,
            memory=memory,
            recall=recall,
            observers=observers,
            toolbox=toolbox,
            settings=SendSettings(system=EXPLANATION, tools=toolbox.specs, attempts=attempts or Attempts()),
        )


async def converse(
    session: Session, prompt: str, *, second: SecondPrompt | None = None, cancel_after: float | None = None
) -> tuple[TurnResult, ...]:
    """Say what the person says in `session`, close it, and return how its turns ended, in their order.

    `second` comes while the first turn is under way; after `cancel_after` seconds the person stops the turn.
    """
    results: tuple[TurnResult, ...] = ()
    try:
        async with anyio.create_task_group() as person:
            if cancel_after is not None:
                person.start_soon(_cancel, session, cancel_after)
            results = await _said(session, prompt, second)
            person.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await session.close()
    return results


async def _said(session: Session, prompt: str, second: SecondPrompt | None) -> tuple[TurnResult, ...]:
    if second is None:
        return (await session.prompt(TurnRequest(text=prompt)),)
    results: list[TurnResult] = []

    async def first() -> None:
        results.append(await session.prompt(TurnRequest(text=prompt)))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(first)
        await anyio.sleep(second.after)
        results.append(await session.prompt(TurnRequest(text=second.text)))
    return tuple(results)


async def _cancel(session: Session, after: float) -> None:
    await anyio.sleep(after)
    session.cancel()


async def _use_once(main: Model, small: Model, memory: Memory, observers: Observers) -> None:
    """Import what is imported on first use, and connect; no turn, so nothing of it is in the figures."""

    def request() -> ModelRequest:
        return ModelRequest(op=observers.new_op(), system=None, messages=(UserMessage((TextPart("Hello."),)),))

    async with aclosing(main.stream(request())) as chunks:
        async for _ in chunks:
            pass
    await small.complete(request())
    found = await memory.search("staging database port", exclude=frozenset(), recent_tools=())
    await memory.stale(await memory.load([hit.note for hit in found.fast]))
