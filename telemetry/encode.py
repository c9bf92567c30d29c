"""Events as JSON objects: the lines of the journal and of `run --json`.

`{"v": 1, "event": "RecallBegun", "wall": …, "at": …, "op": …, "parent": …, "session": …, "turn": …, …}`: the fields
of the event follow under their own names. Values are enums' strings, numbers, lists; phases are an object. A turn's
start names the `trace` that the turn is drawn in. Readers ignore keys that they do not know; a change that would
mislead an old reader raises `v`.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any, Final

import orjson

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

__all__ = ["VERSION", "Encoder"]

VERSION: Final = 1
MAX_PLACES: Final = 20_000

_COMMON = frozenset({"op", "at", "wall", "parent", "session", "turn"})


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an operation belongs: its session, its turn and its parent, as far as known."""

    session: str | None = None
    turn: str | None = None
    parent: OpId | None = None


@dataclass(frozen=True, slots=True)
class _Kind:
    """What is the same for all events of a kind: its name, its own fields, and how their values are had."""

    name: str
    fields: tuple[str, ...]
    values: Callable[[Event], tuple[Any, ...]]

    @classmethod
    def of(cls, event: Event) -> "_Kind":
        """Look at the kind of `event`."""
        kind = type(event)
        own = tuple(field.name for field in fields(kind) if field.name not in _COMMON)
        if len(own) > 1:
            return cls(kind.__name__, own, attrgetter(*own))
        only = attrgetter(*own) if own else None
        return cls(kind.__name__, own, lambda event: (only(event),) if only is not None else ())


_NOWHERE = _Place()


class Encoder:
    """Encodes a stream of events, in order: it learns from them which operation belongs to which session and turn.

    `trace_id` tells the trace of a turn's operation (32 hexadecimal digits), None without one.
    """

    def __init__(self, anchor: Anchor, *, trace_id: Callable[[OpId], str | None] = lambda _: None) -> None:
        self._anchor = anchor
        self._trace_id = trace_id
        self._places: dict[OpId, _Place] = {}
        self._kinds: dict[type[Event], _Kind] = {}

    def __call__(self, event: Event, /) -> bytes:
        """Return `event` as one line of JSON in UTF-8, without the line's end."""
        if isinstance(event, ProcessStarted):
            self._anchor = Anchor.stated(at=event.at, wall=event.wall)
        kind = self._kinds.get(type(event))
        if kind is None:
            kind = self._kinds[type(event)] = _Kind.of(event)
        place = self._place(event)
        line: dict[str, Any] = {
            "v": VERSION,
            "event": kind.name,
            "wall": round(self._anchor.wall(event.at), 6),
            "at": round(event.at, 6),
            "op": event.op,
            "parent": place.parent,
            "session": place.session,
            "turn": place.turn,
        }
        line.update(zip(kind.fields, kind.values(event), strict=True))
        if isinstance(event, TurnStarted):
            line["trace"] = self._trace_id(event.op)
        elif isinstance(event, TurnFinished):
            line["phases"] = {phase.value: seconds for phase, seconds in event.phases}
        try:
            return orjson.dumps(line)
        except orjson.JSONEncodeError:  # half a surrogate pair, or a number of more than 64 bits, from outside
            return json.dumps(line, separators=(",", ":")).encode()

    def _place(self, event: Event) -> _Place:
        match event:
            case SessionOpened() | SessionClosed():
                return self._learn(event.op, _Place(event.session))
            case TurnStarted() | RecallBegun():
                return self._learn(event.op, _Place(event.session, event.turn, event.parent))
            case Started(parent=parent) if parent is not None:
                above = self._places.get(parent, _NOWHERE)
                return self._learn(event.op, _Place(above.session, above.turn, parent))
            case _:
                return self._places.get(event.op, _NOWHERE)

    def _learn(self, op: OpId, place: _Place) -> _Place:
        self._places[op] = place
        if len(self._places) > MAX_PLACES:
            del self._places[next(iter(self._places))]
        return place
