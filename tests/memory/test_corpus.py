"""What the search reaches on the labelled corpus: pinned to the last digit, and above its floors."""

import pytest
from curve import delivered_at
from evaluate import Answer, Run, figures, run_corpus, runs_of
from labelled import Corpus, Slice, load_corpus, problems, sharing_negatives
from table import CURVE, PAGE, blocks, curve_svg, with_blocks

LEAST_HIT_2 = 0.90
LEAST_NO_SHARED_WORD = 0.60
MOST_FALSE = 0.02


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    """Return the corpus of this repository."""
    return load_corpus()


@pytest.fixture(scope="module")
def runs(corpus: Corpus) -> tuple[Run, Run]:
    """Return the answers to every query, from memories without and with the stored phrasings."""
    return runs_of(corpus)


def of(run: Run, *slices: Slice) -> list[Answer]:
    """Return the answers to the queries of `slices`."""
    return [answer for answer in run.answers if answer.query.slice in slices]


def test_the_corpus_is_large_enough(corpus: Corpus) -> None:
    """It holds 300 notes, 200 queries, 60 of them negative, and every slice."""
    assert len(corpus.notes) >= 300
    assert len(corpus.queries) >= 200
    assert sum(query.slice is Slice.NEGATIVE for query in corpus.queries) >= 60
    assert {query.slice for query in corpus.queries} == set(Slice)


def test_the_corpus_is_sound(corpus: Corpus) -> None:
    """Labels point to notes, nothing stands twice, and a query that should share no word with its note shares none."""
    assert problems(corpus) == []


def test_negative_queries_are_no_easy_ones(corpus: Corpus) -> None:
    """At least half of them share a word with some note."""
    sharing, negatives = sharing_negatives(corpus)
    assert sharing >= negatives / 2


def test_the_figures_are_the_committed_ones(runs: tuple[Run, Run]) -> None:
    """`docs/ranking.md` and its drawing say what this run says; `make corpus-curve` writes them anew."""
    page = PAGE.read_text(encoding="utf-8")
    assert with_blocks(page, blocks(runs)) == page
    assert CURVE.read_text(encoding="utf-8") == curve_svg(*runs)


def test_queries_that_share_words_with_their_note_find_it_in_every_language(runs: tuple[Run, Run]) -> None:
    """With stored phrasings the note is in the fast result for nine of ten queries of each language."""
    shared = [answer for answer in runs[1].answers if answer.query.slice.shares_words and answer.query.relevant]
    languages: dict[str, list[Answer]] = {}
    for answer in shared:
        languages.setdefault(answer.query.language, []).append(answer)
    low = {key: found for key, answers in languages.items() if (found := figures(answers).hit_2 or 0.0) < LEAST_HIT_2}
    assert low == {}


def test_queries_that_share_words_find_their_note_in_every_slice(runs: tuple[Run, Run]) -> None:
    """With stored phrasings, nine of ten of them have it in the fast result, whatever they are there to test."""
    low = {kind: found for kind in Slice if kind.shares_words and (found := _hit_2(runs[1], kind)) < LEAST_HIT_2}
    assert low == {}


def _hit_2(run: Run, kind: Slice) -> float:
    return figures(of(run, kind)).hit_2 or 0.0


def test_queries_that_share_no_word_with_their_note_find_it_by_its_phrasings(runs: tuple[Run, Run]) -> None:
    """With stored phrasings and keywords the note is in the fast result for six of ten."""
    assert (figures(of(runs[1], Slice.NO_SHARED_WORD)).hit_2 or 0.0) >= LEAST_NO_SHARED_WORD


def test_negative_queries_deliver_nothing(runs: tuple[Run, Run]) -> None:
    """With stored phrasings or without, at most 2 % of them put anything into the fast result."""
    assert max(figures(of(run, Slice.NEGATIVE)).false or 0.0 for run in runs) <= MOST_FALSE


def test_superseded_notes_and_usage_notes_of_recent_tools_are_never_delivered(runs: tuple[Run, Run]) -> None:
    """No fast result of the slices on stale facts and on tools holds a forbidden note."""
    assert [answer for run in runs for answer in of(run, Slice.STALE, Slice.TOOL_NOISE) if answer.is_false] == []


def test_a_threshold_on_the_curve_is_what_the_search_does(runs: tuple[Run, Run]) -> None:
    """At the threshold in force the curve counts the notes that were delivered."""
    assert [delivered_at(answer, 1.0) for run in runs for answer in run.answers] == [
        answer.fast for run in runs for answer in run.answers
    ]


@pytest.mark.anyio
async def test_the_search_says_the_same_twice(corpus: Corpus, runs: tuple[Run, Run]) -> None:
    """A memory over other files with the same notes gives the same answers."""
    some = Corpus(corpus.notes, corpus.queries[::10])
    assert (await run_corpus(some, phrasings=False)).answers == runs[0].answers[::10]
