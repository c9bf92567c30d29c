"""The vectors in the catalog: one row per note and model, small numbers with a scale; gone with the note's row.

A row of `notes` never changes, it is replaced by one with a new number, so a vector never outlives its version.
"""

import sqlite3
from array import array
from collections.abc import Iterable, Mapping, Sequence

from recallscope.runtime.memory.catalog import COLUMNS, note_of
from recallscope.runtime.memory.catalog_readers import Reader
from recallscope.runtime.memory.note import Note
from recallscope.runtime.memory.scopes import Root

__all__ = ["delete_vectors", "notes_numbered", "numbers_in_force", "packed", "read_vectors", "write_vectors"]

_LARGEST = 127


def packed(vector: Sequence[float]) -> tuple[float, bytes]:
    """Return `vector` as bytes from -127 to 127 and the scale that they are multiplied with."""
    scale = max(map(abs, vector), default=0.0) / _LARGEST
    if not scale:
        return 0.0, bytes(len(vector))
    return scale, array("b", [round(number / scale) for number in vector]).tobytes()


def numbers_in_force(reader: Reader, model: str, roots: Mapping[int, Root]) -> tuple[list[int], list[int]]:
    """Return the numbers of the notes of `roots` with a vector of `model`, and of those without, the newest first.

    Superseded notes are in neither.
    """
    numbers = ",".join(str(number) for number in roots)
    asked = (
        "SELECT notes.id, vectors.id IS NOT NULL FROM notes LEFT JOIN vectors ON vectors.id = notes.id AND model = ? "  # noqa: S608 - numbers
        f"WHERE root IN ({numbers}) AND superseded_by IS NULL ORDER BY updated DESC"
    )
    rows = reader.execute(asked, (model,)).fetchall()
    return [number for number, there in rows if there], [number for number, there in rows if not there]


def notes_numbered(reader: Reader, numbers: Sequence[int], roots: Mapping[int, Root]) -> list[tuple[int, Note]]:
    """Return the notes with these numbers, with bodies; those of other roots are left out."""
    ids = ",".join(str(number) for number in numbers)
    rows = reader.execute(f"SELECT {COLUMNS}, body FROM notes JOIN bodies USING (id) WHERE id IN ({ids})")  # noqa: S608 - numbers and a constant
    return [(row[0], note_of(row, roots[row[1]], row[-1])) for row in rows if row[1] in roots]


def write_vectors(writer: sqlite3.Connection, model: str, vectors: Iterable[tuple[int, Sequence[float]]]) -> None:
    """Keep the vectors of notes by number; of notes that are gone meanwhile nothing is kept."""
    writer.executemany(
        "INSERT OR REPLACE INTO vectors (id, model, scale, vector) SELECT id, ?, ?, ? FROM notes WHERE id = ?",
        [(model, *packed(vector), number) for number, vector in vectors],
    )


def delete_vectors(writer: sqlite3.Connection, model: str, *, dimension: int) -> int:
    """Delete the vectors of `model` that have another `dimension`, and return how many these were."""
    return writer.execute("DELETE FROM vectors WHERE model = ? AND length(vector) <> ?", (model, dimension)).rowcount


def read_vectors(reader: Reader, model: str, numbers: Sequence[int]) -> list[tuple[int, float, bytes]]:
    """Return number, scale and bytes of the vectors of these notes."""
    ids = ",".join(str(number) for number in numbers)
    asked = f"SELECT id, scale, vector FROM vectors WHERE model = ? AND id IN ({ids})"  # noqa: S608 - numbers
    return reader.execute(asked, (model,)).fetchall()
