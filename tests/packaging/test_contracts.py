"""The floors hold, and each contract breaks when it is violated."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("runtime", "telemetry", "dashboards")

with (ROOT / "pyproject.toml").open("rb") as _stream:
    CONTRACTS: dict[str, dict[str, Any]] = {
        contract["id"]: contract for contract in tomllib.load(_stream)["tool"]["importlinter"]["contracts"]
    }


def _lint(root: Path, contract: str) -> "subprocess.CompletedProcess[str]":
    # `-S` keeps the linked install out of sight, so that only the packages below `root` can be found; site-packages
    # itself comes back as a plain path, whose `.pth` files are not followed.
    program = (
        "import sys\n"
        f"sys.path[:0] = [{str(root)!r}, *{[path for path in sys.path if path.endswith('site-packages')]!r}]\n"
        "from importlinter.cli import lint_imports_command\n"
        f"lint_imports_command(['--no-cache', '--no-logo', '--contract', {contract!r}])\n"
    )
    return subprocess.run(
        [sys.executable, "-S", "-c", program], check=False, cwd=root, capture_output=True, text=True, timeout=55
    )


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a copy of the packages, laid out as they are installed."""
    root = tmp_path_factory.mktemp("tree")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, root / "recallscope" / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", root)
    return root


@pytest.mark.parametrize("contract", CONTRACTS)
def test_each_contract_holds(tree: Path, contract: str) -> None:
    """The tree as it stands keeps every contract."""
    done = _lint(tree, contract)

    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "Contracts: 1 kept, 0 broken." in done.stdout


@pytest.mark.parametrize(
    ("contract", "module", "imported"),
    [
        ("floors", "runtime/events", "recallscope.runtime.recall"),
        ("floors", "runtime/memory/note", "recallscope.runtime.recall"),
        ("floors", "runtime/recall/__init__", "recallscope.runtime.agent"),
        ("floors", "runtime/agent/__init__", "recallscope.runtime.lab"),
        ("floors", "runtime/agent/__init__", "recallscope.runtime.testing"),
        ("floors", "runtime/testing/__init__", "recallscope.runtime.agent"),
        ("floors", "runtime/lab/__init__", "recallscope.runtime.cli"),
        ("testing", "runtime/recall/__init__", "recallscope.runtime.testing"),
        ("testing", "telemetry/__init__", "recallscope.runtime.testing"),
        ("opentelemetry", "runtime/agent/__init__", "opentelemetry.trace"),
        ("opentelemetry", "runtime/lab/__init__", "opentelemetry"),
        ("vocabulary", "telemetry/__init__", "recallscope.runtime.observe"),
        ("vocabulary", "telemetry/__init__", "recallscope.runtime.terms"),
        ("vocabulary", "telemetry/__init__", "recallscope.dashboards"),
        ("wiring", "runtime/agent/__init__", "recallscope.telemetry"),
        ("wiring", "runtime/testing/__init__", "recallscope.telemetry"),
        ("dashboards", "dashboards/__init__", "recallscope.runtime.events"),
        ("dashboards", "dashboards/__init__", "recallscope.telemetry"),
    ],
)
def test_each_contract_breaks_on_a_violation(tree: Path, contract: str, module: str, imported: str) -> None:
    """An import that a contract forbids, planted in a copy of the tree, breaks that contract."""
    path = tree / "recallscope" / f"{module}.py"
    sound = path.read_text(encoding="utf-8")
    try:
        path.write_text(f"{sound}\nimport {imported}\n", encoding="utf-8")
        done = _lint(tree, contract)
    finally:
        path.write_text(sound, encoding="utf-8")

    assert done.returncode == 1, done.stdout + done.stderr
    assert "Contracts: 0 kept, 1 broken." in done.stdout


def test_a_module_without_a_floor_breaks_the_contract(tree: Path) -> None:
    """A new module must be given its floor before it can be checked in."""
    path = tree / "recallscope" / "runtime" / "utils.py"
    try:
        path.write_text("", encoding="utf-8")
        done = _lint(tree, "floors")
    finally:
        path.unlink()

    assert done.returncode == 1
    assert "utils" in done.stdout
