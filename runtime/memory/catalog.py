"""The catalog's rows: notes in and out, and with each note its words in the index and their frequencies.

The full-text index holds a note as one bag of `<root><list><token>` words, so that the postings of one root and one
list stand by themselves: no search walks through another project's notes, and a hit says where the word stands.
"""

import json
import logging
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Final

import orjson

from recallscope.runtime.memory.catalog_file import OPENING_PATIENCE, WRITER_PATIENCE, CatalogFile
from recallscope.runtime.memory.catalog_readers import Reader
from recallscope.runtime.memory.frontmatter import dump, load, split
from recallscope.runtime.memory.noise import is_usage_note
from recallscope.runtime.memory.note import Note, note_id
from recallscope.runtime.memory.rank import Field, field_texts
from recallscope.runtime.memory.scopes import NoteFile, Root, Skipped
from recallscope.runtime.memory.tokens import Tokens
from recallscope.runtime.terms import NoteSource, NoteType, ScopeName

__all__ = ["COLUMNS", "LOOK", "Catalog", "Changes", "Head", "Postings"]
__all__ += ["field_tokens", "index_word", "note_of"]

_log = logging.getLogger(__name__)

COLUMNS = (
    "id, root, relative, version, title, description, type, keywords, usage_scenarios, pinned, created, updated, "
    "superseded_by, source, evidence, extra, usage_note, head"
)
"""What `note_of` takes: a row of `notes` without its body."""

LOOK = "relative, mtime_ns, size, inode, ctime_ns, racy"
"""What a `NoteFile` is made of."""

_INSERTED = f"{COLUMNS}, mtime_ns, size, inode, ctime_ns, racy"

_HEAD_FIELDS = (Field.TITLE, Field.KEYWORDS, Field.DESCRIPTION)
"""The fields whose words a `Head` holds, each word marked with its field's letter."""

_Tokens = Mapping[Field, Mapping[str, None]]
"""The tokens of each field of a note."""


class Postings(Enum):
    """A list of the index, by the letter that marks its words; title and keywords are one list to read fewer."""

    HEADING = "t"
    DESCRIPTION = "d"
    BODY = "b"

    @property
    def fields(self) -> tuple[Field, ...]:
        """Return the fields whose words stand in the list, the strongest first."""
        return _FIELDS_OF[self]


_FIELDS_OF: Final = {
    Postings.HEADING: (Field.TITLE, Field.KEYWORDS),
    Postings.DESCRIPTION: (Field.DESCRIPTION,),
    Postings.BODY: (Field.BODY,),
}


@dataclass(frozen=True, slots=True)
class Head:
    """A note without its body, its words outside the body, and whether it only documents how something is called."""

    note: Note
    words: frozenset[str]
    usage_note: bool


@dataclass(slots=True)
class Changes:
    """What one transaction changes in one root."""

    notes: list[tuple[Note, NoteFile]] = field(default_factory=list[tuple[Note, NoteFile]])
    skipped: list[tuple[Skipped, NoteFile]] = field(default_factory=list[tuple[Skipped, NoteFile]])
    gone: list[str] = field(default_factory=list[str])

    def __len__(self) -> int:
        return len(self.notes) + len(self.skipped) + len(self.gone)


class Catalog(CatalogFile):
    """The catalog of one base directory: what stands in its file."""

    def __init__(
        self, path: Path, *, patience: float = WRITER_PATIENCE, opening_patience: float = OPENING_PATIENCE
    ) -> None:
        super().__init__(path, patience=patience, opening_patience=opening_patience)
        self.tokens = Tokens()
        self._newest: tuple[tuple[object, ...], dict[int, Head]] = ((), {})

    def root_id(self, root: Path) -> int:
        """Return the number of `root`, given now if it has none; a known root waits for no other writer."""
        with self.readers.borrow() as reader:
            row = reader.execute("SELECT id FROM roots WHERE path = ?", (str(root),)).fetchone()
        if row is not None:
            return int(row[0])
        with self.writing() as writer:
            writer.execute("INSERT OR IGNORE INTO roots (path) VALUES (?)", (str(root),))
            return int(writer.execute("SELECT id FROM roots WHERE path = ?", (str(root),)).fetchone()[0])

    def seen(self, root: int) -> tuple[dict[str, NoteFile], dict[str, NoteFile]]:
        """Return what is known of the files of `root`: those that are notes, and those that were skipped."""
        with self.readers.borrow() as reader:
            notes = {
                row[0]: NoteFile(*row)
                for row in reader.execute(f"SELECT {LOOK} FROM notes WHERE root = ?", (root,))  # noqa: S608 - a constant
            }
            skipped = {
                row[0]: NoteFile(*row)
                for row in reader.execute(f"SELECT {LOOK} FROM skipped WHERE root = ?", (root,))  # noqa: S608 - a constant
            }
        return notes, skipped

    def skipped(self, root: int) -> tuple[Skipped, ...]:
        """Return the files of `root` that could not be read as notes."""
        with self.readers.borrow() as reader:
            rows = reader.execute("SELECT relative, why FROM skipped WHERE root = ? ORDER BY relative", (root,))
            return tuple(Skipped(*row) for row in rows)

    def count(self, root: int) -> int:
        """Return how many notes of `root` stand in the catalog."""
        with self.readers.borrow() as reader:
            row = reader.execute("SELECT notes FROM roots WHERE id = ?", (root,)).fetchone()
        return int(row[0]) if row else 0

    def miscount(self, root: int) -> str | None:
        """Say what cannot be true of the numbers kept of `root`: they no longer belong to its rows; None if all may be.

        One statement each, so that a write of another process in between is no difference: 20 ms at 100,000 notes.
        """
        with self.readers.borrow() as reader:
            kept, rows = reader.execute(
                "SELECT notes, (SELECT count(*) FROM notes WHERE root = roots.id) FROM roots WHERE id = ?", (root,)
            ).fetchone() or (0, 0)
            if kept != rows:
                return f"it counts {kept} notes where {rows} stand"
            wrong = reader.execute(
                "SELECT term FROM terms WHERE root = ?1 AND NOT (documents BETWEEN 1 AND "
                "(SELECT notes FROM roots WHERE id = ?1) AND min(t, d, b) >= 0 AND max(t, d, b) <= documents "
                "AND t + d + b >= documents) LIMIT 1",
                (root,),
            ).fetchone()
        return "it counts words in more or fewer notes than can hold them" if wrong else None

    def heads(self, connection: Reader, numbers: Sequence[int], roots: Mapping[int, Root]) -> dict[int, Head]:
        """Return the notes with these numbers, without those of other roots, in no certain order."""
        found: dict[int, Head] = {}
        ids = ",".join(str(number) for number in numbers)
        for row in connection.execute(f"SELECT {COLUMNS} FROM notes WHERE id IN ({ids})"):  # noqa: S608 - numbers
            root = roots.get(row[1])
            if root is not None:
                found[row[0]] = Head(note_of(row, root), frozenset(row[-1].split(" ")), bool(row[-2]))
        return found

    def newest_heads(self, connection: Reader, roots: Mapping[int, Root], limit: int) -> Mapping[int, Head]:
        """Return the at most `limit` notes of each root that were updated last, the newest of all first.

        They are remembered, since every search asks for them. More is not: long-lived objects by the ten thousand
        would make each full pass of the garbage collector longer than a search.
        """
        numbers = [
            connection.execute(
                "SELECT group_concat(id) FROM (SELECT id FROM notes WHERE root = ? ORDER BY updated DESC LIMIT ?)",
                (root, limit),
            ).fetchone()[0]
            for root in roots
        ]
        key = connection.generation, *roots.items(), *numbers
        known, heads = self._newest
        if known != key:
            found = self.heads(connection, [int(one) for text in numbers if text for one in text.split(",")], roots)
            order = sorted(found.items(), key=lambda item: (-item[1].note.updated, item[1].note.id))
            heads = dict(order)
            self._newest = key, heads
        return heads

    def newest(self, root: int, of: Root, limit: int) -> tuple[Note, ...]:
        """Return the notes of `root` that were updated last, newest first, without their bodies."""
        with self.readers.borrow() as reader:
            rows = reader.execute(
                f"SELECT {COLUMNS} FROM notes WHERE root = ? ORDER BY updated DESC, relative LIMIT ?",  # noqa: S608 - a constant
                (root, limit),
            )
            return tuple(note_of(row, of) for row in rows)

    def apply(self, root: int, changes: Changes) -> None:
        """Write `changes` in one transaction.

        Raises:
            StoreUnavailableError: the catalog cannot be written.
        """
        added = [(field_tokens(self.tokens, note), note, file) for note, file in changes.notes]  # before any lock
        counts = _Counts()
        with self.writing() as writer:
            before = writer.total_changes
            relatives = [*changes.gone, *(note.relative for note, _ in changes.notes)]
            relatives += [skip.path for skip, _ in changes.skipped]
            removed = self._remove(writer, root, relatives, counts)
            self._insert(writer, root, added, counts)
            writer.executemany(
                "INSERT OR REPLACE INTO skipped VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (root, skip.path, file.mtime_ns, file.size, file.inode, file.ctime_ns, file.racy, skip.why)
                    for skip, file in changes.skipped
                ],
            )
            counts.write(writer, root)
            if writer.total_changes != before:
                writer.execute("UPDATE roots SET notes = notes + ? WHERE id = ?", (len(changes.notes) - removed, root))

    def optimize(self) -> None:
        """Merge the index into one piece, which makes a look-up three times as quick; worth it after many changes."""
        with self.writing() as writer:
            writer.execute("INSERT INTO words (words) VALUES ('optimize')")

    def _insert(
        self, writer: sqlite3.Connection, root: int, added: Sequence[tuple[_Tokens, Note, NoteFile]], counts: "_Counts"
    ) -> None:
        last = writer.execute("SELECT seq FROM sqlite_sequence WHERE name = 'notes'").fetchone()
        numbered = list(enumerate(added, start=1 + (last[0] if last else 0)))
        writer.executemany(
            f"INSERT INTO notes ({_INSERTED}) VALUES ({', '.join('?' * _INSERTED.count(','))}, ?)",  # noqa: S608 - our names
            [_row_of(number, root, note, file, fields) for number, (fields, note, file) in numbered],
        )
        writer.executemany(
            "INSERT INTO bodies VALUES (?, ?)", [(number, note.body) for number, (_, note, _) in numbered]
        )
        writer.executemany(
            "INSERT INTO words (rowid, tokens) VALUES (?, ?)",
            [(number, counts.bag(root, fields, +1)) for number, (fields, _, _) in numbered],
        )

    def _remove(self, writer: sqlite3.Connection, root: int, relatives: Sequence[str], counts: "_Counts") -> int:
        """Take out what stands under these names, and return how many notes that were."""
        named = root, json.dumps(relatives, ensure_ascii=False)
        writer.execute("DELETE FROM skipped WHERE root = ? AND relative IN (SELECT value FROM json_each(?))", named)
        rows = writer.execute(
            f"SELECT {COLUMNS}, body FROM notes JOIN bodies USING (id) "  # noqa: S608 - a constant
            "WHERE root = ? AND relative IN (SELECT value FROM json_each(?))",
            named,
        ).fetchall()
        for row in rows:
            bag = counts.bag(root, field_tokens(self.tokens, note_of(row, None, row[-1])), -1)
            writer.execute("INSERT INTO words (words, rowid, tokens) VALUES ('delete', ?, ?)", (row[0], bag))
            writer.execute("DELETE FROM bodies WHERE id = ?", (row[0],))
            writer.execute("DELETE FROM notes WHERE id = ?", (row[0],))
        return len(rows)


class _Counts:
    """By how much the frequencies of words change: in how many notes each stands, anywhere and in each list."""

    def __init__(self) -> None:
        self._anywhere: Counter[str] = Counter()
        self._lists: dict[Postings, Counter[str]] = {postings: Counter() for postings in Postings}

    def bag(self, root: int, fields: _Tokens, sign: int) -> str:
        """Return the index words of a note as one text, and count them."""
        bag: list[str] = []
        anywhere: set[str] = set()
        for postings, counter in self._lists.items():
            tokens = set[str]().union(*(fields[part] for part in postings.fields))
            _count(counter, tokens, sign)
            anywhere |= tokens
            mark = index_word(root, postings.value, "")
            bag += [mark + token for token in tokens]
        _count(self._anywhere, anywhere, sign)
        return " ".join(bag)

    def write(self, writer: sqlite3.Connection, root: int) -> None:
        """Bring the table of frequencies up to what was counted."""
        heading, description, body = (counter.get for counter in self._lists.values())
        rows = [
            (root, token, number, heading(token, 0), description(token, 0), body(token, 0))
            for token, number in sorted(self._anywhere.items())
        ]
        changed = [row for row in rows if any(row[2:])]
        writer.executemany(
            "INSERT INTO terms VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (root, term) DO UPDATE SET "
            "documents = documents + excluded.documents, t = t + excluded.t, "
            "d = d + excluded.d, b = b + excluded.b",
            changed,
        )
        gone = [(root, token) for token, number in self._anywhere.items() if number < 0]
        writer.executemany("DELETE FROM terms WHERE root = ? AND term = ? AND documents <= 0", gone)


def _count(counter: Counter[str], tokens: AbstractSet[str], sign: int) -> None:
    if sign > 0:
        counter.update(tokens)
    else:
        counter.subtract(tokens)


def field_tokens(tokens: Tokens, note: Note) -> Mapping[Field, dict[str, None]]:
    """Return the tokens of each field of `note`."""
    texts = field_texts(note)
    return dict(zip(texts, tokens.of_fields(tuple(texts.values())), strict=True))


def index_word(root: int, letter: str, token: str) -> str:
    """Return the word of the index that stands for `token` in one of a root's lists (`Postings`)."""
    return f"{root}{letter}{token}"


def note_of(row: Sequence[Any], root: Root | None, body: str = "") -> Note:
    """Make the note of a row of `COLUMNS`; without a root it has no true scope and path."""
    where = root or _NOWHERE
    return Note(
        id=note_id(where.scope, row[2]),
        version=row[3],
        scope=where.scope,
        root=where.path,
        relative=row[2],
        title=row[4],
        description=row[5],
        type=NoteType(row[6]),
        keywords=_strings(row[7]),
        usage_scenarios=_strings(row[8]),
        body=body,
        pinned=bool(row[9]),
        created=row[10],
        updated=row[11],
        superseded_by=row[12],
        source=NoteSource(row[13]) if row[13] else None,
        evidence=row[14],
        extra=dict(load(split(row[15])[0] or "").typed) if row[15] else {},
    )


def _strings(text: str) -> tuple[str, ...]:
    return tuple(orjson.loads(text)) if text != "[]" else ()


def _row_of(number: int, root: int, note: Note, file: NoteFile, fields: _Tokens) -> tuple[object, ...]:
    """Return the row of a note, in the order of `_INSERTED`."""
    return (
        number,
        root,
        note.relative,
        note.version,
        note.title,
        note.description,
        str(note.type),
        json.dumps(note.keywords),
        json.dumps(note.usage_scenarios),
        note.pinned,
        note.created,
        note.updated,
        note.superseded_by,
        str(note.source) if note.source else None,
        note.evidence,
        dump(note.extra) if note.extra else None,
        is_usage_note(note),
        " ".join(f"{part.value}{token}" for part in _HEAD_FIELDS for token in fields[part]),
        file.mtime_ns,
        file.size,
        file.inode,
        file.ctime_ns,
        file.racy,
    )


_NOWHERE = Root(ScopeName.PROJECT, Path())
