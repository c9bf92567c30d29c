"""A request finds its step by purpose, by the scenario in its prompt, and by how far its conversation has come."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallscope.runtime.testing.matching import Matcher, purpose_of, selected
from recallscope.runtime.testing.script import Order, Scenario, Script, Select, Step, Steps

SCRIPT = Script(
    purposes={
        "main": Steps((Step(answer="d0"), Step(answer="d1"))),
        "memory_selection": Steps((Step(select=Select()),)),
    },
    scenarios=tuple(
        Scenario(
            name=name, text=f"<{name}>", purposes={"main": Steps((Step(answer=f"{name}0"), Step(answer=f"{name}1")))}
        )
        for name in ("a", "b")
    ),
)


def person(text: str) -> dict[str, Any]:
    """Return a message of the user."""
    return {"role": "user", "content": text}


ASSISTANT: dict[str, Any] = {"role": "assistant", "content": "x"}
TOOL: dict[str, Any] = {"role": "tool", "tool_call_id": "1", "content": "<b>"}


@pytest.mark.parametrize(
    ("messages", "answer"),
    [
        ([person("hi")], "d0"),
        ([person("hi"), ASSISTANT], "d1"),
        ([person("hi"), ASSISTANT, person("again")], "d0"),
        ([person("<a> hi")], "a0"),
        ([person("<a> hi"), ASSISTANT, TOOL], "a1"),
        ([person("<a> hi"), ASSISTANT, TOOL, person("memory about <b>")], "a1"),
        ([person("<a> hi"), ASSISTANT, TOOL, ASSISTANT, TOOL], "a1"),
        ([person("<a> hi"), ASSISTANT, person("<b> hi")], "b0"),
        ([person("<a> hi"), person("<a> hi")], "a0"),
        ([person("<a> hi"), ASSISTANT, person("go on")], "a1"),
        ([{"role": "user", "content": [{"type": "text", "text": "memory"}, {"type": "text", "text": "<b>"}]}], "b0"),
        ([{"role": "system", "content": "<a>"}, person("hi")], "d0"),
        ([], "d0"),
    ],
)
def test_the_step_follows_from_the_messages_alone(messages: list[dict[str, Any]], answer: str) -> None:
    """The latest prompt with a scenario's text names the scenario, and the answers since then name the step."""
    found = Matcher(SCRIPT).match("main", messages)
    assert found is not None
    assert found.step.answer == answer


def test_a_purpose_that_a_scenario_lacks_falls_to_the_script() -> None:
    """A scenario answers only for the purposes that it has."""
    found = Matcher(SCRIPT).match("memory_selection", [person("<a> hi")])
    assert found is not None
    assert (found.scenario, found.step) == ("default", Step(select=Select()))


def test_a_purpose_without_steps_has_no_match() -> None:
    """Where the script says nothing, nothing is made up."""
    matcher = Matcher(SCRIPT)
    assert matcher.match("memory_extraction", [person("hi")]) is None
    assert matcher.advice("memory_extraction") == (
        "the script has no steps for memory_extraction; add purposes.memory_extraction"
    )


def test_steps_in_order_of_arrival_ignore_the_conversation() -> None:
    """Under `order: arrival` the same request gets the next step each time, and the last one again and again."""
    matcher = Matcher(Script.of(Step(status=429), Step(answer="ok"), order=Order.ARRIVAL))
    found = [matcher.match("main", [person("hi")]) for _ in range(3)]
    assert [match.index for match in found if match] == [0, 1, 1]


@pytest.mark.parametrize(
    ("body", "headers", "purpose"),
    [
        ({}, {}, "main"),
        ({"response_format": {"type": "text"}}, {}, "main"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "memory_selection"}}},
            {},
            "memory_selection",
        ),
        ({"response_format": {"type": "json_object"}}, {}, "json_object"),
        (
            {"response_format": {"type": "json_object"}},
            {"x-recallscope-purpose": "memory_phrasings"},
            "memory_phrasings",
        ),
        ([], {}, "main"),
    ],
)
def test_the_schema_name_tells_the_purpose(body: object, headers: dict[str, str], purpose: str) -> None:
    """The schema's name is the purpose; where there is none, the header, else what kind of answer is asked for."""
    assert purpose_of(body, headers) == purpose


MANIFEST = """Request:
How do we deploy?

Candidates:
n01 [project] 2026-05-01 Release train - how we deploy (deploy)
n02 [user] 2026-05-02 Tabs
n03: Deploy key
n03: a second line with an id that was there
"""


@pytest.mark.parametrize(
    ("select", "ids"),
    [
        (Select(everything=True), ["n01", "n02", "n03"]),
        (Select(), []),
        (Select(contains=("Deploy key", "deploy")), ["n03", "n01"]),
        (Select(contains=("Deploy key",), also_first=1), ["n03", "n01"]),
        (Select(also_first=2), ["n01", "n02"]),
        (Select(contains=("How do we",)), []),
    ],
)
def test_a_selection_names_the_ids_of_matching_lines(select: Select, ids: list[str]) -> None:
    """Ids come in the order of the texts, then the first others; a line without an id is no candidate."""
    assert selected(select, [person("older n09 x"), person(MANIFEST)]) == ids


@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 1)),
        min_size=1,
        max_size=20,
    )
)
def test_conversations_do_not_disturb_each_other(requests: list[tuple[str, int]]) -> None:
    """In whatever order the requests of several conversations arrive, each gets its own answer."""
    matcher = Matcher(SCRIPT)
    for name, position in requests:
        found = matcher.match("main", [person(f"<{name}>"), *[ASSISTANT, TOOL] * position])
        assert found is not None
        assert found.step.answer == f"{name}{position}"
