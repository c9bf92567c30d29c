"""The loops that the benchmark compares: ours with and without telemetry, and the usual one over `AsyncOpenAI`.

All three make the same requests to the same scripted model server, which runs in a process of its own: one selection
and one streamed answer a turn, over the same notes and the same history.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import openai
from openai.types.chat import ChatCompletionMessageParam

from recallscope.runtime.agent.host import Agent, RecallSettings
from recallscope.runtime.agent.send import SendSettings
from recallscope.runtime.agent.session import Session
from recallscope.runtime.agent.tools.registry import Toolbox
from recallscope.runtime.agent.turn_state import TurnRequest, Update
from recallscope.runtime.events import OpId, PolicyName, TurnOutcome
from recallscope.runtime.memory.memory import open_memory
from recallscope.runtime.memory.scopes import MemoryRoots
from recallscope.runtime.messages import AssistantMessage, Message, TextPart, UserMessage
from recallscope.runtime.model.openai_compat import OpenAICompatModel
from recallscope.runtime.observe import Observer, Observers
from recallscope.runtime.recall.policy import PolicySplit
from recallscope.runtime.recall.selector import SCHEMA
from recallscope.runtime.testing.script import Script, Select, Step, Steps
from recallscope.telemetry.sdk import Telemetry

__all__ = ["ANSWER_CHUNKS", "PROMPT", "Turn", "ours", "script", "usual", "write_notes"]

ANSWER_CHUNKS = 50
THINKING = 0.03
"""Seconds before the answer: a model is not quicker than the selection that runs beside it."""
PROMPT = "How do we roll back the payment gateway deployment?"
MODEL = "bench-model"
SYSTEM = "You are a helpful assistant."

Turn = Callable[[], Awaitable[None]]
"""One turn of a loop, to its end."""


def script() -> Script:
    """Answer every turn in `ANSWER_CHUNKS` chunks, and every selection with the notes that name the gateway."""
    text = " ".join(f"word{number}" for number in range(ANSWER_CHUNKS))
    return Script(
        purposes={
            "main": Steps((Step(answer=text, chunks=ANSWER_CHUNKS, delay=THINKING),)),
            SCHEMA.name: Steps((Step(select=Select(contains=("gateway",))),)),
        }
    )


def write_notes(folder: Path, number: int) -> None:
    """Write `number` notes below `folder`; two of them share words with `PROMPT`."""
    folder.mkdir(parents=True, exist_ok=True)
    for place in range(number):
        subject = "payment gateway rollback" if place < 2 else f"subject{place} of team{place % 17}"
        (folder / f"note-{place}.md").write_text(
            f"---\nname: {subject} {place}\ndescription: what to know about {subject}\ntype: project\n---\n"
            f"The {subject} is described in runbook {place}; ask the owner before changing anything about it.\n"
        )


def history(messages: int) -> list[Message]:
    """Make a history of `messages` messages, alternating between the person and the assistant."""
    return [
        UserMessage((TextPart(f"Question {number}: what about the part {number} of the system?"),))
        if number % 2 == 0
        else AssistantMessage(f"Answer {number}: the part {number} does what its name says. " * 4)
        for number in range(messages)
    ]


def _no_headers(_: OpId) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True, slots=True)
class _Silent:
    """Shows nothing of a turn."""

    async def __call__(self, update: Update) -> None:
        """Ignore the update."""


@asynccontextmanager
async def ours(
    url: str,
    notes: Path,
    *,
    telemetry: Telemetry | None,
    messages: int,
    sessions: int = 1,
    also: Sequence[Observer] = (),
) -> AsyncGenerator[Sequence[Turn]]:
    """Run our engine against `url` and give a turn function for each of `sessions` sessions."""
    observers = Observers((*(telemetry.observers if telemetry is not None else ()), *also))
    async with AsyncExitStack() as stack:
        memory = await stack.enter_async_context(
            open_memory(
                MemoryRoots(project=notes, user=None),
                catalog_path=notes.parent / "catalog.sqlite3",
                observers=observers,
            )
        )
        await memory.wait_synced()
        headers = telemetry.trace_headers if telemetry is not None else _no_headers
        model = await stack.enter_async_context(
            OpenAICompatModel(name=MODEL, base_url=url, api_key="bench", trace_headers=headers)
        )
        agent = Agent(
            name="bench",
            model=model,
            selector_model=model,
            memory=memory,
            recall=RecallSettings(split=PolicySplit.parse(PolicyName.TIERED)),
            observers=observers,
            toolbox=Toolbox(()),
            settings=SendSettings(system=SYSTEM),
        )
        past = history(messages)
        yield [_turn_of(agent.open_session(), past) for _ in range(sessions)]


def _turn_of(session: Session, past: list[Message]) -> Turn:
    async def turn() -> None:
        # Each turn meets a history of the same length, as the usual loop's turns do.
        session.history.replace(past)
        result = await session.prompt(TurnRequest(text=PROMPT), _Silent())
        if result.outcome is not TurnOutcome.END_TURN:
            raise AssertionError(f"a turn of the benchmark ended with {result.outcome}: {result.error}")

    return turn


@asynccontextmanager
async def usual(url: str, *, messages: int, sessions: int = 1) -> AsyncGenerator[Sequence[Turn]]:
    """Run the loop that most people write: `AsyncOpenAI`, its message parameters and its stream objects."""
    async with openai.AsyncOpenAI(base_url=url, api_key="bench", max_retries=0) as client:
        past = _as_parameters(history(messages))

        async def select() -> None:
            lines = "\n".join(f"n{number:02d} [project] 2026-01-01 note {number}" for number in range(1, 21))
            await client.chat.completions.create(
                model=MODEL,
                messages=[
                    {"role": "system", "content": "Choose notes."},
                    {"role": "user", "content": f"Request:\n{PROMPT}\n\nCandidates:\n{lines}"},
                ],
                response_format={
                    "type": "json_schema",
                    "json_schema": {"name": SCHEMA.name, "schema": dict(SCHEMA.schema), "strict": True},
                },
            )

        async def turn() -> None:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(select)
                text: list[str] = []
                stream = await client.chat.completions.create(
                    model=MODEL,
                    messages=[
                        {"role": "system", "content": SYSTEM},
                        *past,
                        {"role": "user", "content": PROMPT},
                    ],
                    stream=True,
                    stream_options={"include_usage": True},
                )
                async with stream:
                    async for chunk in stream:
                        if chunk.choices and chunk.choices[0].delta.content:
                            text.append(chunk.choices[0].delta.content)  # noqa: PERF401 - how people write it
                if not text:
                    raise AssertionError("a turn of the benchmark got no answer")

        yield [turn for _ in range(sessions)]


def _as_parameters(messages: Sequence[Message]) -> list[ChatCompletionMessageParam]:
    parameters: list[ChatCompletionMessageParam] = []
    for message in messages:
        match message:
            case UserMessage(parts):
                text = "\n\n".join(part.text for part in parts)
                parameters.append({"role": "user", "content": text})
            case AssistantMessage(text):
                parameters.append({"role": "assistant", "content": text})
    return parameters
