"""The YAML block at the top of a note: found, read without surprises, and written so that it reads back the same.

Scalars keep their text: `name: 007`, `name: yes` and `name: 2026-01-02` are the strings that stand there. Only what
the program does not know (`extra`) gets YAML's types, so that a rewrite gives it back as it was. Anchors, aliases and
tags are refused (a few lines of them can stand for gigabytes), and so is a key that stands twice.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import yaml

__all__ = ["Block", "FrontMatterError", "dump", "load", "split"]

MAX_BLOCK_CHARACTERS = 65_536
MAX_DEPTH = 16

_FENCE = re.compile(r"^(?:---|\.\.\.)[ \t]*$", re.MULTILINE)
_OPENING = re.compile(r"---[ \t]*(?:\n|\Z)")
_FREE_TEXT = re.compile(r"^(name|title|description|evidence)[ \t]*:[ \t]+(?=\S)(.*)$")
_BLOCK_SCALAR = re.compile(r"[|>][-+0-9]{0,2}(?:[ \t]+#.*)?$")
_QUOTED = re.compile(r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*')[ \t]*(?:[ \t]#.*)?$""")
_QUOTED_START = re.compile(r"""(?:"[^"\\]*"|'[^']*')[ \t]*[^ \t#'"]""")

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class FrontMatterError(ValueError):
    """The block cannot be read; the message says why, without the file's name."""


@dataclass(frozen=True, slots=True)
class Block:
    """A block as read: `text` holds scalars and lists of scalars as they stand, `typed` fields with YAML's types."""

    text: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict[str, "str | tuple[str, ...]"])
    typed: Mapping[str, object] = field(default_factory=dict[str, object])


def split(text: str) -> tuple[str | None, str]:
    """Return the block between the fences (None if the text begins with no fence) and the text after it.

    Blank lines before the first fence are passed over.

    Raises:
        FrontMatterError: the first fence is never closed.
    """
    start = text.lstrip("\n")
    opening = _OPENING.match(start)
    if opening is None:
        return None, text
    closing = _FENCE.search(start, opening.end())
    if closing is None:
        raise FrontMatterError("the front matter begins with --- and is never closed")
    return start[opening.end() : closing.start()], start[closing.end() :]


def load(block: str, *, known: frozenset[str] = frozenset()) -> Block:
    """Read a block; scalars of the fields in `known` stay text in `typed` too.

    Raises:
        FrontMatterError: no YAML, no mapping, too large, too deep, or with an alias, a tag or a double key.
    """
    if len(block) > MAX_BLOCK_CHARACTERS:
        raise FrontMatterError(f"the front matter has {len(block)} characters, at most {MAX_BLOCK_CHARACTERS} are read")
    loader = _LOADER(_quote_free_text(block))
    try:
        events = iter(_events(loader))
        first = next(events, None)
        if first is None:
            return Block()
        if not isinstance(first, yaml.MappingStartEvent):
            raise FrontMatterError("the front matter is no mapping of fields to values")
        return _fields(events, known)
    except yaml.MarkedYAMLError as error:
        where = f" in line {error.problem_mark.line + 2}" if error.problem_mark else ""
        raise FrontMatterError(f"the front matter is no YAML: {error.problem or error.context}{where}") from None
    except yaml.YAMLError as error:
        raise FrontMatterError(f"the front matter is no YAML: {error}".splitlines()[0]) from None
    finally:
        loader.dispose()


def dump(fields: Mapping[str, object]) -> str:
    """Write `fields` as a block with its fences, in their order."""
    text: str = yaml.dump(  # pyright: ignore[reportUnknownMemberType] - its stub leaves the stream's type open
        dict(fields), Dumper=_DUMPER, allow_unicode=True, sort_keys=False, width=1_000_000
    )
    return f"---\n{text}---\n"


def _events(loader: Any) -> Iterator[yaml.Event]:
    """Yield the events of the first document's content, refusing what could grow or mislead."""
    documents = 0
    depth = 0
    while loader.check_event():
        event = loader.get_event()
        match event:
            case yaml.DocumentStartEvent():
                documents += 1
                if documents > 1:
                    raise FrontMatterError("the front matter holds more than one YAML document")
            case yaml.AliasEvent():
                raise FrontMatterError(f"the front matter uses the YAML alias *{event.anchor}, which is not read")
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent() | yaml.ScalarEvent():
                if event.anchor is not None or event.tag is not None:
                    mark = f"&{event.anchor}" if event.anchor is not None else str(event.tag)
                    raise FrontMatterError(f"the front matter uses the YAML anchor or tag {mark}, which is not read")
                if not isinstance(event, yaml.ScalarEvent):
                    depth += 1
                if depth > MAX_DEPTH:
                    raise FrontMatterError(f"the front matter is nested more than {MAX_DEPTH} levels deep")
                yield event
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                depth -= 1
                yield event
            case _:
                pass


def _fields(events: Iterator[yaml.Event], known: frozenset[str]) -> Block:
    text: dict[str, str | tuple[str, ...]] = {}
    typed: dict[str, object] = {}
    for event in events:
        if isinstance(event, yaml.MappingEndEvent):
            break
        key = _key(event)
        if key in typed:
            raise FrontMatterError(f"the front matter names the field {key!r} twice")
        value = next(events)
        if isinstance(value, yaml.ScalarEvent):
            text[key] = value.value
            typed[key] = value.value if key in known else _scalar(value)
        else:
            plain: list[str] = []
            typed[key] = _collection(value, events, plain)
            if isinstance(value, yaml.SequenceStartEvent):
                text[key] = tuple(plain)
    return Block(text, typed)


def _collection(start: yaml.Event, events: Iterator[yaml.Event], plain: list[str]) -> object:
    """Build a list or mapping; `plain` collects the text of a list's own scalars."""
    if isinstance(start, yaml.SequenceStartEvent):
        items: list[object] = []
        for event in events:
            if isinstance(event, yaml.SequenceEndEvent):
                break
            if isinstance(event, yaml.ScalarEvent):
                plain.append(event.value)
                items.append(_scalar(event))
            else:
                items.append(_collection(event, events, []))
        return items
    mapping: dict[str, object] = {}
    for event in events:
        if isinstance(event, yaml.MappingEndEvent):
            break
        key = _key(event)
        if key in mapping:
            raise FrontMatterError(f"the front matter names the field {key!r} twice")
        value = next(events)
        mapping[key] = _scalar(value) if isinstance(value, yaml.ScalarEvent) else _collection(value, events, [])
    return mapping


def _key(event: yaml.Event) -> str:
    if not isinstance(event, yaml.ScalarEvent):
        raise FrontMatterError("the front matter has a field whose name is no plain text")
    return str(event.value)


def _scalar(event: yaml.ScalarEvent) -> object:
    """Give a scalar YAML's type: a quoted one is text, a plain one may be a number, a date, a truth value or null."""
    if not event.implicit[0]:
        return str(event.value)
    constructor: Any = yaml.SafeLoader("")
    try:
        node = yaml.ScalarNode(constructor.resolve(yaml.ScalarNode, event.value, (True, False)), event.value)
        return cast("object", constructor.construct_object(node))
    except (ValueError, yaml.YAMLError):  # 2026-13-45 looks like a date and is none
        return str(event.value)
    finally:
        constructor.dispose()


def _quote_free_text(block: str) -> str:
    """Quote the values of free-text fields that YAML would cut, refuse or take for something else.

    People and agents write `description: Note: use tab #3`. YAML stops at ` #`, refuses a second `: `, and takes a
    leading `*`, `[`, backtick and the like for syntax. The value runs on over indented lines, as YAML's would.
    """
    lines = block.split("\n")
    out: list[str] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        match = _FREE_TEXT.match(line)
        if match is None or not _misleads(match[2].rstrip()):
            out.append(line)
            continue
        words = [match[2].strip()]
        while at < len(lines) and lines[at][:1] in {" ", "\t"} and lines[at].strip():
            words.append(lines[at].strip())
            at += 1
        value = " ".join(words).replace("'", "''")
        out.append(f"{match[1]}: '{value}'")
        out.extend("" for _ in words[1:])  # line numbers in messages stay true
    return "\n".join(out)


def _misleads(value: str) -> bool:
    if value[0] in "\"'":
        return bool(_QUOTED_START.match(value)) and not _QUOTED.match(value)
    if value[0] in "|>":
        return not _BLOCK_SCALAR.match(value)
    return value[0] in "#&*!%@`[]{},?-:" or " #" in value or "\t#" in value or ": " in value or value.endswith(":")
