"""The tools of the workspace, called as a model calls them."""

import os
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from recallscope.runtime.agent.tools.files import workspace_tools
from recallscope.runtime.agent.tools.registry import Toolbox, ToolOutput

pytestmark = pytest.mark.anyio

Call = Callable[..., Awaitable[ToolOutput]]


def write(root: Path, **files: str) -> None:
    """Write files; two underscores in a name stand for a slash, one for a dot."""
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


async def test_a_file_is_read_with_line_numbers(root: Path, call: Call) -> None:
    """Lines end at line feeds only, and a carriage return before one is no part of the line."""
    (root / "a.txt").write_bytes("one\r\ntwo\u2028still two\n\nfour".encode())
    assert await call("read_file", path="a.txt") == ToolOutput("1\tone\n2\ttwo\u2028still two\n3\t\n4\tfour")


async def test_a_file_is_read_in_pieces(root: Path, call: Call) -> None:
    """Offset and limit choose lines, and the answer says where to go on."""
    write(root, a_txt="".join(f"line {number}\n" for number in range(1, 6)))
    assert [(await call("read_file", path="a.txt", offset=offset, limit=2)).text for offset in (1, 3, 5)] == [
        "1\tline 1\n2\tline 2\n[lines 3 to 5 are not shown; go on with offset 3]",
        "3\tline 3\n4\tline 4\n[lines 5 to 5 are not shown; go on with offset 5]",
        "5\tline 5",
    ]
    assert await call("read_file", path="a.txt", offset=6) == ToolOutput(
        "read_file: 'a.txt' has 5 lines; there is no line 6", is_error=True
    )


async def test_reading_in_pieces_reads_everything(root: Path, call: Call) -> None:
    """A file of long lines is cut where the answer would be too long, and going on misses no line."""
    write(root, a_txt="".join(f"{number} {'x' * 1900}\n" for number in range(1, 61)))
    seen: list[int] = []
    while len(seen) < 60:
        output = await call("read_file", path="a.txt", offset=len(seen) + 1)
        assert len(output.text) < 50_000
        seen += [int(line.split("\t", 1)[0]) for line in output.text.split("\n") if not line.startswith("[")]
    assert seen == list(range(1, 61))


async def test_a_long_line_is_shortened(root: Path, call: Call) -> None:
    """A line of a minified file does not fill the answer."""
    write(root, a_js="x" * 5000)
    assert await call("read_file", path="a.js") == ToolOutput(
        f"1\t{'x' * 2000} [cut: 3000 more characters in this line]"
    )


async def test_a_huge_file_gives_its_beginning(root: Path, call: Call) -> None:
    """Of a file over 16 MiB the first part can be read, and the answer says so."""
    with (root / "big.log").open("wb") as file:
        file.write(b"first\n" + b"x\n" * (8 << 20))
        file.truncate(1 << 30)  # the rest is a hole: it takes no room on the disk
    output = await call("read_file", path="big.log", limit=1)
    assert output.text.split("\n")[0] == "1\tfirst"
    assert "the file has 1073741824 bytes; these lines come from its first part" in output.text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "[the file is empty]"),
        (b"gr\xfcn", "1\tgrün\n[the file is not UTF-8; it was read as Latin-1]"),
    ],
)
async def test_unusual_files_are_read_with_a_note(root: Path, call: Call, data: bytes, text: str) -> None:
    """Empty files and other encodings are no errors."""
    (root / "a").write_bytes(data)
    assert await call("read_file", path="a") == ToolOutput(text)


async def test_no_tool_leaves_the_workspace(root: Path, call: Call) -> None:
    """Neither a path nor a link nor a pattern shows what is outside."""
    (root / "out").symlink_to("..")
    (root / "out.txt").symlink_to("../secret.txt")
    outputs = [
        await call("read_file", path="../secret.txt"),
        await call("read_file", path="out.txt"),
        await call("list_directory", path=".."),
        await call("list_directory", path="out"),
        await call("glob", pattern="*", path="out"),
        await call("glob", pattern="../*"),
        await call("grep", pattern="secret", path="out.txt"),
        await call("grep", pattern="secret", path=".."),
    ]
    assert [output.is_error for output in outputs] == [True] * 8
    assert all("outside" in output.text for output in outputs)
    assert await call("grep", pattern="secret") == ToolOutput("[no line matches]")
    assert await call("glob", pattern="**") == ToolOutput("[no file matches]")


async def test_a_folder_is_listed(root: Path, call: Call) -> None:
    """Folders first, files with their size, links and special files marked, odd names on one line."""
    write(root, b_txt="four", sub__c_txt="x")
    (root / "link").symlink_to("../secret.txt")
    (root / "new\nline").write_text("")
    os.mkfifo(root / "pipe")
    assert await call("list_directory") == ToolOutput("sub/\nb.txt  4\nlink  (link)\nnew\\nline  0\npipe  (special)")
    assert await call("list_directory", path="sub") == ToolOutput("c.txt  1")
    (root / "sub" / "c.txt").unlink()
    assert await call("list_directory", path="sub") == ToolOutput("[the folder is empty]")
    assert await call("list_directory", path="b.txt") == ToolOutput(
        "list_directory: 'b.txt' is no folder; read a file with read_file", is_error=True
    )


async def test_a_full_folder_is_cut(root: Path, call: Call) -> None:
    """More than 500 entries are counted, not shown."""
    for number in range(501):
        (root / f"{number:03}").touch()
    output = await call("list_directory")
    assert output.text.split("\n")[-2:] == ["499  0", "[cut: 500 of 501 entries; narrow it down with glob]"]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.py", "a.py"),
        ("**/*.py", "a.py\nsub/b.py\nsub/deep/c.py"),
        ("sub/**", "sub/b.py\nsub/d.md\nsub/deep/c.py"),
        ("**/*.{md,txt}", "sub/d.md"),
        ("sub/?.[mp]*", "sub/b.py\nsub/d.md"),
        ("*.rs", "[no file matches]"),
    ],
)
async def test_files_are_found_by_pattern(root: Path, call: Call, pattern: str, found: str) -> None:
    """`*` stays within a name, `**` crosses folders, braces are choices, version control is left out."""
    write(root, a_py="", sub__b_py="", sub__deep__c_py="", sub__d_md="")
    (root / ".git").mkdir()
    (root / ".git" / "x.py").touch()
    assert await call("glob", pattern=pattern) == ToolOutput(found)


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("/etc/*", "leads outside; a pattern is relative"),
        ("a/../../*", "leads outside"),
        ("", "has 1 to 500 characters, not 0"),
        ("{a,b}" * 7, "more than 64 choices"),
    ],
)
async def test_a_wrong_pattern_is_explained(call: Call, pattern: str, problem: str) -> None:
    """Patterns have limits, and the text says which."""
    output = await call("glob", pattern=pattern)
    assert output.is_error
    assert problem in output.text


async def test_a_costly_pattern_costs_little(root: Path, call: Call) -> None:
    """Many stars against a long name do not multiply."""
    (root / ("a" * 200)).touch()
    with anyio.fail_after(5):
        assert await call("glob", pattern="**/" * 20 + "*a" * 60 + "b") == ToolOutput("[no file matches]")


async def test_lines_are_found(root: Path, call: Call) -> None:
    """Each matching line with its place; case, file patterns and single files as asked."""
    write(root, a_py="import os\nImport sys\r\n", sub__b_md="import — grün\n")
    assert await call("grep", pattern="^import") == ToolOutput("a.py:1: import os\nsub/b.md:1: import — grün")
    assert await call("grep", pattern="import$|SYS$", ignore_case=True) == ToolOutput("a.py:2: Import sys")
    assert await call("grep", pattern="import", include="*.md") == ToolOutput("sub/b.md:1: import — grün")
    assert await call("grep", pattern="import", include="*/*.md", path="sub") == ToolOutput("[no line matches]")
    assert await call("grep", pattern="grün", path="sub/b.md") == ToolOutput("sub/b.md:1: import — grün")


async def test_what_is_no_text_is_left_out_of_a_search(root: Path, call: Call) -> None:
    """Binary files and FIFOs are counted, version control is not looked at."""
    (root / "binary").write_bytes(b"needle\0")
    os.mkfifo(root / "fifo")
    write(root, a_txt="needle")
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("needle")
    assert await call("grep", pattern="needle") == ToolOutput(
        "a.txt:1: needle\n[2 files left out: binary, not readable or no files]"
    )


async def test_a_search_is_cut_at_its_number_of_matches(root: Path, call: Call) -> None:
    """The answer says that there are more; exactly as many are no cut."""
    write(root, a_txt="x\n" * 3)
    assert await call("grep", pattern="x", max_matches=2) == ToolOutput(
        "a.txt:1: x\na.txt:2: x\n[cut: there are more than 2 matching lines; narrow the search down]"
    )
    assert await call("grep", pattern="x", max_matches=3) == ToolOutput("a.txt:1: x\na.txt:2: x\na.txt:3: x")


async def test_of_a_long_line_the_part_around_the_match_is_shown(root: Path, call: Call) -> None:
    """A minified file gives 300 characters per match."""
    write(root, a_js="a" * 4000 + "needle" + "b" * 4000)
    assert await call("grep", pattern="needle") == ToolOutput(f"a.js:1: …{'a' * 100}needle{'b' * 194}…")


@pytest.mark.parametrize("pattern", ["(", "*", "a{99999999999}", "x" * 1001])
async def test_a_wrong_expression_is_explained(call: Call, pattern: str) -> None:
    """An expression that cannot be compiled is the model's to repair."""
    output = await call("grep", pattern=pattern)
    assert output.is_error
    assert output.text.startswith("grep: ")


async def test_a_catastrophic_expression_stops_nobody(root: Path) -> None:
    """It is ended at the time limit, what was found before is given, and the event loop runs on meanwhile."""
    write(root, a_txt="aab\n", b_txt="a" * 60 + "!\n")
    box = Toolbox(workspace_tools(root, grep_seconds=3.0))
    ticks = 0
    outputs: list[ToolOutput] = []
    async with anyio.create_task_group() as group:

        async def search() -> None:
            outputs.append(await box.run("grep", '{"pattern": "^(a+)+b?$"}'))
            group.cancel_scope.cancel()

        group.start_soon(search)
        while True:
            await anyio.sleep(0.01)
            ticks += 1
    note = "[stopped after 3 seconds: search in a smaller folder or with a simpler pattern]"
    assert outputs == [ToolOutput(f"a.txt:1: aab\n{note}")]
    assert ticks > 10


async def test_a_cancelled_search_ends_its_process(root: Path, call: Call) -> None:
    """The call waits for the end of the process that it killed, so nothing is left running."""
    write(root, b_txt="a" * 60 + "!\n")
    with anyio.fail_after(9):
        with anyio.move_on_after(0.3) as scope:
            await call("grep", pattern="^(a+)+$")
    assert scope.cancelled_caught


async def test_a_cancelled_call_does_not_wait_for_its_thread(root: Path) -> None:
    """A thread that hangs in the file system is left behind and ends at its next file."""
    (root / "a").touch()
    reached, go_on = threading.Event(), threading.Event()
    loop_thread = threading.get_ident()

    def clock() -> float:
        if threading.get_ident() != loop_thread:
            reached.set()
            go_on.wait()
        return 0.0

    box = Toolbox(workspace_tools(root, clock=clock))
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(box.run, "glob", '{"pattern": "*"}')
            await anyio.to_thread.run_sync(reached.wait)
            group.cancel_scope.cancel()
        assert not go_on.is_set()
    finally:
        go_on.set()


async def test_a_walk_ends_at_its_time_limit(root: Path) -> None:
    """What was found before is given, and the answer says that there may be more."""
    for name in "abc":
        (root / name).touch()
    times = iter([0.0, 1.0, 2.0, 11.0])
    box = Toolbox(workspace_tools(root, clock=lambda: next(times)))
    assert await box.run("glob", '{"pattern": "*"}') == ToolOutput(
        "a\n[stopped at the time limit: there may be more; begin in a smaller folder]"
    )
