"""The box of tools: what the model wrote is checked, and its mistakes are texts."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallscope.runtime.agent.tools.arguments import checked, signature
from recallscope.runtime.agent.tools.registry import Tool, Toolbox, ToolContext, ToolOutput, function_tool
from recallscope.runtime.errors import ToolError
from recallscope.runtime.events import OpId
from recallscope.runtime.model.seam import ToolSpec

pytestmark = pytest.mark.anyio

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "times": {"type": "integer", "minimum": 1, "maximum": 3},
        "mode": {"type": "string", "enum": ["loud", "soft"]},
        "end": {"type": ["string", "null"]},
    },
    "required": ["text"],
}
SPEC = ToolSpec("echo", "Says it again.", SCHEMA)


async def echo(arguments: Mapping[str, Any]) -> str:
    """Show the arguments that arrive."""
    return json.dumps(arguments)


BOX = Toolbox([function_tool("echo", "Says it again.", SCHEMA, echo, read_only=True)])


@pytest.mark.parametrize(
    ("written", "arrives"),
    [
        ('{"text": "a"}', {"text": "a"}),
        ('{"text": "a", "times": 2.0, "mode": null}', {"text": "a", "times": 2}),
        ('{"text": "a", "end": null}', {"text": "a", "end": None}),
    ],
)
async def test_arguments_that_fit_arrive(written: str, arrives: object) -> None:
    """Whole numbers become integers, and null for an optional property counts as left out."""
    assert await BOX.run("echo", written) == ToolOutput(json.dumps(arrives))


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("{", "the arguments are no JSON"),
        ("[" * 100_000, "the arguments are no JSON"),
        ("[1]", "the arguments are no JSON object; write one, like {}"),
        ("", "the argument 'text' is missing; it takes: text (string, required), times (integer), mode (string), "),
        ('{"text": "a", "tmies": 2}', "there is no argument 'tmies'; it takes: text (string, required)"),
        ('{"text": 1}', "the argument 'text' must be of type string, not 1"),
        ('{"text": null}', "the argument 'text' must be of type string, not None"),
        ('{"text": "a", "times": true}', "the argument 'times' must be of type integer, not True"),
        ('{"text": "a", "times": 1.5}', "the argument 'times' must be of type integer, not 1.5"),
        ('{"text": "a", "times": 0}', "the argument 'times' must be at least 1, not 0"),
        ('{"text": "a", "times": 4}', "the argument 'times' must be at most 3, not 4"),
        ('{"text": "a", "mode": "high"}', "the argument 'mode' must be one of ['loud', 'soft'], not 'high'"),
    ],
)
async def test_arguments_that_do_not_fit_are_explained(written: str, text: str) -> None:
    """The model is told what was wrong and what is allowed."""
    output = await BOX.run("echo", written)
    assert output.is_error
    assert output.text.startswith(f"echo: {text}")


async def test_an_invented_tool_is_explained() -> None:
    """An unknown name is answered with the names that there are."""
    assert await BOX.run("shout", "{}") == ToolOutput("there is no tool 'shout'; there are: echo", is_error=True)
    assert await Toolbox().run("x", "") == ToolOutput("there is no tool 'x'; there are: none", is_error=True)


async def test_what_a_tool_cannot_do_is_its_answer() -> None:
    """`ToolError` and `OSError` become texts for the model."""
    errors = {
        "tool": ToolError("not today"),
        "system": PermissionError(13, "Permission denied"),
        "late": TimeoutError(),
    }

    async def fail(arguments: Mapping[str, Any]) -> str:
        raise errors[arguments["how"]]

    box = Toolbox([function_tool("f", "", {"properties": {"how": {"type": "string"}}}, fail)])
    assert [await box.run("f", json.dumps({"how": how})) for how in errors] == [
        ToolOutput("f: not today", is_error=True),
        ToolOutput("f: Permission denied", is_error=True),
        ToolOutput("f: TimeoutError", is_error=True),
    ]


async def test_a_long_answer_is_cut_and_says_so() -> None:
    """No tool can fill the model's context."""
    box = Toolbox([function_tool("echo", "", SCHEMA, echo)], output_limit=12)
    assert await box.run("echo", '{"text": "abcdef"}') == ToolOutput(
        '{"text": "ab\n[cut: the first 12 of 18 characters; ask for less]'
    )


async def test_a_tool_knows_its_operation() -> None:
    """The context of a call reaches the tool."""

    async def run(_arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        return ToolOutput(str(context.op))

    box = Toolbox([Tool(ToolSpec("t", "", {}), run)])
    assert await box.run("t", "", ToolContext(OpId("op7"))) == ToolOutput("op7")


def test_a_box_names_its_tools() -> None:
    """Specs in order for the request, membership for labels, the tool itself for permissions."""
    assert BOX.specs == (SPEC,)
    assert ("echo" in BOX, "shout" in BOX) == (True, False)
    tool = BOX.get("echo")
    assert tool is not None
    assert tool.read_only


def test_two_tools_of_one_name_are_refused() -> None:
    """A name stands for one tool."""
    tool = function_tool("a", "", {}, echo)
    with pytest.raises(ValueError, match="two tools are called a"):
        Toolbox([tool, tool])


def test_a_tool_may_take_anything_if_it_says_so() -> None:
    """`additionalProperties` lets unknown arguments through."""
    assert checked({"x": 1}, ToolSpec("t", "", {"additionalProperties": True})) == {"x": 1}
    assert signature(ToolSpec("t", "", {})) == "nothing"


ARGUMENTS = st.dictionaries(
    st.sampled_from(["text", "times", "mode", "end", "other"]),
    st.none()
    | st.booleans()
    | st.integers(-1, 5)
    | st.floats()
    | st.text(max_size=3)
    | st.just("loud")
    | st.lists(st.none()),
)


@given(ARGUMENTS)
def test_what_passes_fits_the_schema(arguments: dict[str, Any]) -> None:
    """Arguments are refused with a text, or a tool can rely on them."""
    try:
        values = checked(arguments, SPEC)
    except ToolError:
        return
    assert isinstance(values["text"], str)
    assert values.get("times", 1) in {1, 2, 3}
    assert isinstance(values.get("times", 1), int)
    assert values.get("mode", "loud") in {"loud", "soft"}
    assert values.keys() <= SCHEMA["properties"].keys()
