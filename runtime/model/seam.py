"""The seam to a model: what is asked, what comes back, and the one protocol that every model client has."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from recallscope.runtime.events import OpId
from recallscope.runtime.messages import Message, ToolCall

__all__ = [
    "Answer",
    "Chunk",
    "Endpoint",
    "Model",
    "ModelRequest",
    "ResponseSchema",
    "ToolCallDelta",
    "ToolSpec",
    "Usage",
]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model sees it; `parameters` is a JSON schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ResponseSchema:
    """A structured answer: `name` states the purpose on the wire (`memory_selection`), `schema` is its JSON schema."""

    name: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One request to a model. `op` is the operation whose trace context goes with it."""

    op: OpId
    system: str | None
    messages: Sequence[Message]
    tools: Sequence[ToolSpec] = ()
    response_schema: ResponseSchema | None = None
    max_tokens: int | None = None
    timeout: float | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the model server counts them."""

    input_tokens: int
    output_tokens: int
    cached_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """A fragment of a tool call: `index` says of which, the other fields are what came in this chunk."""

    index: int
    call_id: str | None
    tool: str | None
    arguments: str


@dataclass(frozen=True, slots=True)
class Chunk:
    """One chunk of a streamed answer; `accepted` is True from the first chunk with a choice on."""

    text: str = ""
    tool_calls: tuple[ToolCallDelta, ...] = ()
    finish_reason: str | None = None
    usage: Usage | None = None
    model: str | None = None
    response_id: str | None = None
    accepted: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A whole answer that was not streamed."""

    text: str
    tool_calls: tuple[ToolCall, ...] = field(default=())
    finish_reason: str | None = None
    usage: Usage | None = None
    model: str | None = None
    response_id: str | None = None


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Which model, where: the labels of a model call."""

    model: str
    provider: str
    address: str
    port: int


class Model(Protocol):
    """A model client: one request, one attempt. Retries are the caller's."""

    @property
    def endpoint(self) -> Endpoint:
        """Which model this is."""
        ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        """Ask and yield chunks as they come; close with `aclosing`, which closes the connection.

        Raises:
            ModelError: see `runtime.errors`; its `retryable` says whether another attempt can help.
        """
        ...

    async def complete(self, request: ModelRequest) -> Answer:
        """Ask and return the whole answer; cancelling closes the connection.

        Raises:
            ModelError: as `stream`.
        """
        ...
