"""`recallscope load`: what it refuses before anything is played."""

from pathlib import Path

import pytest

from recallscope.runtime.cli.main import main


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--scenarios", "quick"), "'quick' (from --scenarios) is not allowed: ordinary, "),
        (("--policy", "soon"), "(from flag --policy) is not allowed"),
        (("--ceiling", "11"), "0<=x<=10"),
        (("--selector-delay", "0.4-0.1"), "from the shorter to the longer one"),
        (("--selector-delay", "slow"), "no range of seconds such as 0.01-0.4"),
        (("--unmatched", "1.5"), "0<=x<=1"),
        (("--rate", "0"), "0.01<=x<=1000"),
        (("--rate", "nan"), "'nan' is no number"),
        (("--unmatched", "nan"), "'nan' is no number"),
        (("--rate", "inf"), "'inf' is no number"),
        (("--selector-delay", "nan-0.4"), "no range of seconds such as 0.01-0.4"),
        (("--turns", "nan"), "'nan' is no whole number"),
        (("--turns", "2.5"), "'2.5' is no whole number"),
        (("more",), "unexpected extra argument"),
    ],
)
def test_wrong_use_is_told(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    problem: str,
) -> None:
    """Exit code 2, what was wrong and what is allowed; stdout stays empty."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    code = main(["load", *arguments])

    said = capsys.readouterr()
    assert (code, said.out) == (2, "")
    assert problem in said.err
