"""How far back a command looks, as it is written."""

import click
import pytest

from recallscope.runtime.cli.since import SINCE, Since


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("30m", 1_800), ("24h", 86_400), ("7d", 604_800), ("1h30m", 5_400), ("2w", 1_209_600)],
)
def test_a_time_is_read(text: str, seconds: int) -> None:
    """Numbers with units, one or several, as Prometheus has them."""
    assert SINCE.convert(text, None, None) == Since(text, seconds)
    assert str(SINCE.convert(text, None, None)) == text


@pytest.mark.parametrize("text", ["", "1", "h", "0s", "-1h", "1 h", "1h]) or vector(1", "yesterday", "999999y", "5ms"])
def test_what_is_no_time_is_told(text: str) -> None:
    """Anything else, with what it looks like."""
    with pytest.raises(click.BadParameter, match="it must be a time such as 90s, 30m, 1h30m, 24h or 7d"):
        SINCE.convert(text, None, None)
