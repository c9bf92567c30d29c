"""What the commands write: stdout that fails says so, and a terminal gets no controls."""

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallscope.runtime.cli import entry
from recallscope.runtime.cli import main as command_line
from recallscope.runtime.cli.output import complain, for_stdout, guarded_stdout, one_line

PROGRAM = f"{sys.executable} -m recallscope.runtime.cli"


def _shell(command: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    return subprocess.run(
        ["sh", "-c", command], check=False, cwd=folder, env=environ, capture_output=True, text=True, timeout=50
    )


@pytest.mark.parametrize("arguments", ["config", "config --json", "--version", "--help", "config --help"])
@pytest.mark.parametrize(("stdout", "why"), [(">/dev/full", "No space left on device"), (">&-", "it is closed")])
def test_a_stdout_that_takes_nothing_is_one_line_and_exit_code_1(
    tmp_path: Path, arguments: str, stdout: str, why: str
) -> None:
    """Whatever is printed, a closed stdout and a full disk are told in one line."""
    done = _shell(f"{PROGRAM} {arguments} {stdout}", tmp_path)

    assert (done.returncode, done.stderr) == (1, f"recallscope: cannot write to stdout: {why}\n")


@pytest.mark.parametrize("arguments", ["config", "--version", "--help"])
def test_a_reader_that_has_left_is_not_complained_about(tmp_path: Path, arguments: str) -> None:
    """A reader of stdout that left ends the command without a word, as SIGPIPE would."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "recallscope.runtime.cli", arguments],
            check=False,
            cwd=tmp_path,
            env={"HOME": str(tmp_path)},
            stdout=writing,
            stderr=subprocess.PIPE,
            timeout=50,
        )
    finally:
        os.close(writing)

    assert (done.returncode, done.stderr) == (141, b"")


def test_a_stderr_that_takes_nothing_changes_no_exit_code(tmp_path: Path) -> None:
    """Where an error cannot be told, its exit code still is."""
    command = f"{PROGRAM} --set agent.nam=x config"

    assert [_shell(f"{command} {stderr}", tmp_path).returncode for stderr in ("2>/dev/full", "2>&-")] == [2, 2]


@given(st.text(st.characters()))
def test_one_line_is_one_line_of_what_is_seen(text: str) -> None:
    """No text makes two lines or gives a terminal an order, and what is in order stays."""
    line = one_line(text)

    assert len(line.splitlines()) <= 1
    assert all(character.isprintable() or character == " " or ord(character) > 0x9F for character in line)
    assert one_line(line.strip()).split() == line.split()


def test_a_forged_line_is_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    """A tool's name with an order to the terminal and a line of ours in it is told in one line."""
    complain("[evil\x1b[2J\nmemory: 9 notes\u202e\ud800]")

    assert capsys.readouterr().err == "[evil[2J memory: 9 notes]\n"


def test_a_terminal_gets_no_controls_and_a_file_gets_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """On a terminal only line ends and tabs are kept of the controls; elsewhere the text stays as it was written."""
    text = "a\x1b[2J\tb\r\n\x9bc\x00"
    controller, terminal = pty.openpty()
    try:
        with os.fdopen(terminal, "w", encoding="utf-8") as shown:
            monkeypatch.setattr(sys, "stdout", shown)
            on_terminal = for_stdout(text)
        with (tmp_path / "out").open("w", encoding="utf-8") as written:
            monkeypatch.setattr(sys, "stdout", written)
            in_file = for_stdout(text)
    finally:
        monkeypatch.undo()
        os.close(controller)

    assert (on_terminal, in_file) == ("a[2J\tb\nc", text)


def test_what_cannot_be_encoded_does_not_fail(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A lone surrogate is written as a question mark; the rest stands, and stdout is as it was afterwards."""
    with (tmp_path / "out").open("w", encoding="utf-8") as written:
        monkeypatch.setattr(sys, "stdout", written)
        with guarded_stdout():
            sys.stdout.write("a\ud800b")
        assert sys.stdout is written
        monkeypatch.undo()

    assert (tmp_path / "out").read_text(encoding="utf-8") == "a?b"


def test_an_interrupt_while_the_command_line_is_imported_is_quiet(tmp_path: Path) -> None:
    """Ctrl-C before the first command is known ends the process with 130 and nothing on stderr."""
    (tmp_path / "click.py").write_text(f"import os\nos.kill(os.getpid(), {int(signal.SIGINT)})\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "recallscope.runtime.cli", "--version"],
        check=False,
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=50,
    )

    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize(("ending", "code"), [(KeyboardInterrupt(), 130), (None, 0)])
def test_the_entry_returns_what_the_command_line_does(
    monkeypatch: pytest.MonkeyPatch, ending: BaseException | None, code: int
) -> None:
    """The entry adds only the end by Ctrl-C."""

    def end() -> int:
        if ending is not None:
            raise ending
        return 0

    enter: Callable[[], int] = entry.main
    monkeypatch.setattr(command_line, "main", end)

    assert enter() == code
