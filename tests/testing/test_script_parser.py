"""Scripts are read from YAML and JSON, and every mistake is named with its place."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallscope.runtime.errors import ScriptError
from recallscope.runtime.testing.script import (
    PURPOSES,
    ErrorChunk,
    Malformed,
    Order,
    Scenario,
    Script,
    ScriptedToolCall,
    ScriptedUsage,
    Select,
    Step,
    Steps,
)
from recallscope.runtime.testing.script_parser import load_script, parse_script, script_from_data

WHOLE = """
models: [small, large]
keep_requests: 5
purposes:
  main:
    - tool_calls:
        - {name: read_file, arguments: {path: a.md}, fragments: 3}
        - {name: glob, arguments: '{"broken', id: ""}
      delay: 0.2
    - answer: Done.
      chunks: 5
      chunk_delay: 0.01
      usage: {input: 10, output: 2, cached: 4}
      finish_reason: length
  memory_selection:
    order: arrival
    steps:
      - {status: 429, retry_after: 0.5, body: Slow down}
      - select: {contains: [deploy], also_first: 1}
      - select: all
      - select: none
      - answer: {selected: [n01]}
scenarios:
  - name: slow
    when: {text: "[slow]"}
    purposes:
      main: [{hang: true}]
      memory_extraction: [{answer: x, endless: true, max_chunks: 3}]
      memory_phrasings:
        - {error_chunk: overloaded}
        - {error_chunk: {message: overloaded, code: full, after: 2}, comment_first: true}
        - {malformed: "{", cut_after: 1}
"""


def test_every_key_is_read() -> None:
    """A script that uses every key becomes these values."""
    calls = (
        ScriptedToolCall(name="read_file", arguments='{"path": "a.md"}', fragments=3),
        ScriptedToolCall(name="glob", arguments='{"broken', id=""),
    )
    main = (
        Step(tool_calls=calls, delay=0.2),
        Step(
            answer="Done.",
            chunks=5,
            chunk_delay=0.01,
            usage=ScriptedUsage(input=10, output=2, cached=4),
            finish_reason="length",
        ),
    )
    selection = (
        Step(status=429, retry_after=0.5, body="Slow down"),
        Step(select=Select(contains=("deploy",), also_first=1)),
        Step(select=Select(everything=True)),
        Step(select=Select()),
        Step(answer='{"selected": ["n01"]}'),
    )
    slow = Scenario(
        name="slow",
        text="[slow]",
        purposes={
            "main": Steps((Step(hang=True),)),
            "memory_extraction": Steps((Step(answer="x", endless=True, max_chunks=3),)),
            "memory_phrasings": Steps(
                (
                    Step(error_chunk=ErrorChunk(message="overloaded")),
                    Step(error_chunk=ErrorChunk(message="overloaded", code="full", after=2), comment_first=True),
                    Step(malformed=Malformed(line="{"), cut_after=1),
                )
            ),
        },
    )
    assert parse_script(WHOLE) == Script(
        purposes={"main": Steps(main), "memory_selection": Steps(selection, Order.ARRIVAL)},
        scenarios=(slow,),
        models=("small", "large"),
        keep_requests=5,
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "script: a mapping with purposes, scenarios, models, keep_requests is needed, not None"),
        ("{}", "script: has no answers; it needs `purposes` or `scenarios`"),
        ("answers: []", "script: key 'answers' is unknown; allowed: purposes, scenarios, models, keep_requests"),
        ("1: []", "script: key 1 is unknown; allowed: purposes, scenarios, models, keep_requests"),
        ("purposes: {other: []}", f"script: purposes: purpose 'other' is unknown; allowed: {', '.join(PURPOSES)}"),
        ("purposes: {main: []}", "script: purposes.main: is empty; at least one step is needed"),
        ("purposes: {main: {steps: []}}", "script: purposes.main.steps: is empty; at least one step is needed"),
        ("purposes: {main: {order: arrival}}", "script: purposes.main: steps is missing"),
        (
            "purposes: {main: {order: random, steps: [{}]}}",
            "script: purposes.main.order: 'random' is not allowed: conversation, arrival",
        ),
        (
            "purposes: {main: [{answer: 5}]}",
            "script: purposes.main[0].answer: text is needed, not 5; put it in quotes",
        ),
        (
            "purposes: {main: [{answer: hi, delay: -1}]}",
            "script: purposes.main[0].delay: seconds from 0 to 3600 are needed, not -1",
        ),
        (
            "purposes: {main: [{answer: hi, delay: .nan}]}",
            "script: purposes.main[0].delay: seconds from 0 to 3600 are needed, not nan",
        ),
        (
            "purposes: {main: [{answer: hi, chunks: 3}]}",
            "script: purposes.main[0].chunks: 3 is more than the 2 characters of answer; a chunk has at least one",
        ),
        (
            "purposes: {main: [{status: 200}]}",
            "script: purposes.main[0].status: a whole number from 400 to 599 is needed, not 200",
        ),
        (
            "purposes: {main: [{status: 600}]}",
            "script: purposes.main[0].status: a whole number from 400 to 599 is needed, not 600",
        ),
        (
            "purposes: {main: [{status: 429, answer: hi}]}",
            (
                "script: purposes.main[0]: answer cannot stand beside status; allowed there: "
                "body, delay, retry_after, status"
            ),
        ),
        ("purposes: {main: [{body: hi}]}", "script: purposes.main[0]: body needs a status"),
        (
            "purposes: {main: [{hang: true, answer: hi}]}",
            "script: purposes.main[0]: answer cannot stand beside hang: it never answers",
        ),
        (
            "purposes: {main: [{answer: hi, cut_after: 1, endless: true}]}",
            "script: purposes.main[0]: cut_after and endless both end the answer; keep one of them",
        ),
        ("purposes: {main: [{answer: hi, max_chunks: 1}]}", "script: purposes.main[0]: max_chunks needs endless: true"),
        (
            "purposes: {main: [{endless: true}]}",
            "script: purposes.main[0]: endless repeats its answer, one chunk at a time: it needs an answer alone",
        ),
        (
            "purposes: {memory_selection: [{select: some}]}",
            "script: purposes.memory_selection[0].select: 'some' is not allowed: all, none, or contains and also_first",
        ),
        (
            "purposes: {memory_selection: [{select: all, answer: hi}]}",
            "script: purposes.memory_selection[0]: select makes the answer; leave answer out",
        ),
        (
            "purposes: {main: [{tool_calls: [{arguments: {}}]}]}",
            "script: purposes.main[0].tool_calls[0]: name is missing",
        ),
        (
            "purposes: {main: [{tool_calls: [{name: a, arguments: {day: 2026-05-01}}]}]}",
            (
                "script: purposes.main[0].tool_calls[0].arguments: cannot be written as JSON: "
                "Object of type date is not JSON serializable"
            ),
        ),
        (
            'purposes: {main: [{malformed: "a\\nb"}]}',
            "script: purposes.main[0].malformed.line: is one line: no line breaks",
        ),
        (
            "purposes: {main: [{status: 429, retry_after: ä}]}",
            "script: purposes.main[0].retry_after: is a header: printable ASCII only",
        ),
        (
            "scenarios: [{when: {text: ' '}, purposes: {}}]",
            "script: scenarios[0].when.text: text is needed, and this is empty",
        ),
        (
            "scenarios: [{name: a, when: {text: x}, purposes: {}}, {name: a, when: {text: y}, purposes: {}}]",
            "script: scenarios[1].name: 'a' is taken; every scenario has a name of its own",
        ),
        (
            'purposes: {main: [{answer: "\\0"}]}',
            "script: purposes.main[0].answer: NUL and half of a surrogate pair are no text",
        ),
    ],
)
def test_a_mistake_is_named_with_its_place(text: str, message: str) -> None:
    """A wrong script raises one error that says where, what, and what is allowed."""
    with pytest.raises(ScriptError) as caught:
        parse_script(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "text",
    [
        "purposes: [",
        "{",
        "a: 1\na: 2",
        "a: 2026-13-45",
        "[" * 2_000,
        "purposes: !!python/object:os.system {}",
        "x: &a [*a]",
    ],
)
def test_what_cannot_be_read_is_a_script_error(text: str) -> None:
    """Text that is no YAML, repeats a key, or nests without end is refused as a script, never by another error."""
    with pytest.raises(ScriptError):
        parse_script(text)


def test_a_file_is_named_in_its_errors(tmp_path: Path) -> None:
    """The place of a mistake begins with the name of the file."""
    file = tmp_path / "demo.yaml"
    file.write_text("purposes: {main: [{answer: 5}]}")
    with pytest.raises(ScriptError, match=r"^demo\.yaml: purposes\.main\[0\]\.answer: text is needed"):
        load_script(file)


def test_a_file_that_cannot_be_read_is_a_script_error(tmp_path: Path) -> None:
    """A missing file, a folder and a file that is not UTF-8 are script errors."""
    latin = tmp_path / "latin.yaml"
    latin.write_bytes(b"purposes: {main: [{answer: \xe4}]}")
    problems: list[str] = []
    for path in (tmp_path / "none.yaml", tmp_path, latin):
        with pytest.raises(ScriptError) as caught:
            load_script(path)
        problems.append(str(caught.value).removeprefix(f"{path}: "))
    assert problems == [
        "cannot be read: No such file or directory",
        "cannot be read: Is a directory",
        "is not UTF-8; save it as UTF-8",
    ]


def test_a_byte_order_mark_is_ignored(tmp_path: Path) -> None:
    """A file that begins with a byte order mark is read as if it had none."""
    file = tmp_path / "script.json"
    file.write_bytes(b'\xef\xbb\xbf{"purposes": {"main": [{"answer": "hi"}]}}')
    assert load_script(file) == Script.of(Step(answer="hi"))


texts = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=12)
names = texts.filter(lambda text: bool(text.strip()))
lines = texts.map(lambda text: text.replace("\r", "").replace("\n", ""))
seconds = st.floats(0, 3_600, allow_nan=False).map(abs)
counts = st.integers(0, 1_000)
calls = st.builds(
    ScriptedToolCall,
    name=texts,
    arguments=texts,
    id=st.none() | texts,
    fragments=st.integers(1, 9),
)
usages = st.builds(ScriptedUsage, input=counts, output=counts, cached=st.none() | counts)
errors = st.builds(ErrorChunk, message=texts, type=texts, code=st.none() | texts, after=counts)
answers = st.builds(
    Step,
    answer=texts,
    chunk_delay=seconds,
    delay=seconds,
    tool_calls=st.lists(calls, max_size=2).map(tuple),
    usage=usages,
    finish_reason=st.none() | texts,
    malformed=st.none() | st.builds(Malformed, line=lines, after=counts),
    comment_first=st.booleans(),
)
endings = st.builds(Step, answer=texts, error_chunk=errors) | st.builds(Step, answer=texts, cut_after=counts)
endless = st.builds(Step, answer=names, endless=st.just(True), max_chunks=st.none() | st.integers(1, 9))
refusals = st.builds(
    Step,
    status=st.integers(400, 599),
    delay=seconds,
    retry_after=st.none() | seconds | st.just("Wed, 21 Oct 2026 07:28:00 GMT"),
    body=st.none() | texts | st.dictionaries(texts, counts | texts, max_size=2),
)
selects = st.just(Select(everything=True)) | st.builds(
    Select, contains=st.lists(texts, max_size=2).map(tuple), also_first=counts
)
steps = answers | endings | endless | refusals | st.just(Step(hang=True)) | st.builds(Step, select=selects)
purposes = st.dictionaries(
    st.sampled_from(PURPOSES),
    st.builds(Steps, st.lists(steps, min_size=1, max_size=3).map(tuple), st.sampled_from(Order)),
    min_size=1,
    max_size=2,
)


@given(
    st.builds(
        Script,
        purposes=purposes,
        scenarios=st.lists(
            st.builds(Scenario, name=names, text=names, purposes=purposes),
            max_size=2,
            unique_by=lambda scenario: scenario.name,
        ).map(tuple),
        models=st.lists(texts, max_size=2).map(tuple),
        keep_requests=st.integers(1, 9),
    )
)
def test_a_script_survives_its_own_text(script: Script) -> None:
    """Any script, written as JSON, is read as an equal script."""
    assert parse_script(script.as_json()) == script


data = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*PURPOSES, "steps", "text"]), inner),
    max_leaves=8,
)
step_data = st.fixed_dictionaries({}, optional=dict.fromkeys(Step.__dataclass_fields__, data))


@settings(max_examples=60)
@given(st.fixed_dictionaries({"purposes": data | st.fixed_dictionaries({"main": st.lists(step_data, max_size=2)})}))
def test_any_data_is_a_script_or_a_script_error(value: dict[str, object]) -> None:
    """Whatever stands in the data, the answer is a script that survives its own text, or a script error."""
    try:
        script = script_from_data(value)
    except ScriptError:
        return
    assert parse_script(script.as_json()) == script


@given(st.text(max_size=40))
def test_any_text_is_a_script_or_a_script_error(text: str) -> None:
    """Whatever text comes, nothing but a script error is raised."""
    try:
        parse_script(text)
    except ScriptError:
        return
