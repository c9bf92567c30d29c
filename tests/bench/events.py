"""Copies of the golden turn's events that can be told apart."""

from collections.abc import Sequence
from dataclasses import replace

from recallscope.runtime.events import Event, OpId

__all__ = ["renamed"]


def renamed(events: Sequence[Event], name: str) -> list[Event]:
    """Give the operations of a turn's `events` names of their own."""
    return [_renamed(event, name) for event in events]


def _renamed(event: Event, name: str) -> Event:
    parent: OpId | None = getattr(event, "parent", None)
    changes = {"op": f"{event.op}-{name}"} | ({"parent": f"{parent}-{name}"} if parent is not None else {})
    return replace(event, **changes)
