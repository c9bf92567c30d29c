"""The built distributions, made once a run from a copy of the tree that is removed afterwards."""

import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Built:
    """The source distribution, and the wheel that was made from it and not from the tree."""

    sdist: Path
    wheel: Path


def _build(source: Path, target: str, into: Path) -> Path:
    program = (
        "import sys\n"
        "from hatchling import build\n"
        "name = getattr(build, f'build_{sys.argv[1]}')(sys.argv[2])\n"
        "print(name)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, target, str(into)],
        check=True,
        cwd=source,
        capture_output=True,
        text=True,
        timeout=55,
    )
    return into / done.stdout.split()[-1]


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Built]:
    """Build the sdist from a copy of the tree as an editable install leaves it, and the wheel from the sdist alone."""
    work = tmp_path_factory.mktemp("build")
    tree, unpacked, out = work / "tree", work / "unpacked", work / "out"
    left_out = shutil.ignore_patterns(".venv", ".git", "__pycache__", ".*_cache", ".hypothesis", "build", "dist")
    shutil.copytree(ROOT, tree, symlinks=True, ignore=left_out)
    out.mkdir()
    sdist = _build(tree, "sdist", out)
    shutil.rmtree(tree)
    with tarfile.open(sdist) as archive:
        archive.extractall(unpacked, filter="data")
    wheel = _build(unpacked / sdist.name.removesuffix(".tar.gz"), "wheel", out)
    shutil.rmtree(unpacked)
    yield Built(sdist, wheel)
    shutil.rmtree(work)
