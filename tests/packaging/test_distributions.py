"""What is built: complete, typed, under the right names, and working with the source tree away."""

import importlib.metadata
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path, PurePosixPath
from typing import Protocol

import pytest

from recallscope.runtime import __version__
from recallscope.runtime.cli.dashboards import shipped_files

ROOT = Path(__file__).parents[2]
PACKAGES = ("runtime", "telemetry", "dashboards")


class Built(Protocol):
    """What the `built` fixture gives."""

    sdist: Path
    wheel: Path


def _sources(package: str) -> set[str]:
    files = (path for path in (ROOT / package).rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(ROOT).as_posix() for path in files}


def test_the_wheel_holds_every_file_under_the_namespace_and_no_bare_name(built: Built) -> None:
    """The wheel holds each file of the three packages but what makes the dashboards, and the metadata, nothing else."""
    with zipfile.ZipFile(built.wheel) as wheel:
        names = set(wheel.namelist())
    code = {name for name in names if ".dist-info/" not in name}
    sources = {file for package in PACKAGES for file in _sources(package)}
    makers = {file for file in sources if file.startswith("dashboards/") and file.endswith(".py")}
    expected = {f"recallscope/{file}" for file in sources - makers | {"dashboards/__init__.py"}}

    assert code == expected
    assert {PurePosixPath(name).parts[0] for name in names} == {"recallscope", f"recallscope-{__version__}.dist-info"}
    assert f"recallscope-{__version__}.dist-info/licenses/LICENSE" in names
    assert {f"recallscope/{package}/py.typed" for package in PACKAGES} <= names


def test_the_sdist_holds_what_a_rebuild_and_its_tests_need(built: Built) -> None:
    """The source distribution has the packages, the tests and the files around them, and no links."""
    with tarfile.open(built.sdist) as archive:
        members = archive.getmembers()
    inside = {member.name.partition("/")[2] for member in members}
    around = {"pyproject.toml", "hatch_build.py", "Makefile", "README.md", "LICENSE", "CHANGELOG.md"}
    around |= {"otel-collector.yaml", "otel-collector-fleet.yaml", "CONTRIBUTING.md", ".ci/run"}
    around |= {f"requirements/{name}.txt" for name in ("run", "test", "check")}

    assert {file for package in (*PACKAGES, "tests") for file in _sources(package)} - inside == set()
    assert around - inside == set()
    assert [member.name for member in members if member.issym() or member.islnk()] == []


def test_the_installed_wheel_works_with_the_source_tree_away(built: Built, tmp_path: Path) -> None:
    """In a fresh environment the wheel imports, is typed, its command runs and writes the dashboards; no bare names."""
    venv.create(tmp_path / "env", with_pip=False)
    python = tmp_path / "env" / "bin" / "python"
    install = ["pip", "--quiet", "--disable-pip-version-check", "--python", str(python), "install"]
    subprocess.run(
        [sys.executable, "-m", *install, "--no-deps", "--no-index", str(built.wheel)], check=True, timeout=55
    )
    # The dependencies are those of this environment, as a plain path: its own `.pth` files, and with them the linked
    # install, are not followed.
    [site] = (tmp_path / "env" / "lib").glob("python*/site-packages")
    dependencies = [path for path in sys.path if path.endswith("site-packages")]
    (site / "dependencies.pth").write_text("\n".join(dependencies), encoding="utf-8")
    program = (
        "import importlib, importlib.util, pkgutil, recallscope.runtime as r, recallscope.telemetry as t\n"
        "import recallscope.dashboards as d\n"
        "for package in (r, t, d):\n"
        "    for module in pkgutil.walk_packages(package.__path__, package.__name__ + '.'):\n"
        "        if not module.name.endswith('__main__'):\n"
        "            importlib.import_module(module.name)\n"
        "bare = [name for name in ('runtime', 'telemetry', 'dashboards') if importlib.util.find_spec(name)]\n"
        "print(r.__file__, bare)\n"
    )
    imported = subprocess.run(
        [python, "-I", "-c", program], check=False, cwd=tmp_path, capture_output=True, text=True, timeout=55
    )
    command = subprocess.run(
        [python.with_name("recallscope"), "--version"], check=True, cwd=tmp_path, capture_output=True, text=True
    )
    subprocess.run([python.with_name("recallscope"), "dashboards", "out"], check=True, cwd=tmp_path, timeout=55)

    assert (imported.returncode, imported.stderr) == (0, "")
    assert imported.stdout == f"{site}/recallscope/runtime/__init__.py []\n"
    assert command.stdout == f"recallscope {__version__}\n"
    written = (path for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert {path.relative_to(tmp_path / "out").as_posix(): path.read_bytes() for path in written} == shipped_files()


def test_the_linked_install_exposes_no_bare_name(tmp_path: Path) -> None:
    """With the editable install, too, the packages exist only below `recallscope`."""
    program = (
        "import importlib.util\n"
        "print([name for name in ('runtime', 'telemetry', 'dashboards') if importlib.util.find_spec(name)])\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", program], check=True, cwd=tmp_path, capture_output=True, text=True, timeout=55
    )

    assert done.stdout == "[]\n"


@pytest.mark.parametrize("package", PACKAGES)
def test_an_import_by_a_wrong_path_fails_loudly(package: str) -> None:
    """From the repository's root a bare import says which name is the right one, before a second copy can exist."""
    done = subprocess.run(
        [sys.executable, "-c", f"import {package}"], check=False, cwd=ROOT, capture_output=True, text=True, timeout=55
    )

    assert done.returncode == 1
    assert f"ImportError: import recallscope.{package}, not '{package}'" in done.stderr


def test_the_metadata_tells_the_version_of_the_package() -> None:
    """The installed distribution and the package state the same version."""
    assert importlib.metadata.version("recallscope") == __version__
