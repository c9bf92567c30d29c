"""A workspace with a neighbour that no tool may see, and a way to call tools as a model does."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from recallscope.runtime.agent.tools.files import workspace_tools
from recallscope.runtime.agent.tools.registry import Toolbox, ToolOutput

Call = Callable[..., Awaitable[ToolOutput]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Make an empty workspace beside a file with a secret."""
    (tmp_path / "secret.txt").write_text("secret\n")
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def call(root: Path) -> Call:
    """Call a tool of the workspace by name, with keyword arguments."""
    box = Toolbox(workspace_tools(root))

    async def run(tool: str, **arguments: Any) -> ToolOutput:
        return await box.run(tool, json.dumps(arguments))

    return run
