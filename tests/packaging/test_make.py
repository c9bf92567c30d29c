"""`make` sets itself up, and says what is missing when it cannot."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TARGETS = ("demo", "test", "test-real", "check", "bench")


def _make(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    # What an outer make tells its children must not steer this one.
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", "PYTHON"))}
    return subprocess.run(
        ["make", *arguments], check=False, cwd=folder, env=environ, capture_output=True, text=True, timeout=50
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give a folder with what the set-up reads, and an interpreter that is too old."""
    for name in ("Makefile", "pyproject.toml", "hatch_build.py"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "requirements", tmp_path / "requirements")
    old = tmp_path / "old-python"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "Python 3.9.1" && exit 0\nexit 1\n', encoding="utf-8")
    old.chmod(0o755)
    return tmp_path


@pytest.mark.parametrize("target", TARGETS)
def test_an_old_python_is_refused_by_name(folder: Path, target: str) -> None:
    """With an interpreter that is too old nothing is made, and the message says which one and what to type."""
    done = _make(folder, target, "PYTHON=./old-python")

    assert done.returncode != 0
    assert "Recallscope needs Python 3.11 or newer, and './old-python' is not that: Python 3.9.1." in done.stderr
    assert f"make {target} PYTHON=python3.12" in done.stderr
    assert not (folder / ".venv").exists()


def test_the_demo_installs_only_what_running_needs(folder: Path) -> None:
    """`make demo` does not ask for the tools of tests and checks; `make test` does not ask for those of checks."""
    demo = _make(folder, "--dry-run", "demo").stdout
    test = _make(folder, "--dry-run", "test").stdout

    assert "requirements/run.txt" in demo
    assert "requirements/test.txt" not in demo
    assert "requirements/test.txt" in test
    assert "requirements/check.txt" not in test


def test_a_missing_go_is_told(tmp_path: Path) -> None:
    """Without Go on the path the collector is not built, and the message says what it is needed for."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    shutil.copytree(ROOT / "tests" / "otelcol", tmp_path / "tests" / "otelcol")
    make = shutil.which("make")
    assert make is not None

    done = subprocess.run(
        [make, "otelcol"],
        check=False,
        cwd=tmp_path,
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=50,
    )

    assert done.returncode != 0
    assert "The tests need an OpenTelemetry Collector, which is built with Go" in done.stderr
    assert "then type make otelcol" in done.stderr
    assert not (tmp_path / "build").exists()


def test_make_alone_tells_what_there_is(folder: Path) -> None:
    """`make` without a target lists the targets and makes nothing."""
    done = _make(folder)

    assert (done.returncode, done.stderr) == (0, "")
    assert [target for target in (*TARGETS, "clean") if f"make {target} " not in done.stdout] == []
    assert not (folder / ".venv").exists()
