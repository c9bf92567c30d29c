"""Which tools a session used last: the recall leaves out notes that only say how to use them."""

__all__ = ["RecentTools"]

KEPT = 20
"""Distinct names that are remembered (docs/memory.md)."""


class RecentTools:
    """The last distinct tool names, most recent last; errors count, replays and cancelled calls are not recorded."""

    def __init__(self) -> None:
        self._names: dict[str, None] = {}

    def record(self, tool: str) -> None:
        """Remember a finished call of `tool`."""
        self._names.pop(tool, None)
        self._names[tool] = None
        while len(self._names) > KEPT:
            del self._names[next(iter(self._names))]

    def names(self) -> tuple[str, ...]:
        """Return the names, most recent last."""
        return tuple(self._names)

    def clear(self) -> None:
        """Forget all names."""
        self._names.clear()
