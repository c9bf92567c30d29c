"""The traffic of `recallscope load` as data: the kinds of turns, how often each is played, and the server's script.

Most turns of real traffic are alike and none is like another, so `ordinary` ones are spread over selector delays,
answers and tools; the other kinds each show one thing, so that every panel and every alert has something to show.
"""

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum, unique
from types import MappingProxyType

from recallscope.runtime.errors import ConfigError
from recallscope.runtime.lab.scenarios import (
    SCENARIOS,
    SecondPrompt,
    answer_step,
    build_script,
    script_part,
    script_parts,
    tool_step,
)
from recallscope.runtime.terms import Scenario, TurnOutcome
from recallscope.runtime.testing.script import ErrorChunk, Script, ScriptedUsage, Select, Step
from recallscope.runtime.testing.script import Scenario as Part

__all__ = ["BELIEVABLE", "Deck", "Kind", "Mix", "Ordinary", "ScriptedTurn", "Traffic"]

VARIANTS = 120
"""Different ordinary turns; the delays among them stand at even distances."""

KEPT_REQUESTS = 100
MOST_WEIGHT = 1000


@unique
class Kind(StrEnum):
    """The kinds of turns: the scenarios of the comparison, the ordinary turn, and what no recall policy decides.

    `ORDINARY`: spread as `Ordinary` says. `EXACT_TITLE`: names a note by its title, so that no selector is asked.
    `SELECTOR_FAILED`: the selector fails where words match, so that the words stand in. `FAILED`: the answer breaks
    off. `SLOW_TURN`: longer than a turn may be before it is marked as slow.
    """

    ORDINARY = "ordinary"
    SETTLED_BEFORE_SEND = "settled_before_send"
    SLOW_WITH_TOOLS = "slow_with_tools"
    TIMED_OUT = "timed_out"
    SLOW_WITHOUT_TOOLS = "slow_without_tools"
    SUPERSEDED = "superseded"
    INTERRUPTED = "interrupted"
    NOT_SENT = "not_sent"
    UNAVAILABLE = "unavailable"
    NOTHING_FOUND = "nothing_found"
    EXACT_TITLE = "exact_title"
    SELECTOR_FAILED = "selector_failed"
    FAILED = "failed"
    SLOW_TURN = "slow_turn"


@dataclass(frozen=True, slots=True)
class Mix:
    """How many of how many turns are of each kind; weights are whole numbers from 1 to 1000."""

    weights: Mapping[Kind, int]

    @classmethod
    def parse(cls, text: str, *, source: str = "--scenarios") -> "Mix":
        """Read `timed_out,superseded` or `ordinary:90,failed:10`; a kind without a weight has 1.

        Raises:
            ConfigError: an unknown kind, a kind named twice, a weight that is no whole number from 1 to 1000.
        """
        weights: dict[Kind, int] = {}
        for part in text.split(","):
            name, colon, weight = part.strip().partition(":")
            known = {kind.value: kind for kind in Kind}
            if name not in known:
                allowed = f"{', '.join(known)}, each with or without a weight as in ordinary:90,failed:10"
                raise ConfigError(key="scenarios", value=part.strip(), allowed=allowed, source=source)
            if known[name] in weights:
                raise ConfigError(key="scenarios", value=text, allowed="each kind of turn at most once", source=source)
            if colon and not (weight.isascii() and weight.isdigit() and 0 < int(weight) <= MOST_WEIGHT):
                allowed = f"weights that are whole numbers from 1 to {MOST_WEIGHT}"
                raise ConfigError(key="scenarios", value=part.strip(), allowed=allowed, source=source)
            weights[known[name]] = int(weight) if colon else 1
        return cls(MappingProxyType(weights))


BELIEVABLE = Mix(
    MappingProxyType(
        {
            Kind.ORDINARY: 160,
            Kind.SETTLED_BEFORE_SEND: 6,
            Kind.SLOW_WITH_TOOLS: 6,
            Kind.TIMED_OUT: 4,
            Kind.SLOW_WITHOUT_TOOLS: 4,
            Kind.SUPERSEDED: 4,
            Kind.INTERRUPTED: 4,
            Kind.NOT_SENT: 1,
            Kind.UNAVAILABLE: 1,
            Kind.NOTHING_FOUND: 4,
            Kind.EXACT_TITLE: 3,
            Kind.SELECTOR_FAILED: 1,
            Kind.FAILED: 1,
            Kind.SLOW_TURN: 1,
        }
    )
)
"""A day like another: of 200 turns 160 are ordinary, and what goes wrong does so once in a while."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordinary:
    """How ordinary turns are spread.

    `selector`: the shortest and the longest delay of the selector in seconds, evenly between them, or most often near
    `usual` and ever rarer towards both ends. `unmatched`: the share whose words match no note, so that only the
    selector finds any. `tools`: the share that calls a tool.
    """

    selector: tuple[float, float] = (0.05, 0.8)
    usual: float | None = None
    unmatched: float = 0.05
    tools: float = 0.4


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedTurn:
    """One turn: what the person says and does, what the model server answers (`parts`), and how the turn ends.

    `second` comes and `cancel_after` counts from the begin; `preparation` is what the reminders take (all seconds).
    """

    kind: Kind
    prompt: str
    parts: tuple[Part, ...]
    preparation: float = 0.0
    second: SecondPrompt | None = None
    cancel_after: float | None = None
    outcome: TurnOutcome = TurnOutcome.END_TURN


class Deck:
    """Deals the turns of a traffic in an order that `chance` decides, and in the exact shares of the mix.

    Like cards: what was dealt comes again when all else has been, so that a short play has its shares, too.
    """

    def __init__(self, traffic: "Traffic", chance: random.Random) -> None:
        self._traffic = traffic
        self._chance = chance
        self._kinds: list[Kind] = []
        self._ordinary: list[ScriptedTurn] = []

    def deal(self) -> ScriptedTurn:
        """Return the next turn."""
        if not self._kinds:
            self._kinds = [kind for kind, weight in self._traffic.mix.weights.items() for _ in range(weight)]
            self._chance.shuffle(self._kinds)
        kind = self._kinds.pop()
        if kind is not Kind.ORDINARY:
            return self._traffic.single[kind]
        if not self._ordinary:
            self._ordinary = list(self._traffic.ordinary)
            self._chance.shuffle(self._ordinary)
        return self._ordinary.pop()


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What is played: `ordinary` in its variants, and the `single` turn of each other kind in the `mix`."""

    mix: Mix
    ordinary: Sequence[ScriptedTurn]
    single: Mapping[Kind, ScriptedTurn] = field(default_factory=dict[Kind, ScriptedTurn])

    @classmethod
    def of(cls, mix: Mix, ordinary: Ordinary, chance: random.Random) -> "Traffic":
        """Write the turns; `chance` decides which selector delay, answer and tool come together."""
        return cls(
            mix=mix,
            ordinary=tuple(_ordinary(ordinary, chance)) if Kind.ORDINARY in mix.weights else (),
            single={turn.kind: turn for turn in _SINGLE if turn.kind in mix.weights},
        )

    @property
    def script(self) -> Script:
        """The script that answers all of it, and any other prompt as a demo."""
        turns = (*self.ordinary, *self.single.values())
        script = build_script((), [part for turn in turns for part in turn.parts])
        return replace(script, keep_requests=KEPT_REQUESTS)


# The ordinary turns

_MATCHED = (
    ("How do I reach the staging database from my own machine?", ("Staging database", "Short answers")),
    ("Can the billing migration run again after a failure?", ("Billing migration", "Dry run first")),
    ("Why does a rebuild of the search index take so long?", ("Search index", "On-call rota")),
    ("Who may push to the release branch this week?", ("Release branches", "Short answers")),
    ("What did we change after the payments outage in March?", ("Payments outage of March", "On-call rota")),
)
"""Prompts whose words match the first note, and what the selector chooses."""

_UNMATCHED = (
    ("Could you say that in plainer words?", ("Short answers", "On-call rota")),
    ("Does this look right to you?", ("Dry run first", "Short answers")),
    ("Please have another go at it.", ("On-call rota", "Search index")),
)
"""Prompts whose words match no note, and what the selector chooses all the same."""

_SAYS = "Here is what I found, in the order in which it matters, and what I would do next. "

_SHORTEST_ANSWER, _LONGEST_ANSWER = 0.2, 1.4
_SHORTEST_TOOL, _LONGEST_TOOL = 0.2, 1.6
_LETTERS = "bcdfghjklmnpqrstvwxz"


_CACHED = ScriptedUsage(input=400, output=20, cached=320)
"""What a provider with a cache tells of a request that continues another one."""


def _ordinary(spread: Ordinary, chance: random.Random) -> Iterator[ScriptedTurn]:
    unmatched = round(VARIANTS * spread.unmatched)
    number = 0
    for prompts, count in ((_UNMATCHED, unmatched), (_MATCHED, VARIANTS - unmatched)):
        delays = _delays(spread, count, chance)
        answers = _spread(_SHORTEST_ANSWER, _LONGEST_ANSWER, count, chance)
        tools = _spread(_SHORTEST_TOOL, _LONGEST_TOOL, count, chance)
        with_tool = [place < round(count * spread.tools) for place in range(count)]
        chance.shuffle(with_tool)
        for place in range(count):
            text, notes = prompts[place % len(prompts)]
            prompt = f"{text} {_mark(number)}"
            main = [answer_step(_SAYS, answers[place])]
            if with_tool[place]:
                main = [tool_step(tools[place]), replace(main[0], usage=_CACHED)]
            selection = Step(delay=delays[place], select=Select(contains=notes))
            part = script_part(f"{Kind.ORDINARY} {number}", prompt, tuple(main), selection)
            yield ScriptedTurn(kind=Kind.ORDINARY, prompt=prompt, parts=(part,))
            number += 1


def _delays(spread: Ordinary, count: int, chance: random.Random) -> list[float]:
    """Return `count` selector delays, shuffled; with a usual one, the quantiles of a triangular distribution."""
    lowest, highest = spread.selector
    if spread.usual is None:
        return _spread(lowest, highest, count, chance)
    width = highest - lowest
    below = (spread.usual - lowest) / width
    places = _spread(0.0, 1.0, count, chance)
    return [
        round(
            lowest + width * math.sqrt(place * below)
            if place < below
            else highest - width * math.sqrt((1 - place) * (1 - below)),
            4,
        )
        for place in places
    ]


def _spread(lowest: float, highest: float, count: int, chance: random.Random) -> list[float]:
    """Return `count` values at even distances between the bounds, shuffled."""
    values = [round(lowest + (highest - lowest) * (place + 0.5) / count, 4) for place in range(count)]
    chance.shuffle(values)
    return values


def _mark(number: int) -> str:
    """Return a word that stands in no note and tells prompts apart; no such word stands within another one."""
    high, low = divmod(number, len(_LETTERS))
    return f"(q{_LETTERS[high]}{_LETTERS[low]}q)"


# One turn of each other kind


def _of_table(scenario: Scenario) -> ScriptedTurn:
    play = SCENARIOS[scenario]
    return ScriptedTurn(
        kind=Kind(scenario.value),
        prompt=play.prompt,
        parts=script_parts(play),
        preparation=play.preparation,
        second=play.second,
    )


def _turn(
    kind: Kind,
    prompt: str,
    *main: Step,
    selection: Step,
    cancel_after: float | None = None,
    outcome: TurnOutcome = TurnOutcome.END_TURN,
) -> ScriptedTurn:
    part = script_part(str(kind), prompt, main, selection)
    return ScriptedTurn(kind=kind, prompt=prompt, parts=(part,), cancel_after=cancel_after, outcome=outcome)


_CHOSEN = Select(contains=("On-call rota", "Short answers"))

_SINGLE = (
    *(_of_table(scenario) for scenario in SCENARIOS),
    _turn(
        Kind.INTERRUPTED,
        "Write down for me how the schedule of the on-call rota changes.",
        tool_step(2.0),
        answer_step(_SAYS, 0.5),
        selection=Step(delay=1.6, select=_CHOSEN),
        cancel_after=0.4,
        outcome=TurnOutcome.CANCELLED,
    ),
    _turn(
        Kind.NOT_SENT,
        "Who stands on the on-call schedule at night this month?",
        Step(status=503, body="the script has no room for this one"),
        selection=Step(delay=0.1, select=_CHOSEN),
        outcome=TurnOutcome.FAILED,
    ),
    _turn(
        Kind.UNAVAILABLE,
        "Can you do that again for the other one?",
        answer_step(_SAYS, 0.5),
        selection=Step(delay=0.05, status=503, body="the script lets this selection fail"),
    ),
    _turn(
        Kind.NOTHING_FOUND,
        "That is all, have a nice evening!",
        answer_step("You too.", 0.3, chunks=5),
        selection=Step(delay=0.2, select=Select()),
    ),
    _turn(
        Kind.EXACT_TITLE,
        "Where is the on-call rota?",
        answer_step(_SAYS, 0.4),
        selection=Step(delay=0.3, select=_CHOSEN),
    ),
    _turn(
        Kind.SELECTOR_FAILED,
        "Which queue broke the payments in March?",
        answer_step(_SAYS, 0.6),
        selection=Step(delay=0.1, status=503, body="the script lets this selection fail"),
    ),
    _turn(
        Kind.FAILED,
        "Check the ledger of the billing migration for me.",
        tool_step(0.3),
        Step(
            answer=_SAYS,
            chunks=20,
            chunk_delay=0.02,
            error_chunk=ErrorChunk(message="the script breaks off here", after=8),
        ),
        selection=Step(delay=0.1, select=Select(contains=("Billing migration", "Dry run first"))),
        outcome=TurnOutcome.FAILED,
    ),
    _turn(
        Kind.SLOW_TURN,
        "Go through all shards of the search index and count them.",
        tool_step(11.0),
        answer_step(_SAYS, 0.5),
        selection=Step(delay=0.5, select=Select(contains=("Search index", "On-call rota"))),
    ),
)
