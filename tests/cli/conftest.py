"""What the tests of the command line share."""

import io
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from recallscope.runtime.cli.main import main

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


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """Give an empty folder that is the project's memory of `memory_says`."""
    folder = tmp_path / "notes"
    folder.mkdir()
    return folder.resolve()


@pytest.fixture
def memory_says(
    tmp_path: Path, notes: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Give a function that runs `recallscope memory` in this process and returns its exit code, stdout and stderr."""
    for name in os.environ:
        if name.startswith(("RECALLSCOPE_", "OPENAI_", "OTEL_", "XDG_")):
            monkeypatch.delenv(name)
    for name in ("home", "work"):
        (tmp_path / name).mkdir(exist_ok=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("RECALLSCOPE_MEMORY_PROJECT_DIR", str(notes))
    monkeypatch.chdir(tmp_path / "work")

    def go(*arguments: str, stdin: bytes = b"") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main(["memory", *arguments])
        written = capsys.readouterr()
        return code, written.out, written.err

    return go
