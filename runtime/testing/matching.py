"""Which step answers a request: its purpose, the scenario in its prompt, and how far its conversation has come.

All of it is read from the request itself, so that many conversations can play against one server at once, and so that
an attempt that is repeated gets the same step again.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from recallscope.runtime.testing.script import DEFAULT_SCENARIO, PURPOSES, Order, Script, Select, Step

__all__ = [
    "PURPOSE_HEADER",
    "Match",
    "Matcher",
    "embedding_request",
    "messages_of",
    "purpose_of",
    "selected",
    "wants_usage",
]

PURPOSE_HEADER = "x-recallscope-purpose"
"""Names the purpose of a structured request whose `response_format` cannot (`json_object` has no name)."""

_CANDIDATE = re.compile(r"^\s*([A-Za-z]{1,3}\d{1,5})[ :\t]")


@dataclass(frozen=True, slots=True)
class Match:
    """The step for one request, and where it stands in the script."""

    purpose: str
    scenario: str
    index: int
    step: Step


def messages_of(body: object) -> list[dict[str, Any]]:
    """Return the messages of a request body; whatever is no message is left out."""
    return _objects(cast("dict[str, object]", body).get("messages")) if isinstance(body, dict) else []


def embedding_request(body: object) -> tuple[str, list[str]]:
    """Return the model's name and the texts of a request for vectors; no texts where `body` is none."""
    request = cast("dict[str, object]", body) if isinstance(body, dict) else {}
    model, texts = request.get("model"), request.get("input")
    given = [texts] if isinstance(texts, str) else cast("list[object]", texts) if isinstance(texts, list) else []
    if not isinstance(model, str) or not given:
        return "", []
    wanted = [text for text in given if isinstance(text, str)]
    return model, wanted if len(wanted) == len(given) else []


def purpose_of(body: object, headers: Mapping[str, str]) -> str:
    """Tell what a request is for: its schema name, else the header for `json_object`, else `main`."""
    match body:
        case {"response_format": {"type": "json_schema", "json_schema": {"name": str(name)}}}:
            return name
        case {"response_format": {"type": "json_object"}}:
            return headers.get(PURPOSE_HEADER, "json_object")
        case _:
            return "main"


def wants_usage(body: object) -> bool:
    """Tell whether a streamed answer is to report its tokens."""
    match body:
        case {"stream_options": {"include_usage": True}}:
            return True
        case _:
            return False


class Matcher:
    """Finds the step for each request; it counts arrivals, for lists that are taken in that order."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._arrived: dict[tuple[str, str], int] = {}

    def match(self, purpose: str, messages: Sequence[Mapping[str, Any]]) -> Match | None:
        """Return the step for a request, or None when the script has no answer for it.

        The scenario is that whose text stands in the latest message of a person in which any scenario's text stands;
        a message directly behind tool results is the runtime's (memory, reminders) and not looked at. Under
        `order: conversation` the answers that the model gave since then count the step.
        """
        prompts = list(_prompts_latest_first(messages))
        name, purposes, prompt = DEFAULT_SCENARIO, self._script.purposes, prompts[0][0] if prompts else -1
        for position, text in prompts:
            scenario = next((each for each in self._script.scenarios if each.text in text), None)
            if scenario is not None:
                if purpose in scenario.purposes:
                    name, purposes = scenario.name, scenario.purposes
                else:
                    name = DEFAULT_SCENARIO
                prompt = position
                break
        steps = purposes.get(purpose)
        if steps is None:
            return None
        if steps.order is Order.ARRIVAL:
            count = self._arrived.get((name, purpose), 0)
            self._arrived[name, purpose] = count + 1
        else:
            count = sum(message.get("role") == "assistant" for message in messages[prompt + 1 :])
        index = min(count, len(steps.steps) - 1)
        return Match(purpose, name, index, steps.steps[index])

    def advice(self, purpose: str) -> str:
        """Say what to write so that a request for `purpose` gets an answer."""
        if purpose not in PURPOSES:
            return f"no script can answer the purpose {purpose!r}; known purposes: {', '.join(PURPOSES)}"
        return f"the script has no steps for {purpose}; add purposes.{purpose}"


def selected(select: Select, messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Choose ids from the candidates of the last user message: lines that begin with a short id (`n07 [project] …`).

    The ids of lines that contain the texts come in the order of the texts, then the first `also_first` others.
    """
    text = next((_text(message) for message in reversed(messages) if message.get("role") == "user"), "")
    candidates: dict[str, str] = {}
    for line in text.splitlines():
        found = _CANDIDATE.match(line)
        if found:
            candidates.setdefault(found[1], line)
    if select.everything:
        return list(candidates)
    chosen = {
        identifier: None for wanted in select.contains for identifier, line in candidates.items() if wanted in line
    }
    others = [identifier for identifier in candidates if identifier not in chosen]
    return [*chosen, *others[: select.also_first]]


def _prompts_latest_first(messages: Sequence[Mapping[str, Any]]) -> "list[tuple[int, str]]":
    return [
        (position, _text(messages[position]))
        for position in range(len(messages) - 1, -1, -1)
        if messages[position].get("role") == "user" and not (position and messages[position - 1].get("role") == "tool")
    ]


def _text(message: Mapping[str, Any]) -> str:
    content: object = message.get("content")
    if isinstance(content, str):
        return content
    texts = (part.get("text") for part in _objects(content))
    return "\n".join(text for text in texts if isinstance(text, str))


def _objects(value: object) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        return []
    return [cast("dict[str, Any]", each) for each in cast("list[object]", value) if isinstance(each, dict)]
