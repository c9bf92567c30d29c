"""What a script for the scripted model server says: frozen values, and the way back to plain data.

A script answers by *purpose* (what the request is for, told by its schema name) and, where several conversations play
at once, by *scenario* (a text that stands in the person's prompt). `testing/script_parser` reads scripts from YAML and
JSON; `docs/model-server.md` is the page for people who write them.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum, unique
from typing import Any

from recallscope.runtime.errors import ScriptError

__all__ = [
    "DEFAULT_SCENARIO",
    "EMBEDDING",
    "PURPOSES",
    "Embed",
    "ErrorChunk",
    "Malformed",
    "Order",
    "Scenario",
    "Script",
    "ScriptedToolCall",
    "ScriptedUsage",
    "Select",
    "Step",
    "Steps",
]

EMBEDDING = "embedding"
"""The purpose of a request for vectors."""

PURPOSES = (
    "main",
    "memory_selection",
    "memory_extraction",
    "memory_consolidation",
    "memory_phrasings",
    "json_object",
    EMBEDDING,
)
"""What a request can be for: `main` has no schema, `json_object` is a structured request that names none.

`embedding` is what `POST /v1/embeddings` asks for.
"""

DEFAULT_SCENARIO = "default"
"""The name under which the steps at the top of a script are recorded."""


@unique
class Order(StrEnum):
    """How the steps of a list are taken."""

    CONVERSATION = "conversation"
    ARRIVAL = "arrival"


@dataclass(frozen=True, slots=True)
class ScriptedUsage:
    """Tokens that an answer reports; `cached` None leaves the field out."""

    input: int = 100
    output: int = 20
    cached: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedToolCall:
    """A tool call; `arguments` is its JSON text, sent in `fragments` pieces, `id` None makes a fresh id."""

    name: str
    arguments: str = "{}"
    id: str | None = None
    fragments: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Select:
    """How a selection is made from the candidates in the request: those that contain a text, then the first others."""

    everything: bool = False
    contains: tuple[str, ...] = ()
    also_first: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Embed:
    """How vectors are made: their length, and groups of words that are taken for one (`embedder`)."""

    dimension: int = 256
    synonyms: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorChunk:
    """An `error` object in the stream, after `after` chunks; the stream ends behind it, without its end marker."""

    message: str
    type: str = "server_error"
    code: str | None = None
    after: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Malformed:
    """A raw data line that stands after `after` chunks; the answer goes on behind it."""

    line: str
    after: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One answer of the server, and what goes wrong with it. Times are seconds, counts are chunks that carry a choice.

    `delay` passes before the headers, `chunk_delay` before each chunk. At most one of `error_chunk`, `cut_after`,
    `endless` ends the answer in its own way; `hang` never answers; `status` refuses.
    """

    answer: str = ""
    chunks: int = 1
    chunk_delay: float = 0.0
    delay: float = 0.0
    tool_calls: tuple[ScriptedToolCall, ...] = ()
    usage: ScriptedUsage = field(default_factory=ScriptedUsage)
    finish_reason: str | None = None
    status: int | None = None
    retry_after: float | str | None = None
    body: str | Mapping[str, Any] | None = None
    error_chunk: ErrorChunk | None = None
    cut_after: int | None = None
    endless: bool = False
    max_chunks: int | None = None
    hang: bool = False
    malformed: Malformed | None = None
    comment_first: bool = False
    select: Select | None = None
    embed: Embed | None = None


@dataclass(frozen=True, slots=True)
class Steps:
    """The answers for one purpose, at least one; the last one repeats."""

    steps: tuple[Step, ...]
    order: Order = Order.CONVERSATION

    def __post_init__(self) -> None:
        """Refuse a list without a step.

        Raises:
            ScriptError: there is none.
        """
        if not self.steps:
            raise ScriptError(where="steps", problem="at least one step is needed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Answers for conversations in whose prompt `text` stands; a purpose that is missing falls to the script's own."""

    name: str
    text: str
    purposes: Mapping[str, Steps]


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """All that one server plays. `models` are the names that it lists, `keep_requests` how many it remembers."""

    purposes: Mapping[str, Steps] = field(default_factory=dict[str, Steps])
    scenarios: tuple[Scenario, ...] = ()
    models: tuple[str, ...] = ("scripted",)
    keep_requests: int = 10_000

    @classmethod
    def of(cls, *main: Step, order: Order = Order.CONVERSATION, **purposes: Step | tuple[Step, ...]) -> "Script":
        """Make a script without scenarios: the steps of `main`, and other purposes by name, one step or several."""
        lists = {"main": Steps(main, order)} if main else {}
        for name, steps in purposes.items():
            lists[name] = Steps(steps if isinstance(steps, tuple) else (steps,), order)
        return cls(purposes=lists)

    def as_data(self) -> dict[str, Any]:
        """Return plain data that `parse_script` reads as an equal script; defaults are left out."""
        data: dict[str, Any] = {}
        if self.purposes:
            data["purposes"] = _purposes_as_data(self.purposes)
        if self.scenarios:
            data["scenarios"] = [
                {
                    "name": scenario.name,
                    "when": {"text": scenario.text},
                    "purposes": _purposes_as_data(scenario.purposes),
                }
                for scenario in self.scenarios
            ]
        data["models"] = list(self.models)
        data["keep_requests"] = self.keep_requests
        return data

    def as_json(self) -> str:
        """Return the script as JSON text, the form in which it can be handed to another process."""
        return json.dumps(self.as_data(), ensure_ascii=True, indent=1)


def _purposes_as_data(purposes: Mapping[str, Steps]) -> dict[str, Any]:
    return {
        name: {"order": str(steps.order), "steps": [_as_data(step) for step in steps.steps]}
        for name, steps in purposes.items()
    }


def _as_data(value: Any) -> Any:
    match value:
        case Select(everything=True):
            return "all"
        case Select(contains=(), also_first=0):
            return "none"
        case Step() | ScriptedUsage() | ScriptedToolCall() | Select() | Embed() | ErrorChunk() | Malformed():
            changed = ((each.name, getattr(value, each.name)) for each in fields(value))
            plain = type(value)() if isinstance(value, Step | ScriptedUsage | Select | Embed) else None
            return {name: _as_data(part) for name, part in changed if plain is None or part != getattr(plain, name)}
        case tuple():
            return [_as_data(part) for part in value]  # pyright: ignore[reportUnknownVariableType] - any script value
        case _:
            return value
