"""`recallscope recall` in this process: what is wrong about its use."""

import sys

import pytest

from recallscope.runtime.cli.main import main


@pytest.mark.usefixtures("memory_says")
def test_a_closed_stdin_holds_no_queries(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """`--queries -` with a stdin that was closed is wrong use, told in one line."""
    monkeypatch.setattr(sys, "stdin", None)

    code = main(["recall", "--queries", "-"])

    written = capsys.readouterr()
    assert (code, written.out) == (2, "")
    assert written.err.splitlines()[-1].endswith(
        "--queries -: stdin is closed; pipe the queries into it, or name a readable text file"
    )
