"""What the tests of the command line share."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Give a function that runs `recallscope` as its own process, in an empty folder with an empty home."""
    for name in ("home", "work"):
        Path(tmp_path, name).mkdir()
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("RECALLSCOPE_", "OPENAI_"))}
    clean = {name: value for name, value in clean.items() if not name.startswith(("OTEL_", "XDG_"))}

    def go(*arguments: str, environ: Mapping[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "recallscope.runtime.cli", *arguments],
            check=False,
            cwd=tmp_path / "work",
            env=clean | {"HOME": str(tmp_path / "home")} | dict(environ or {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=50,
        )

    return go
