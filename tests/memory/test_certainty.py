"""A real search tells enough to know that a note was asked for by its title."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from recallscope.runtime.memory.memory import Memory
from recallscope.runtime.recall.title import is_certain

pytestmark = pytest.mark.anyio

Opened = Callable[..., AbstractAsyncContextManager[Memory]]


@pytest.mark.parametrize(
    ("query", "certain"),
    [
        ("release train", True),
        ("What is the release train?", True),
        ("Please show me the Release Train", True),
        ("Prepare the release train for Oslo", False),
        ("release", False),
        ("billing migration", False),
        ("quarterly kitchen party", False),
    ],
)
async def test_the_whole_title_and_no_more_is_certain(
    opened: Opened, write: Callable[[str, str], Path], query: str, certain: bool
) -> None:
    """A task around the title, a part of it, a second note that comes near, or no note: the selector is asked."""
    write("a.md", "---\nname: Release train\n---\n\nOn Tuesdays.\n")
    write("b.md", "---\nname: Billing migration\n---\n\nIn May.\n")
    write("c.md", "---\nname: Billing migration of the archive\n---\n\nIn June.\n")
    async with opened() as memory:
        found = await memory.search(query, exclude=frozenset(), recent_tools=())

    assert is_certain(query, found) is certain
