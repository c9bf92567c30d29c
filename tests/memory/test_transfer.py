"""Export and import: the same bytes out and in, and nothing that an archive can do beyond that."""

import gzip
import io
import os
import tarfile
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallscope.runtime.errors import TransferError
from recallscope.runtime.memory.archive import MAX_UNPACKED_BYTES, archive_members, opened_archive, read_member
from recallscope.runtime.memory.memory import Memory
from recallscope.runtime.memory.note import MAX_NOTE_BYTES
from recallscope.runtime.memory.packed import packed_notes
from recallscope.runtime.memory.scopes import Root, Skipped
from recallscope.runtime.memory.store import INDEX_MARK
from recallscope.runtime.memory.transfer import (
    Exported,
    Imported,
    OnConflict,
    archive_writer,
    export_notes,
    folder_writer,
    import_notes,
)
from recallscope.runtime.terms import ScopeName

Write = Callable[[str, str], Path]
Opened = Callable[..., AbstractAsyncContextManager[Memory]]


def exported(root: Path, target: Path) -> Exported:
    """Export the notes of `root` as an archive."""
    with target.open("wb") as stream, archive_writer(stream) as write:
        return export_notes([Root(ScopeName.PROJECT, root)], write)


@dataclass
class Member:
    """A member of a hostile archive."""

    name: str
    data: bytes = b"# Note\nbody"
    kind: bytes = tarfile.REGTYPE
    link: str = ""
    size: int | None = None
    pax: dict[str, str] = field(default_factory=dict[str, str])


def packed(target: Path, *members: Member, kind: int = tarfile.PAX_FORMAT) -> Path:
    """Write an archive of these members, whatever they say."""
    with tarfile.open(target, "w:gz", format=kind) as archive:
        for member in members:
            info = tarfile.TarInfo(member.name)
            info.type, info.linkname, info.pax_headers = member.kind, member.link, member.pax
            info.size = len(member.data) if member.kind == tarfile.REGTYPE else 0
            archive.addfile(info, io.BytesIO(member.data))
    return target


async def brought(
    memory: Memory, root: Path, source: Path, *, on_conflict: OnConflict = OnConflict.SKIP, dry_run: bool = False
) -> list[tuple[str, str, str | None, str | None]]:
    """Import `source` and return what was told: name, fate, id, why."""
    told: list[Imported] = []
    await import_notes(
        source,
        memory.edit,
        [Root(ScopeName.PROJECT, root)],
        into=None,
        on_conflict=on_conflict,
        dry_run=dry_run,
        tell=told.append,
    )
    return [(one.name, one.fate.value, one.note, one.why) for one in told]


def files(root: Path) -> dict[str, bytes]:
    """Return the files below `root` and what they hold."""
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def names(folder: Path) -> list[str]:
    """Return what stands in a folder."""
    return sorted(path.name for path in folder.iterdir())


def test_equal_notes_make_equal_archives(tmp_path: Path, root: Path, write: Write) -> None:
    """Order, owners and the time of the export do not show; what is no note or holds a credential is left out."""
    os.utime(write("z/b.md", "# B"), (5.9, 5.9))
    os.utime(write("a.md", "# A"), (6, 6))
    write("MEMORY.md", INDEX_MARK)
    write("broken.md", "---\nkeywords: [\n---\n")
    write("secret.md", "# S\n\nAKIA" + "IOSFODNN7EXAMPLQ")
    first, second = exported(root, tmp_path / "1.tgz"), exported(root, tmp_path / "2.tgz")
    assert first == second
    assert (first.notes, first.size) == (2, 6)
    assert [(skip.path, "AKIA" in skip.why) for skip in first.left_out] == [
        ("project/broken.md", False),
        ("project/secret.md", False),
    ]
    assert (tmp_path / "1.tgz").read_bytes() == (tmp_path / "2.tgz").read_bytes()
    with tarfile.open(tmp_path / "1.tgz") as archive:
        members = [(member.name, member.mtime, member.uid, member.uname, member.mode) for member in archive]
        listed = archive.extractfile("manifest.jsonl")
        assert listed is not None
        lines = listed.read().decode().splitlines()
    assert members == [
        ("project/a.md", 6, 0, "", 0o600),
        ("project/z/b.md", 5, 0, "", 0o600),
        ("manifest.jsonl", 0, 0, "", 0o600),
    ]
    assert lines[0] == '{"format": "recallscope-notes", "version": 1, "notes": 2}'
    assert lines[1].startswith('{"name": "project/a.md", "bytes": 3, "version": "')


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["archive", "folder"])
async def test_what_goes_out_comes_in_again(
    opened: Opened, tmp_path: Path, root: Path, write: Write, kind: str
) -> None:
    """Byte for byte and, from an archive, with the file's time; a second import changes nothing."""
    os.utime(write("z/b.md", "# B\r\nodd bytes \U0001f600\r\n"), (5, 5))
    os.utime(write("ü.md", "---\nname: A # c\n---\n"), (6, 6))
    before = files(root)
    target = tmp_path / "out"
    if kind == "archive":
        exported(root, target)
    else:
        export_notes([Root(ScopeName.PROJECT, root)], folder_writer(target))
    for name in before:
        (root / name).unlink()
    async with opened() as memory:
        fates = [fate for _, fate, _, _ in await brought(memory, root, target)]
        assert (fates, memory.notes) == (["created", "created"], 2)
        after = files(root)
        assert after.pop("MEMORY.md").decode().startswith(INDEX_MARK)
        assert after == before
        if kind == "archive":
            assert [(root / name).stat().st_mtime for name in ("z/b.md", "ü.md")] == [5, 6]
        assert [fate for _, fate, _, _ in await brought(memory, root, target)] == ["unchanged", "unchanged"]


@pytest.mark.anyio
async def test_each_conflict_has_its_rule(opened: Opened, tmp_path: Path, root: Path, write: Write) -> None:
    """`skip` leaves, `replace` overwrites, `rename` writes beside, once; a dry run says the same and writes nothing."""
    source = packed(tmp_path / "in.tgz", Member("a.md", b"# New"), Member("b.md", b"# B"))
    write("a.md", "# Old")
    rules = {
        OnConflict.SKIP: [("skipped", "project:a.md"), ("created", "project:b.md")],
        OnConflict.RENAME: [("renamed", "project:a-2.md"), ("unchanged", "project:b.md")],
        OnConflict.REPLACE: [("replaced", "project:a.md"), ("unchanged", "project:b.md")],
    }
    async with opened() as memory:
        for rule, expected in rules.items():
            before = files(root)
            planned = await brought(memory, root, source, on_conflict=rule, dry_run=True)
            assert files(root) == before
            done = await brought(memory, root, source, on_conflict=rule)
            assert done == planned
            assert [(fate, note) for _, fate, note, _ in done] == expected
        again = await brought(memory, root, source, on_conflict=OnConflict.RENAME)
        assert [fate for _, fate, _, _ in again] == ["unchanged", "unchanged"]
    assert {name: data for name, data in files(root).items() if name != "MEMORY.md"} == {
        "a.md": b"# New",
        "a-2.md": b"# New",
        "b.md": b"# B",
    }


HOSTILE = (
    (Member("../out.md"), "its name leads out of the archive"),
    (Member("x/../../out.md"), "its name leads out of the archive"),
    (Member("/out.md"), "its name leads out of the archive"),
    (Member("..\\out.md"), "its name leads out of the archive"),
    (Member("../folder", kind=tarfile.DIRTYPE), "its name leads out of the archive"),
    (Member("link.md", kind=tarfile.SYMTYPE, link="/etc/passwd"), "it is a link"),
    (Member("hard.md", kind=tarfile.LNKTYPE, link="good.md"), "it is a link"),
    (Member("device.md", kind=tarfile.CHRTYPE), "it is no regular file"),
    (Member("pipe.md", kind=tarfile.FIFOTYPE), "it is no regular file"),
    (Member("evil\x1b[2J.md"), "its name holds control characters"),
    (Member("line\nend.md"), "its name holds control characters"),
    (Member("bad\udcff.md"), "its name is not UTF-8"),
    (
        Member("large.md", b"x" * (MAX_NOTE_BYTES + 1)),
        f"it has {MAX_NOTE_BYTES + 1} bytes, at most {MAX_NOTE_BYTES} are read",
    ),
    (Member("x" * 300 + ".md"), "its name is too long or too deep"),
    (
        Member("secret.md", b"# S\n\nAKIA" + b"IOSFODNN7EXAMPLQ"),
        "the text looks like it holds a credential: line 3 (aws-access-key)",
    ),
    (Member("nul.md", b"a\0b"), "it is binary: it holds a NUL byte"),
)


@pytest.mark.anyio
@pytest.mark.parametrize(("member", "why"), HOSTILE)
async def test_what_reaches_beyond_an_archive_is_refused_by_name(
    opened: Opened, tmp_path: Path, root: Path, member: Member, why: str
) -> None:
    """The rest of the archive comes in, nothing stands outside the memory folder, no credential's value is told."""
    async with opened() as memory:
        before = names(tmp_path)
        for kind in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
            source = packed(tmp_path / "notes" / "in.tgz", Member("good.md", b"# Good"), member, kind=kind)
            good, bad = await brought(memory, root, source)
        assert names(tmp_path) == before
    assert good == ("good.md", "unchanged", "project:good.md", None)
    assert bad == (member.name.encode(errors="surrogateescape").decode(errors="backslashreplace"), "refused", None, why)
    assert sorted(files(root)) == ["MEMORY.md", "good.md", "in.tgz"]


@pytest.mark.anyio
async def test_what_is_no_note_in_a_folder_is_none_in_an_archive(opened: Opened, tmp_path: Path, root: Path) -> None:
    """Other files, hidden ones, folders and indexes are passed over; a leading `./` is none of a name."""
    names = ("./", "x.txt", ".hidden.md", ".git/x.md", "MEMORY.md", "sub/MEMORY.md", "./sub/a.md")
    members = [Member(name, kind=tarfile.DIRTYPE if name == "./" else tarfile.REGTYPE) for name in names]
    async with opened() as memory:
        assert await brought(memory, root, packed(tmp_path / "in.tgz", *members)) == [
            ("sub/a.md", "created", "project:sub/a.md", None)
        ]


@pytest.mark.anyio
async def test_a_link_in_the_memory_folder_leads_no_import_out(opened: Opened, tmp_path: Path, root: Path) -> None:
    """A folder or file that is a symbolic link takes no note."""
    (root / "sub").symlink_to(tmp_path)
    (root / "a.md").symlink_to(tmp_path / "a.md")
    source = packed(tmp_path / "in.tgz", Member("sub/x.md"), Member("a.md"))
    async with opened() as memory:
        told = await brought(memory, root, source, on_conflict=OnConflict.REPLACE)
    assert [(fate, "symbolic link" in (why or "")) for _, fate, _, why in told] == [("refused", True)] * 2
    assert not (tmp_path / "x.md").exists()
    assert not (tmp_path / "a.md").exists()


@pytest.mark.anyio
async def test_a_changed_archive_is_told_by_its_manifest(
    opened: Opened, tmp_path: Path, root: Path, write: Write
) -> None:
    """A note that is not what the manifest says, is not named by it, or is missing, is refused; others come in."""
    for name in ("a", "b", "c"):
        write(f"{name}.md", f"# {name}")
    exported(root, tmp_path / "out.tgz")
    members: list[Member] = []
    with tarfile.open(tmp_path / "out.tgz") as archive:
        for member in archive:
            stream = archive.extractfile(member)
            assert stream is not None
            members.append(Member(member.name, stream.read()))
    members[0] = Member("project/a.md", b"# changed")
    del members[1]
    for name in ("a", "b", "c"):
        (root / f"{name}.md").unlink()
    source = packed(tmp_path / "in.tgz", *members, Member("project/new.md"), Member("team9/x.md"))
    async with opened() as memory:
        assert await brought(memory, root, source) == [
            ("project/a.md", "refused", None, "it is not what the manifest says"),
            ("project/c.md", "created", "project:c.md", None),
            ("project/new.md", "refused", None, "the manifest does not name it"),
            ("team9/x.md", "refused", None, "the manifest does not name it"),
            ("project/b.md", "refused", None, "the manifest names it and it is not there"),
        ]


def broken_archives(folder: Path) -> dict[str, Path]:
    """Return archives that are wrong as a whole, by what their error says."""
    good = packed(folder / "good.tgz", Member("a.md", os.urandom(20_000)))
    whole = good.read_bytes()
    cases = {
        "Not a gzipped file": b"# Markdown",
        "ended before": whole[: len(whole) // 2],
        "no .tar.gz archive": gzip.compress(b"no tar" * 200),
        "CRC check failed": whole[:-8] + b"\0" * 8,
        "larger than any note": gzip.compress(_header(b"x", 200 << 20) + bytes(4096)),
        "recursion": gzip.compress(_header(b"x", 0) * 3_000),
        "its members overlap": gzip.compress(_header(b"0", -1_024) * 3),
        "unpacks to more than": gzip.compress(_header(b"0", MAX_UNPACKED_BYTES + 1) + bytes(4096)),
    }
    paths: dict[str, Path] = {}
    for number, (problem, data) in enumerate(cases.items()):
        path = folder / f"{number}.tgz"
        path.write_bytes(data)
        paths[problem] = path
    return paths


def _header(kind: bytes, size: int) -> bytes:
    info = tarfile.TarInfo("huge.md")
    info.type, info.size = kind, size
    return info.tobuf(tarfile.GNU_FORMAT)


def test_an_archive_that_is_wrong_as_a_whole_is_refused_before_its_first_note(tmp_path: Path) -> None:
    """No archive, cut off, damaged, or one that would fill the memory or the disk: one error, which names the file."""
    for problem, path in broken_archives(tmp_path).items():
        with pytest.raises(TransferError, match=problem) as caught:
            next(iter(packed_notes(path)))
        assert caught.value.where == path.name


def test_the_limit_counts_what_is_unpacked(tmp_path: Path) -> None:
    """Members that are small each cannot fill the disk together."""
    path = packed(tmp_path / "in.tgz", *(Member(f"{number}.md", bytes(50_000)) for number in range(40)))
    assert path.stat().st_size < 50_000

    def read_all() -> None:
        with opened_archive(path, limit=1_000_000) as archive:
            for member, _, _ in archive_members(archive, path.name):
                read_member(archive, member)

    with pytest.raises(TransferError, match="unpacks to more than 1000000 bytes"):
        read_all()


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3_000), st.integers(0, 255)), min_size=1, max_size=12), st.integers(0, 4_000))
def test_damage_is_an_error_or_a_refusal(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, int]], cut: int
) -> None:
    """Whatever bytes of a tar are other than they were, reading it ends, with notes, refusals or one error."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in ("a.md", "ü" * 120 + ".md"):
            info = tarfile.TarInfo(name)
            info.size = 6
            archive.addfile(info, io.BytesIO(b"# Note"))
    data = bytearray(buffer.getvalue())
    for position, value in changes:
        data[position] = value
    path = tmp_path_factory.getbasetemp() / "damaged.tgz"
    path.write_bytes(gzip.compress(bytes(data[: len(data) - cut]), compresslevel=1))
    try:
        found = list(packed_notes(path))
    except TransferError:
        return
    assert len(found) <= 4


@pytest.mark.anyio
async def test_a_folder_of_markdown_comes_in(opened: Opened, tmp_path: Path, root: Path) -> None:
    """Nested folders keep their names; links out, pipes and broken notes are refused; other files are passed over."""
    folder = tmp_path / "wiki"
    (folder / "deep/er").mkdir(parents=True)
    (folder / "deep/er/a.md").write_text("# A")
    (folder / "x.txt").write_text("no note")
    (folder / "empty.md").write_text("")
    (folder / "out.md").symlink_to("/etc/passwd")
    os.mkfifo(folder / "pipe.md")
    async with opened() as memory:
        assert await brought(memory, root, folder) == [
            ("out.md", "refused", None, "it is a symbolic link that leaves the memory folder"),
            ("pipe.md", "refused", None, "it is no regular file"),
            ("deep/er/a.md", "created", "project:deep/er/a.md", None),
            ("empty.md", "refused", None, "it is empty"),
        ]


def test_an_export_overwrites_no_folder(tmp_path: Path) -> None:
    """It goes into a new or empty folder, or nowhere."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(TransferError, match="not empty"):
        folder_writer(tmp_path)
    with pytest.raises(TransferError, match="cannot be used"):
        folder_writer(tmp_path / "file")
    with pytest.raises(TransferError, match="cannot be listed"):
        export_notes([Root(ScopeName.PROJECT, tmp_path / "file")], folder_writer(tmp_path / "new"))


def test_a_later_format_is_refused(tmp_path: Path) -> None:
    """A manifest of a version that this program does not know says so; another program's manifest is none of ours."""
    later = Member("manifest.jsonl", b'{"format": "recallscope-notes", "version": 2}\n')
    with pytest.raises(TransferError, match="reads version 1"):
        next(iter(packed_notes(packed(tmp_path / "1.tgz", later))))
    broken = Member("manifest.jsonl", b'{"format": "recallscope-notes", "version": 1}\nx\n')
    with pytest.raises(TransferError, match="broken"):
        next(iter(packed_notes(packed(tmp_path / "2.tgz", broken))))
    foreign = packed(tmp_path / "3.tgz", Member("manifest.jsonl", b"[" * 100_000), Member("a.md"))
    assert [note.path if isinstance(note, Skipped) else note.relative for note in packed_notes(foreign)] == ["a.md"]
