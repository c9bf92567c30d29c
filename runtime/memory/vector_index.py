"""All vectors in memory, as one matrix of unit rows: a search compares with every one of them, exactly.

There is no approximate structure to build, to tune or to get wrong: `docs/word-gap.md` says what a comparison costs.
Importing this module imports numpy (the extra `semantic`).
"""

import threading
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Near", "Nearest", "VectorIndex"]

_Matrix = NDArray[np.float32]
_LEAST_LENGTH = 1e-6


@dataclass(frozen=True, slots=True)
class Near:
    """A note by its number, and its likeness to the query: the cosine, at most 1."""

    number: int
    likeness: float


@dataclass(frozen=True, slots=True)
class Nearest:
    """The notes nearest to a query, best first, and where the likeness of all notes lies: its mean and deviation."""

    near: tuple[Near, ...] = ()
    mean: float = 0.0
    deviation: float = 0.0


class VectorIndex:
    """The vectors of one model; may be searched and changed from several threads.

    A change makes new arrays beside the old ones, so a search never waits for it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._state: tuple[NDArray[np.int64], _Matrix] = np.empty(0, np.int64), np.empty((0, 0), np.float32)

    @property
    def numbers(self) -> frozenset[int]:
        """The notes that have a vector here."""
        return frozenset(self._state[0].tolist())

    @property
    def dimension(self) -> int:
        """The length of the vectors; 0 while there is none."""
        return int(self._state[1].shape[1])

    def __len__(self) -> int:
        return len(self._state[0])

    def change(self, *, drop: Collection[int] = (), add: Iterable[tuple[int, float, bytes]] = ()) -> None:
        """Drop the notes with these numbers and add others, as `vector_rows` keeps them.

        Vectors of another length than those that stay, or than the first one, are left out.
        """
        with self._lock:
            numbers, matrix = self._state
            if drop:
                keep = ~np.isin(numbers, np.fromiter(drop, np.int64, len(drop)))
                numbers, matrix = numbers[keep], matrix[keep]
            wanted = matrix.shape[1] if len(matrix) else None
            known = set(numbers.tolist())
            rows: list[NDArray[Any]] = []
            added: list[int] = []
            for number, scale, data in add:
                wanted = len(data) if wanted is None else wanted
                if len(data) == wanted and number not in known:
                    added.append(number)
                    rows.append(np.frombuffer(data, np.int8) * np.float32(scale))
            if rows:
                new = _unit(np.stack(rows).astype(np.float32))
                matrix = np.concatenate([matrix, new]) if len(matrix) else new
                numbers = np.concatenate([numbers, np.array(added, np.int64)])
            self._state = numbers, matrix

    def nearest(self, vector: Sequence[float], limit: int) -> Nearest:
        """Return the at most `limit` nearest notes; none for a vector of another length, or of no direction."""
        numbers, matrix = self._state
        query = np.asarray(vector, np.float32)
        length = float(np.linalg.norm(query))
        if not len(numbers) or query.shape != (matrix.shape[1],) or length < _LEAST_LENGTH:
            return Nearest()
        likeness = matrix @ (query / length)
        best = np.argpartition(likeness, -limit)[-limit:] if len(numbers) > limit else np.arange(len(numbers))
        order = np.lexsort((numbers[best], -likeness[best]))
        near = tuple(Near(int(numbers[at]), float(likeness[at])) for at in best[order])
        return Nearest(near, float(likeness.mean()), float(likeness.std()))


def _unit(matrix: _Matrix) -> _Matrix:
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    unit: _Matrix = np.divide(matrix, lengths, out=np.zeros_like(matrix), where=lengths > _LEAST_LENGTH)
    return unit
