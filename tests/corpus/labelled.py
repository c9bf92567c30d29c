"""The labelled corpus: notes, phrasings written from the notes alone, and queries with the notes that answer them.

The files beside this one are data: `notes/*.yaml` lists of notes, `phrasings/*.yaml` per note's path the phrasings that
its front matter may hold as `usage_scenarios`, `enrichment/*.yaml` per path more `phrasings` and `keywords`, up to what
`memory enrich` writes, `queries/*.yaml` lists of queries.
"""

import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum, unique
from pathlib import Path
from typing import Any

import yaml

from recallscope.runtime.memory.frontmatter import dump
from recallscope.runtime.memory.tokens import Tokens

__all__ = ["Corpus", "CorpusNote", "Half", "Query", "Slice", "load_corpus", "problems", "write_notes"]

HERE = Path(__file__).parent

_UNDATED = 1_750_000_000.0
"""The file time (June 2025) of notes whose front matter says no date: the same in every run."""


@unique
class Slice(StrEnum):
    """What a query is there to test; the note that answers it says nothing about its slice."""

    PLAIN = "plain"
    PARAPHRASED = "paraphrased"
    BODY_ONLY = "body_only"
    CODE_IDENTIFIERS = "code_identifiers"
    NEAR_DUPLICATE = "near_duplicate"
    STALE = "stale"
    TOOL_NOISE = "tool_noise"
    ADVERSARIAL = "adversarial"
    MULTILINGUAL = "multilingual"
    NO_SHARED_WORD = "no_shared_word"
    NEGATIVE = "negative"

    @property
    def shares_words(self) -> bool:
        """Say whether a query of this slice shares words with the note that answers it."""
        return self not in {Slice.NO_SHARED_WORD, Slice.NEGATIVE}


@unique
class Half(StrEnum):
    """Weights and the threshold are chosen on the first half; the second one shows whether they hold elsewhere."""

    DEVELOPMENT = "development"
    HELD_OUT = "held out"


@dataclass(frozen=True, slots=True)
class CorpusNote:
    """A note of the corpus: its path below the memory folder, its front matter, its body, and its phrasings.

    `more_keywords` are written together with the phrasings; `keywords` are the note's own.
    """

    path: str
    fields: Mapping[str, object]
    body: str
    keywords: tuple[str, ...] = ()
    phrasings: tuple[str, ...] = ()
    more_keywords: tuple[str, ...] = ()

    def text(self, *, phrasings: bool) -> str:
        """Return the file that holds the note."""
        fields = dict(self.fields)
        if phrasings and self.phrasings:
            fields["usage_scenarios"] = list(self.phrasings)
        if phrasings and self.more_keywords:
            fields["keywords"] = [*self.keywords, *self.more_keywords]
        return f"{dump(fields)}\n{self.body.strip()}\n"


@dataclass(frozen=True, slots=True)
class Query:
    """A query, the notes that answer it, and those that must not be delivered for it."""

    text: str
    slice: Slice
    language: str
    relevant: frozenset[str]
    forbidden: frozenset[str] = frozenset()
    tools: tuple[str, ...] = ()

    @property
    def half(self) -> Half:
        """Return the half into which the hash of its text puts it."""
        digest = hashlib.blake2b(self.text.encode(), digest_size=1).digest()[0]
        return Half.DEVELOPMENT if digest % 2 == 0 else Half.HELD_OUT


@dataclass(frozen=True, slots=True)
class Corpus:
    """All notes and all queries, in the order of the files."""

    notes: tuple[CorpusNote, ...]
    queries: tuple[Query, ...]


def load_corpus(folder: Path = HERE) -> Corpus:
    """Read the corpus in `folder`.

    Raises:
        ValueError: an entry lacks a field or names an unknown slice; the message names the file and the entry.
    """
    phrasings = {
        path: tuple(map(str, texts))
        for file in sorted((folder / "phrasings").glob("*.yaml"))
        for path, texts in _read(file).items()
    }
    notes = tuple(_note(file, entry, phrasings) for file, entry in _entries(folder / "notes"))
    more = {
        path: entry for file in sorted((folder / "enrichment").glob("*.yaml")) for path, entry in _read(file).items()
    }
    notes = tuple(_enriched(note, more.get(note.path, {})) for note in notes)
    queries = tuple(_query(file, entry) for file, entry in _entries(folder / "queries"))
    return Corpus(notes, queries)


def write_notes(notes: Sequence[CorpusNote], root: Path, *, phrasings: bool) -> None:
    """Write `notes` below `root`, with their phrasings or without; undated ones get the same file time in every run."""
    for note in notes:
        path = root / note.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(note.text(phrasings=phrasings), encoding="utf-8")
        os.utime(path, (_UNDATED, _UNDATED))


def problems(corpus: Corpus) -> list[str]:
    """Say what is unsound in the corpus: labels that point nowhere, queries that are easier than their slice says."""
    tokens = Tokens()
    words = {note.path: frozenset(tokens.of(_own_text(note))) for note in corpus.notes}
    found = [f"{path}: {count} notes have this path" for path, count in _doubles(note.path for note in corpus.notes)]
    found += [f"{text!r}: the query stands {count} times" for text, count in _doubles(_keys(corpus.queries))]
    for query in corpus.queries:
        unknown = (query.relevant | query.forbidden) - words.keys()
        found += [f"{query.text!r}: there is no note {path}" for path in sorted(unknown)]
        if query.relevant & query.forbidden:
            found.append(f"{query.text!r}: a note both answers it and must not be delivered")
        if (query.slice is Slice.NEGATIVE) and query.relevant:
            found.append(f"{query.text!r}: a negative query has no note that answers it")
        if query.slice is not Slice.NEGATIVE and not (query.relevant or query.forbidden):
            found.append(f"{query.text!r}: it is labelled with no note")
        asked = {token.text for token in tokens.query(query.text)}
        if query.slice is Slice.NO_SHARED_WORD:
            shared = {path: asked & words[path] for path in query.relevant & words.keys()}
            found += [f"{query.text!r}: it shares {sorted(both)} with {path}" for path, both in shared.items() if both]
    return found


def sharing_negatives(corpus: Corpus) -> tuple[int, int]:
    """Return how many negative queries share a word with some note (the others are easy), and how many there are."""
    tokens = Tokens()
    words = {word for note in corpus.notes for word in tokens.of(_own_text(note))}
    negatives = [query for query in corpus.queries if query.slice is Slice.NEGATIVE]
    return sum(any(token.text in words for token in tokens.query(query.text)) for query in negatives), len(negatives)


def _own_text(note: CorpusNote) -> str:
    """Return what the note itself says, without its phrasings."""
    heads = (note.fields.get("name"), note.fields.get("description"), *note.keywords)
    return "\n".join([*(str(head) for head in heads if head is not None), note.body])


def _doubles(texts: Iterator[str]) -> list[tuple[str, int]]:
    return [(text, count) for text, count in Counter(texts).items() if count > 1]


def _keys(queries: Sequence[Query]) -> Iterator[str]:
    """Yield what tells queries apart: the same words may be asked again after other tools."""
    return (" | ".join((query.text, *query.tools)) for query in queries)


def _entries(folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    for file in sorted(folder.glob("*.yaml")):
        for entry in _read(file):
            yield file, entry


def _read(file: Path) -> Any:
    with file.open(encoding="utf-8") as text:
        return yaml.safe_load(text) or {}


def _note(file: Path, entry: dict[str, Any], phrasings: Mapping[str, tuple[str, ...]]) -> CorpusNote:
    try:
        path = str(entry["path"])
        fields = {name: value for name, value in entry.items() if name not in {"path", "body"}}
        if "updated" in fields:
            fields["updated"] = str(fields["updated"])
        keywords = tuple(map(str, entry.get("keywords") or ()))
        return CorpusNote(path, fields, str(entry["body"]), keywords, phrasings.get(path, ()))
    except KeyError as error:
        raise ValueError(f"{file.name}: the note {entry.get('path')!r} has no field {error}") from None


def _enriched(note: CorpusNote, more: Mapping[str, Any]) -> CorpusNote:
    return replace(
        note,
        phrasings=(*note.phrasings, *map(str, more.get("phrasings") or ())),
        more_keywords=tuple(map(str, more.get("keywords") or ())),
    )


def _query(file: Path, entry: dict[str, Any]) -> Query:
    try:
        return Query(
            text=str(entry["query"]),
            slice=Slice(entry["slice"]),
            language=str(entry["language"]),
            relevant=frozenset(entry["relevant"] or ()),
            forbidden=frozenset(entry.get("forbidden") or ()),
            tools=tuple(entry.get("tools") or ()),
        )
    except (KeyError, ValueError) as error:
        raise ValueError(f"{file.name}: the query {entry.get('query')!r} cannot be read: {error}") from None
