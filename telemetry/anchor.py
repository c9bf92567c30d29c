"""The tie between a process's monotonic clock and the wall clock."""

import time
from dataclasses import dataclass

__all__ = ["Anchor"]


@dataclass(frozen=True, slots=True)
class Anchor:
    """At `at` seconds of the monotonic clock the wall clock showed `wall_ns` nanoseconds since 1970."""

    at: float
    wall_ns: int

    @classmethod
    def now(cls) -> "Anchor":
        """Read both clocks of this process."""
        return cls(at=time.monotonic(), wall_ns=time.time_ns())

    @classmethod
    def stated(cls, *, at: float, wall: float) -> "Anchor":
        """Make the anchor that a `ProcessStarted` event states; `wall` is seconds since 1970."""
        return cls(at=at, wall_ns=round(wall * 1e9))

    def ns(self, at: float) -> int:
        """Return the wall time of `at`, in nanoseconds since 1970."""
        return self.wall_ns + round((at - self.at) * 1e9)

    def wall(self, at: float) -> float:
        """Return the wall time of `at`, in seconds since 1970."""
        return self.ns(at) / 1e9
