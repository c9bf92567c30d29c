"""The catalog's tables, and the number that stands for them."""

import hashlib

from recallscope.runtime.memory.noise import NOISE_VERSION
from recallscope.runtime.memory.tokens import TOKENS_VERSION

__all__ = ["SCHEMA", "TABLES"]

TABLES = """
CREATE TABLE roots (id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, notes INTEGER NOT NULL DEFAULT 0);
CREATE TABLE notes (
    id INTEGER PRIMARY KEY AUTOINCREMENT, root INTEGER NOT NULL, relative TEXT NOT NULL,
    mtime_ns INTEGER NOT NULL, size INTEGER NOT NULL, inode INTEGER NOT NULL, ctime_ns INTEGER NOT NULL,
    racy INTEGER NOT NULL,
    version TEXT NOT NULL, title TEXT NOT NULL, description TEXT NOT NULL, type TEXT NOT NULL,
    keywords TEXT NOT NULL, usage_scenarios TEXT NOT NULL, pinned INTEGER NOT NULL,
    created REAL, updated REAL NOT NULL, superseded_by TEXT, source TEXT, evidence TEXT, extra TEXT,
    usage_note INTEGER NOT NULL, head TEXT NOT NULL, UNIQUE (root, relative)
);
CREATE INDEX notes_recent ON notes (root, updated);
CREATE TABLE bodies (id INTEGER PRIMARY KEY, body TEXT NOT NULL);
CREATE TABLE skipped (
    root INTEGER NOT NULL, relative TEXT NOT NULL, mtime_ns INTEGER NOT NULL, size INTEGER NOT NULL,
    inode INTEGER NOT NULL, ctime_ns INTEGER NOT NULL, racy INTEGER NOT NULL,
    why TEXT NOT NULL, PRIMARY KEY (root, relative)
) WITHOUT ROWID;
CREATE TABLE terms (
    root INTEGER NOT NULL, term TEXT NOT NULL, documents INTEGER NOT NULL,
    t INTEGER NOT NULL, d INTEGER NOT NULL, b INTEGER NOT NULL, PRIMARY KEY (root, term)
) WITHOUT ROWID;
CREATE TABLE vectors (
    id INTEGER NOT NULL, model TEXT NOT NULL, scale REAL NOT NULL, vector BLOB NOT NULL, UNIQUE (id, model)
);
CREATE TRIGGER vectors_go AFTER DELETE ON notes BEGIN DELETE FROM vectors WHERE id = OLD.id; END;
CREATE VIRTUAL TABLE words USING fts5 (
    tokens, content='', detail=none, columnsize=0,
    tokenize="unicode61 remove_diacritics 0 categories 'L* M* N* P* S* C*'"
);
"""

SCHEMA = (
    int.from_bytes(hashlib.blake2b(f"{TABLES} {TOKENS_VERSION} {NOISE_VERSION}".encode(), digest_size=4).digest()) >> 1
)
"""Stands for the tables how words are cut, and what is a usage note: a file with another `user_version` is rebuilt."""
