"""Events as JSON objects: the lines of the journal and of `run --json`.

`{"v": 1, "event": "RecallBegun", "wall": …, "at": …, "op": …, "parent": …, "session": …, "turn": …, …}`: the fields
of the event follow under their own names. Values are enums' strings, numbers, lists; phases are an object. Readers
ignore keys that they do not know; a change that would mislead an old reader raises `v`.
"""

from dataclasses import dataclass, fields, replace
from enum import Enum
from typing import Any, Final, cast

from recallscope.runtime.events import (
    Event,
    OpId,
    ProcessStarted,
    RecallBegun,
    SessionClosed,
    SessionOpened,
    Started,
    TurnFinished,
    TurnStarted,
)
from recallscope.telemetry.anchor import Anchor

__all__ = ["VERSION", "Encoder", "Place", "encode"]

VERSION: Final = 1
MAX_PLACES: Final = 20_000

_COMMON = frozenset({"op", "at", "wall", "parent", "session", "turn"})


@dataclass(frozen=True, slots=True)
class Place:
    """Where an operation belongs: its session, its turn and its parent, as far as known."""

    session: str | None = None
    turn: str | None = None
    parent: OpId | None = None


_PLAIN = frozenset({str, int, bool})
_NOWHERE = Place()
_FIELDS: dict[type[Event], tuple[str, ...]] = {}


def encode(event: Event, anchor: Anchor, place: Place) -> dict[str, Any]:
    """Return `event` as a JSON object that belongs to `place`; `anchor` gives its wall time."""
    kind = type(event)
    line: dict[str, Any] = {
        "v": VERSION,
        "event": kind.__name__,
        "wall": round(anchor.wall(event.at), 6),
        "at": round(event.at, 6),
        "op": event.op,
        "parent": place.parent,
        "session": place.session,
        "turn": place.turn,
    }
    for name in _own_fields(kind):
        value = getattr(event, name)
        line[name] = value if value is None or type(value) in _PLAIN else _plain(value)
    if isinstance(event, TurnFinished):
        line["phases"] = {phase.value: round(seconds, 6) for phase, seconds in event.phases}
    return line


class Encoder:
    """Encodes a stream of events, in order: it learns from them which operation belongs to which session and turn."""

    def __init__(self, anchor: Anchor) -> None:
        self._anchor = anchor
        self._places: dict[OpId, Place] = {}

    def __call__(self, event: Event, /) -> dict[str, Any]:
        """Return `event` as a JSON object."""
        if isinstance(event, ProcessStarted):
            self._anchor = Anchor.stated(at=event.at, wall=event.wall)
        return encode(event, self._anchor, self._place(event))

    def _place(self, event: Event) -> Place:
        match event:
            case SessionOpened() | SessionClosed():
                return self._learn(event.op, Place(event.session))
            case TurnStarted() | RecallBegun():
                return self._learn(event.op, Place(event.session, event.turn, event.parent))
            case Started(parent=parent) if parent is not None:
                return self._learn(event.op, replace(self._places.get(parent, _NOWHERE), parent=parent))
            case _:
                return self._places.get(event.op, _NOWHERE)

    def _learn(self, op: OpId, place: Place) -> Place:
        self._places[op] = place
        if len(self._places) > MAX_PLACES:
            del self._places[next(iter(self._places))]
        return place


def _own_fields(kind: type[Event]) -> tuple[str, ...]:
    """Return the names of an event's own fields; looked up once per kind."""
    names = _FIELDS.get(kind)
    if names is None:
        names = _FIELDS[kind] = tuple(field.name for field in fields(kind) if field.name not in _COMMON)
    return names


def _plain(value: object) -> Any:
    """Return a value as JSON has it."""
    match value:
        case Enum():
            return value.value
        case float():
            return round(value, 6)
        case tuple():
            return [_plain(item) for item in cast("tuple[object, ...]", value)]
        case _:
            return value
