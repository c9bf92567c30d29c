"""The engines that `engines.py` compares: the catalog's FTS5 layout, lists of our own in SQLite, tantivy and bm25s."""

import heapq
import importlib
import itertools
import json
import sqlite3
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

__all__ = ["ENGINES", "ROOTS", "Bm25s", "Engine", "Text", "root_of"]

BEST = 60
BUDGET = 2_000
ROOTS = ("1", "2")
STRENGTH = {"t": 1.0, "d": 0.6, "b": 0.4}

Text = Mapping[str, Sequence[str]]
"""The words of a note's title and keywords (`t`), description (`d`) and body (`b`)."""


class Engine(Protocol):
    """What is compared. `number` counts from 1; the root of a note is the remainder of its number by two."""

    def add(self, notes: Sequence[tuple[int, Text]]) -> None:
        """Add notes and make them durable."""
        ...

    def finish(self) -> None:
        """Do what the engine wants done after a fill."""
        ...

    def change(self, number: int, old: Text, new: Text) -> None:
        """Replace a note and make the change visible to the next query."""
        ...

    def query(self, words: Sequence[str]) -> Sequence[int]:
        """Return the numbers of the best notes of the first root."""
        ...


def root_of(number: int) -> str:
    """Return the root that a note belongs to."""
    return ROOTS[number % 2]


def keys_of(number: int, text: Text) -> list[str]:
    """Return the words of a note, marked with root and list."""
    return [f"{root_of(number)}{letter}{word}" for letter, words in text.items() for word in dict.fromkeys(words)]


def best(lists: Iterable[tuple[float, Iterable[int]]]) -> list[int]:
    """Add up what each list is worth to each note, and return the best."""
    totals: dict[int, float] = {}
    for value, numbers in lists:
        for number in numbers:
            totals[number] = totals.get(number, 0.0) + value
    return heapq.nlargest(BEST, totals, key=totals.__getitem__)


def within_budget(documents: Mapping[str, int]) -> list[tuple[str, float]]:
    """Return the lists worth reading, rarest first, until the budget of postings is spent, and what each is worth."""
    left = BUDGET
    chosen: list[tuple[str, float]] = []
    for key in sorted(documents, key=documents.__getitem__):
        if documents[key] <= left or not chosen:
            left -= documents[key]
            chosen.append((key, STRENGTH[key[1]] / (1 + documents[key]) ** 0.1))
    return chosen


def connect(path: Path) -> sqlite3.Connection:
    """Open a database as the catalog does."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    return connection


class Fts5:
    """The catalog's own layout: a contentless FTS5 table of marked words, and their frequencies beside it."""

    def __init__(self, folder: Path) -> None:
        self.database = connect(folder / "fts5.sqlite3")
        self.database.executescript(
            "CREATE TABLE IF NOT EXISTS terms (term TEXT PRIMARY KEY, documents INTEGER NOT NULL) WITHOUT ROWID;"
            "CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (tokens, content='', detail=none, columnsize=0, "
            "tokenize=\"unicode61 remove_diacritics 0 categories 'L* M* N* P* S* C*'\");"
        )

    def add(self, notes: Sequence[tuple[int, Text]]) -> None:
        """Add notes and make them durable."""
        self.database.execute("BEGIN IMMEDIATE")
        self._count(itertools.chain.from_iterable(keys_of(*note) for note in notes), +1)
        self.database.executemany(
            "INSERT INTO words (rowid, tokens) VALUES (?, ?)",
            [(number, " ".join(keys_of(number, text))) for number, text in notes],
        )
        self.database.execute("COMMIT")

    def finish(self) -> None:
        """Do what the engine wants done after a fill."""
        self.database.execute("INSERT INTO words (words) VALUES ('optimize')")

    def change(self, number: int, old: Text, new: Text) -> None:
        """Replace a note and make the change visible."""
        self.database.execute("BEGIN IMMEDIATE")
        gone = " ".join(keys_of(number, old))
        self.database.execute("INSERT INTO words (words, rowid, tokens) VALUES ('delete', ?, ?)", (number, gone))
        self._count(keys_of(number, old), -1)
        self.database.execute("COMMIT")
        self.add([(number, new)])

    def query(self, words: Sequence[str]) -> Sequence[int]:
        """Return the numbers of the best notes of the first root."""
        keys = [f"{ROOTS[0]}{letter}{word}" for word in words for letter in STRENGTH]
        rows = self.database.execute(
            f"SELECT term, documents FROM terms WHERE term IN ({','.join('?' * len(keys))})",  # noqa: S608 - marks
            keys,
        )
        chosen = within_budget(dict(rows.fetchall()))
        lists = self.database.execute(
            "SELECT (SELECT group_concat(rowid) FROM (SELECT rowid FROM words WHERE words MATCH list.value LIMIT ?)) "
            "FROM json_each(?) AS list",
            (BUDGET, json.dumps([f'"{key}"' for key, _ in chosen])),
        ).fetchall()
        return best(
            (value, map(int, numbers.split(",")) if numbers else ())
            for (_, value), (numbers,) in zip(chosen, lists, strict=True)
        )

    def _count(self, keys: Iterable[str], sign: int) -> None:
        counts: dict[str, int] = {}
        for key in keys:
            counts[key] = counts.get(key, 0) + sign
        self.database.executemany(
            "INSERT INTO terms VALUES (?, ?) ON CONFLICT DO UPDATE SET documents = documents + excluded.documents",
            sorted(counts.items()),
        )


class PostingsTable:
    """Lists of our own in a SQLite table: a row per word and segment, sorted numbers of four bytes, segments merged."""

    FEW = 8

    def __init__(self, folder: Path) -> None:
        self.database = connect(folder / "postings.sqlite3")
        self.database.executescript(
            "CREATE TABLE IF NOT EXISTS segments (id INTEGER PRIMARY KEY AUTOINCREMENT, level INTEGER NOT NULL);"
            "CREATE TABLE IF NOT EXISTS gone (number INTEGER PRIMARY KEY, segment INTEGER NOT NULL);"
            "CREATE TABLE IF NOT EXISTS lists (term TEXT, segment INTEGER, numbers BLOB NOT NULL, "
            "PRIMARY KEY (term, segment)) WITHOUT ROWID;"
        )

    def add(self, notes: Sequence[tuple[int, Text]]) -> None:
        """Add notes and make them durable."""
        lists: dict[str, array[int]] = {}
        for number, text in sorted(notes):
            for key in keys_of(number, text):
                lists.setdefault(key, array("I")).append(number)
        self.database.execute("BEGIN IMMEDIATE")
        self._write(lists, level=0)
        self.database.execute("COMMIT")

    def finish(self) -> None:
        """Do what the engine wants done after a fill."""
        self._merge([row[0] for row in self.database.execute("SELECT id FROM segments ORDER BY id")], level=9)

    def change(self, number: int, old: Text, new: Text) -> None:
        """Replace a note and make the change visible."""
        last = self.database.execute("SELECT max(id) FROM segments").fetchone()[0]
        self.database.execute("INSERT OR REPLACE INTO gone VALUES (?, ?)", (number, last))
        self.add([(number, new)])

    def query(self, words: Sequence[str]) -> Sequence[int]:
        """Return the numbers of the best notes of the first root."""
        keys = [f"{ROOTS[0]}{letter}{word}" for word in words for letter in STRENGTH]
        gone = dict(self.database.execute("SELECT number, segment FROM gone").fetchall())
        found: dict[str, set[int]] = {}
        for term, segment, numbers in self.database.execute(
            f"SELECT term, segment, numbers FROM lists WHERE term IN ({','.join('?' * len(keys))})",  # noqa: S608 - marks
            keys,
        ):
            held = set(array("I", numbers))
            if gone:
                held = {number for number in held if gone.get(number, 0) < segment}
            found.setdefault(term, set()).update(held)
        chosen = within_budget({key: len(numbers) for key, numbers in found.items()})
        return best((value, found[key]) for key, value in chosen)

    def _write(self, lists: Mapping[str, "array[int]"], level: int) -> None:
        segment = self.database.execute("INSERT INTO segments (level) VALUES (?)", (level,)).lastrowid
        rows = [(key, segment, lists[key].tobytes()) for key in sorted(lists)]
        self.database.executemany("INSERT INTO lists VALUES (?, ?, ?)", rows)
        same = [row[0] for row in self.database.execute("SELECT id FROM segments WHERE level = ?", (level,))]
        if len(same) >= self.FEW:
            self._merge(same, level + 1)

    def _merge(self, segments: Sequence[int], level: int) -> None:
        marks = ",".join(str(segment) for segment in segments)
        gone = dict(self.database.execute("SELECT number, segment FROM gone").fetchall())
        merged: dict[str, array[int]] = {}
        for key, segment, numbers in self.database.execute(
            f"SELECT term, segment, numbers FROM lists WHERE segment IN ({marks}) ORDER BY term, segment"  # noqa: S608 - numbers
        ):
            held = array("I", numbers)
            if gone:
                held = array("I", [number for number in held if gone.get(number, 0) < segment])
            merged.setdefault(key, array("I")).extend(held)
        self.database.execute(f"DELETE FROM lists WHERE segment IN ({marks})")  # noqa: S608 - numbers
        self.database.execute(f"DELETE FROM segments WHERE id IN ({marks})")  # noqa: S608 - numbers
        self._write(merged, level)


class Tantivy:
    """The Rust library through its Python package; fields, a filter on the root, BM25."""

    def __init__(self, folder: Path) -> None:
        self.module: Any = importlib.import_module("tantivy")
        builder = self.module.SchemaBuilder()
        builder.add_unsigned_field("number", stored=True, indexed=True, fast=True)
        builder.add_text_field("root", tokenizer_name="raw", index_option="basic")
        for letter in STRENGTH:
            builder.add_text_field(letter, tokenizer_name="whitespace", index_option="basic")
        self.schema = builder.build()
        (folder / "tantivy").mkdir(exist_ok=True)
        self.index = self.module.Index(self.schema, path=str(folder / "tantivy"))
        self.searcher = self.index.searcher()
        self.writer: Any = None

    def add(self, notes: Sequence[tuple[int, Text]]) -> None:
        """Add notes and make them durable."""
        if self.writer is None:
            self.writer = self.index.writer(heap_size=50_000_000, num_threads=1)
        for number, text in notes:
            fields = {letter: [" ".join(words)] for letter, words in text.items()}
            document = self.module.Document(root=[root_of(number)], **fields)
            document.add_unsigned("number", number)
            self.writer.add_document(document)
        self.writer.commit()
        self.index.reload()
        self.searcher = self.index.searcher()

    def finish(self) -> None:
        """Do what the engine wants done after a fill."""
        self.writer.wait_merging_threads()
        self.writer = None

    def change(self, number: int, old: Text, new: Text) -> None:
        """Replace a note and make the change visible."""
        if self.writer is None:
            self.writer = self.index.writer(heap_size=50_000_000, num_threads=1)
        self.writer.delete_documents_by_term("number", number)
        self.add([(number, new)])

    def query(self, words: Sequence[str]) -> Sequence[int]:
        """Return the numbers of the best notes of the first root."""
        query, occur = self.module.Query, self.module.Occur
        parts = [
            (occur.Should, query.boost_query(query.term_query(self.schema, letter, word), strength))
            for word in words
            for letter, strength in STRENGTH.items()
        ]
        mine = query.const_score_query(query.term_query(self.schema, "root", ROOTS[0]), 0.0)
        asked = query.boolean_query([(occur.Must, query.boolean_query(parts)), (occur.Must, mine)])
        found = self.searcher.search(asked, BEST)
        return [self.searcher.doc(address)["number"][0] for _, address in found.hits]


class Bm25s:
    """A matrix of scores in memory; no fields, no filter, no change of one note: everything is made anew."""

    def __init__(self, folder: Path) -> None:
        self.module: Any = importlib.import_module("bm25s")
        self.folder = folder / "bm25s"
        self.notes: dict[int, list[str]] = {}
        self.retriever: Any = None
        if self.folder.exists():
            self.retriever = self.module.BM25.load(str(self.folder), mmap=True)

    def add(self, notes: Sequence[tuple[int, Text]]) -> None:
        """Add notes and make them durable."""
        self.notes |= {number: list(itertools.chain.from_iterable(text.values())) for number, text in notes}

    def finish(self) -> None:
        """Do what the engine wants done after a fill."""
        self.retriever = self.module.BM25()
        self.retriever.index(list(self.notes.values()), show_progress=False)
        self.retriever.save(str(self.folder))

    def change(self, number: int, old: Text, new: Text) -> None:
        """Replace a note and make the change visible."""
        self.notes[number] = list(itertools.chain.from_iterable(new.values()))
        self.finish()

    def query(self, words: Sequence[str]) -> Sequence[int]:
        """Return the numbers of the best notes of the first root."""
        found = self.retriever.retrieve([list(words)], k=BEST, show_progress=False)
        return [int(place) + 1 for place in found.documents[0]]


ENGINES: Mapping[str, Callable[[Path], Engine]] = {
    "FTS5": Fts5,
    "own lists": PostingsTable,
    "tantivy": Tantivy,
    "bm25s": Bm25s,
}
