"""What a tool is, and the box that holds them: it checks what the model wrote before a tool sees it.

A model's mistake is never an exception: it gets a text that says what was wrong and what is allowed.
"""

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from recallscope.runtime.agent.tools.arguments import checked
from recallscope.runtime.errors import ToolError
from recallscope.runtime.events import OpId
from recallscope.runtime.model.seam import ToolSpec

__all__ = ["Tool", "ToolContext", "ToolOutput", "Toolbox", "function_tool"]

OUTPUT_LIMIT = 50_000
"""Characters of one tool answer; what is over is cut and said."""


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """The answer of a tool to the model; `is_error`: it could not do what was asked."""

    text: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The circumstances of one call: `op` is its operation, for the trace context of a tool that goes outside."""

    op: OpId | None = None


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: how the model sees it, whether it only reads, and what it does.

    `run` takes arguments that fit the schema of `spec`. It raises `ToolError` or `OSError` for what the model should
    be told; anything else that it raises is a fault of the tool and ends the turn.
    """

    spec: ToolSpec
    run: Callable[[Mapping[str, Any], ToolContext], Awaitable[ToolOutput]]
    read_only: bool = field(default=False, kw_only=True)


def function_tool(
    name: str,
    description: str,
    parameters: Mapping[str, Any],
    fn: Callable[[Mapping[str, Any]], Awaitable[str]],
    *,
    read_only: bool = False,
) -> Tool:
    """Make a tool of an asynchronous function from arguments to text; `parameters` is a JSON schema of an object."""

    async def run(arguments: Mapping[str, Any], _context: ToolContext) -> ToolOutput:
        return ToolOutput(await fn(arguments))

    return Tool(ToolSpec(name, description, parameters), run, read_only=read_only)


class Toolbox:
    """The tools of an agent, by name.

    Raises:
        ValueError: two tools have the same name.
    """

    def __init__(self, tools: Iterable[Tool] = (), *, output_limit: int = OUTPUT_LIMIT) -> None:
        self._tools: dict[str, Tool] = {}
        self._output_limit = output_limit
        for tool in tools:
            if tool.spec.name in self._tools:
                raise ValueError(f"two tools are called {tool.spec.name}; give one of them another name")
            self._tools[tool.spec.name] = tool
        self.specs: tuple[ToolSpec, ...] = tuple(tool.spec for tool in self._tools.values())

    def __contains__(self, name: object) -> bool:
        """Say whether a tool has this name."""
        return name in self._tools

    def get(self, name: str) -> Tool | None:
        """Return the tool of this name, None if there is none."""
        return self._tools.get(name)

    async def run(self, name: str, arguments: str, context: ToolContext | None = None) -> ToolOutput:
        """Run the tool `name` with the JSON text that the model wrote; whatever is wrong with it is the output."""
        tool = self._tools.get(name)
        if tool is None:
            return ToolOutput(
                f"there is no tool {name!r}; there are: {', '.join(self._tools) or 'none'}", is_error=True
            )
        try:
            values = checked(_object(arguments), tool.spec)
            output = await tool.run(values, context or ToolContext())
        except ToolError as error:
            output = ToolOutput(f"{name}: {error}", is_error=True)
        except OSError as error:
            output = ToolOutput(f"{name}: {error.strerror or type(error).__name__}", is_error=True)
        return self._limited(output)

    def _limited(self, output: ToolOutput) -> ToolOutput:
        total = len(output.text)
        if total <= self._output_limit:
            return output
        note = f"\n[cut: the first {self._output_limit} of {total} characters; ask for less]"
        return ToolOutput(output.text[: self._output_limit] + note, output.is_error)


def _object(arguments: str) -> Mapping[str, Any]:
    try:
        value: object = json.loads(arguments) if arguments.strip() else {}
    except (ValueError, RecursionError) as error:
        raise ToolError(f"the arguments are no JSON ({error}); write one JSON object") from None
    if not isinstance(value, dict):
        raise ToolError("the arguments are no JSON object; write one, like {}")
    return cast("Mapping[str, Any]", value)
