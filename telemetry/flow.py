"""What became of a signal's items: the value that every way out answers with."""

from dataclasses import dataclass

__all__ = ["Flow"]


@dataclass(frozen=True, slots=True)
class Flow:
    """Items of one signal: how many were passed on, and how many were lost, by reason."""

    signal: str
    exported: int
    lost: tuple[tuple[str, int], ...]

    @property
    def lost_items(self) -> int:
        """All losses together."""
        return sum(number for _, number in self.lost)
