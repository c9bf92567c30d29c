"""One search in the catalog, in a worker thread: from the words of a query to ranked notes.

Only the postings of telling words are read, the most telling first, until a budget of them is spent: what a frequent
word would add to the order is little, and reading it is what makes a search slow. The best notes are then scored
exactly by the words of their titles, keywords and descriptions, so that a pruned word counts where it matters.
"""

import itertools
import json
import math
import sqlite3
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import orjson

from recallscope.runtime.errors import NoteError
from recallscope.runtime.memory.catalog import COLUMNS, LOOK, Catalog, Head, Postings, index_word, note_of
from recallscope.runtime.memory.catalog_readers import Reader
from recallscope.runtime.memory.noise import mentions
from recallscope.runtime.memory.note import Note, version_of
from recallscope.runtime.memory.rank import RELATED, Field, Term, agreement, terms, threshold
from recallscope.runtime.memory.scopes import NoteFile, Root
from recallscope.runtime.memory.search import Dropped, Found, Hit, LeftOut, Part, Source
from recallscope.runtime.memory.store import read_bytes
from recallscope.runtime.memory.tokens import LITTLE, QueryToken
from recallscope.runtime.messages import NoteVersion

__all__ = ["CANDIDATES", "FAST", "LEXICAL", "RESERVE", "Lookup", "is_current", "load_notes"]

FAST = 2
LEXICAL = 5
CANDIDATES = 200
RESERVE = 120
LEFT_OUT = 10

POSTINGS = 2_000
"""How many postings one search may read: about half a microsecond each."""

_FETCHED = 32
"""How many of the best notes are looked at: a row, the note made of it and its score are a hundredth of a search."""
_LISTS = tuple((postings.value, postings.fields[0].strength) for postings in Postings)
_WEAKEST_FIRST = _LISTS[::-1]
_STRENGTHS = tuple((field.value, field.strength, field) for field in Field)
_BODY = Postings.BODY.value
_READ_LISTS = """
SELECT (SELECT json_group_array(rowid) FROM
    (SELECT rowid FROM words WHERE words MATCH list.value ORDER BY rowid DESC LIMIT ?))
FROM json_each(?) AS list
"""
"""One array of numbers for each list, the newest notes first: quicker than a row for each number."""
_STEPS_BETWEEN_CHECKS = 2_000
_LEAST_SHARE = 0.2
"""A match with less than this share of the best score tells a selector no more than a recent note does."""


@dataclass(slots=True)
class _Matches:
    """What the index said: an upper bound of each note's score, and per word the notes that hold it in the body."""

    in_body: dict[str, frozenset[int]] = field(default_factory=dict[str, frozenset[int]])
    totals: dict[int, float] = field(default_factory=dict[int, float])
    partial: bool = False


@dataclass(frozen=True, slots=True)
class _Scored:
    """A note that was looked at, what its words are worth, and why it is left out whatever that is."""

    number: int
    note: Note
    score: float
    parts: tuple[Part, ...]
    factor: float
    why: Dropped | None

    @property
    def hit(self) -> Hit:
        """Return it as the answer holds it: the parts add up to the score."""
        parts = tuple(Part(part.source, part.value * self.factor, part.word, part.field) for part in self.parts)
        return Hit(self.note, self.score, parts)


@dataclass(slots=True, kw_only=True)
class Lookup:
    """A search under way; `stop` may be called from any thread."""

    catalog: Catalog
    roots: Mapping[int, Root]
    query: str
    exclude: frozenset[NoteVersion]
    tools: frozenset[str]
    deadline: float | None = None
    _stopped: threading.Event = field(default_factory=threading.Event)
    _connection: Reader | None = None
    _until: float = math.inf

    def stop(self) -> None:
        """Make `run` return soon with what it has."""
        self._stopped.set()
        connection = self._connection
        if connection is not None:
            connection.interrupt()

    def run(self) -> Found:
        """Search.

        Raises:
            StoreUnavailableError: the catalog cannot be read.
        """
        tokens = self.catalog.tokens.query(self.query)
        if self.deadline is not None:
            self._until = time.monotonic() + self.deadline
        with self.catalog.readers.borrow() as connection:
            self._connection = connection
            try:
                connection.execute("BEGIN")  # one state of the catalog, and one lock instead of fifty
                connection.verify((number, root.path) for number, root in self.roots.items())
                words, matches = self._match(connection, tokens)
                found = self._rank(connection, words, matches, threshold(tokens))
            finally:
                self._connection = None
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
        return replace(found, asked=frozenset(token.text for token in tokens if token.weight > LITTLE))

    def resolve(self, generation: int, likeness: Mapping[int, float]) -> tuple[tuple[Hit, ...], tuple[LeftOut, ...]]:
        """Return the notes with these numbers as hits of the vectors, best first, and those left out whatever it is.

        Numbers of another catalog (`generation`) give nothing.

        Raises:
            StoreUnavailableError: the catalog cannot be read.
        """
        with self.catalog.readers.borrow() as connection:
            if connection.generation != generation:
                return (), ()
            heads = self.catalog.heads(connection, list(likeness), self.roots)
            dropped = self._dropped(connection, heads)
            scored = [
                _Scored(
                    number,
                    head.note,
                    round(likeness[number], 4),
                    (Part(Source.VECTORS, round(likeness[number], 4)),),
                    1.0,
                    Dropped.SUPERSEDED if head.note.superseded_by is not None else dropped.get(number),
                )
                for number, head in heads.items()
            ]
            scored.sort(key=_order)
            kept = self._with_bodies(connection, [one for one in scored if one.why is None])
        return kept, tuple(LeftOut(one.hit, one.why) for one in scored if one.why is not None)

    def _match(self, connection: Reader, tokens: Sequence[QueryToken]) -> tuple[tuple[Term, ...], _Matches]:
        matches = _Matches()
        words: tuple[Term, ...] = ()
        with self.interruptible(connection):
            try:
                frequencies, notes = self._frequencies(connection, tokens)
                documents = {token: sum(row[0] for row in rows.values()) for token, rows in frequencies.items()}
                words = terms(tokens, documents, notes)
                self._read_postings(connection, words, frequencies, matches)
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
                    raise
                matches.partial = True
        return words, matches

    @contextmanager
    def interruptible(self, connection: Reader) -> Generator[None, None, None]:
        """Let the block's queries end when time is over: `interrupt` alone is lost between two statements."""
        connection.set_progress_handler(self._is_over, _STEPS_BETWEEN_CHECKS)
        try:
            yield
        finally:
            connection.set_progress_handler(None, 0)

    def _is_over(self) -> bool:
        return self._stopped.is_set() or time.monotonic() >= self._until

    def _frequencies(
        self, connection: Reader, tokens: Sequence[QueryToken]
    ) -> tuple[dict[str, dict[int, tuple[int, ...]]], int]:
        """Return per token and root in how many notes it stands (anywhere, then per field), and the notes in all."""
        found: dict[str, dict[int, tuple[int, ...]]] = {}
        roots = ",".join(str(number) for number in self.roots)
        marks = ",".join("?" * len(tokens))
        rows = connection.execute(
            f"SELECT term, root, documents, t, d, b FROM terms WHERE root IN ({roots}) AND term IN ({marks})",  # noqa: S608 - numbers and marks
            [token.text for token in tokens],
        )
        for term, root, *counts in rows:
            found.setdefault(term, {})[root] = tuple(counts)
        notes = connection.execute(f"SELECT sum(notes) FROM roots WHERE id IN ({roots})").fetchone()[0]  # noqa: S608 - numbers
        return found, int(notes or 0)

    def _read_postings(
        self,
        connection: Reader,
        words: Sequence[Term],
        frequencies: Mapping[str, Mapping[int, tuple[int, ...]]],
        matches: _Matches,
    ) -> None:
        chosen = _within_budget(words, frequencies)
        keys = [(word, letter) for word in words for letter, _ in _WEAKEST_FIRST]
        asked = [
            f'"{index_word(root, letter, word.text)}"'
            for word, letter in keys
            for root in chosen.get((word.text, letter), ())
        ]
        lists = connection.execute(_READ_LISTS, (POSTINGS, json.dumps(asked, ensure_ascii=False)))
        totals = matches.totals
        for word in words:
            strongest: dict[int, float] = {}
            for letter, strength in _WEAKEST_FIRST:  # the stronger takes the place: a word counts once
                found: list[int] = []
                for _ in chosen.get((word.text, letter), ()):
                    found += orjson.loads(next(lists)[0])
                strongest.update(dict.fromkeys(found, word.worth * strength))
                if letter == _BODY:
                    matches.in_body[word.text] = frozenset(found)
            for number in totals.keys() & strongest.keys():
                strongest[number] += totals[number]
            totals.update(strongest)
            if self._is_over():
                matches.partial = True
                return

    def _rank(self, connection: Reader, words: Sequence[Term], matches: _Matches, least: float) -> Found:
        totals = matches.totals
        least_bound = _LEAST_SHARE * Field.KEYWORDS.strength * max(totals.values(), default=0.0)
        best_bounds = sorted(totals.values(), reverse=True)[:_FETCHED]  # of values alone: half of a sort by key
        least_bound = max([least_bound, *best_bounds[-1:]])
        wanted = [number for number, bound in totals.items() if bound >= least_bound]
        best = sorted(wanted, key=totals.__getitem__, reverse=True)[:_FETCHED]
        heads = self.catalog.heads(connection, best, self.roots)
        scored = _scored(heads, words, matches, self._dropped(connection, heads))
        least_wanted = _LEAST_SHARE * max((one.score for one in scored if one.why is None), default=0.0)
        scored = [one for one in scored if one.why is not None or one.score >= least_wanted]
        current = [one for one in scored if one.why is None and one.note.superseded_by is None]
        lexical = self._with_bodies(connection, [one for one in current if one.score >= least][:LEXICAL])
        fast = tuple(hit for hit in lexical[:FAST] if hit.score >= RELATED * lexical[0].score)
        delivered = {hit.note.id for hit in fast}
        others = (one for one in scored if one.note.id not in delivered)
        return Found(
            fast=fast,
            lexical=lexical,
            candidates=self._candidates(connection, [one.note for one in current], partial=matches.partial),
            left_out=tuple(
                LeftOut(one.hit, one.why or _why(one, lexical, least)) for one in itertools.islice(others, LEFT_OUT)
            ),
            threshold=least,
            partial=matches.partial,
        )

    def _dropped(self, connection: Reader, heads: Mapping[int, Head]) -> dict[int, Dropped]:
        """Say which of these are left out whatever their score: those in the conversation and the noise of tools."""
        excluded = {version.note for version in self.exclude}
        dropped: dict[int, Dropped] = {}
        for number, head in heads.items():
            if head.note.id in excluded and head.note.note_version in self.exclude:
                dropped[number] = Dropped.EXCLUDED
            elif head.usage_note and self.tools and self._is_noise(connection, number, head.note):
                dropped[number] = Dropped.NOISE
        return dropped

    def _is_noise(self, connection: Reader, number: int, note: Note) -> bool:
        body = connection.execute("SELECT body FROM bodies WHERE id = ?", (number,)).fetchone()
        return mentions(replace(note, body=body[0] if body else ""), self.tools)

    def _with_bodies(self, connection: Reader, chosen: Sequence[_Scored]) -> tuple[Hit, ...]:
        ids = ",".join(str(one.number) for one in chosen)
        rows = connection.execute(f"SELECT id, body FROM bodies WHERE id IN ({ids})")  # noqa: S608 - numbers
        bodies: dict[int, str] = dict(rows.fetchall())
        return tuple(
            replace(one.hit, note=replace(one.note, body=bodies[one.number])) for one in chosen if one.number in bodies
        )

    def _candidates(self, connection: Reader, lexical: Sequence[Note], *, partial: bool) -> tuple[Note, ...]:
        """Interleave the matches with the newest notes, so that a manifest cut short still holds both."""
        if partial:
            return tuple(lexical[:CANDIDATES])
        matched = list(lexical[: CANDIDATES - RESERVE])
        ids = {note.id for note in matched}
        newest = self.catalog.newest_heads(connection, self.roots, CANDIDATES)
        dropped = self._dropped(connection, newest)
        recent = [
            head.note
            for number, head in newest.items()
            if number not in dropped and head.note.id not in ids and head.note.superseded_by is None
        ][: CANDIDATES - len(matched)]
        pairs = min(len(matched), len(recent))
        interleaved = itertools.chain.from_iterable(zip(matched, recent, strict=False))
        return (*interleaved, *matched[pairs:], *recent[pairs:])


def _within_budget(
    words: Sequence[Term], frequencies: Mapping[str, Mapping[int, tuple[int, ...]]]
) -> dict[tuple[str, str], list[int]]:
    """Return which lists to read, per word and letter the roots: the most telling first, as far as the budget goes."""
    lists = [
        (word.worth * strength, word.text, letter, root, counts[place])
        for word in words
        for root, counts in frequencies[word.text].items()
        for place, (letter, strength) in enumerate(_LISTS, start=1)
        if counts[place]
    ]
    lists.sort(key=lambda entry: (-entry[0], entry[1], entry[3]))
    chosen: dict[tuple[str, str], list[int]] = {}
    left = POSTINGS
    for position, (_, word, letter, root, documents) in enumerate(lists):
        if documents <= left or position == 0:
            left -= documents
            chosen.setdefault((word, letter), []).append(root)
    return chosen


def _scored(
    heads: Mapping[int, Head], words: Sequence[Term], matches: _Matches, dropped: Mapping[int, Dropped]
) -> list[_Scored]:
    """Score notes exactly (as `rank.score`), but for words in a body alone whose list was not read; the best first."""
    ordered = sorted(
        (-word.worth * strength, word.text, letter, field) for word in words for letter, strength, field in _STRENGTHS
    )
    parts = [Part(Source.WORDS, -value, word, field) for value, word, _, field in ordered]
    places = {letter + word: place for place, (_, word, letter, _) in enumerate(ordered)}
    bodies = [(places[_BODY + word], numbers) for word, numbers in matches.in_body.items()]
    tells = {word.text: word.tells for word in words}
    scored: list[_Scored] = []
    for number, head in heads.items():
        found = [places[mark] for mark in places.keys() & head.words]
        found += [place for place, numbers in bodies if number in numbers]
        best: dict[str, Part] = {}
        for place in sorted(found):  # the strongest first: a word counts once
            best.setdefault(parts[place].word, parts[place])
        factor = agreement(sum(tells[word] for word in best))
        score = round(sum(part.value for part in best.values()) * factor, 4)
        scored.append(_Scored(number, head.note, score, tuple(best.values()), factor, dropped.get(number)))
    return sorted(scored, key=_order)


def _order(one: _Scored) -> tuple[float, float, str]:
    """Return what sorts notes: the score, then the newer one, then always the same."""
    return -one.score, -one.note.updated, one.note.id


def _why(one: _Scored, lexical: Sequence[Hit], least: float) -> Dropped:
    """Say why a match is not in the fast result."""
    if one.note.superseded_by is not None:
        return Dropped.SUPERSEDED
    if one.score < least:
        return Dropped.THRESHOLD
    return Dropped.UNRELATED if lexical and one.score < RELATED * lexical[0].score else Dropped.PLACE


def load_notes(connection: Reader, roots: Mapping[int, Root], notes: Sequence[Note]) -> tuple[Note, ...]:
    """Return `notes` as they stand in the catalog, with bodies, in order, without those that are gone."""
    numbers = {(root.scope, root.path): number for number, root in roots.items()}
    loaded: list[Note] = []
    for note in notes:
        root = next((root for root in roots.values() if root.scope == note.scope), None)
        if root is None:
            continue
        row = connection.execute(
            f"SELECT {COLUMNS}, body FROM notes JOIN bodies USING (id) WHERE root = ? AND relative = ?",  # noqa: S608 - a constant
            (numbers[root.scope, root.path], note.relative),
        ).fetchone()
        if row is not None:
            loaded.append(note_of(row, root, row[-1]))
    return tuple(loaded)


def is_current(reader: Reader, number: int | None, note: Note) -> bool:
    """Say whether the file of `note` still is the version that the catalog holds.

    One `stat` tells; only a file that looks another, or changed too shortly before it was read for its look to be
    trusted, is read again.
    """
    row = reader.execute(
        f"SELECT version, {LOOK} FROM notes WHERE root = ? AND relative = ?",  # noqa: S608 - a constant
        (number, note.relative),
    ).fetchone()
    if row is None or row[0] != note.version:
        return False
    known = NoteFile(*row[1:])
    try:
        status = note.path.stat(follow_symlinks=False)
        if not known.racy and NoteFile.of(note.relative, status) == known:
            return True
        data, _ = read_bytes(note.path.parent, note.path.name)
    except (OSError, NoteError):
        return False
    return version_of(data) == note.version
