"""Notes: what is read, what is refused and why, and that a rewrite gives back what it was given."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallscope.runtime.errors import NoteError
from recallscope.runtime.memory.note import MAX_NOTE_BYTES, Note, parse, render
from recallscope.runtime.terms import NoteSource, NoteType, ScopeName

ROOT = Path("/memory")


def read(data: bytes | str, relative: str = "project/a-fact.md") -> Note:
    """Parse `data` as the file at `relative`, last changed at second 100."""
    raw = data.encode() if isinstance(data, str) else data
    return parse(raw, scope=ScopeName.PROJECT, root=ROOT, relative=relative, modified=100.0)


def problem(data: bytes | str) -> str:
    """Return why `data` is no note."""
    with pytest.raises(NoteError) as caught:
        read(data)
    return caught.value.problem


def test_every_field_of_the_front_matter_is_read() -> None:
    """The fields of docs/memory.md arrive with their types, and the body without its surrounding blank lines."""
    note = read(
        "---\nname: Deploys\ndescription: How we deploy\ntype: feedback\nkeywords: [ci, k8s]\n"
        "usage_scenarios:\n- how do I ship\npinned: true\ncreated: 2026-01-02\nupdated: 2026-01-03T00:00:00Z\n"
        "superseded_by: new.md\nsource: extract\nevidence: turn 3\ncustom: {a: 1}\n---\n\nShip it.\n"
    )
    got = (note.title, note.description, note.type, note.keywords, note.usage_scenarios, note.pinned)
    assert got == ("Deploys", "How we deploy", NoteType.FEEDBACK, ("ci", "k8s"), ("how do I ship",), True)
    rest = (note.created, note.updated, note.superseded_by, note.source, note.evidence, note.extra, note.body)
    assert rest == (
        1_767_312_000.0,
        1_767_398_400.0,
        "new.md",
        NoteSource.EXTRACT,
        "turn 3",
        {"custom": {"a": 1}},
        "Ship it.",
    )
    assert (note.id, note.path) == ("project:project/a-fact.md", ROOT / "project/a-fact.md")


def test_a_file_without_front_matter_is_a_note() -> None:
    """Its title is the first heading, its type the folder's, its age the file's."""
    note = read("Some text\n\n## Be terse ##\nmore", "deep/feedback/x.md")
    assert (note.title, note.type, note.updated) == ("Be terse", NoteType.FEEDBACK, 100.0)


@pytest.mark.parametrize(
    ("relative", "title", "note_type"),
    [
        ("user/my_role-here.md", "my role here", NoteType.USER),
        ("elsewhere/x.md", "x", NoteType.PROJECT),
        ("x.md", "x", NoteType.PROJECT),
    ],
)
def test_title_and_type_fall_back_to_the_path(relative: str, title: str, note_type: NoteType) -> None:
    """Without name and heading the file's name is the title; another folder than the four means `project`."""
    note = read("just text", relative)
    assert (note.title, note.type) == (title, note_type)


def test_bom_crlf_and_leading_blank_lines_are_accepted() -> None:
    """A file from another editor reads as the same note."""
    note = read(b"\xef\xbb\xbf\r\n---\r\nname: A\r\n---\r\nline one\r\nline two\r\n")
    assert (note.title, note.body) == ("A", "line one\nline two")


@pytest.mark.parametrize("text", ["007", "1.50", "yes", "null", "2026-01-02", "0x1F", "~", "1e3"])
def test_bare_scalars_keep_their_text(text: str) -> None:
    """A title that looks like a number, a date or a truth value is the text that stands there."""
    assert read(f"---\nname: {text}\n---\nbody").title == text


@pytest.mark.parametrize(
    ("line", "description"),
    [
        ("description: fix issue #12 first", "fix issue #12 first"),
        ("description: Note: use tabs", "Note: use tabs"),
        ("description: it's Bob's: really", "it's Bob's: really"),
        ("description: *bold* claim", "*bold* claim"),
        ("description: `make` is enough", "`make` is enough"),
        ("description: [WIP] half done", "[WIP] half done"),
        ('description: "Foo" is a bar', '"Foo" is a bar'),
        ('description: "quoted # text"  # a comment', "quoted # text"),
        ("description: ends with a colon:", "ends with a colon:"),
        ("description: one: two\n  three", "one: two three"),
        ("description: >\n  folded\n  text", "folded text"),
        ("description: @all read this", "@all read this"),
    ],
)
def test_free_text_is_read_as_it_was_meant(line: str, description: str) -> None:
    """What YAML would cut off, refuse or take for syntax in a free-text field is content."""
    assert read(f"---\nname: A\n{line}\ntype: user\n---\nbody").description == description


def test_type_keeps_the_comment_rules_of_yaml() -> None:
    """A comment behind the type is a comment."""
    assert read("---\nname: A\ntype: user # who they are\n---\nbody").type == NoteType.USER


def test_the_type_that_claude_code_nests_is_found() -> None:
    """`metadata.type` counts where there is no `type`, and `metadata` survives."""
    note = read("---\nname: A\nmetadata:\n  type: reference\n---\nbody")
    assert (note.type, note.extra) == (NoteType.REFERENCE, {"metadata": {"type": "reference"}})


def test_an_unreadable_value_of_a_known_field_is_kept() -> None:
    """An unknown source and a date that is none are not understood, and not lost in a rewrite either."""
    note = read("---\nname: A\nsource: webhook\ncreated: last week\n---\nbody")
    assert (note.source, note.created, note.extra) == (None, None, {"source": "webhook", "created": "last week"})
    again = read(render(note))
    assert again.extra == note.extra


def test_keywords_may_be_a_line_with_commas() -> None:
    """Both spellings of a list are read, without duplicates and empty ones."""
    assert read("---\nname: A\nkeywords: go, c#, , go\n---\nb").keywords == ("go", "c#")


def test_a_title_holds_no_control_characters() -> None:
    """Escape sequences and line breaks in a title become blanks."""
    assert read('---\nname: "a\\x1b[31mb\\nc"\n---\nb').title == "a [31mb c"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "empty"),
        (b" \n\t\n", "empty"),
        (b"\xef\xbb\xbf", "empty"),
        (b"a\0b", "NUL"),
        (b"caf\xe9", "not UTF-8"),
        (b"x" * (MAX_NOTE_BYTES + 1), "at most"),
        ("---\nname: A\n", "never closed"),
        ("---\n- a\n- b\n---\nbody", "no mapping"),
        ("---\nx: [a\n---\nbody\n", "no YAML"),
        ("---\nx: {a: b\n  c\n---\nbody", "no YAML"),
        ("---\nname: A\nname: B\n---\nbody", "twice"),
        ("---\nx: {a: 1, a: 2}\n---\nbody", "twice"),
        ("---\nx: &a [1]\ny: *a\n---\nbody", "anchor"),
        ("---\nx: *a\n---\nbody", "alias"),
        ("---\nx: !!python/object:os.system {}\n---\nbody", "tag"),
        ("---\nx: " + "[" * 40 + "\n---\nbody", "deep"),
        ("---\nx: " + "a" * 70_000 + "\n---\nbody", "characters"),
        ("---\n? [a]\n: b\n---\nbody", "no plain text"),
        ("---\nx: \x07\n---\nbody", "no YAML"),
        ("---\ntype: user\n---\n", "neither"),
    ],
)
def test_what_is_no_note_is_refused_with_its_reason(data: bytes | str, why: str) -> None:
    """Each kind of broken file has its own reason, and none escapes as another error."""
    assert why in problem(data)


def test_a_bomb_of_aliases_is_refused_at_once() -> None:
    """Nine lines that stand for a billion words cost nothing."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [" + ", ".join([f"*a{n - 1}"] * 10) + "]" for n in range(1, 9)]
    assert "anchor" in problem("---\n" + "\n".join(lines) + "\n---\nbody")


_visible = st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp", "Zs"))
_lines = st.lists(st.text(_visible, min_size=1, max_size=12), max_size=4).map(" ".join)
_titles = _lines.filter(lambda text: bool(text.strip()))
_scalars = st.none() | st.booleans() | st.integers(-(10**6), 10**6) | _lines | st.dates()
_values = st.recursive(
    _scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_lines, inner, max_size=3), max_leaves=6
)
_known = {"name", "title", "description", "type", "keywords", "usage_scenarios", "pinned", "created", "updated"}
_known |= {"superseded_by", "source", "evidence", "metadata"}


@given(
    note=st.builds(
        Note,
        id=st.just("project:a.md"),
        version=st.just(""),
        scope=st.just(ScopeName.PROJECT),
        root=st.just(ROOT),
        relative=st.just("a.md"),
        title=_titles,
        description=_lines,
        type=st.sampled_from(NoteType),
        keywords=st.lists(_titles, max_size=3, unique=True).map(tuple),
        usage_scenarios=st.lists(_titles, max_size=3, unique=True).map(tuple),
        body=st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=60).map(lambda x: x.strip("\n")),
        pinned=st.booleans(),
        created=st.none() | st.integers(0, 4 * 10**9).map(float),
        updated=st.integers(0, 4 * 10**9).map(float),
        superseded_by=st.none() | _titles,
        source=st.none() | st.sampled_from(NoteSource),
        evidence=st.none() | _titles,
        extra=st.dictionaries(_lines.filter(lambda key: key not in _known), _values, max_size=3),
    )
)
def test_a_rendered_note_reads_back_the_same(note: Note) -> None:
    """Render, then parse, is the identity on every field, unknown ones included."""
    again = read(render(note), "a.md")
    for name in Note.__dataclass_fields__:
        if name != "version":
            assert getattr(again, name) == getattr(note, name)
    assert render(again) == render(note)


@given(
    st.binary(max_size=300) | st.text(max_size=200).map(lambda text: f"---\n{text}\n---\nbody".encode(errors="ignore"))
)
def test_any_bytes_are_a_note_or_a_note_error(data: bytes) -> None:
    """Nothing that stands in a file makes the parser fail in another way."""
    try:
        found = read(data).title
    except NoteError as error:
        found = error.problem
    assert found


@pytest.mark.parametrize("moment", ["9999-12-31T23:59:59-23:59", "1e300", "0001-01-01", "-5", "inf"])
def test_a_moment_that_no_calendar_holds_is_none(moment: str) -> None:
    """Such a note takes the file's time, so that nobody who writes its date fails on it."""
    data = f"---\nname: a\nupdated: {moment}\n---\nb\n".encode()

    note = parse(data, scope=ScopeName.PROJECT, root=Path("/notes"), relative="a.md", modified=5.0)

    assert note.updated == 5.0
    assert b"updated" in render(note)


def test_a_file_time_that_no_calendar_holds_is_the_begin_of_1970() -> None:
    """A file system can hold any time."""
    note = parse(b"b", scope=ScopeName.PROJECT, root=Path("/notes"), relative="a.md", modified=1e300)

    assert note.updated == 0.0
