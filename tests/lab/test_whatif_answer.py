"""The answer of a what-if: which settings a question has, what is printed, what is written."""

import io
import json
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from recallscope.runtime.lab.replay import Habits
from recallscope.runtime.lab.whatif import Prediction, Record, Setting, WhatIf
from recallscope.runtime.lab.whatif_answer import Answer, Axis, Question, Row, from_to, milliseconds
from recallscope.runtime.lab.whatif_page import html_page, svg_plot
from recallscope.runtime.lab.whatif_table import WhatIfTable
from recallscope.runtime.lab.worlds import Doubt, Speed
from recallscope.runtime.terms import Delivered, PolicyName
from recallscope.telemetry.anchor import Anchor
from recallscope.telemetry.encode import Encoder
from recallscope.telemetry.read.turn_groups import TurnGrouper
from recallscope.telemetry.read.turn_lines import turn_of
from recallscope.telemetry.testing.golden import AT, WALL, golden_turn, lexical_turn, unlucky_turn

INITIAL, TOOL, NONE = Delivered.INITIAL, Delivered.TOOL_RESULT, Delivered.NONE
NOTHING = Record(courses=(), holds=(), habits=Habits(), left_out={}, differing=())


def whatif(*places: Sequence[Delivered], wait: float = 0.02) -> WhatIf:
    """Make what would come of turns of which each may receive memory at one of these places."""
    return WhatIf(
        setting=None,
        predictions=tuple(
            Prediction(turn=f"s.{number}", delivered=frozenset(each), waited=(wait, 2 * wait))
            for number, each in enumerate(places)
        ),
    )


@pytest.fixture
def answer() -> Answer:
    """Give an answer of two ceilings over four turns."""
    question = Question(axis=Axis.CEILING, values=(0.025, 0.2), policies=(PolicyName.TIERED,))
    rows = (
        Row(policy=PolicyName.TIERED, value=0.025, whatif=whatif([NONE], [TOOL], [INITIAL], [NONE])),
        Row(policy=PolicyName.TIERED, value=0.2, whatif=whatif([INITIAL], [INITIAL, TOOL], [INITIAL], [NONE, INITIAL])),
    )
    return Answer(question=question, record=NOTHING, recorded=whatif([NONE], [TOOL], [INITIAL], [NONE]), rows=rows)


def test_a_question_has_a_setting_for_each_value_and_policy() -> None:
    """A ceiling concerns `tiered` alone; every other policy has one setting."""
    question = Question(
        axis=Axis.CEILING, values=(0.0, 0.1), policies=(PolicyName.TIERED, PolicyName.PREFETCH, PolicyName.DEADLINE)
    )

    assert [(value, setting.policy, setting.ceiling) for value, setting in question.settings()] == [
        (0.0, PolicyName.TIERED, 0.0),
        (0.1, PolicyName.TIERED, 0.1),
        (None, PolicyName.PREFETCH, None),
        (None, PolicyName.DEADLINE, None),
    ]


@pytest.mark.parametrize(
    ("axis", "expected"),
    [
        (Axis.SEARCH_LIMIT, Setting(ceiling=0.1, search_limit=0.5)),
        (Axis.SELECTOR_SPEED, Setting(ceiling=0.1, speed=Speed(factor=0.5))),
        (Axis.SELECTOR_DELAY, Setting(ceiling=0.1, speed=Speed(delay=0.5))),
    ],
)
def test_what_is_no_axis_is_the_same_in_all_settings(axis: Axis, expected: Setting) -> None:
    """One thing has a range, the others one value."""
    question = Question(axis=axis, values=(0.5,), base=Setting(ceiling=0.1))

    assert [setting for _, setting in question.settings()] == [expected]


def test_shares_count_what_is_known_and_bound_what_is_not(answer: Answer) -> None:
    """An unknown turn is in no share, and in the upper end of each interval that it may belong to."""
    first = answer.rows[1].whatif.at(INITIAL, Delivered.BOTH)

    assert (first.known, first.possible, first.total, first.share) == (2, 4, 4, 0.5)
    assert (first.interval.low, first.interval.high) == (pytest.approx(0.15, abs=1e-3), 1.0)
    assert answer.rows[1].whatif.unknown == 2
    assert answer.rows[1].whatif.delivered.known == 3
    assert (answer.rows[1].whatif.wait(0.5).least, answer.rows[1].whatif.wait(0.5).most) == (0.02, 0.04)


def test_the_table_tells_turns_shares_and_intervals_and_draws_bars(answer: Answer) -> None:
    """Each setting has a row and a bar that says by its shape where memory went."""
    out = io.StringIO()
    Console(file=out, width=116, highlight=False).print(WhatIfTable(answer))
    lines = out.getvalue().splitlines()

    headings = [line.split("│")[1].strip() for line in lines if line.count("│") > 5]
    assert [heading for heading in headings if heading] == ["ceiling", "as recorded", "25 ms", "200 ms"]
    (bar,) = [line for line in lines if line.strip().startswith("200 ms █")]
    assert (bar.count("█"), bar.count("?"), bar.count("·")) == (25, 25, 0)
    (other,) = [line for line in lines if line.strip().startswith("25 ms █")]
    assert (other.count("█"), other.count("▒"), other.count("·")) == (12, 13, 25)
    assert any("20 to 40 ms" in line for line in lines)


def test_the_data_hold_every_figure(answer: Answer) -> None:
    """Known, possible, share and interval for each place; quantiles of the holds with both ends."""
    data = json.loads(json.dumps(answer.as_data()))

    assert (data["schema"], data["axis"], data["confidence"]) == (1, "ceiling", 0.95)
    assert [(row["policy"], row["value"], row["turns"], row["unknown"]) for row in data["rows"]] == [
        ("tiered", 0.025, 4, 0),
        ("tiered", 0.2, 4, 2),
    ]
    assert data["rows"][0]["delivered"]["anywhere"] == {
        "known": 2,
        "possible": 2,
        "share": 0.5,
        "interval": [0.150039, 0.849961],
    }
    assert set(data["rows"][0]["delivered"]) == {*Delivered, "first_send", "anywhere"}
    assert data["rows"][0]["wait_seconds"]["p50"] == {"least": 0.02, "most": 0.04, "interval": [None, None]}
    assert set(data["recorded"]) == {"turns", "unknown", "unknown_by", "delivered", "wait_seconds"}


def test_the_table_the_page_and_the_data_say_why_turns_are_unknown(answer: Answer) -> None:
    """Each reason with the number of turns under each setting, the most frequent first."""
    doubts = (None, Doubt.ENDED_BEFORE_SETTLED, None, Doubt.SEARCH_WOULD_GO_ON)
    high = answer.rows[1]
    predictions = tuple(replace(each, doubt=doubt) for each, doubt in zip(high.whatif.predictions, doubts, strict=True))
    told = replace(answer, rows=(answer.rows[0], replace(high, whatif=replace(high.whatif, predictions=predictions))))
    out = io.StringIO()
    Console(file=out, width=116, highlight=False).print(WhatIfTable(told))
    reasons = [
        "the turn ended before the selector had answered: 1 at 200 ms",
        "the search was interrupted, and would have had more time: 1 at 200 ms",
    ]

    assert told.doubts() == reasons
    assert [f"  {reason}" in out.getvalue().splitlines() for reason in reasons] == [True, True]
    assert [reason in html_page(told, source="From here.") for reason in reasons] == [True, True]
    assert [row["unknown_by"] for row in told.as_data()["rows"]] == [
        {},
        {"ended_before_settled": 1, "search_would_go_on": 1},
    ]
    assert "Why turns are unknown" not in html_page(answer, source="From here.")


def test_the_page_needs_nothing_from_outside(answer: Answer) -> None:
    """The page is whole, has the plot and its table, and names no other address."""
    page = html_page(answer, source="From here & there.")
    parser = HTMLParser()
    parser.feed(page)

    assert page.startswith("<!DOCTYPE html>")
    assert "From here &amp; there." in page
    assert "src=" not in page
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert page.count("<svg") >= 1
    assert "as recorded" in page


def test_the_plot_is_a_document_of_its_own(answer: Answer) -> None:
    """It is well-formed XML with a line and a band for each kind of share, and words for both."""
    root = ET.fromstring(svg_plot(answer))  # noqa: S314 - it was made here
    space = "{http://www.w3.org/2000/svg}"

    assert root.tag == f"{space}svg"
    assert len(root.findall(f".//{space}polyline")) == 2
    assert len(root.findall(f".//{space}polygon")) == 2
    texts = {text.text for text in root.iter(f"{space}text")}
    assert {"at the first send", "anywhere", "25 ms", "200 ms", "ceiling"} <= texts


def test_times_are_as_short_as_they_say_something() -> None:
    """Milliseconds with a digit below ten, seconds from one on."""
    assert [milliseconds(seconds) for seconds in (0.0, 0.0004, 0.0251, 0.1, 2.345, None)] == [
        "0 ms",
        "0.4 ms",
        "25 ms",
        "100 ms",
        "2.35 s",
        "-",
    ]
    assert [from_to(0.01, 0.02), from_to(0.01, 0.0101), from_to(0.5, 1.5)] == [
        "10 to 20 ms",
        "10 ms",
        "500 ms to 1.5 s",
    ]


LINES = [
    json.loads(encode(event))
    for encode in [Encoder(Anchor.stated(at=AT, wall=WALL))]
    for event in (*golden_turn(), *unlucky_turn(), *lexical_turn(number=3, at=AT + 20))
]


@settings(max_examples=60, deadline=None)
@given(lost=st.sets(st.integers(0, len(LINES) - 1), max_size=12), moved=st.integers(0, len(LINES) - 1))
def test_a_torn_journal_leaves_turns_out_and_fails_on_none(lost: set[int], moved: int) -> None:
    """Whatever lines are lost, and wherever one stands that was late: every turn is replayed or counted as left out."""
    kept = [{**line, "at": line["at"] - (number == moved)} for number, line in enumerate(LINES) if number not in lost]
    grouper = TurnGrouper()
    turns = [turn for lines in (*grouper.feed(kept), *grouper.rest()) if (turn := turn_of(lines)) is not None]
    record = Record.of(turns)

    assert record.recorded.turns + sum(record.left_out.values()) == len(turns)
    for policy in PolicyName:
        found = record.under(Setting(policy=policy, ceiling=0.2, speed=Speed(factor=0.5)))
        assert found.turns == record.recorded.turns
