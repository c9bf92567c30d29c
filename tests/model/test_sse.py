"""The framing of server-sent events."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallscope.runtime.errors import ModelStreamError
from recallscope.runtime.model.sse import SseDecoder

LINE_TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\r\n")).filter(bool)


def decode(*pieces: bytes, limit: int = 1024) -> list[tuple[str, bytes]]:
    """Feed `pieces` one after the other and collect all events."""
    decoder = SseDecoder(url="http://server", limit=limit)
    events = [event for piece in pieces for event in decoder.feed(piece)]
    return events + list(decoder.flush())


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_every_line_end_of_the_standard_ends_a_line(end: bytes) -> None:
    """LF, CR and CRLF end a line."""
    assert decode(end.join([b"data: a", b"", b"data:b", b"", b""])) == [("message", b"a"), ("message", b"b")]


def test_comments_and_unknown_fields_are_ignored() -> None:
    """Comments, ids and retry times make no event."""
    assert decode(b": ping\n\nid: 1\nretry: 5\n\ndata: a\n\n") == [("message", b"a")]


def test_data_of_several_lines_is_one_event() -> None:
    """Several data lines are joined with a newline, and the name holds for their event alone."""
    assert decode(b"event: error\ndata: a\ndata: b\n\ndata: c\n\n") == [("error", b"a\nb"), ("message", b"c")]


def test_line_separators_of_unicode_end_no_line() -> None:
    """U+2028, U+0085 and a form feed inside of JSON stay what they are."""
    text = '{"a":"\u2028\u0085\x0c"}'.encode()
    assert decode(b"data: " + text + b"\n\n") == [("message", text)]


def test_a_byte_order_mark_at_the_start_is_no_part_of_the_first_line() -> None:
    """A BOM before the first field is skipped."""
    assert decode(b"\xef\xbb\xbfdata: a\n\n") == [("message", b"a")]


def test_a_missing_last_empty_line_loses_nothing() -> None:
    """A stream that ends right behind its last data line still gives that event."""
    assert decode(b"data: a") == [("message", b"a")]


@pytest.mark.parametrize("pieces", [[b"data: " + b"x" * 30], [b"data: " + b"x" * 8, b"x" * 8, b"x" * 8]])
def test_a_line_without_end_is_bounded(pieces: list[bytes]) -> None:
    """A line over the limit is an error before it ends."""
    with pytest.raises(ModelStreamError, match="more than 20 bytes"):
        decode(*pieces, limit=20)


def test_an_event_of_endless_lines_is_bounded() -> None:
    """The data lines of one event are bounded together."""
    with pytest.raises(ModelStreamError, match="more than 20 bytes"):
        decode(*[b"data: 123456\n"] * 9, limit=20)


@given(
    texts=st.lists(LINE_TEXT, max_size=5),
    end=st.sampled_from([b"\n", b"\r", b"\r\n"]),
    cuts=st.lists(st.integers(0, 200), max_size=12),
)
def test_any_borders_give_the_same_events(texts: list[str], end: bytes, cuts: list[int]) -> None:
    """Wherever the bytes are cut, between CR and LF or inside a character too, the events are the same."""
    data = b"".join(b"data: " + text.encode() + end + end for text in texts)
    borders = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    pieces = [data[start:stop] for start, stop in itertools.pairwise(borders)]
    assert decode(*pieces, limit=10_000) == [("message", text.encode()) for text in texts]
