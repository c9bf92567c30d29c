"""The catalog: it holds what the notes hold, survives what happens to its file, and is shared by processes."""

import logging
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallscope.runtime.errors import StoreUnavailableError
from recallscope.runtime.memory.catalog import Catalog, Changes, field_tokens
from recallscope.runtime.memory.catalog_schema import SCHEMA
from recallscope.runtime.memory.lookup import POSTINGS, Lookup
from recallscope.runtime.memory.note import Note
from recallscope.runtime.memory.rank import score, terms, threshold
from recallscope.runtime.memory.scopes import NoteFile, Root
from recallscope.runtime.memory.search import Found
from recallscope.runtime.memory.sync import sync_root
from recallscope.runtime.memory.tokens import Tokens
from recallscope.runtime.terms import NoteType, ScopeName

NOWHERE = Root(ScopeName.PROJECT, Path("/nowhere"))
FILE = NoteFile("", 1, 1, 1)


def note(relative: str, title: str, description: str = "", keywords: Sequence[str] = (), body: str = "") -> Note:
    """Return a note with this text."""
    return Note(
        id=f"project:{relative}",
        version=f"{relative} {title} {description} {body}",
        scope=ScopeName.PROJECT,
        root=NOWHERE.path,
        relative=relative,
        title=title,
        description=description,
        type=NoteType.PROJECT,
        keywords=tuple(keywords),
        body=body,
        updated=0.0,
        extra={"n": 1, "day": "x"},
    )


def put(catalog: Catalog, number: int, *notes: Note, gone: Sequence[str] = ()) -> None:
    """Write notes and take others out, in one transaction."""
    catalog.apply(number, Changes(notes=[(item, FILE) for item in notes], gone=list(gone)))


def find(catalog: Catalog, number: int, query: str, where: Root = NOWHERE) -> Found:
    """Search in one root."""
    return Lookup(catalog=catalog, roots={number: where}, query=query, exclude=frozenset(), tools=frozenset()).run()


def dump(catalog: Catalog) -> list[tuple[object, ...]]:
    """Return the frequencies that the catalog keeps."""
    with catalog.readers.borrow() as reader:
        return reader.execute("SELECT term, documents, t, d, b FROM terms ORDER BY root, term").fetchall()


def opened(path: Path) -> Catalog:
    """Return an open catalog at `path`."""
    catalog = Catalog(path)
    catalog.open()
    return catalog


_WORDS = st.lists(
    st.sampled_from(["deploy", "canary", "staging", "test", "fooBar", "foo", "部署流程", "流程", "c++", "the", "k8s"]),
    max_size=4,
).map(" ".join)
_NOTES = st.lists(st.tuples(_WORDS, _WORDS, _WORDS, _WORDS), max_size=8)


@settings(max_examples=25, deadline=None)
@given(rows=_NOTES, query=_WORDS, again=st.lists(st.tuples(st.integers(0, 7), _WORDS), max_size=3))
def test_the_index_finds_what_a_scan_of_all_notes_finds(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[str, str, str, str]],
    query: str,
    again: list[tuple[int, str]],
) -> None:
    """After any writes and rewrites the same notes have the same scores as when each is scored from its own text."""
    notes = {
        f"{at}.md": note(f"{at}.md", title, description, keywords.split(), body)
        for at, (title, keywords, description, body) in enumerate(rows)
    }
    with closing(opened(tmp_path_factory.mktemp("catalog") / "c.sqlite3")) as catalog:
        number = catalog.root_id(NOWHERE.path)
        put(catalog, number, *notes.values())
        for at, title in again:
            if title:
                notes[f"{at}.md"] = note(f"{at}.md", title)
                put(catalog, number, notes[f"{at}.md"])
            else:
                notes.pop(f"{at}.md", None)
                put(catalog, number, gone=[f"{at}.md"])
        found = find(catalog, number, query)
        assert catalog.count(number) == len(notes)
        got = {hit.note.id: hit.score for hit in (*found.lexical, *(left.hit for left in found.left_out))}
    tokens = Tokens()
    texts = {item.id: field_tokens(tokens, item) for item in notes.values()}
    asked = tokens.query(query)
    documents = {
        token.text: sum(any(token.text in words for words in fields.values()) for fields in texts.values())
        for token in asked
    }
    words = terms(asked, documents, len(notes))
    scores = {name: score(words, {part: set(held) for part, held in fields.items()}) for name, fields in texts.items()}
    least = 0.2 * max(scores.values(), default=0.0)
    expected = {name: value for name, value in scores.items() if value > 0 and value >= least - 1e-4}
    assert {name: value for name, value in got.items() if name in expected} == pytest.approx(
        {name: value for name, value in expected.items() if name in got}, abs=2e-4
    )
    assert {name for name, value in expected.items() if value > least + 1e-4} <= set(got) <= set(expected)


def test_a_catalog_after_many_changes_equals_a_fresh_one(tmp_path: Path) -> None:
    """Frequencies are kept step by step and end where a rebuild ends."""
    with closing(opened(tmp_path / "a.sqlite3")) as one, closing(opened(tmp_path / "b.sqlite3")) as two:
        number = one.root_id(NOWHERE.path)
        put(one, number, note("a.md", "alpha beta", body="gamma"), note("b.md", "beta"))
        put(one, number, note("a.md", "delta"), note("c.md", "beta beta", keywords=["alpha"]))
        put(one, number, gone=["b.md", "never.md"])
        put(two, two.root_id(NOWHERE.path), note("c.md", "beta beta", keywords=["alpha"]), note("a.md", "delta"))
        assert dump(one) == dump(two)
        assert one.count(number) == 2


def test_a_loaded_note_has_every_field_that_was_put_in(tmp_path: Path) -> None:
    """The row of a note gives the note back, its unknown fields included."""
    with closing(opened(tmp_path / "c.sqlite3")) as catalog:
        number = catalog.root_id(NOWHERE.path)
        item = note("a.md", "alpha", "about", ["k", "l"], 'body\n"text" \x01 \\u0041 \U0001f600')
        item = replace(item, created=0.1 + 0.2, updated=1_764_530_000.1234567)
        put(catalog, number, item)
        assert [hit.note for hit in find(catalog, number, "alpha").fast] == [item]


def test_roots_in_one_catalog_do_not_see_each_other(tmp_path: Path) -> None:
    """Two projects share the file and nothing else: neither hits nor frequencies."""
    with closing(opened(tmp_path / "c.sqlite3")) as catalog:
        my_root = Root(ScopeName.PROJECT, Path("/mine"))
        mine, theirs = catalog.root_id(my_root.path), catalog.root_id(Path("/theirs"))
        put(catalog, theirs, note("a.md", "canary deploys"))
        query = catalog.tokens.query("canary deploys")
        assert find(catalog, mine, "canary deploys", my_root) == Found(
            threshold=threshold(query), asked=frozenset({"canari", "deploy"})
        )
        put(catalog, mine, note("b.md", "canary deploys"))
        assert [hit.note.relative for hit in find(catalog, mine, "canary", my_root).fast] == ["b.md"]


FREQUENT = {"quokka": 0.5, "wombat": 0.7, "numbat": 0.9, "dingo": 0.95}
"""Words, and in which share of the notes each stands."""


@pytest.mark.parametrize(("notes", "unread"), [(100, set[str]()), (700, {"dingo"})])
def test_frequent_words_go_unread_only_when_reading_them_all_costs_too_much(
    tmp_path: Path, notes: int, unread: set[str]
) -> None:
    """Frequent words alone are all read, unless their postings pass the budget: then the least telling goes."""
    with closing(opened(tmp_path / "c.sqlite3")) as catalog:
        number = catalog.root_id(NOWHERE.path)
        bodies = (" ".join(word for word, share in FREQUENT.items() if at < share * notes) for at in range(notes))
        put(catalog, number, *(note(f"{at}.md", f"number {at}", body=body) for at, body in enumerate(bodies)))
        found = find(catalog, number, " ".join(FREQUENT))
        hits = [*found.fast, *(left.hit for left in found.left_out)]
        assert sum(int(share * notes) for share in FREQUENT.values()) > POSTINGS or not unread
        assert {part.word for part in hits[0].parts} == set(FREQUENT) - unread


def test_the_newest_notes_are_known_again_after_each_change(tmp_path: Path) -> None:
    """A search that matches nothing still offers the newest notes: those that stand in the catalog at that moment."""
    with closing(opened(tmp_path / "c.sqlite3")) as catalog:
        number = catalog.root_id(NOWHERE.path)
        put(catalog, number, note("a.md", "alpha"), note("b.md", "beta"))
        assert [item.relative for item in find(catalog, number, "quokka").candidates] == ["a.md", "b.md"]
        put(catalog, number, note("c.md", "gamma"), gone=["a.md"])
        assert [item.title for item in find(catalog, number, "quokka").candidates] == ["beta", "gamma"]
        put(catalog, number, note("b.md", "another title"))
        assert [item.title for item in find(catalog, number, "quokka").candidates] == ["another title", "gamma"]


def _corrupt(path: Path) -> None:
    path.write_bytes(b"this is no database at all, " * 100)


def _older(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 1")


def _newer(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA + 1}")


def _half_written(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE roots")


def _truncated(path: Path) -> None:
    with path.open("r+b") as stream:
        stream.truncate(5_000)


@pytest.mark.parametrize("damage", [_corrupt, _older, _newer, _half_written, _truncated])
def test_a_catalog_that_cannot_be_used_is_rebuilt_and_says_so_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: Callable[[Path], None]
) -> None:
    """Broken, older, newer, half-written and cut off: thrown away with one warning, and usable at once."""
    path = tmp_path / "c.sqlite3"
    with closing(opened(path)) as catalog:
        put(catalog, catalog.root_id(NOWHERE.path), note("a.md", "alpha"))
    damage(path)
    catalog = Catalog(path)
    with caplog.at_level(logging.WARNING), closing(catalog):
        assert catalog.open() is True
        assert catalog.open() is False
        number = catalog.root_id(NOWHERE.path)
        assert catalog.count(number) == 0
        put(catalog, number, note("a.md", "alpha"))
        assert len(find(catalog, number, "alpha").fast) == 1
    assert [record.message.split(":")[0] for record in caplog.records] == [
        f"the memory catalog {path} is rebuilt from the notes"
    ]


def test_a_new_catalog_is_no_rebuilt_one(tmp_path: Path) -> None:
    """The first start says nothing."""
    catalog = Catalog(tmp_path / "c.sqlite3")
    with closing(catalog):
        assert catalog.open() is False


def test_a_catalog_broken_while_open_is_unavailable_then_new(tmp_path: Path) -> None:
    """Damage under an open catalog is a `StoreUnavailableError`; the next `open` makes a new file."""
    path = tmp_path / "c.sqlite3"
    with closing(opened(path)) as catalog:
        number = catalog.root_id(NOWHERE.path)
        put(catalog, number, note("a.md", "alpha"))
        for name in ("", "-wal", "-shm"):
            Path(f"{path}{name}").unlink()
        _corrupt(path)
        with pytest.raises(StoreUnavailableError) as caught:
            find(catalog, number, "alpha")
        assert isinstance(caught.value.__cause__, sqlite3.Error)
        catalog.doubt(caught.value.__cause__)
        catalog.open()
        assert catalog.count(catalog.root_id(NOWHERE.path)) == 0


def test_a_locked_catalog_is_unavailable_and_not_a_crash(tmp_path: Path) -> None:
    """Another program that holds the file for itself makes memory unavailable, which is not empty."""
    path = tmp_path / "c.sqlite3"
    with closing(opened(path)) as catalog:
        number = catalog.root_id(NOWHERE.path)
        put(catalog, number, note("a.md", "alpha"))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        with closing(Catalog(path)) as catalog, pytest.raises(StoreUnavailableError, match="locked"):
            find(catalog, number, "alpha")


WORKER = """
import pathlib, sys
from recallscope.runtime.memory.catalog import Catalog
from recallscope.runtime.memory.scopes import Root
from recallscope.runtime.memory.sync import sync_root
from recallscope.runtime.terms import ScopeName

root, path, name = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
catalog = Catalog(path)
catalog.open()
for number in range(30):
    (root / f"{name}-{number}.md").write_text(f"# {name} fact {number}\\nquokka{number}")
    if number % 3 == 2:
        (root / f"{name}-{number - 1}.md").unlink()
    sync_root(catalog, Root(ScopeName.PROJECT, root))
catalog.close()
"""


def test_two_processes_share_one_catalog(root: Path, tmp_path: Path) -> None:
    """Two processes that write and sync at once end with the catalog that a fresh sync makes."""
    path = tmp_path / "c.sqlite3"
    workers = [
        subprocess.Popen([sys.executable, "-c", WORKER, str(root), str(path), name]) for name in ("anna", "bert")
    ]
    assert [worker.wait(timeout=50) for worker in workers] == [0, 0]
    where = Root(ScopeName.PROJECT, root)
    with closing(opened(path)) as shared, closing(opened(tmp_path / "fresh.sqlite3")) as fresh:
        synced = sync_root(shared, where)
        assert sync_root(fresh, where).notes == synced.notes == 40
        assert dump(shared) == dump(fresh)
        number = shared.root_id(root)
        found = Lookup(
            catalog=shared, roots={number: where}, query="quokka29", exclude=frozenset(), tools=frozenset()
        ).run()
        assert {hit.note.relative for hit in (*found.lexical, *(left.hit for left in found.left_out))} == {
            "anna-29.md",
            "bert-29.md",
        }
