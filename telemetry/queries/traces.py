"""TraceQL: which traces to look at, in a Tempo. Only attributes of spans are asked for, which back ends index."""

from recallscope.runtime.events import Outcome
from recallscope.telemetry import names
from recallscope.telemetry.queries.service_levels import SLOW_TURN

__all__ = ["slow_turns", "turns_of_row", "undelivered_recalls"]


def slow_turns() -> str:
    """Find the turns above the boundary of a slow turn, with where memory went and what they waited."""
    shown = (names.TURN_OUTCOME, names.TURN_POLICY, names.TURN_SCENARIO, names.TURN_DELIVERED, names.TURN_WAITED)
    return f"{{ {_operation(names.INVOKE_AGENT)} && duration > {SLOW_TURN}s }} | select({_spans(shown)})"


def undelivered_recalls() -> str:
    """Find the recalls that delivered nothing, with reason and cause."""
    shown = (names.RECALL_POLICY, names.RECALL_OUTCOME, names.RECALL_REASON, names.RECALL_CAUSE, names.RECALL_SETTLED)
    without = f'span.{names.RECALL_OUTCOME} != "{Outcome.DELIVERED}"'
    return f"{{ {_operation(names.SEARCH_MEMORY)} && {without} }} | select({_spans(shown)})"


def turns_of_row(policy: str, scenario: str) -> str:
    """Find the turns of one cell of the comparison table."""
    row = f'span.{names.TURN_POLICY} = "{policy}" && span.{names.TURN_SCENARIO} = "{scenario}"'
    return f"{{ {_operation(names.INVOKE_AGENT)} && {row} }}"


def _operation(name: str) -> str:
    return f'span.{names.OPERATION_NAME} = "{name}"'


def _spans(attributes: tuple[str, ...]) -> str:
    return ", ".join(f"span.{name}" for name in attributes)
