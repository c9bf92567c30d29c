"""The scripted traffic means what its kinds say: words, notes, shares and order."""

import random
from collections import Counter
from pathlib import Path

import pytest

from recallscope.runtime.errors import ConfigError
from recallscope.runtime.lab.scenarios import write_sample_notes
from recallscope.runtime.lab.traffic import BELIEVABLE, Deck, Kind, Mix, Ordinary, ScriptedTurn, Traffic
from recallscope.runtime.memory.memory import open_memory
from recallscope.runtime.memory.scopes import MemoryRoots
from recallscope.runtime.observe import Observers
from recallscope.runtime.recall.title import is_certain
from recallscope.runtime.terms import Scenario, TurnOutcome
from recallscope.runtime.testing.script_parser import parse_script

SPREAD = Ordinary(selector=(0.01, 0.4), unmatched=1 / 3, tools=0.5)


def _traffic(mix: Mix = BELIEVABLE, ordinary: Ordinary = SPREAD) -> Traffic:
    return Traffic.of(mix, ordinary, random.Random("turns"))


def _selector(turn: ScriptedTurn) -> float:
    return turn.parts[0].purposes["memory_selection"].steps[0].delay


def test_every_scenario_of_the_table_has_a_kind_and_every_kind_a_turn() -> None:
    """The nine rows by their own names, and in the believable mix all kinds."""
    traffic = _traffic()

    assert {scenario.value for scenario in Scenario} <= {kind.value for kind in Kind}
    assert {Kind.ORDINARY, *traffic.single} == set(Kind) == set(BELIEVABLE.weights)
    assert {kind: turn.outcome for kind, turn in traffic.single.items() if turn.outcome != "end_turn"} == {
        Kind.INTERRUPTED: TurnOutcome.CANCELLED,
        Kind.NOT_SENT: TurnOutcome.FAILED,
        Kind.FAILED: TurnOutcome.FAILED,
    }


def test_the_script_is_one_that_the_model_server_reads_and_its_prompts_are_told_apart() -> None:
    """What another process gets is the same script, and no prompt stands within another one."""
    script = _traffic().script
    texts = [part.text for part in script.scenarios]

    assert parse_script(script.as_json()) == script
    assert [text for text in texts if sum(text in other for other in texts) > 1] == []


@pytest.mark.anyio
async def test_the_words_of_ordinary_prompts_match_or_do_not_as_their_share_says(tmp_path: Path) -> None:
    """A third finds nothing by its words; all others find the first note that the selector chooses, and ask it."""
    write_sample_notes(tmp_path / "notes")
    roots = MemoryRoots(project=tmp_path / "notes", base=tmp_path)
    traffic = _traffic()
    matched: list[bool] = []
    certain: list[str] = []
    async with open_memory(roots, observers=Observers(), catalog_path=tmp_path / "catalog") as memory:
        await memory.wait_synced()
        for turn in (*traffic.ordinary, *traffic.single.values()):
            found = await memory.search(turn.prompt, exclude=frozenset(), recent_tools=())
            titles = [hit.note.title for hit in found.fast]
            select = turn.parts[0].purposes["memory_selection"].steps[0].select
            chosen = select.contains if select is not None else ("",)
            if select is not None:
                assert set(select.contains) <= {note.title for note in found.candidates}, turn.prompt
            if turn.kind is Kind.ORDINARY:
                matched.append(bool(titles))
                assert titles in ([], [chosen[0]]), (turn.prompt, titles)
            elif turn.kind in {Kind.UNAVAILABLE, Kind.NOTHING_FOUND}:
                assert titles == [], turn.prompt
            else:
                assert titles, turn.prompt
            if is_certain(turn.prompt, found):
                certain.append(turn.kind)

    assert (matched.count(False), len(matched)) == (40, 120)
    assert certain == [Kind.EXACT_TITLE]


def test_ordinary_turns_are_spread_evenly() -> None:
    """Delays from end to end, among the unmatched ones too; tools in their share; nothing beyond the bounds."""
    traffic = _traffic(Mix.parse("ordinary"))
    delays = sorted(_selector(turn) for turn in traffic.ordinary)
    tools = sum(len(turn.parts[0].purposes["main"].steps) > 1 for turn in traffic.ordinary)
    quarters = Counter(int((delay - 0.01) / (0.39 / 4)) for delay in delays)

    assert (len(delays), tools) == (120, 60)
    assert (round(delays[0], 2), round(delays[-1], 2)) == (0.01, 0.4)
    assert quarters == {0: 30, 1: 30, 2: 30, 3: 30}


def test_the_deck_has_the_shares_of_the_mix_and_one_seed_one_order() -> None:
    """In two rounds each kind comes as often as its weight says, twice; another seed deals otherwise."""
    traffic = _traffic(Mix.parse("ordinary:7,failed:2,superseded"))

    def deal(seed: int) -> list[str]:
        deck = Deck(traffic, random.Random(seed))
        return [deck.deal().prompt for _ in range(20)]

    deck = Deck(traffic, random.Random(1))
    assert Counter(deck.deal().kind for _ in range(20)) == {Kind.ORDINARY: 14, Kind.FAILED: 4, Kind.SUPERSEDED: 2}
    assert deal(1) == deal(1) != deal(2)


def test_every_ordinary_turn_comes_before_one_comes_again() -> None:
    """120 turns are 120 different ones."""
    deck = Deck(_traffic(Mix.parse("ordinary")), random.Random(1))

    assert len({deck.deal().prompt for _ in range(120)}) == 120


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("quick", "'quick' (from --scenarios) is not allowed: ordinary, settled_before_send, "),
        ("", "'' (from --scenarios) is not allowed: ordinary"),
        ("failed,failed:2", "each kind of turn at most once"),
        ("failed:0", "weights that are whole numbers from 1 to 1000"),
        ("failed:1.5", "weights that are whole numbers from 1 to 1000"),
        ("failed:", "weights that are whole numbers from 1 to 1000"),
    ],
)
def test_a_wrong_mix_is_told(text: str, problem: str) -> None:
    """An unknown kind, one named twice, a weight that is none."""
    with pytest.raises(ConfigError) as caught:
        Mix.parse(text)

    assert problem in str(caught.value)


def test_a_mix_reads_names_and_weights() -> None:
    """A kind without a weight has 1, and blanks do not count."""
    assert Mix.parse("ordinary:90, failed").weights == {Kind.ORDINARY: 90, Kind.FAILED: 1}
