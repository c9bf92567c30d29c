"""Words: how text is cut, compared with a slow reference and with examples of every kind."""

import re
import unicodedata
from typing import Any

import pytest
import snowballstemmer
from hypothesis import given
from hypothesis import strategies as st

from recallscope.runtime.memory.tokens import MAX_QUERY_TOKENS, Tokens
from recallscope.runtime.memory.words import FUNCTION_WORDS, GRAMMAR_BIGRAMS

TOKENS = Tokens()
STEMMER: Any = snowballstemmer.stemmer("english")  # pyright: ignore[reportUnknownMemberType] - it has no types


def cut(text: str) -> list[str]:
    """Return the tokens of a note's text."""
    return list(TOKENS.of(text))


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Deploying the deployments", ["deploy"]),
        ("\uff26\uff35\uff2c\uff2c width \ufb01ne", ["full", "width", "fine"]),
        ("CI and k8s in go", ["ci", "k8s", "go"]),
        ("C++ or C# here", ["c++", "c#"]),
        ("fooBar", ["foobar", "foo", "bar"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("foo_bar", ["foo_bar", "foo", "bar"]),
        ("src/foo.py", ["src/foo.py", "src", "foo", "py"]),
        ("10.0.0.1", ["10.0.0.1", "10"]),
        ("v1.2.3", ["v1.2.3", "v1"]),
        ("PROJ-123", ["proj-123", "proj", "123"]),
        ("__init__", ["init"]),
        ("the user's don't", ["user"]),
        ("部署流程", ["部署", "署流", "流程"]),
        ("用k8s部署", ["k8s", "部署"]),
        ("人", []),
        ("배포 절차", ["배포", "절차"]),
        ("развернуть", ["развернуть"]),
        ("café CAFÉ", ["café"]),
        ("หกด", ["หกด"]),
        ("हिन्दी", ["हिन्दी"]),
        ("a I x", []),
        ("!?… — ()", []),
        ('" OR * NEAR(', ["near"]),
    ],
)
def test_text_is_cut_into_tokens(text: str, tokens: list[str]) -> None:
    """Each kind of writing gives the tokens that a search for it needs."""
    assert cut(text) == tokens


def test_a_query_says_what_each_token_can_tell() -> None:
    """Identifiers tell more than words, parts and numbers less, everyday words little, function words nothing."""
    got = {token.text: token.weight for token in TOKENS.query("why does the fooBar test fail 42 times in staging k8s")}
    assert got == {
        "foobar": 1.2,
        "foo": 0.5,
        "bar": 0.5,
        "test": 0.3,
        "fail": 0.3,
        "42": 0.5,
        "time": 0.3,
        "stage": 1.0,
        "k8s": 1.2,
    }


def test_of_a_long_query_both_ends_survive() -> None:
    """A long prompt is cut in its middle: the question may stand at either end."""
    words = [f"w{number}x" for number in range(500)]
    got = [token.text for token in TOKENS.query(" ".join(words))]
    half = MAX_QUERY_TOKENS // 2
    assert got == words[:half] + words[-half:]


def test_a_query_of_a_megabyte_is_cut_before_it_is_read() -> None:
    """Its first and last characters give the tokens."""
    got = [token.text for token in TOKENS.query("alpha " + "x" * 1_000_000 + " omega")]
    assert (got[0], got[-1]) == ("alpha", "omega")


_WORD = st.text(st.sampled_from("abcdefgäßжλ"), min_size=1, max_size=8)
_HAN = st.text(st.sampled_from("部署流程图表测试"), min_size=1, max_size=5)


@given(st.lists(_WORD | _HAN | st.sampled_from(["the", "running", " ", ", ", "7", "404"]), max_size=12))
def test_tokens_equal_a_naive_reading(pieces: list[str]) -> None:
    """For plain words and Han the tokens are those of a reader who goes word by word."""
    text = " ".join(pieces)
    expected: dict[str, None] = {}
    for piece in re.split(r"[\s,]+", unicodedata.normalize("NFKC", text)):
        folded = piece.casefold()
        if re.fullmatch("[\u4e00-\u9fff]+", folded):
            pairs = [folded[at : at + 2] for at in range(len(folded) - 1)]
            expected |= dict.fromkeys(pair for pair in pairs if pair not in GRAMMAR_BIGRAMS)
        elif len(folded) > 1 and folded not in FUNCTION_WORDS:
            ascii_word = re.fullmatch("[a-z]{3,}", folded)
            expected[STEMMER.stemWord(folded) if ascii_word else folded] = None
    assert TOKENS.of(text) == expected


@given(st.text(max_size=200))
def test_any_text_gives_tokens_that_the_index_can_hold(text: str) -> None:
    """No token is empty, too long, or holds a blank or a quotation mark, and a query finds what a note holds."""
    tokens = TOKENS.of(text)
    assert all(token and len(token) <= 64 and not re.search(r'[\s"\0]', token) for token in tokens)
    assert {token.text for token in TOKENS.query(text)} <= set(tokens)
