"""`recallscope recall` as a process: what it prints, what it reads, and that it writes nothing into the notes."""

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from recallscope.runtime.testing.model_server import serve
from recallscope.runtime.testing.script import Script, Select, Step

if TYPE_CHECKING:
    from conftest import Done, Place

pytestmark = pytest.mark.anyio

QUERY = "Which port does the staging database listen on?"
STAGING = "reference/staging-database.md"


def tree(folder: Path) -> dict[str, tuple[int, int, str]]:
    """Return mode, time of the last change and content of everything in `folder`, itself included."""
    found: dict[str, tuple[int, int, str]] = {}
    for path in (folder, *folder.rglob("*")):
        stat = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() and not path.is_symlink() else ""
        found[str(path.relative_to(folder))] = (stat.st_mode, stat.st_mtime_ns, content)
    return found


def paths(part: dict[str, Any]) -> list[str]:
    """Return the paths of the notes in a part of an answer."""
    return [note["path"] for note in part["notes"]]


def only(done: "Done") -> dict[str, Any]:
    """Return the one JSON object that was printed by a run that succeeded without a word on stderr."""
    assert (done.code, done.err) == (0, "")
    (answer,) = done.out.splitlines()
    return json.loads(answer)


async def test_without_a_model_the_answer_has_the_fast_result_alone(place: "Place") -> None:
    """The keys are those that are documented, and paths are relative to the folder; a read-only folder is enough."""
    before = tree(place.notes)
    for path in (*place.notes.rglob("*"), place.notes):
        path.chmod(0o555 if path.is_dir() else 0o444)
    locked = tree(place.notes)

    done = await place.run("recall", QUERY, "--memory", "../notes", "--json")

    answer = only(done)
    seconds = answer["fast"].pop("seconds")
    note = {"path": STAGING, "title": "Staging database", "type": "reference"}
    score = answer["fast"]["notes"][0].pop("score")
    assert isinstance(score, float)
    assert 0 < seconds < 5
    assert answer == {
        "query": QUERY,
        "fast": {"notes": [note]},
        "refined": None,
        "runners_up": [],
        "catalog": {"notes": 8, "skipped": []},
    }
    assert tree(place.notes) == locked
    assert {name: content for name, (_, _, content) in locked.items()} == {
        name: content for name, (_, _, content) in before.items()
    }
    assert list(place.work.iterdir()) == []


async def test_with_a_model_the_answer_has_the_refined_result(place: "Place") -> None:
    """The selector's choice comes with its strategy; a selector that fails leaves the word matches, with the reason."""
    selection = Step(select=Select(contains=("On-call rota", "Staging database")))
    async with serve(Script.of(memory_selection=selection)) as server:
        chosen = only(await place.run("recall", QUERY, "--json", environ=place.environ(server.url)))
    async with serve(Script.of(memory_selection=Step(status=500))) as server:
        done = await place.run("recall", QUERY, "--json", environ=place.environ(server.url))

    failed = json.loads(done.out)
    assert (done.code, done.err.count("\n")) == (0, 1)
    assert done.err.startswith(f"the selector failed: {server.url} answered 500: ")
    assert set(chosen["refined"]) >= {"notes", "seconds", "strategy"}
    assert (paths(chosen["refined"]), chosen["refined"]["strategy"]) == (
        ["reference/on-call-rota.md", STAGING],
        "model",
    )
    assert (paths(failed["refined"]), failed["refined"]["strategy"], failed["refined"]["error"]) == (
        [STAGING],
        "lexical",
        "selector_unavailable",
    )


HOSTILE = [
    "x " * 524_288,
    "?!… --- ((( ))) \"\" '' ;;;",
    'staging AND OR NOT NEAR("database" port) ^title* {a b}: -c',
    "'; DROP TABLE notes; --",
    "staging\0database port",
    "%_\\ \ufeff \u202e \U0001f600 \ud7ff",
    "staging database " + "é" * 100_000,
]


async def test_hostile_queries_from_a_file_are_answered_a_line_each(place: "Place") -> None:
    """Size, punctuation, the syntax of searches and of SQL, NUL and broken UTF-8 break nothing for the next line."""
    lines = [line.encode("utf-8", "surrogatepass") for line in HOSTILE] + [b"\xff\xfe staging", b"", QUERY.encode()]
    file = place.work / "queries.txt"
    file.write_bytes(b"\n".join(lines) + b"\n")

    done = await place.run("recall", "--queries", str(file), "--memory", str(place.notes), "--json")

    assert (done.code, done.err) == (0, "")
    answers = done.events
    assert [answer["query"] for answer in answers[:-2]] == [line.strip() for line in HOSTILE]
    assert len(answers) == len(HOSTILE) + 2
    assert paths(answers[-1]["fast"]) == [STAGING]
    assert paths(answers[1]["fast"]) == []
    assert {answer["catalog"]["notes"] for answer in answers} == {8}


async def test_queries_come_from_stdin_and_people_get_text(place: "Place") -> None:
    """`-` reads stdin; without --json each query gets its lines, with scores and the size of the catalog."""
    arguments = ("recall", "--queries", "-", "--memory", str(place.notes))
    done = await place.run(*arguments, stdin=f"{QUERY}\n\nnothing of that kind\n".encode())

    lines = done.out.splitlines()
    assert (done.code, done.err) == (0, "")
    assert [line for line in lines if not line.startswith(" ")] == [QUERY, "nothing of that kind"]
    assert any(line.endswith(f"{STAGING}  Staging database [reference]") for line in lines)
    assert "    nothing" in lines
    assert lines[-1] == "  8 notes in the catalog, 0 files skipped"


async def test_a_reader_that_leaves_early_ends_it_quietly(place: "Place") -> None:
    """Behind `head` it writes nothing to stderr and ends as a program does that a closed pipe ended."""
    (place.work / "queries.txt").write_text(f"{QUERY}\n" * 2_000, encoding="utf-8")
    recall = f"{sys.executable} -m recallscope.runtime.cli recall --queries queries.txt --json"
    with anyio.fail_after(45):
        process = await anyio.run_process(
            ["sh", "-c", f"{{ {recall}; echo $? > code; }} | head -c 1"], cwd=place.work, env=place.environ()
        )

    assert (process.stdout, process.stderr, (place.work / "code").read_text()) == (b"{", b"", "141\n")


def write_odd_files(folder: Path) -> None:
    """Write what may lie in a folder of notes: files that can be read in spite of something, and files that cannot."""
    folder.mkdir(exist_ok=True)
    for name, content in {
        "bad-front-matter.md": b"---\nname: [unclosed\n---\nzebra",
        "big.md": b"---\nname: Big\n---\n" + b"zebra word " * 500_000,
        "binary.md": bytes(range(256)) * 20,
        "bom.md": b"\xef\xbb\xbf---\nname: Marked zebra\n---\nzebra\n",
        "crlf.md": b"---\r\nname: Windows zebra\r\ntype: project\r\n---\r\nzebra\r\n",
        "empty.md": b"",
        "latin.md": "---\nname: Latin zebra\n---\nGr\xfc\xdfe\n".encode("latin-1"),
        "never-closed.md": b"---\nname: never closed\nzebra",
        "no-front-matter.md": b"# Plain zebra\n\nzebra\n",
        "no-mapping.md": b"---\n- zebra\n---\nzebra",
        "odd-type.md": b"---\nname: Odd zebra\ntype: nonsense\n---\nzebra",
        "utf16.md": "---\nname: Wide zebra\n---\nzebra\n".encode("utf-16"),
    }.items():
        (folder / name).write_bytes(content)
    os.mkfifo(folder / "fifo.md")
    (folder / "folder.md").mkdir()
    (folder / "outside.md").symlink_to("/etc/passwd")
    (folder / "itself.md").symlink_to("itself.md")


async def test_a_file_that_is_no_note_is_named_with_the_reason_and_hurts_nobody(place: "Place") -> None:
    """What can be read is found, what cannot is named and why; the notes beside it answer, and nothing is touched."""
    write_odd_files(place.notes / "project")
    before = tree(place.notes)

    file = place.work / "queries.txt"
    file.write_text(f"zebra\n{QUERY}\n", encoding="utf-8")
    done = await place.run("recall", "--queries", str(file), "--memory", str(place.notes), "--json")

    assert (done.code, done.err) == (0, "")
    odd, usual = done.events
    assert paths(usual["fast"]) == [STAGING]
    assert {note["title"] for note in (*odd["fast"]["notes"], *odd["runners_up"])} == {
        "Marked zebra",
        "Windows zebra",
        "Plain zebra",
        "Odd zebra",
        "[unclosed",
    }
    assert {Path(skip["path"]).name: skip["why"] for skip in odd["catalog"]["skipped"]} == {
        "big.md": "it has 5500018 bytes, at most 1048576 are read",
        "binary.md": "it is binary: it holds a NUL byte",
        "empty.md": "it is empty",
        "fifo.md": "it is no regular file",
        "itself.md": "it is a symbolic link that leaves the memory folder",
        "latin.md": "it is not UTF-8 (byte 28)",
        "never-closed.md": "the front matter begins with --- and is never closed",
        "no-mapping.md": "the front matter is no mapping of fields to values",
        "outside.md": "it is a symbolic link that leaves the memory folder",
        "utf16.md": "it is binary: it holds a NUL byte",
    }
    assert odd["catalog"]["notes"] == 13
    assert tree(place.notes) == before


async def test_two_processes_make_and_read_one_catalog_at_once(place: "Place") -> None:
    """Both begin with no catalog, share one, and answer the same."""
    answers: list[dict[str, Any]] = []

    async def ask() -> None:
        answer = only(await place.run("recall", QUERY, "--memory", str(place.notes), "--json"))
        del answer["fast"]["seconds"]
        answers.append(answer)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        tasks.start_soon(ask)

    assert answers[0] == answers[1]
    assert paths(answers[0]["fast"]) == [STAGING]
    assert answers[0]["catalog"] == {"notes": 8, "skipped": []}
    assert len(list(place.home.rglob("*.sqlite3"))) == 1


async def test_a_memory_folder_that_is_missing_is_empty_and_stays_missing(place: "Place") -> None:
    """Nothing is found, nothing is complained about, and a mere recall does not make the folder."""
    missing = place.work / "no" / "notes"
    environ = place.environ() | {"RECALLSCOPE_MEMORY_PROJECT_DIR": str(missing)}

    answer = only(await place.run("recall", QUERY, "--json", environ=environ))

    assert (paths(answer["fast"]), answer["catalog"]) == ([], {"notes": 0, "skipped": []})
    assert list(place.work.iterdir()) == []


async def test_a_broken_catalog_is_rebuilt_and_says_so(place: "Place") -> None:
    """The catalog is derived: what lies in its place is replaced, with a line on stderr, and the query is answered."""
    arguments = ("recall", QUERY, "--memory", str(place.notes), "--json")
    only(await place.run(*arguments))
    (catalog,) = place.home.rglob("*.sqlite3")
    catalog.write_bytes(b"no database at all" * 500)

    done = await place.run(*arguments)

    assert (done.code, paths(json.loads(done.out)["fast"])) == (0, [STAGING])
    assert "is rebuilt from the notes" in done.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "give either a QUERY or --queries FILE"),
        (("a", "--queries", "-"), "give either a QUERY or --queries FILE"),
        (("a", "--memory", "nowhere"), "'nowhere' does not exist"),
        (("--queries", "nowhere"), "--queries nowhere: No such file or directory"),
        (("--queries", "."), "--queries .: Is a directory"),
        (("a", "--nope"), "--nope"),
    ],
)
async def test_wrong_use_is_exit_code_2(place: "Place", arguments: tuple[str, ...], told: str) -> None:
    """The last line says what was wrong; stdout is empty."""
    done = await place.run("recall", *arguments)

    assert (done.code, done.out) == (2, "")
    assert told in done.err.splitlines()[-1]


async def test_explain_says_of_every_note_what_its_score_is_made_of_and_what_dropped_it(place: "Place") -> None:
    """Words and fields add up to the score; tools just used, notes in the conversation and the budget count."""
    usage = "---\nname: The staging database with porter\n---\nHow to call the tool `porter`: parameters and formats.\n"
    old = "---\nname: Old staging port\nsuperseded_by: reference/staging-database.md\n---\nThe port of the database.\n"
    (place.notes / "project").mkdir(exist_ok=True)
    (place.notes / "project/porter-usage.md").write_text(usage, encoding="utf-8")
    (place.notes / "project/old-port.md").write_text(old, encoding="utf-8")
    asked = ("recall", QUERY, "--json", "--explain", "--memory", "../notes")

    plain = only(await place.run(*asked))["explain"]
    after = only(await place.run(*asked, "--tool", "porter", "--surfaced", STAGING))["explain"]
    none = only(await place.run(*asked, environ={"RECALLSCOPE_RECALL_BUDGET_NOTES": "0"}))["explain"]

    candidates = {candidate["path"]: candidate for candidate in plain["candidates"]}
    best = candidates[STAGING]
    assert (best["fate"], best["point"], best["fast"]) == ("delivered", "initial", True)
    assert best["score"] == pytest.approx(sum(part["value"] for part in best["words"]), abs=1e-3)
    assert best["score"] == pytest.approx(sum(best["by_field"].values()), abs=1e-3)
    assert list(best["by_source"]) == plain["sources"] == ["words"]
    assert candidates["project/old-port.md"]["fate"] == "superseded"
    assert best["score"] >= plain["threshold"] > 0
    fates = {candidate["path"]: candidate["fate"] for candidate in after["candidates"]}
    assert (fates[STAGING], fates["project/porter-usage.md"]) == ("already_surfaced", "tool_noise")
    assert {candidate["fate"] for candidate in none["candidates"] if candidate["fast"]} == {"budget"}


async def test_a_runner_up_says_why_it_is_one(place: "Place") -> None:
    """Without --explain too: what stands in the conversation is not taken for what matched too weakly."""
    old = "---\nname: Old staging port\nsuperseded_by: reference/staging-database.md\n---\nThe port of the database.\n"
    (place.notes / "old-port.md").write_text(old, encoding="utf-8")

    answer = only(await place.run("recall", QUERY, "--json", "--memory", "../notes", "--surfaced", STAGING))

    why = {note["path"]: note["why"] for note in answer["runners_up"]}
    assert (why[STAGING], why["old-port.md"]) == ("already_surfaced", "superseded")


async def test_explain_reads_well(place: "Place") -> None:
    """As text, each candidate has a line on its fate and one on its words; an unknown note is one sentence."""
    done = await place.run("recall", QUERY, "--explain", "--memory", "../notes")
    wrong = await place.run("recall", QUERY, "--surfaced", "nowhere.md", "--memory", "../notes")

    lines = [line.strip() for line in done.out.splitlines()]
    assert lines[lines.index("every note that was looked at:") + 2] == "delivered at initial"
    assert "in title" in lines[lines.index("every note that was looked at:") + 3]
    assert (wrong.code, wrong.out, wrong.err.count("\n")) == (1, "", 1)
    assert "nowhere.md" in wrong.err
