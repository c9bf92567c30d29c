"""Folders that Claude Code and Qwen Code wrote: read as they are, and not a byte of them changed by a recall."""

import os
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from recallscope.runtime.memory.edit import Draft
from recallscope.runtime.memory.memory import Memory
from recallscope.runtime.memory.note import Note
from recallscope.runtime.memory.scopes import Root, Skipped, list_notes
from recallscope.runtime.memory.store import read_note
from recallscope.runtime.terms import NoteType, ScopeName

Opened = Callable[..., AbstractAsyncContextManager[Memory]]

CLAUDE = {
    "MEMORY.md": (
        "- [Staff engineer](user_role.md) — works on the billing core\n"
        "- [No mocks](feedback_testing.md) — integration tests hit a real database\n"
        "- [Grafana board](reference_dashboards.md) — what the on-call watches\n"
    ),
    "user_role.md": (
        "---\nname: user-role\ndescription: The user is a staff engineer for billing, new to React\n"
        "metadata:\n  node_type: memory\n  type: user\n  originSessionId: 0a1b2c3d-0000-4000-8000-000000000001\n---\n\n"
        "Deep Go knowledge, first time in the frontend. Explain React by backend analogues. See [[feedback-testing]].\n"
    ),
    "feedback_testing.md": (
        "---\nname: No mocks in integration tests\n"
        "description: Tests must hit a real database: mocks hid a migration bug\ntype: feedback\n---\n\n"
        "Integration tests use a real database.\n\n**Why:** a mocked test passed, production broke.\n"
        "**How to apply:** everything under tests/integration.\n"
    ),
    "reference_dashboards.md": (
        "---\nname: Grafana board of the on-call\ndescription: grafana.internal/d/api-latency is what pages\n"
        "metadata:\n  type: reference\n---\nCheck it when you touch the request path.\n"
    ),
    "project_freeze.md": "# Merge freeze\n\nNothing is merged after 2026-03-05: the mobile release is cut.\n",
    "notes/debugging.md": "Run the worker with `--trace`; the queue is named after the ticket #4711.\n",
    "logs/2026/03/2026-03-05.md": "- deployed twice\n- rolled back once\n",
}

QWEN = {
    "MEMORY.md": "- [Build with pnpm](project/build-with-pnpm.md) — pnpm, never npm\n",
    "user/terse.md": (
        "---\nname: Terse answers\ndescription: Answer in two sentences\ntype: user\n"
        "category: communication_preference\n"
        "keywords:\n  - terse\n  - style\nusage_scenarios:\n  - how long should an answer be\n---\n\nShort answers.\n"
    ),
    "project/build-with-pnpm.md": (
        "---\r\nname: Build with pnpm\r\ndescription: pnpm 9, never npm (issue #12)\r\ntype: project\r\n"
        "category: build_configuration\r\nkeywords: [pnpm, build, 9]\r\n---\r\n\r\nThe lockfile is pnpm's.\r\n"
    ),
    "reference/2026.md": "---\nname: 2026\ntype: reference\ndescription: yes\n---\n\nThe yearly plan.\n",
    "feedback/legacy.md": (
        "---\ntitle: Review rules\ntype: feedback\n---\n\n# Review rules\n\n- Small pull requests\n"
        "  - why: they are read\n  - howToApply: under 400 lines\n- Tests first\n"
    ),
    "pinned/house-rules.md": "---\nname: House rules\ndescription: Never force-push\ntype: feedback\n---\n\nNever.\n",
    "project/empty-topic.md": "---\nname: Project\ntype: project\n---\n\n_No entries yet._\n",
    "project/other-kind.md": "---\nname: Of another kind\ntype: skill\n---\n\nRead as a note about the project.\n",
    ".dream-operations.json": '{"deletes": []}',
}


def fill(root: Path, files: dict[str, str]) -> None:
    """Write the files, byte by byte, with a time long ago."""
    for relative, text in files.items():
        path = root / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        os.utime(path, (1_700_000_000, 1_700_000_000))


def state(root: Path) -> dict[str, tuple[bytes, int, int, int]]:
    """Return all that a change would change: names, bytes, times, permissions, and which file it is."""
    return {
        path.relative_to(root).as_posix(): (
            path.read_bytes() if path.is_file() else b"",
            path.stat().st_mtime_ns,
            path.stat().st_mode,
            path.stat().st_ino,
        )
        for path in root.rglob("*")
    }


def notes(root: Path) -> dict[str, Note]:
    """Return the notes below `root` that can be read, by path."""
    where = Root(ScopeName.PROJECT, root)
    relatives = [relative for relative in list_notes(root).files if relative != "project/empty-topic.md"]
    return {relative: read_note(where, relative)[0] for relative in relatives}


def test_a_folder_of_claude_code_is_read(root: Path) -> None:
    """Both spellings of the type, files without front matter, nested folders; the index is none; fields survive."""
    fill(root, CLAUDE)
    found = notes(root)
    assert {relative: (note.title, note.type) for relative, note in found.items()} == {
        "user_role.md": ("user-role", NoteType.USER),
        "feedback_testing.md": ("No mocks in integration tests", NoteType.FEEDBACK),
        "reference_dashboards.md": ("Grafana board of the on-call", NoteType.REFERENCE),
        "project_freeze.md": ("Merge freeze", NoteType.PROJECT),
        "notes/debugging.md": ("debugging", NoteType.PROJECT),
        "logs/2026/03/2026-03-05.md": ("2026 03 05", NoteType.PROJECT),
    }
    assert found["feedback_testing.md"].description == "Tests must hit a real database: mocks hid a migration bug"
    assert found["user_role.md"].extra == {
        "metadata": {
            "node_type": "memory",
            "type": "user",
            "originSessionId": "0a1b2c3d-0000-4000-8000-000000000001",
        }
    }


def test_a_folder_of_qwen_code_is_read(root: Path) -> None:
    """Category and lists, CRLF, numbers and truth values as text, `title`, `pinned/`; an unknown type is no loss."""
    fill(root, QWEN)
    found = notes(root)
    assert {relative: (note.title, note.type, note.pinned) for relative, note in found.items()} == {
        "user/terse.md": ("Terse answers", NoteType.USER, False),
        "project/build-with-pnpm.md": ("Build with pnpm", NoteType.PROJECT, False),
        "reference/2026.md": ("2026", NoteType.REFERENCE, False),
        "feedback/legacy.md": ("Review rules", NoteType.FEEDBACK, False),
        "pinned/house-rules.md": ("House rules", NoteType.FEEDBACK, True),
        "project/other-kind.md": ("Of another kind", NoteType.PROJECT, False),
    }
    pnpm, terse = found["project/build-with-pnpm.md"], found["user/terse.md"]
    assert (pnpm.keywords, pnpm.description, pnpm.body) == (
        ("pnpm", "build", "9"),
        "pnpm 9, never npm (issue #12)",
        "The lockfile is pnpm's.",
    )
    assert (terse.usage_scenarios, terse.extra) == (
        ("how long should an answer be",),
        {"category": "communication_preference"},
    )
    assert found["reference/2026.md"].description == "yes"


@pytest.mark.anyio
@pytest.mark.parametrize("read_only", [True, False])
async def test_a_recall_changes_nothing_in_such_a_folder(root: Path, opened: Opened, read_only: bool) -> None:
    """Opening, syncing, searching, loading and checking leave every byte, time and permission, and add no file."""
    fill(root, {**CLAUDE, **QWEN})
    before = state(root)
    async with opened(read_only=read_only) as memory:
        assert memory.notes == len(CLAUDE) + len(QWEN) - 4  # two indexes under one name, one hidden file, one skipped
        assert memory.skipped == (Skipped("project/empty-topic.md", "it holds no entry yet"),)
        found = await memory.search("why no mocks in integration tests?", exclude=frozenset(), recent_tools=())
        assert [hit.note.relative for hit in found.fast] == ["feedback_testing.md"]
        assert len(await memory.load([hit.note for hit in found.fast])) == 1
        assert await memory.stale([hit.note for hit in found.fast]) == frozenset()
        await memory.sync()
    assert state(root) == before


@pytest.mark.anyio
async def test_a_write_leaves_the_index_of_another_program_alone(root: Path, opened: Opened) -> None:
    """A note of ours beside theirs: their `MEMORY.md` and their notes stay as they are."""
    fill(root, CLAUDE)
    before = state(root)
    async with opened() as memory:
        own = await memory.edit.create(ScopeName.PROJECT, Draft(title="Canary first", body="5 % for an hour."))
    after = state(root)
    assert set(after) - set(before) == {"project", own.relative}
    assert {name: after[name] for name in before} == before
