"""Which ceilings a policy's recalls had."""

from dataclasses import dataclass

__all__ = ["Ceilings"]


@dataclass(frozen=True, slots=True)
class Ceilings:
    """The lowest and the highest effective ceiling (seconds) that was in force under one policy."""

    lowest: float
    highest: float

    def __or__(self, other: "Ceilings") -> "Ceilings":
        """Return the ceilings of both."""
        return Ceilings(min(self.lowest, other.lowest), max(self.highest, other.highest))

    @property
    def one(self) -> bool:
        """Say whether all recalls had the same ceiling."""
        return self.lowest == self.highest
