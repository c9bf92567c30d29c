"""Words: how text is cut, compared with a slow reference and with examples of every kind."""

import re
import unicodedata
from typing import Any, cast

import pytest
import Stemmer
from hypothesis import given
from hypothesis import strategies as st

from recallscope.runtime.memory.tokens import MAX_QUERY_TOKENS, Tokens
from recallscope.runtime.memory.words import FUNCTION_WORDS, GRAMMAR_GRAMS

TOKENS = Tokens()
STEMMER = cast("Any", Stemmer.Stemmer("english"))  # pyright: ignore[reportUnknownMemberType] - it has no types


def cut(text: str) -> list[str]:
    """Return the tokens of a note's text."""
    return list(TOKENS.of(text))


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Deploying the deployments", ["deploy"]),
        ("\uff26\uff35\uff2c\uff2c width \ufb01ne", ["full", "width", "fine"]),
        ("fooBar", ["foobar", "foo", "bar"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("foo_bar", ["foobar", "foo", "bar"]),
        ("src/foo.py", ["src/foo.py", "src", "foo.py", "foo", "py"]),
        ("src/foo_bar/Baz.py", ["src/foo_bar/baz.py", "src", "foobar", "foo", "bar", "baz.py", "baz", "py"]),
        ("mcp__jira__create_issue", ["mcp__jira__create_issue", "mcp", "jira", "createissue", "creat", "issu"]),
        ("store::merge()", ["store::merge", "store", "merg"]),
        ("__init__", ["init"]),
        ("e-mail", ["mail", "email"]),
        ("load-tests", ["load", "test", "loadtest"]),
        ("!?… — ()", []),
        ('" OR * NEAR(', ["near"]),
        ("a I x", []),
    ],
)
def test_text_is_cut_into_tokens(text: str, tokens: list[str]) -> None:
    """NFKC and case folding; English stemmed; identifiers and paths whole, by component and in parts."""
    assert cut(text) == tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("CI and k8s", ["ci", "k8s"]),
        ("C++ or C# here", ["c++", "c#"]),
        ("c++17", ["c++17", "c++"]),
        (".NET 8", [".net", "net"]),
        ("10.0.0.1", ["10.0.0.1"]),
        ("10.0.0.1:8443", ["10.0.0.1:8443", "10.0.0.1", "8443"]),
        ("v1.2.3", ["1.2.3", "1.2"]),
        ("PROJ-123", ["proj-123", "proj", "123"]),
        ("port 8443", ["port", "8443"]),
        ("our IT, it is", ["it"]),
        ("Golang", ["go"]),
        ("Kubernetes", ["k8s"]),
    ],
)
def test_short_names_and_numbers_are_whole_words(text: str, tokens: list[str]) -> None:
    """What is short, or mostly digits and signs, is kept as it is written."""
    assert cut(text) == tokens


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("résumé", "RESUME"),
        ("İstanbul", "istanbul"),
        ("Łódź", "lodz"),
        ("Straße", "STRASSE"),
        ("de\u0301po\u0302t", "dépôt"),
        ("развёртывание", "РАЗВЕРТЫВАНИЯ"),
        ("παράδοση", "ΠΑΡΑΔΟΣΗ"),
        ("مُسْتَوْدَع", "المستودع"),
        ("foo_bar", "fooBar"),
        ("foo-bar", "FooBar"),
        ("e-mail", "email"),
        ("on-call", "oncall"),
        ("\uff21\uff0d\uff10\uff11", "a-01"),
        ("ｶﾀｶﾅ", "カタカナ"),
        ("l'équipe", "equipe"),
        ("Python 3.11", "python 3.11.4"),
        ("golang", "Go"),
    ],
)
def test_spellings_of_one_word_meet(one: str, other: str) -> None:
    """Case, accents, width, decomposition, hyphens, clitics and inflection do not part a word from itself."""
    first, second = cut(one), cut(other)
    assert set(first) & set(second)
    assert set(first) <= set(second) or set(second) <= set(first)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("部署流程", ["部署", "署流", "流程"]),
        ("用k8s部署", ["k8s", "部署"]),
        ("人", []),
        ("我", []),
        ("배포 절차", ["배포", "절차"]),
        ("หกด", ["หกด"]),
        ("น้ํา", ["น้ํ", "้ํา"]),
        ("हिन्दी", ["हिन्दी"]),
        ("развернуть", ["развернут"]),
        ("где лежат сертификаты", ["лежат", "сертификат"]),
        ("Ποια πύλη;", ["πυλ"]),
        ("أين المستودع", ["مستودع"]),
    ],
)
def test_each_script_is_cut_as_it_is_written(text: str, tokens: list[str]) -> None:
    """Han, kana and Hangul in pairs, a lone one is no query; Thai in triples; the others in words, stemmed."""
    assert cut(text) == tokens


def test_a_latin_text_is_stemmed_as_the_language_that_its_function_words_tell() -> None:
    """The words of another language stand in the index stemmed as that language and as English."""
    assert cut("die Rechnungen und die Verträge") == ["rechnung", "rechnungen", "vertrag"]
    assert cut("les factures de la société") == ["factur", "societ"]
    assert cut("the Rechnungen and the Verträge") == ["rechnungen", "vertrag"]
    assert list(TOKENS.of_fields(("Rechnungen", "die und das"))[0]) == ["rechnung", "rechnungen"]


def test_function_words_of_a_language_are_words_of_another() -> None:
    """`die`, `bin` and `war` are English words, as long as the text is English."""
    assert cut("the bin folder of the war file") == ["bin", "folder", "war", "file"]
    assert cut("ich bin in der Halle") == ["hall"]


def test_a_query_says_what_each_token_can_tell() -> None:
    """Identifiers tell most, then words, common words, parts, numbers, everyday words; function words tell nothing."""
    got = {token.text: token.weight for token in TOKENS.query("why does the fooBar test fail 42 times in staging k8s")}
    assert got == {
        "foobar": 1.2,
        "foo": 0.5,
        "bar": 0.3,
        "test": 0.3,
        "fail": 0.3,
        "42": 0.5,
        "time": 0.3,
        "stage": 0.6,
        "k8s": 1.2,
    }


@pytest.mark.parametrize(
    ("query", "weight"),
    [
        ("go", 1.0),
        ("how do we log in go", 1.0),
        ("which Go version", 1.0),
        ("go modules", 1.0),
        ("golang", 1.0),
        ("die Go-Version der Dienste", 1.0),
        ("where did the logs go", 0.3),
        ("Go ahead with it", 0.3),
        ("let us go live", 0.3),
    ],
)
def test_go_the_language_is_told_from_go_the_verb(query: str, weight: float) -> None:
    """The language's name tells as much as any word, the verb as little as everyday words."""
    assert {token.text: token.weight for token in TOKENS.query(query)}["go"] == weight


def test_of_a_long_query_both_ends_survive() -> None:
    """A long prompt is cut in its middle: the question may stand at either end."""
    words = [f"w{number}x" for number in range(500)]
    got = [token.text for token in TOKENS.query(" ".join(words))]
    half = MAX_QUERY_TOKENS // 2
    assert got == words[:half] + words[-half:]


@pytest.mark.parametrize(
    "filler",
    ["x", "_", "-", "a-", "'", "a'", ".a", "ab ", "部", "ก", "\u0301", "\ufdfa", "1.", "aB", "/a"],
)
def test_a_query_of_a_megabyte_is_cut_before_it_is_read(filler: str) -> None:
    """Its first and last characters give the tokens, at most 64, whatever stands between."""
    got = [token.text for token in TOKENS.query("alpha " + filler * (1_000_000 // len(filler)) + " omega")]
    assert (got[0], got[-1]) == ("alpha", "omega")
    assert len(got) <= MAX_QUERY_TOKENS


_WORD = st.text(st.sampled_from("abcdefgä"), min_size=1, max_size=8)
_HAN = st.text(st.sampled_from("部署流程图表测试"), min_size=1, max_size=5)
_ENGLISH = "the of and to in is it that for was on are with as they be at one have this " * 2


@given(st.lists(_WORD | _HAN | st.sampled_from(["the", "running", " ", ", ", "7", "404"]), max_size=12))
def test_tokens_equal_a_naive_reading(pieces: list[str]) -> None:
    """For English words and Han the tokens are those of a reader who goes word by word."""
    text = " ".join(pieces)
    expected: dict[str, None] = {}
    for piece in re.split(r"[\s,]+", unicodedata.normalize("NFKC", text)):
        folded = piece.casefold().replace("ä", "a")
        if re.fullmatch("[\u4e00-\u9fff]+", folded):
            pairs = [folded[at : at + 2] for at in range(len(folded) - 1)]
            expected |= dict.fromkeys(pair for pair in pairs if pair not in GRAMMAR_GRAMS)
        elif len(folded) > 1 and folded not in FUNCTION_WORDS["english"]:
            expected[STEMMER.stemWord(folded) if re.fullmatch("[a-z]{3,}", folded) else folded] = None
    assert TOKENS.of(_ENGLISH + text) == expected


@given(st.text(max_size=200))
def test_any_text_gives_tokens_that_the_index_can_hold(text: str) -> None:
    """No token is empty, too long, or holds a blank or a quotation mark, and a query finds what a note holds."""
    tokens = TOKENS.of(text)
    assert all(token and len(token) <= 64 and not re.search(r'[\s"\0]', token) for token in tokens)
    assert {token.text for token in TOKENS.query(text)} <= set(tokens)
