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
from hypothesis import given, settings
from hypothesis import strategies as st

from recallscope.runtime.agent.host import Agent, RecallSettings
from recallscope.runtime.agent.send import SendSettings
from recallscope.runtime.agent.tools.registry import Toolbox, function_tool
from recallscope.runtime.agent.turn_state import TurnRequest
from recallscope.runtime.errors import ModelConnectionError, ModelStatusError, ModelStreamError
from recallscope.runtime.events import OpId
from recallscope.runtime.lab.scenarios import preparation
from recallscope.runtime.lab.whatif import Record, Setting
from recallscope.runtime.lab.worlds import Speed
from recallscope.runtime.memory.search import Found
from recallscope.runtime.messages import NoteVersion
from recallscope.runtime.model.seam import Chunk
from recallscope.runtime.observe import Observers
from recallscope.runtime.recall.policy import PolicySplit
from recallscope.runtime.terms import Cause, PolicyName
from recallscope.runtime.testing.fake_clock import run
from recallscope.runtime.testing.memory import FakeMemory, make_note
from recallscope.runtime.testing.models import FakeModel, Turnout, calling, choosing, saying
from recallscope.runtime.testing.recorder import EventRecorder
from recallscope.telemetry.anchor import Anchor
from recallscope.telemetry.encode import Encoder
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
        toolbox = Toolbox([function_tool("work", "Work.", {"type": "object"}, work)])
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
