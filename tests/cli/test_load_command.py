"""`recallscope load`: what it refuses before anything is played."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from recallscope.runtime.cli.load_told import Told
from recallscope.runtime.cli.main import main
from recallscope.runtime.lab.load import LoadPlan, LoadProgress, LoadResult
from recallscope.runtime.lab.traffic import Kind
from recallscope.runtime.recall.policy import PolicySplit


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
        (("--journal", "/proc/none/journal"), "no journal can be written into /proc/none/journal (No such file or"),
        (("--journal", "/dev/null/journal"), "(Not a directory); name a folder of yours"),
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


def _result(turns: int, **more: Any) -> LoadResult:
    plain = LoadResult(
        seed=1,
        seconds=2.0,
        kinds={Kind.ORDINARY: turns},
        policies={},
        outcomes={},
        scenarios={},
        otherwise=0,
        told=(),
        cut=0,
        late=0,
    )
    return replace(plain, **more)


def test_a_rate_that_is_not_kept_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    """As soon as ten turns, and one in twenty, began late; the sum has the count, and a few late ones are no rate."""
    told = Told(LoadPlan(rate=500.0, split=PolicySplit.parse("tiered")))

    told.progress(LoadProgress(ended=200, active=50, otherwise=0, late=0, behind=10, most_behind=0.3))
    before = capsys.readouterr().err
    for behind in (40, 41):
        told.progress(LoadProgress(ended=200, active=50, otherwise=0, late=0, behind=behind, most_behind=2.04))
    while_playing = capsys.readouterr().err
    told.end(_result(300, behind=41, most_behind=2.04))

    assert before == ""
    assert while_playing == (
        "this machine does not keep 500 turns/s: 40 of 250 turns began more than 0.1 s late, 2.0 s at most, so what "
        "is measured is a busy machine; take a lower --rate\n"
    )
    assert capsys.readouterr().err == ("played 300 turns in 2 s (150.0/s), 41 begun up to 2.0 s late (busy: --rate)\n")


@pytest.mark.parametrize(("split", "shown"), [("tiered", "tiered"), ("tiered:9,prefetch", "tiered:9,prefetch:1")])
def test_what_is_played_is_told_as_it_was_asked_for(capsys: pytest.CaptureFixture[str], split: str, shown: str) -> None:
    """One policy has no weight, and one turn is no turns."""
    told = Told(LoadPlan(rate=1.0, split=PolicySplit.parse(split), seed=3))

    told.begin(None)
    told.end(_result(1))

    assert capsys.readouterr().err.splitlines() == [
        f"playing 1 turn/s under {shown}, seed 3, without /metrics",
        "played 1 turn in 2 s (0.5/s)",
    ]
