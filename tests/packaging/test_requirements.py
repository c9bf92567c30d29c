"""The pinned requirements: complete, hashed, without addresses, and the same pins in each file."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
FILES = ("run", "test", "check")

with (ROOT / "pyproject.toml").open("rb") as _stream:
    PROJECT: dict[str, Any] = tomllib.load(_stream)


def _blocks(name: str) -> list[str]:
    text = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    return [block for block in text.replace("\\\n", " ").splitlines() if block]


def _pins(name: str) -> dict[str, Requirement]:
    requirements = [Requirement(re.split(r"\s+--hash", block)[0]) for block in _blocks(name)]
    return {canonicalize_name(requirement.name): requirement for requirement in requirements}


def _wanted(*groups: str) -> list[Requirement]:
    texts: list[str] = [*PROJECT["project"]["dependencies"]]
    for group in groups:
        texts += PROJECT["dependency-groups"][group]
    return [Requirement(text) for text in texts]


@pytest.mark.parametrize("name", FILES)
def test_each_pin_is_exact_and_hashed_and_has_no_address(name: str) -> None:
    """Each line is one exact version with its hashes; no index and no address is named."""
    shape = re.compile(r"[a-z0-9-]+==[^\s;]+( ; [^#]+?)?(\s+--hash=sha256:[0-9a-f]{64})+\s*")

    assert [block for block in _blocks(name) if not shape.fullmatch(block)] == []


@pytest.mark.parametrize(
    ("name", "groups"), [("run", ("build",)), ("test", ("build", "test")), ("check", ("build", "test", "check"))]
)
def test_each_requirement_of_the_project_is_pinned_within_its_bounds(name: str, groups: tuple[str, ...]) -> None:
    """What pyproject.toml asks for is in the file, at a version that it allows; if not: `make requirements`."""
    pins = _pins(name)
    wrong: list[str] = []
    for wanted in _wanted(*groups):
        pin = pins.get(canonicalize_name(wanted.name))
        version = None if pin is None else next(iter(pin.specifier)).version
        if version is None or not wanted.specifier.contains(version, prereleases=True):
            wrong.append(f"{wanted} is pinned at {version}")

    assert wrong == []


def test_the_files_agree() -> None:
    """A package has one version in all files, so that one environment can hold them all."""
    run, test, check = (_pins(name) for name in FILES)

    assert {name: str(pin) for name, pin in run.items()}.items() <= {n: str(pin) for n, pin in test.items()}.items()
    assert {name: str(pin) for name, pin in test.items()}.items() <= {n: str(pin) for n, pin in check.items()}.items()


def test_the_build_backend_is_pinned_once() -> None:
    """The isolated build and the one of `make` use the same build backend."""
    assert PROJECT["build-system"]["requires"] == PROJECT["dependency-groups"]["build"]
