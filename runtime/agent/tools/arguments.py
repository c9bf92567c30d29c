"""Arguments of a tool against the JSON schema that the model was shown.

Checked is what models get wrong: missing, unknown and mistyped properties, choices, bounds. Deeper schemas (items of
lists, properties of inner objects) are the tool's own business.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from recallscope.runtime.errors import ToolError
from recallscope.runtime.model.seam import ToolSpec

__all__ = ["checked", "signature"]

_IS_OF_TYPE: Mapping[str, Callable[[object], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "null": lambda value: value is None,
}


def signature(spec: ToolSpec) -> str:
    """Return the properties of a tool as one line: name, type, and whether it is required."""
    required = _required(spec)
    return (
        ", ".join(
            f"{name} ({' or '.join(_types(rules)) or 'anything'}{', required' if name in required else ''})"
            for name, rules in _properties(spec).items()
        )
        or "nothing"
    )


def checked(arguments: Mapping[str, Any], spec: ToolSpec) -> Mapping[str, Any]:
    """Return the arguments that a tool may rely on.

    A null for an optional property counts as left out, and a whole number written as 5.0 is the integer 5, because
    models write both. Unknown properties are refused unless the schema allows them by `additionalProperties`.

    Raises:
        ToolError: something is missing, unknown, of the wrong type or out of bounds.
    """
    properties, required = _properties(spec), _required(spec)
    values: dict[str, Any] = {}
    for name, value in arguments.items():
        rules = properties.get(name)
        if rules is None:
            if spec.parameters.get("additionalProperties", False) is False:
                raise ToolError(f"there is no argument {name!r}; it takes: {signature(spec)}")
            values[name] = value
        elif value is None and name not in required and "null" not in _types(rules):
            continue
        else:
            values[name] = _value(name, value, rules)
    missing = [name for name in required if name not in values]
    if missing:
        raise ToolError(f"the argument {missing[0]!r} is missing; it takes: {signature(spec)}")
    return values


def _value(name: str, value: Any, rules: Mapping[str, Any]) -> Any:
    types = _types(rules)
    if isinstance(value, float) and value.is_integer() and "integer" in types and "number" not in types:
        value = int(value)
    if types and not any(_is_of_type(value, kind) for kind in types):
        raise ToolError(f"the argument {name!r} must be of type {' or '.join(types)}, not {_shown(value)}")
    choices = cast("list[object] | None", rules.get("enum"))
    if choices is not None and value not in choices:
        raise ToolError(f"the argument {name!r} must be one of {_shown(choices)}, not {_shown(value)}")
    if isinstance(value, int | float):
        lowest, highest = rules.get("minimum"), rules.get("maximum")
        if isinstance(lowest, int | float) and value < lowest:
            raise ToolError(f"the argument {name!r} must be at least {lowest}, not {_shown(value)}")
        if isinstance(highest, int | float) and value > highest:
            raise ToolError(f"the argument {name!r} must be at most {highest}, not {_shown(value)}")
    return value


def _is_of_type(value: object, kind: str) -> bool:
    test = _IS_OF_TYPE.get(kind)
    return test is None or test(value)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]}…"  # noqa: PLR2004 - enough to recognize it


def _properties(spec: ToolSpec) -> Mapping[str, Mapping[str, Any]]:
    return cast("Mapping[str, Mapping[str, Any]]", spec.parameters.get("properties", {}))


def _required(spec: ToolSpec) -> Sequence[str]:
    return cast("Sequence[str]", spec.parameters.get("required", ()))


def _types(rules: Mapping[str, Any]) -> Sequence[str]:
    kind: object = rules.get("type")
    if isinstance(kind, str):
        return (kind,)
    return tuple(cast("Sequence[str]", kind)) if isinstance(kind, list | tuple) else ()
