"""`recallscope memory` as a person at a terminal, and as a script with broken pipes, meets it."""

import os
import pty
import select
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

PATIENCE_SECONDS = 45.0

CTRL_C = "\x03"

NOTE = "---\nname: Canary first\nupdated: 2021-01-02   # kept\nzz: 1\n---\n\nfive percent\n"


@dataclass(frozen=True)
class Desk:
    """A home, a memory folder, and a terminal at which `recallscope memory` is run."""

    home: Path
    notes: Path

    def environ(self, **more: str) -> dict[str, str]:
        """Return a clean environment."""
        wanted = {name: value for name, value in os.environ.items() if name in {"PATH", "PYTHONPATH", "LANG"}}
        wanted |= {"HOME": str(self.home), "RECALLSCOPE_MEMORY_PROJECT_DIR": str(self.notes), "TERM": "xterm"}
        return wanted | more

    def type(self, answers: Sequence[tuple[str, str]], *arguments: str, **environ: str) -> tuple[int, str]:
        """Run the command at a terminal, answer each prompt with keys, and return exit code and screen.

        Ctrl-C is typed as its key: the terminal makes the signal. It is typed again when nothing happens, as a person
        does: Python overlooks one that comes in the instant between the prompt and the reading of the answer.
        """
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-m", "recallscope.runtime.cli", "memory", *arguments],
            cwd=self.home,
            env=self.environ(**environ),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=_take_terminal,  # noqa: PLW1509 - no threads run in this process while it starts
        )
        os.close(theirs)
        watch = threading.Timer(PATIENCE_SECONDS, process.kill)
        watch.start()
        screen, waiting = "", list(answers)
        try:
            typed = ""
            while True:
                while typed == CTRL_C and not select.select([ours], [], [], 1.0)[0]:
                    os.write(ours, CTRL_C.encode())
                try:
                    piece = os.read(ours, 65_536)
                except OSError:  # the other end is closed
                    break
                screen += piece.decode(errors="replace")
                if waiting and waiting[0][0] in screen:
                    typed = waiting.pop(0)[1]
                    os.write(ours, typed.encode())
            return process.wait(), screen.replace("\r\n", "\n")
        finally:
            watch.cancel()
            process.kill()
            process.wait()
            os.close(ours)


def _take_terminal() -> None:
    """Make stdin the controlling terminal, so that its Ctrl-C reaches the process."""
    os.close(os.open(os.ttyname(0), os.O_RDWR))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """Give a desk with one note."""
    desk = Desk(tmp_path / "home", tmp_path / "notes")
    desk.home.mkdir()
    desk.notes.mkdir()
    (desk.notes / "canary.md").write_text(NOTE)
    return desk


@pytest.fixture
def editor(tmp_path: Path) -> Callable[[str], str]:
    """Give a function that makes an editor out of a line of Python; `path` is what it edits."""

    def make(line: str) -> str:
        script = tmp_path / "editor.py"
        script.write_text(f"import pathlib, sys\npath = pathlib.Path(sys.argv[1])\n{line}\n")
        return f"{sys.executable} {script}"

    return make


@pytest.mark.parametrize(("keys", "code", "left"), [("y\n", 0, False), ("n\n", 1, True), (CTRL_C, 130, True)])
def test_remove_asks_first(desk: Desk, keys: str, code: int, left: bool) -> None:
    """Yes erases; no and Ctrl-C leave everything as it is, without a traceback."""
    got, screen = desk.type([("Erase this note? [y/N]:", keys)], "remove", "canary")

    assert (got, (desk.notes / "canary.md").exists()) == (code, left)
    assert "project:canary.md  Canary first" in screen
    assert ["Traceback" in screen, "removed project:canary.md" in screen] == [False, not left]


def test_an_editor_changes_a_note_and_nothing_else(desk: Desk, editor: Callable[[str], str]) -> None:
    """Comments and unknown fields stay, the time of the last change is set."""
    command = editor("path.write_text(path.read_text().replace('five', 'ten'))")
    code, screen = desk.type([], "edit", "canary", EDITOR=command)
    text = (desk.notes / "canary.md").read_text()

    assert (code, "changed project:canary.md" in screen) == (0, True)
    assert [part in text for part in ("ten percent", "zz: 1", "2021-01-02")] == [True, True, False]


def test_what_replaces_a_note_may_be_named_in_an_editor(desk: Desk, editor: Callable[[str], str]) -> None:
    """By name or by a path from the note's folder; the file holds the path, and what is no note is refused."""
    (desk.notes / "sub").mkdir()
    (desk.notes / "sub/b.md").write_text("# B")
    named = "path.write_text(path.read_text().replace('zz: 1', 'zz: 1\\nsuperseded_by: {}  # mine'))"
    code, screen = desk.type([], "edit", "canary", EDITOR=editor(named.format("nope")))
    assert (code, "nope: no note has this id" in screen, (desk.notes / "canary.md").read_text()) == (1, True, NOTE)
    assert "what you wrote is kept in" in screen
    code, _ = desk.type([], "edit", "canary", EDITOR=editor(named.format("b")))
    text = (desk.notes / "canary.md").read_text()
    assert (code, "zz: 1\nsuperseded_by: sub/b.md\n" in text) == (0, True)
    code, _ = desk.type([], "edit", "b", EDITOR=editor("path.write_text('---\\nsuperseded_by: ../c.md\\n---\\n# B')"))
    assert (code, (desk.notes / "sub/b.md").read_text()) == (1, "# B")
    (desk.notes / "c.md").write_text("# C")
    desk.type([], "edit", "b", EDITOR=editor("path.write_text('---\\nsuperseded_by: ../c.md\\n---\\n# B')"))
    assert (desk.notes / "sub/b.md").read_text().startswith("---\nsuperseded_by: c.md\n---\n# B")


def test_what_was_written_in_an_editor_is_not_lost(desk: Desk, editor: Callable[[str], str]) -> None:
    """Refused text stays in a file of its writer; the note stays as it was, also where another changed it meanwhile."""
    secret = "AKIA" + "IOSFODNN7EXAMPLQ"
    code, screen = desk.type([], "edit", "canary", EDITOR=editor(f"path.write_text('# T {secret}')"))
    kept = Path(screen.partition("what you wrote is kept in ")[2].split("\n")[0].strip())
    assert (code, secret in screen, kept.read_text()) == (1, False, f"# T {secret}")
    assert (kept.parent.stat().st_mode & 0o777, (desk.notes / "canary.md").read_text()) == (0o700, NOTE)

    other = desk.notes / "canary.md"
    line = f"path.write_text('# Mine'); pathlib.Path({str(other)!r}).write_text('# Theirs')"
    code, screen = desk.type([], "edit", "canary", EDITOR=editor(line))
    assert (code, "the file was changed since it was read" in screen, other.read_text()) == (1, True, "# Theirs")


def test_an_editor_writes_a_new_note(desk: Desk, editor: Callable[[str], str]) -> None:
    """The template holds what the flags say; a template left as it is writes nothing."""
    code, screen = desk.type([], "add", "--title", "Fresh", EDITOR=editor("path.write_text(path.read_text() + 'text')"))
    assert (code, "added project:project/fresh.md" in screen) == (0, True)
    assert (desk.notes / "project/fresh.md").read_text().endswith("source: person\n---\n\ntext\n")
    code, screen = desk.type([], "add", "--title", "None", EDITOR=editor("pass"))
    assert (code, "nothing was written" in screen, (desk.notes / "project/none.md").exists()) == (1, True, False)


def test_a_terminal_shows_a_table_and_obeys_no_note(desk: Desk) -> None:
    """Controls in names and titles are not passed on, and square brackets are no markup."""
    (desk.notes / "evil\x1b[2J.md").write_text("# [bold]Loud[/bold] \x1b]0;title\x07")
    code, screen = desk.type([], "list", COLUMNS="120")

    assert (code, "updated" in screen.splitlines()[0], "[bold]Loud[/bold]" in screen) == (0, True, True)
    assert ["\x1b[2J" in screen, "\x1b]0;" in screen, "\x07" in screen] == [False, False, False]
    code, screen = desk.type([], "show", "project:evil\x1b[2J.md")
    assert (code, "\x1b[2J" in screen, "\x1b]0;" in screen) == (0, False, False)


def test_an_archive_goes_from_stdout_into_stdin(desk: Desk, tmp_path: Path) -> None:
    """The bytes are those of an archive on disk; another memory takes them."""
    command = [sys.executable, "-m", "recallscope.runtime.cli", "memory"]
    done = subprocess.run([*command, "export", "-"], env=desk.environ(), capture_output=True, check=False, timeout=50)
    assert (done.returncode, done.stderr) == (0, f"exported 1 note, {len(NOTE)} bytes, to stdout\n".encode())
    (tmp_path / "x.tgz").write_bytes(done.stdout)
    with tarfile.open(tmp_path / "x.tgz") as archive:
        assert archive.getnames() == ["project/canary.md", "manifest.jsonl"]
    other = Desk(desk.home, tmp_path / "other")
    taken = subprocess.run(
        [*command, "import", "-"], env=other.environ(), input=done.stdout, capture_output=True, check=False, timeout=50
    )
    assert (taken.returncode, taken.stdout) == (0, b"created project/canary.md\n")
    assert (other.notes / "canary.md").read_text() == NOTE


def test_a_stdout_that_is_closed_or_full_ends_with_one_line(desk: Desk) -> None:
    """A reader that left says nothing, a full disk says why; nothing is written twice."""
    command = [sys.executable, "-m", "recallscope.runtime.cli", "memory", "export", "-"]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, env=desk.environ(), stdout=full, stderr=subprocess.PIPE, check=False, timeout=50)
    assert (done.returncode, done.stderr) == (1, b"recallscope: cannot write to stdout: No space left on device\n")
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(command, env=desk.environ(), stdout=writing, stderr=subprocess.PIPE, check=False, timeout=50)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")
