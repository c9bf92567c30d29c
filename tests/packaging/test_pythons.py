"""The wheel, installed from a real package registry into fresh environments of every Python that is at hand."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from recallscope.runtime import __version__

ROOT = Path(__file__).parents[2]
VERSIONS = ((3, 11), (3, 12), (3, 13))

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]


class Built(Protocol):
    """What the `built` fixture gives."""

    sdist: Path
    wheel: Path


def _candidates(major: int, minor: int) -> Iterator[str]:
    name = f"python{major}.{minor}"
    on_path = shutil.which(name)
    if on_path is not None:
        yield on_path
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    yield from (str(path) for path in sorted(pyenv.glob(f"{major}.{minor}.*/bin/{name}")))


def _is(python: str, version: tuple[int, int]) -> bool:
    told = subprocess.run(
        [python, "-c", "import sys; print(*sys.version_info[:2])"],
        check=False,
        capture_output=True,
        text=True,
        timeout=30,
    )
    return told.returncode == 0 and told.stdout.split() == [str(number) for number in version]


def _pythons() -> list[str]:
    """Return the interpreter of this run and one for each other version that this machine has."""
    others = (
        next((python for python in _candidates(*version) if _is(python, version)), None)
        for version in VERSIONS
        if version != sys.version_info[:2]
    )
    return [sys.executable, *(python for python in others if python is not None)]


def _run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(command, check=False, cwd=cwd, capture_output=True, text=True, timeout=550)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _environment(python: str, folder: Path) -> Path:
    _run(python, "-m", "venv", folder / "env", cwd=folder)
    return folder / "env" / "bin"


@pytest.mark.parametrize("python", _pythons())
def test_the_wheel_on_each_python_with_the_pinned_requirements(built: Built, tmp_path: Path, python: str) -> None:
    """With the pinned, hashed requirements the wheel installs, is consistent, imports and starts on each Python."""
    there = _environment(python, tmp_path)
    pip = (there / "python", "-m", "pip", "--disable-pip-version-check")
    _run(*pip, "install", "--require-hashes", "--only-binary", ":all:", "-r", ROOT / "requirements/run.txt", cwd=there)
    _run(*pip, "install", "--no-deps", built.wheel, cwd=there)
    _run(*pip, "check", cwd=there)
    program = (
        "import importlib, pkgutil, recallscope.runtime, recallscope.telemetry, recallscope.dashboards\n"
        "for package in (recallscope.runtime, recallscope.telemetry, recallscope.dashboards):\n"
        "    for module in pkgutil.walk_packages(package.__path__, package.__name__ + '.'):\n"
        "        if module.name.endswith('__main__'):\n"
        "            continue\n"
        "        try:\n"  # what the extra `semantic` brings is there for those who asked for it
        "            importlib.import_module(module.name)\n"
        "        except ModuleNotFoundError as error:\n"
        "            assert error.name == 'numpy', error\n"
    )
    _run(there / "python", "-I", "-W", "error", "-c", program, cwd=there)

    assert _run(there / "recallscope", "--version", cwd=there) == f"recallscope {__version__}\n"
    assert "recall.policy" in _run(there / "recallscope", "config", cwd=there)


def test_the_sdist_installs_by_its_own_metadata(built: Built, tmp_path: Path) -> None:
    """`pip install` of the source distribution builds it in isolation and finds its requirements by itself."""
    there = _environment(sys.executable, tmp_path)
    pip = (there / "python", "-m", "pip", "--disable-pip-version-check")
    _run(*pip, "install", built.sdist, cwd=there)
    _run(*pip, "check", cwd=there)

    assert _run(there / "recallscope", "--version", cwd=there) == f"recallscope {__version__}\n"
