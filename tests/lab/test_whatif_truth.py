"""What-if tells the truth: a turn is played, replayed under another setting, and then really played under that one.

Both plays run the whole engine (session, recaller, handle, send) on virtual time with the same script; only the setting
differs. What is compared goes through the journal's own lines.
"""

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallscope.runtime.agent.host import Agent, RecallSettings
from recallscope.runtime.agent.send import SendSettings
from recallscope.runtime.agent.tools.registry import Toolbox, function_tool
from recallscope.runtime.agent.turn_state import TurnRequest
from recallscope.runtime.errors import ModelConnectionError, ModelStatusError, ModelStreamError
from recallscope.runtime.events import OpId
from recallscope.runtime.lab.course import LeftOut
from recallscope.runtime.lab.scenarios import preparation
from recallscope.runtime.lab.whatif import Record, Setting
from recallscope.runtime.lab.whatif_answer import Answer, Axis, Question
from recallscope.runtime.lab.worlds import Doubt, Speed
from recallscope.runtime.memory.search import Found
from recallscope.runtime.messages import NoteVersion
from recallscope.runtime.model.seam import Chunk
from recallscope.runtime.observe import Observers
from recallscope.runtime.recall.policy import PolicySplit
from recallscope.runtime.terms import Cause, Delivered, PolicyName
from recallscope.runtime.testing.fake_clock import run
from recallscope.runtime.testing.memory import FakeMemory, make_note
from recallscope.runtime.testing.models import FakeModel, Turnout, calling, choosing, saying
from recallscope.runtime.testing.recorder import EventRecorder
from recallscope.telemetry.anchor import Anchor
from recallscope.telemetry.encode import Encoder
from recallscope.telemetry.read.recorded import Record as Source
from recallscope.telemetry.read.recorded import RecordedTurn
from recallscope.telemetry.read.turn_lines import turn_of

NOTES = [make_note(name) for name in "abcd"]
URL = "http://127.0.0.1:1"
TOLERANCE = 1e-4


def seconds(highest: int, odd: int) -> st.SearchStrategy[float]:
    """Draw whole milliseconds and `odd` microseconds more, so that two things never come at the same moment."""
    return st.integers(0, highest).map(lambda milliseconds: milliseconds / 1e3 + odd / 1e6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """What happens in a turn, whatever the setting is."""

    search: float
    fast: int
    selector: float
    chosen: tuple[int, ...]
    selector_fails: bool
    check: float
    stale: frozenset[int]
    reminders: float
    turnouts: tuple[Turnout, ...]
    cut_at: float | None
    supersedes: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Under:
    """The setting of a play."""

    policy: PolicyName
    ceiling: float


def refusing(delay: float, kind: int) -> Turnout:
    """Fail in one of four ways, two of them after the acceptance."""
    match kind:
        case 0:
            return Turnout(delay=delay, error=ModelStatusError(url=URL, status_code=429, body="", retry_after=0.03))
        case 1:
            return Turnout(delay=delay, error=ModelConnectionError(url=URL, problem="reset"))
        case 2:
            return Turnout(delay=delay, chunks=[Chunk()], error=ModelStreamError(url=URL, problem="cut"))
        case _:
            return Turnout(delay=delay, chunks=[Chunk("bl")], error=ModelStreamError(url=URL, problem="cut"))


def working(delay: float, tool: float) -> Turnout:
    """Call the tool once."""
    return calling(("c", "work", json.dumps({"seconds": tool})), delay=delay)


def answering(delay: float, between: float) -> Turnout:
    """Answer in two pieces."""
    return saying("bl", "ue", delay=delay, between=between)


TURNOUTS = st.one_of(
    st.builds(working, seconds(60, 53), seconds(250, 883)),
    st.builds(working, seconds(60, 53), seconds(250, 883)),
    st.builds(refusing, seconds(60, 53), st.integers(0, 3)),
    st.builds(answering, seconds(60, 53), seconds(150, 31)),
)

SCRIPTS = st.builds(
    Script,
    search=seconds(90, 113),
    fast=st.integers(0, 2),
    selector=st.one_of(seconds(60, 239), seconds(400, 239), seconds(1500, 239)),
    chosen=st.sampled_from([(), (1,), (3, 4), (4, 1, 3)]),
    selector_fails=st.sampled_from([False, False, False, True]),
    check=st.sampled_from([0.0, 0.0, 0.001019, 0.003019, 0.006019]),
    stale=st.sampled_from([frozenset(), frozenset(), frozenset({0}), frozenset({0, 1})]),
    reminders=seconds(120, 467),
    turnouts=st.lists(TURNOUTS, max_size=4).map(tuple),
    cut_at=st.one_of(st.none(), st.none(), seconds(400, 701)),
    supersedes=st.booleans(),
)
UNDER = st.builds(
    Under,
    policy=st.sampled_from([PolicyName.TIERED, PolicyName.TIERED, PolicyName.PREFETCH, PolicyName.DEADLINE]),
    ceiling=st.sampled_from([0.0, 0.025, 0.1, 0.2, 0.5]),
)


class LimitedMemory(FakeMemory):
    """A memory that keeps to its limit, as the real one does: what it has by then is half of what matches."""

    async def search(
        self,
        query: str,
        *,
        exclude: frozenset[NoteVersion],
        recent_tools: Sequence[str],
        within: float | None = None,
        op: OpId | None = None,
    ) -> Found:
        """Search for at most `within` seconds."""
        if within is None or self.delay <= within:
            return await super().search(query, exclude=exclude, recent_tools=recent_tools, within=within, op=op)
        await anyio.sleep(within)
        cut = replace(self, delay=0.0, fast=list(self.fast)[:1], partial=True)
        return await cut.search(query, exclude=exclude, recent_tools=recent_tools, op=op)


def play(script: Script, under: Under, *, factor: float = 1.0) -> RecordedTurn:
    """Play a turn and return what its journal lines tell."""
    recorder = EventRecorder()
    numbers = itertools.count(1)
    selection = choosing(*script.chosen, delay=script.selector * factor)
    if script.selector_fails:
        selection = Turnout(delay=selection.delay, error=ModelStatusError(url=URL, status_code=500, body=""))

    async def work(arguments: Mapping[str, Any]) -> str:
        await anyio.sleep(arguments["seconds"])
        return "done"

    async def whole() -> None:
        observers = Observers([recorder], clock=anyio.current_time, ids=lambda: OpId(f"op{next(numbers)}"))
        parameters = {"type": "object", "properties": {"seconds": {"type": "number"}}}
        toolbox = Toolbox([function_tool("work", "Work.", parameters, work)])
        session = Agent(
            name="tester",
            model=FakeModel(turnouts=[*script.turnouts, saying("end", delay=0.02)]),
            selector_model=FakeModel(turnouts=[selection]),
            memory=LimitedMemory(
                fast=NOTES[: script.fast],
                candidates=NOTES,
                delay=script.search,
                check_delay=script.check,
                changed={NOTES[number].note_version for number in script.stale},
            ),
            recall=RecallSettings(split=PolicySplit.parse(under.policy), ceiling=under.ceiling),
            observers=observers,
            toolbox=toolbox,
            settings=SendSettings(tools=toolbox.specs, jitter=lambda: 1.0),
            reminders=(preparation(script.reminders),),
            ids=lambda: "s",
            wall=lambda: 0.0,
        ).open_session()

        async def cut_off(at: float) -> None:
            await anyio.sleep(at)
            if script.supersedes:
                await session.prompt(TurnRequest(text="second"))
            else:
                session.cancel(Cause.USER_CANCEL)

        async with anyio.create_task_group() as tasks:
            if script.cut_at is not None:
                tasks.start_soon(cut_off, script.cut_at)
            await session.prompt(TurnRequest(text="first"))
            if not script.supersedes:
                tasks.cancel_scope.cancel()

    run(whole)
    encode = Encoder(Anchor.stated(at=0.0, wall=1_800_000_000.0))
    lines = [json.loads(encode(event)) for event in recorder.events]
    turn = turn_of([line for line in lines if line["turn"] == "s.1"])
    assert turn is not None
    return turn


def withdrawn(turn: RecordedTurn) -> set[str]:
    """Return the notes whose files were found gone or changed."""
    return set(turn.recall.withdrawn_ids) if turn.recall is not None else set()


@settings(max_examples=60, deadline=None)
@given(script=SCRIPTS, under=UNDER)
def test_a_replay_as_recorded_gives_what_was_recorded(script: Script, under: Under) -> None:
    """Whatever happened in a turn: its moments, fed through the same rules, give the same delivery, outcome, reason."""
    record = Record.of([play(script, under)])

    assert record.differing == ()


@settings(max_examples=80, deadline=None)
@given(script=SCRIPTS, then=UNDER, now=UNDER, factor=st.sampled_from([1.0, 1.0, 0.5, 2.0]))
def test_what_is_predicted_is_what_comes(script: Script, then: Under, now: Under, factor: float) -> None:
    """A turn replayed under another setting and speed receives what it then really receives, and waits as long.

    Where the record does not tell, what really comes is among what is said to be possible.
    """
    recorded, played = play(script, then), play(script, now, factor=factor)
    if not withdrawn(played) <= withdrawn(recorded):
        return  # nobody looked at these files in the recorded turn: what nobody saw is taken as it was
    record, came = Record.of([recorded]), Record.of([played])
    # What a look at files takes is usually known from other turns.
    record = replace(record, habits=replace(record.habits, check=script.check))
    setting = Setting(policy=now.policy, ceiling=now.ceiling, speed=Speed(factor=factor))
    for predicted in record.under(setting).predictions:
        for really in came.recorded.predictions:
            assert really.delivered <= predicted.delivered
            assert predicted.waited[0] - TOLERANCE <= really.waited[0] <= predicted.waited[1] + TOLERANCE


# One thing at a time

QUIET = Script(
    search=0.004,
    fast=0,
    selector=0.06,
    chosen=(1,),
    selector_fails=False,
    check=0.0,
    stale=frozenset(),
    reminders=0.001,
    turnouts=(saying("so", delay=0.3),),
    cut_at=None,
    supersedes=False,
)
TIERED_25, TIERED_100 = Under(policy=PolicyName.TIERED, ceiling=0.025), Under(policy=PolicyName.TIERED, ceiling=0.1)
DEADLINE = Under(policy=PolicyName.DEADLINE, ceiling=0.1)


def places(script: Script, then: Under, setting: Setting) -> tuple[set[Delivered], tuple[float, float]]:
    """Return where memory would have gone, and how long the turn would have been held, to the millisecond."""
    (predicted,) = Record.of([play(script, then)]).under(setting).predictions
    return set(predicted.delivered), (round(predicted.waited[0], 3), round(predicted.waited[1], 3))


def tiered(ceiling: float) -> Setting:
    """Return the policy `tiered` with this ceiling (seconds)."""
    return Setting(policy=PolicyName.TIERED, ceiling=ceiling)


def test_a_longer_ceiling_takes_along_what_came_just_after() -> None:
    """Recorded at 25 ms without memory: with 100 ms the refined notes go at 64 ms, and the turn is held until then."""
    assert places(QUIET, TIERED_25, tiered(0.1)) == ({Delivered.INITIAL}, (0.063, 0.063))
    assert places(QUIET, TIERED_100, tiered(0.025)) == ({Delivered.NONE}, (0.025, 0.025))


def test_what_had_not_settled_by_the_end_of_the_turn_is_unknown_only_where_it_counts() -> None:
    """A turn of 300 ms whose selector was given up: nothing at 200 ms, which is known; at 500 ms nobody can tell."""
    slow = replace(QUIET, selector=0.9)

    assert places(slow, TIERED_25, tiered(0.2)) == ({Delivered.NONE}, (0.2, 0.2))
    unknown, waited = places(slow, TIERED_25, tiered(0.5))
    assert unknown == {Delivered.INITIAL, Delivered.NONE}
    assert waited == (0.325, 0.5)


def test_where_words_match_the_first_send_is_known_and_only_the_rest_is_not() -> None:
    """The word matches go with the first send whatever the selector does: what is not known is whether more goes."""
    script = replace(QUIET, fast=1, selector=0.9, chosen=(3,), turnouts=(working(0.02, 0.4),))
    half = Setting(policy=PolicyName.TIERED, ceiling=0.1, speed=Speed(factor=0.5))
    given_up = replace(script, selector=5.0)

    assert places(script, TIERED_100, tiered(0.025))[0] == {Delivered.INITIAL}
    assert places(script, TIERED_100, half)[0] == {Delivered.INITIAL, Delivered.BOTH}
    assert places(given_up, TIERED_100, Setting(policy=PolicyName.PREFETCH))[0] == {Delivered.NONE}


def test_a_quicker_selector_is_asked_at_the_same_moment() -> None:
    """Twice as fast, 200 ms become 100: too late for 100 ms, since its question could only be built after 4 ms."""
    script = replace(QUIET, selector=0.2)
    speeds = {factor: Setting(speed=Speed(factor=factor)) for factor in (1.0, 0.5, 0.25)}

    assert [places(script, TIERED_100, setting)[0] for setting in speeds.values()] == [
        {Delivered.NONE},
        {Delivered.NONE},
        {Delivered.INITIAL},
    ]
    assert places(script, TIERED_100, Setting(speed=Speed(delay=0.02)))[1] == (0.023, 0.023)


def test_a_shorter_limit_of_the_search_leaves_unknown_what_it_had_found_by_then() -> None:
    """A search of 60 ms that is cut at 50: what it would have had by then was not recorded."""
    script = replace(QUIET, search=0.06, fast=1, selector=0.9)

    assert places(script, TIERED_100, Setting(search_limit=0.07))[0] == {Delivered.INITIAL}
    assert places(script, TIERED_100, Setting(search_limit=0.05))[0] == {Delivered.INITIAL, Delivered.NONE}


def test_a_record_of_any_policy_can_be_replayed_as_any_other() -> None:
    """The word matches stand in the record of `prefetch`, too; what `deadline` cut off nobody knows."""
    script = replace(QUIET, fast=1, selector=1.4, chosen=(3,), turnouts=(working(0.02, 2.0),))
    prefetch, deadline = (Under(policy=policy, ceiling=0.1) for policy in (PolicyName.PREFETCH, PolicyName.DEADLINE))

    assert places(script, prefetch, tiered(0.1)) == ({Delivered.BOTH}, (0.003, 0.003))
    assert places(script, prefetch, Setting(policy=PolicyName.DEADLINE)) == ({Delivered.NONE}, (1.003, 1.003))
    assert places(script, deadline, tiered(0.1))[0] == {Delivered.BOTH, Delivered.INITIAL}
    assert places(script, prefetch, Setting(policy=PolicyName.OFF)) == ({Delivered.NONE}, (0.0, 0.0))


def test_the_person_ends_a_turn_when_they_do_whatever_it_waits_for() -> None:
    """Superseded after 80 ms: a ceiling of 200 ms holds no longer than that, and nothing of the turn is sent."""
    script = replace(
        QUIET, selector=0.9, cut_at=0.08, supersedes=True, turnouts=(saying("so", delay=0.02, between=1.0),)
    )

    assert places(script, TIERED_25, tiered(0.2)) == ({Delivered.NONE}, (0.079, 0.079))


def test_turns_that_say_nothing_are_left_out_and_counted() -> None:
    """A turn without a recall, one that was not sent, one whose end is missing, one that was read from spans."""
    whole = play(QUIET, TIERED_25)
    turns = [
        play(QUIET, Under(policy=PolicyName.OFF, ceiling=0.1)),
        play(replace(QUIET, turnouts=(refusing(0.01, 1),) * 4), TIERED_25),
        replace(whole, whole=False),
        replace(whole, record=Source.SPANS),
        whole,
    ]
    record = Record.of(turns)

    assert record.left_out == {
        LeftOut.NO_RECALL: 1,
        LeftOut.NOT_SENT: 1,
        LeftOut.NOT_WHOLE: 1,
        LeftOut.ONLY_SPANS: 1,
    }
    assert record.recorded.turns == 1


def test_a_turn_that_the_rules_do_not_reproduce_is_told_and_left_out() -> None:
    """Where another delivery was recorded than the rules give, the turn's moments are no ground for a prediction."""
    turn = play(QUIET, TIERED_100)
    assert turn.recall is not None
    assert turn.recall.closed is not None
    closed = replace(turn.recall.closed, delivered=Delivered.BOTH)
    record = Record.of([replace(turn, recall=replace(turn.recall, closed=closed))])

    assert (record.courses, record.left_out) == ((), {LeftOut.NOT_REPRODUCED: 1})
    assert [(each.turn, each.recorded, each.replayed) for each in record.differing] == [
        ("s.1", "both (refined), delivered, none", "initial (refined), delivered, none")
    ]


def test_a_second_look_at_files_that_took_less_time_than_the_first_is_reproduced() -> None:
    """The first look lasted until the selector's notes had come, whatever both together took."""
    turn = play(replace(QUIET, reminders=0.02, fast=1, selector=0.0335, chosen=(1, 3), check=0.02), TIERED_100)
    assert turn.recall is not None
    (wait,) = turn.recall.waits
    shorter = replace(turn, recall=replace(turn.recall, waits=(replace(wait, waited=wait.waited - 0.009),)))

    assert [Record.of([each]).differing for each in (turn, shorter)] == [(), ()]


def answered(record: Record, *policies: PolicyName | None) -> Answer:
    """Answer what a ceiling of 100 ms would have given under these policies."""
    return Answer.of(Question(axis=Axis.CEILING, values=(0.1,), policies=policies), record)


def test_what_was_recorded_under_other_policies_and_is_replayed_as_this_one_is_said() -> None:
    """The turns are counted by the policy that they were recorded under, and how they are replayed is said."""
    prefetch = Under(policy=PolicyName.PREFETCH, ceiling=0.1)
    mixed, other = (
        Record.of([play(QUIET, under) for under in unders])
        for unders in ((TIERED_25, prefetch, TIERED_25), (prefetch,))
    )
    told = {
        "mixed": answered(mixed, PolicyName.TIERED).told(),
        "other": answered(other, PolicyName.TIERED).told(),
        "several": answered(mixed, PolicyName.TIERED, PolicyName.PREFETCH).told(),
        "kept": answered(mixed, None).told(),
        "same": answered(other, PolicyName.PREFETCH).told(),
    }

    assert told == {
        "mixed": [
            "3 recorded turns: 2 under tiered, 1 under prefetch.",
            "1 of them was recorded under another policy and is replayed as tiered.",
        ],
        "other": ["1 recorded turn under prefetch.", "It was recorded under another policy and is replayed as tiered."],
        "several": [
            "3 recorded turns: 2 under tiered, 1 under prefetch.",
            "All are replayed as tiered and prefetch, whatever they were recorded under.",
        ],
        "kept": [
            "3 recorded turns: 2 under tiered, 1 under prefetch.",
            "Each keeps the policy that it was recorded under.",
        ],
        "same": ["1 recorded turn under prefetch."],
    }
    assert answered(mixed, PolicyName.TIERED).as_data()["recorded_under"] == {"tiered": 2, "prefetch": 1}


SLOW = replace(QUIET, selector=0.9)
TOOLS = (working(0.02, 0.2), working(0.02, 0.5))
HALF = Setting(speed=Speed(factor=0.5))
FINDING = replace(QUIET, search=0.06, fast=1, selector=0.9)


@pytest.mark.parametrize(
    ("script", "then", "setting", "doubt"),
    [
        (SLOW, TIERED_25, tiered(0.5), Doubt.ENDED_BEFORE_SETTLED),
        (replace(SLOW, cut_at=0.4, turnouts=TOOLS), TIERED_25, HALF, Doubt.CANCELLED_BEFORE_SETTLED),
        (FINDING, TIERED_100, Setting(search_limit=0.05), Doubt.SEARCH_CUT_SHORT),
        (replace(QUIET, search=0.09), TIERED_100, tiered(0.5), Doubt.SEARCH_WOULD_GO_ON),
        (QUIET, TIERED_25, tiered(0.5), None),
        (replace(SLOW, turnouts=(working(0.02, 1.5),), selector=1.4), DEADLINE, tiered(0.1), Doubt.SELECTOR_CUT_OFF),
    ],
)
def test_of_a_turn_without_a_known_end_it_is_said_why(
    script: Script, then: Under, setting: Setting, doubt: Doubt | None
) -> None:
    """The reason is the first thing in time that its record does not tell; the counts by reason add up to `unknown`."""
    found = Record.of([play(script, then)]).under(setting)

    assert found.doubts == ({} if doubt is None else {doubt: 1})
    assert sum(found.doubts.values()) == found.unknown


@settings(max_examples=25, deadline=None)
@given(script=SCRIPTS, then=UNDER)
def test_what_settled_is_known_under_every_ceiling_and_a_longer_one_never_gives_less(
    script: Script, then: Under
) -> None:
    """A turn whose recall settled by itself has one end under every ceiling, and the first send keeps what it had.

    That holds where the search was whole and within every limit, the files were seen in time, and nothing was cut by
    the budget: what these would have given with more time is not recorded.
    """
    script = replace(script, search=min(script.search, 0.045), check=0.0)
    record = Record.of([play(script, then)])
    found = [record.under(tiered(ceiling)) for ceiling in (0.0, 0.025, 0.1, 0.2, 0.5, 2.0)]
    for number, course in enumerate(record.courses):
        ends = [one.predictions[number].delivered for one in found]
        first = [bool(end & {Delivered.INITIAL, Delivered.BOTH}) for end in ends]
        if course.choice is None or course.choice.result is None or course.choice.cut or course.choice.result.error:
            continue
        if course.ended_from_outside:
            continue  # how much longer a shorter hold would have left it is not recorded
        assert [len(end) for end in ends] == [1] * len(ends)
        assert first == sorted(first)


def test_the_shares_of_a_hundred_turns_are_foretold_exactly() -> None:
    """Recorded at 100 ms, a third without a word match: at 25 and 200 ms each turn receives what it really receives."""
    scripts = [
        replace(
            QUIET,
            fast=0 if number % 3 == 0 else 1,
            selector=0.01 + 0.0037 * number,
            chosen=(3,),
            turnouts=(working(0.02, 0.25),) if number % 5 == 0 else (saying("so", delay=0.3),),
        )
        for number in range(100)
    ]
    record = Record.of([play(script, TIERED_100) for script in scripts])
    for ceiling in (0.025, 0.2):
        came = Record.of([play(script, Under(policy=PolicyName.TIERED, ceiling=ceiling)) for script in scripts])
        foretold = record.under(tiered(ceiling))
        assert foretold.unknown == 0
        assert [each.delivered for each in foretold.predictions] == [
            each.delivered for each in came.recorded.predictions
        ]
    first = (Delivered.INITIAL, Delivered.BOTH)
    shares = [record.under(tiered(ceiling)).at(*first).share for ceiling in (0.025, 0.2)]
    assert shares[1] - shares[0] > 0.1
