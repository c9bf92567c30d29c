"""The tree is fit to be seen: no machine paths, no leftovers, no module without measure."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
MEASURE = 400
LONGER = {
    "runtime/events.py": "the whole vocabulary in one readable file",
}
PRODUCT = ("runtime", "telemetry", "dashboards")
FOLDERS = (*PRODUCT, "tests", "docs", "requirements", ".ci")
MACHINE_PATHS = re.compile(r"(?<![\w.~{}-])/(?:home|root|work|Users|opt)/\w")
LEFTOVERS = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b")
BARE_IGNORE = re.compile(r"type: *ignore(?!\[[\w, -]+\] +[#-] \S)")
BARE_NOQA = re.compile(r"# (?:ruff: )?noqa(?!: [A-Z0-9, ]+ - \S)")


def _files() -> list[Path]:
    top = [path for path in ROOT.iterdir() if path.is_file()]
    below = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.is_file()]
    text = (path for path in top + below if path.suffix not in {".pyc", ".png", ".gif"} and path.name != ".installed")
    # This file spells out what the others must not hold.
    return sorted(path for path in text if "__pycache__" not in path.parts and path != Path(__file__))


def _matches(pattern: re.Pattern[str], *, suffix: str = "") -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in _files()
        if path.name.endswith(suffix)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if pattern.search(line)
    ]


def test_no_path_of_a_machine() -> None:
    """No file names a folder of the machine that it was written on."""
    assert _matches(MACHINE_PATHS) == []


def test_no_leftovers() -> None:
    """No file holds a note of work that was left undone."""
    assert _matches(LEFTOVERS) == []


def test_no_silent_exception_from_the_checks() -> None:
    """Each exception from a type checker or a lint rule names what it allows and gives its reason on its line."""
    assert _matches(BARE_IGNORE, suffix=".py") == []
    assert _matches(BARE_NOQA, suffix=".py") == []


def test_no_module_beyond_measure() -> None:
    """A module of more than 400 lines is split, or listed here with the reason why not."""
    lengths = {
        path.relative_to(ROOT).as_posix(): len(path.read_text(encoding="utf-8").splitlines())
        for path in _files()
        if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in PRODUCT
    }

    assert {name for name, length in lengths.items() if length > MEASURE} == set(LONGER)
    assert "" not in LONGER.values()


def test_the_patterns_find_what_they_are_for() -> None:
    """The patterns above match what they must and leave alone what they may."""
    assert MACHINE_PATHS.search("cd /home/somebody/x")
    assert not MACHINE_PATHS.search("see tests/work/x and ~/work/y")
    assert LEFTOVERS.search("# TODO: later")
    assert BARE_IGNORE.search("x  # type: ignore")
    assert BARE_IGNORE.search("x  # type: ignore[arg-type]")
    assert not BARE_IGNORE.search("x  # type: ignore[arg-type]  # the library has no types")
    assert BARE_NOQA.search("x  # noqa: S101")
    assert not BARE_NOQA.search("x  # noqa: S101 - a test")


def test_the_continuous_check_is_a_script_that_can_be_run() -> None:
    """`.ci/run` is executable and sound for bash."""
    script = ROOT / ".ci" / "run"

    assert script.stat().st_mode & 0o111 == 0o111
    assert subprocess.run(["bash", "-n", script], check=False, timeout=30).returncode == 0
