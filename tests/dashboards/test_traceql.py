"""Every search for traces asks for attributes that the spans which it looks for carry."""

import re

import pytest

from recallscope.telemetry import names
from recallscope.telemetry.contract import SPAN_ATTRIBUTES
from recallscope.telemetry.queries import traces


@pytest.mark.parametrize(
    ("query", "span"),
    [
        (traces.slow_turns(), names.INVOKE_AGENT),
        (traces.undelivered_recalls(), names.SEARCH_MEMORY),
        (traces.turns_of_row("tiered", "timed_out"), names.INVOKE_AGENT),
    ],
)
def test_a_search_asks_for_what_its_spans_carry(query: str, span: str) -> None:
    """The operation is named, and each `span.` attribute is one of the contract."""
    asked = re.findall(r"span\.([\w.]+)", query)

    assert f'span.{names.OPERATION_NAME} = "{span}"' in query
    assert [name for name in asked if name not in SPAN_ATTRIBUTES[span]] == []
    assert len(asked) > 2
