"""From YAML or JSON to a script: every mistake is named with its place and with what is allowed there."""

import json
import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar, cast

import yaml

from recallscope.runtime.errors import ScriptError
from recallscope.runtime.testing.script import (
    DEFAULT_SCENARIO,
    PURPOSES,
    Embed,
    ErrorChunk,
    Malformed,
    Order,
    Scenario,
    Script,
    ScriptedToolCall,
    ScriptedUsage,
    Select,
    Step,
    Steps,
)

__all__ = ["load_script", "parse_script", "script_from_data"]

MAX_SCRIPT_BYTES = 4 * 1024 * 1024
MAX_SECONDS = 3_600.0
MAX_COUNT = 1_000_000

ValueT = TypeVar("ValueT")

_REFUSAL = frozenset({"status", "retry_after", "body", "delay"})
_STEP_KEYS = tuple(each.name for each in fields(Step))


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader, which would let a repeated key win silently."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Make a dictionary and refuse a key that stands twice."""
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode) and key.value != "<<"]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} stands twice in one mapping", node.start_mark
                )
        return super().construct_mapping(node, deep)


def load_script(path: Path) -> Script:
    """Read the script in `path`, YAML or JSON (JSON is YAML), at most 4 MiB.

    Raises:
        ScriptError: the file cannot be read, or its content is no script.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ScriptError(where=str(path), problem=f"cannot be read: {error.strerror or error}") from error
    if len(raw) > MAX_SCRIPT_BYTES:
        raise ScriptError(where=str(path), problem=f"has {len(raw)} bytes; at most {MAX_SCRIPT_BYTES} are read")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ScriptError(where=str(path), problem="is not UTF-8; save it as UTF-8") from error
    return parse_script(text, source=path.name)


def parse_script(text: str, *, source: str = "script") -> Script:
    """Read a script from YAML or JSON text; `source` names it in errors.

    Raises:
        ScriptError: `text` is no YAML, or not a script.
    """
    try:
        data = _data_from_text(text)
    except (yaml.YAMLError, ValueError, TypeError, OverflowError, RecursionError, AttributeError) as error:
        raise ScriptError(where=source, problem=f"is neither YAML nor JSON: {error}") from error
    return script_from_data(data, source=source)


def script_from_data(data: object, *, source: str = "script") -> Script:
    """Make a script of plain data; `source` names it in errors.

    Raises:
        ScriptError: `data` is not a script.
    """
    entries = _mapping(data, source, ("purposes", "scenarios", "models", "keep_requests"))
    script = Script(
        purposes=_purposes(entries["purposes"], f"{source}: purposes") if "purposes" in entries else {},
        scenarios=tuple(
            _scenario(each, f"{source}: scenarios[{number}]", number)
            for number, each in enumerate(_list(entries.get("scenarios", []), f"{source}: scenarios"))
        ),
        models=_texts(entries.get("models", ["scripted"]), f"{source}: models"),
        keep_requests=_count(entries.get("keep_requests", 10_000), f"{source}: keep_requests", least=1),
    )
    if not script.purposes and not script.scenarios:
        raise ScriptError(where=source, problem="has no answers; it needs `purposes` or `scenarios`")
    names = [scenario.name for scenario in script.scenarios]
    for number, name in enumerate(names):
        if name == DEFAULT_SCENARIO or name in names[:number]:
            raise ScriptError(
                where=f"{source}: scenarios[{number}].name",
                problem=f"{name!r} is taken; every scenario has a name of its own",
            )
    return script


def _data_from_text(text: str) -> object:
    # JSON is tried first: it is what another process gets, and YAML's reader is a hundred times slower.
    if text.lstrip()[:1] == "{":
        try:
            return json.loads(text)
        except ValueError:
            pass
    return yaml.load(text, _Loader)  # noqa: S506 - _Loader is a safe loader


def _scenario(data: object, where: str, number: int) -> Scenario:
    entries = _mapping(data, where, ("name", "when", "purposes"), needed=("when", "purposes"))
    when = _mapping(entries["when"], f"{where}.when", ("text",), needed=("text",))
    return Scenario(
        name=_text(entries.get("name", f"scenario {number}"), f"{where}.name", filled=True),
        text=_text(when["text"], f"{where}.when.text", filled=True),
        purposes=_purposes(entries["purposes"], f"{where}.purposes"),
    )


def _purposes(data: object, where: str) -> dict[str, Steps]:
    return {
        name: _steps(each, f"{where}.{name}") for name, each in _mapping(data, where, PURPOSES, what="purpose").items()
    }


def _steps(data: object, where: str) -> Steps:
    order = Order.CONVERSATION
    if isinstance(data, Mapping):
        entries = _mapping(cast("object", data), where, ("order", "steps"), needed=("steps",))
        order = _one_of(entries.get("order", "conversation"), f"{where}.order", Order)
        data, where = entries["steps"], f"{where}.steps"
    steps = tuple(_step(each, f"{where}[{number}]") for number, each in enumerate(_list(data, where)))
    if not steps:
        raise ScriptError(where=where, problem="is empty; at least one step is needed")
    return Steps(steps, order)


def _step(data: object, where: str) -> Step:
    entries = _mapping(data, where, _STEP_KEYS)
    values = {
        name: read(entries[name], f"{where}.{name}")
        for name, read in _STEP_READERS.items()
        if entries.get(name) is not None
    }
    step = Step(**values)
    _check_step(step, where, frozenset(values))
    return step


def _check_step(step: Step, where: str, named: frozenset[str]) -> None:
    if step.status is not None and named - _REFUSAL:
        problem = f"{_names(named - _REFUSAL)} cannot stand beside status; allowed there: {_names(_REFUSAL)}"
        raise ScriptError(where=where, problem=problem)
    if step.status is None and named & {"retry_after", "body"}:
        raise ScriptError(where=where, problem=f"{_names(named & {'retry_after', 'body'})} needs a status")
    if step.hang and len(named) > 1:
        raise ScriptError(where=where, problem=f"{_names(named - {'hang'})} cannot stand beside hang: it never answers")
    endings = [
        name for name in ("error_chunk", "cut_after", "endless") if name in named and getattr(step, name) is not False
    ]
    if len(endings) > 1:
        raise ScriptError(where=where, problem=f"{' and '.join(endings)} both end the answer; keep one of them")
    if step.max_chunks is not None and not step.endless:
        raise ScriptError(where=where, problem="max_chunks needs endless: true")
    if step.select is not None and "answer" in named:
        raise ScriptError(where=where, problem="select makes the answer; leave answer out")
    if step.embed is not None and named & {"answer", "select", "tool_calls"}:
        raise ScriptError(where=where, problem="embed makes vectors; leave answer, select and tool_calls out")
    if step.endless and (step.tool_calls or step.chunks > 1 or step.select or not step.answer):
        raise ScriptError(
            where=where, problem="endless repeats its answer, one chunk at a time: it needs an answer alone"
        )
    if step.chunks > max(1, len(step.answer)) and step.select is None:
        problem = f"{step.chunks} is more than the {len(step.answer)} characters of answer; a chunk has at least one"
        raise ScriptError(where=f"{where}.chunks", problem=problem)


def _tool_call(data: object, where: str) -> ScriptedToolCall:
    entries = _mapping(data, where, ("name", "arguments", "id", "fragments"), needed=("name",))
    identifier = entries.get("id")
    return ScriptedToolCall(
        name=_text(entries["name"], f"{where}.name"),
        arguments=_text_or_json(entries.get("arguments", "{}"), f"{where}.arguments"),
        id=None if identifier is None else _text(identifier, f"{where}.id"),
        fragments=_count(entries.get("fragments", 2), f"{where}.fragments", least=1),
    )


def _usage(data: object, where: str) -> ScriptedUsage:
    entries = _mapping(data, where, ("input", "output", "cached"))
    counts = {name: _count(value, f"{where}.{name}") for name, value in entries.items() if value is not None}
    return ScriptedUsage(**counts)


def _select(data: object, where: str) -> Select:
    match data:
        case "all":
            return Select(everything=True)
        case "none":
            return Select()
        case str():
            raise ScriptError(where=where, problem=f"{data!r} is not allowed: all, none, or contains and also_first")
        case _:
            entries = _mapping(data, where, ("contains", "also_first"))
            return Select(
                contains=_texts(entries.get("contains", []), f"{where}.contains"),
                also_first=_count(entries.get("also_first", 0), f"{where}.also_first"),
            )


def _embed(data: object, where: str) -> Embed:
    entries = _mapping(data, where, ("dimension", "synonyms"))
    return Embed(
        dimension=_count(entries.get("dimension", 256), f"{where}.dimension", least=1, most=16_384),
        synonyms=_listed(_texts)(entries.get("synonyms", []), f"{where}.synonyms"),
    )


def _error_chunk(data: object, where: str) -> ErrorChunk:
    if isinstance(data, str):
        return ErrorChunk(message=data)
    entries = _mapping(data, where, ("message", "type", "code", "after"), needed=("message",))
    code = entries.get("code")
    return ErrorChunk(
        message=_text(entries["message"], f"{where}.message"),
        type=_text(entries.get("type", "server_error"), f"{where}.type"),
        code=None if code is None else _text(code, f"{where}.code"),
        after=_count(entries.get("after", 0), f"{where}.after"),
    )


def _malformed(data: object, where: str) -> Malformed:
    entries = {"line": data} if isinstance(data, str) else _mapping(data, where, ("line", "after"), needed=("line",))
    line = _text(entries["line"], f"{where}.line")
    if "\r" in line or "\n" in line:
        raise ScriptError(where=f"{where}.line", problem="is one line: no line breaks")
    return Malformed(line=line, after=_count(entries.get("after", 0), f"{where}.after"))


def _body(data: object, where: str) -> str | Mapping[str, Any]:
    if isinstance(data, str):
        return data
    return cast("Mapping[str, Any]", json.loads(_json_text(_mapping(data, where, None), where)))


def _retry_after(data: object, where: str) -> float | str:
    if isinstance(data, str):
        text = _text(data, where)
        if not text.isascii() or not text.isprintable():
            raise ScriptError(where=where, problem="is a header: printable ASCII only")
        return text
    return _seconds(data, where)


def _status(data: object, where: str) -> int:
    return _count(data, where, least=400, most=599)


def _mapping(
    data: object, where: str, allowed: Sequence[str] | None, *, needed: Sequence[str] = (), what: str = "key"
) -> dict[str, Any]:
    if not isinstance(data, Mapping):
        keys = f" with {_names(allowed)}" if allowed else ""
        raise ScriptError(where=where, problem=f"a mapping{keys} is needed, not {_shown(data)}")
    entries = dict(cast("Mapping[str, Any]", data))
    for key in entries:
        if not isinstance(key, str) or (allowed is not None and key not in allowed):  # pyright: ignore[reportUnnecessaryIsInstance] - YAML keys can be anything
            known = _names(allowed) if allowed else "texts"
            raise ScriptError(where=where, problem=f"{what} {_shown(key)} is unknown; allowed: {known}")
    for key in needed:
        if key not in entries:
            raise ScriptError(where=where, problem=f"{key} is missing")
    return entries


def _list(data: object, where: str) -> list[object]:
    if not isinstance(data, list):
        raise ScriptError(where=where, problem=f"a list is needed, not {_shown(data)}")
    return [*cast("list[object]", data)]


def _listed(read: Callable[[object, str], ValueT]) -> Callable[[object, str], tuple[ValueT, ...]]:
    return lambda data, where: tuple(read(each, f"{where}[{n}]") for n, each in enumerate(_list(data, where)))


def _texts(data: object, where: str) -> tuple[str, ...]:
    return _listed(_text)(data, where)


def _text(data: object, where: str, *, filled: bool = False) -> str:
    if not isinstance(data, str):
        raise ScriptError(where=where, problem=f"text is needed, not {_shown(data)}; put it in quotes")
    if filled and not data.strip():
        raise ScriptError(where=where, problem="text is needed, and this is empty")
    if any(character == "\0" or "\ud800" <= character <= "\udfff" for character in data):
        raise ScriptError(where=where, problem="NUL and half of a surrogate pair are no text")
    return data


def _text_or_json(data: object, where: str) -> str:
    if isinstance(data, list | dict):
        return _json_text(cast("object", data), where)
    return _text(data, where)


def _json_text(data: object, where: str) -> str:
    try:
        return _text(json.dumps(data, ensure_ascii=False, allow_nan=False), where)
    except (TypeError, ValueError, RecursionError) as error:
        raise ScriptError(where=where, problem=f"cannot be written as JSON: {error}") from error


def _flag(data: object, where: str) -> bool:
    if not isinstance(data, bool):
        raise ScriptError(where=where, problem=f"true or false is needed, not {_shown(data)}")
    return data


def _count(data: object, where: str, *, least: int = 0, most: int = MAX_COUNT) -> int:
    if not isinstance(data, int) or isinstance(data, bool) or not least <= data <= most:
        raise ScriptError(where=where, problem=f"a whole number from {least} to {most} is needed, not {_shown(data)}")
    return data


def _seconds(data: object, where: str) -> float:
    if not isinstance(data, int | float) or isinstance(data, bool) or not 0 <= data <= MAX_SECONDS:
        raise ScriptError(where=where, problem=f"seconds from 0 to {MAX_SECONDS:g} are needed, not {_shown(data)}")
    return float(data)


def _one_of(data: object, where: str, allowed: type[Order]) -> Order:
    try:
        return allowed(_text(data, where))
    except ValueError as error:
        raise ScriptError(where=where, problem=f"{_shown(data)} is not allowed: {_names(tuple(allowed))}") from error


def _positive(data: object, where: str) -> int:
    return _count(data, where, least=1)


def _names(names: Sequence[str] | frozenset[str]) -> str:
    return ", ".join(sorted(names) if isinstance(names, frozenset) else names)


def _shown(data: object) -> str:
    try:
        text = reprlib.repr(data)
    except ValueError:  # a number with more digits than Python writes
        text = f"a huge {type(data).__name__}"
    return text


_STEP_READERS: Mapping[str, Callable[[object, str], Any]] = {
    "answer": _text_or_json,
    "chunks": _positive,
    "chunk_delay": _seconds,
    "delay": _seconds,
    "tool_calls": _listed(_tool_call),
    "usage": _usage,
    "finish_reason": _text,
    "status": _status,
    "retry_after": _retry_after,
    "body": _body,
    "error_chunk": _error_chunk,
    "cut_after": _count,
    "endless": _flag,
    "max_chunks": _positive,
    "hang": _flag,
    "malformed": _malformed,
    "comment_first": _flag,
    "select": _select,
    "embed": _embed,
}
